//! TFLite's context with its pointers behind methods.

use std::ffi::{CStr, CString, c_int};
use std::ptr::{self, NonNull};

use xnn_model::TensorId;

use crate::abi::{
    IntArray, OK, PaddedRegistration, TfLiteContext, TfLiteDelegate, TfLiteDelegateParams,
    TfLiteNode, TfLiteRegistration, TfLiteStatus, TfLiteTensor, ints,
};
use crate::error::{Error, Result};

/// The context of one call from TFLite. Nothing that it hands out outlives the call.
#[derive(Clone, Copy)]
pub(crate) struct Context(NonNull<TfLiteContext>);

/// Nodes that TFLite would replace by one kernel.
pub(crate) struct NodeSubset {
    pub(crate) nodes: Vec<c_int>,
    pub(crate) outputs: Vec<c_int>,
}

impl Context {
    /// # Safety
    /// `raw` is null or the context of a TFLite runtime, which lives as long as the result.
    pub(crate) unsafe fn new(raw: *mut TfLiteContext) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Identifies the interpreter's subgraph while it lives.
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    pub(crate) fn recommended_threads(self) -> Option<usize> {
        // SAFETY: live by the promise of `new`.
        let threads = unsafe { (*self.0.as_ptr()).recommended_num_threads };
        usize::try_from(threads).ok().filter(|&threads| threads > 0)
    }

    /// All tensors, until the next call that may add some.
    pub(crate) fn tensors(&self) -> &[TfLiteTensor] {
        // SAFETY: live by the promise of `new`; `tensors` has `tensors_size` elements.
        unsafe {
            let TfLiteContext { tensors, tensors_size, .. } = self.0.as_ref();
            if tensors.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(*tensors, *tensors_size)
        }
    }

    pub(crate) fn tensor(&self, id: TensorId) -> Result<&TfLiteTensor> {
        let Some(tensor) = self.tensors().get(id) else { return Err(Error::NoTensor(id)) };
        Ok(tensor)
    }

    /// Indices of the nodes in the order in which they run.
    pub(crate) fn execution_plan(self) -> Result<Vec<c_int>> {
        let mut plan = ptr::null_mut();
        // SAFETY: a function of the runtime's, with the runtime's context; the array that it hands
        // out is valid until the next such call, and copied here.
        unsafe {
            let call = (*self.0.as_ptr()).get_execution_plan;
            let call = call.ok_or(Error::NoFunction("GetExecutionPlan"))?;
            check("GetExecutionPlan", call(self.0.as_ptr(), &raw mut plan))?;
            Ok(ints(plan).to_vec())
        }
    }

    /// The node with this index, with what it computes.
    pub(crate) fn node(&self, index: c_int) -> Result<(&TfLiteNode, &TfLiteRegistration)> {
        let (mut node, mut registration) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a function of the runtime's, with the runtime's context; node and registration
        // stay where they are until nodes are added.
        unsafe {
            let call = (*self.0.as_ptr()).get_node_and_registration;
            let call = call.ok_or(Error::NoFunction("GetNodeAndRegistration"))?;
            let status = call(self.0.as_ptr(), index, &raw mut node, &raw mut registration);
            check("GetNodeAndRegistration", status)?;
            node.as_ref().zip(registration.as_ref()).ok_or(Error::NoNode(index))
        }
    }

    /// How TFLite would group these nodes into kernels.
    pub(crate) fn preview(self, nodes: &[c_int]) -> Result<Vec<NodeSubset>> {
        let (mut subsets, mut count) = (ptr::null_mut::<TfLiteDelegateParams>(), 0);
        let nodes = IntArray::new(nodes);
        // SAFETY: a function of the runtime's, with the runtime's context; what it hands out is
        // valid until the next such call, and copied here.
        unsafe {
            let call = (*self.0.as_ptr()).preview_delegate_partitioning;
            let call = call.ok_or(Error::NoFunction("PreviewDelegatePartitioning"))?;
            let status = call(self.0.as_ptr(), nodes.as_ptr(), &raw mut subsets, &raw mut count);
            check("PreviewDelegatePartitioning", status)?;
            let count = usize::try_from(count).unwrap_or(0);
            if subsets.is_null() || count == 0 {
                return Ok(Vec::new());
            }
            let subsets = std::slice::from_raw_parts(subsets, count);
            Ok(subsets.iter().map(|params| NodeSubset::copy_of(params)).collect())
        }
    }

    /// Has TFLite replace nodes by kernels.
    ///
    /// # Safety
    /// `registration` and `delegate` are such as TFLite may call and keep.
    pub(crate) unsafe fn replace(
        self,
        nodes: &[c_int],
        registration: PaddedRegistration,
        delegate: *mut TfLiteDelegate,
    ) -> Result<()> {
        let nodes = IntArray::new(nodes);
        // SAFETY: a function of the runtime's, with the runtime's context; the rest is the caller's
        // promise.
        unsafe {
            let call = (*self.0.as_ptr()).replace_node_subsets_with_delegate_kernels;
            let call = call.ok_or(Error::NoFunction("ReplaceNodeSubsetsWithDelegateKernels"))?;
            let status = call(self.0.as_ptr(), registration, nodes.as_ptr(), delegate);
            check("ReplaceNodeSubsetsWithDelegateKernels", status)
        }
    }

    /// Gives a tensor other dimensions, and memory for them if it is a dynamic one.
    pub(crate) fn resize(self, id: TensorId, dims: &[usize]) -> Result<()> {
        let dims = dims.iter().map(|&dim| c_int::try_from(dim));
        let dims: Vec<c_int> =
            dims.collect::<std::result::Result<_, _>>().map_err(|_| Error::TooLarge(id))?;
        let dims = IntArray::new(&dims);
        // SAFETY: a function of the runtime's, with the runtime's context, a tensor of it, and an
        // array that it may free.
        unsafe {
            let TfLiteContext { tensors, tensors_size, resize_tensor, .. } = *self.0.as_ptr();
            if tensors.is_null() || id >= tensors_size {
                return Err(Error::NoTensor(id));
            }
            let call = resize_tensor.ok_or(Error::NoFunction("ResizeTensor"))?;
            let dims = dims.to_malloc();
            if dims.is_null() {
                return Err(Error::OutOfMemory);
            }
            check("ResizeTensor", call(self.0.as_ptr(), tensors.add(id), dims))
        }
    }

    /// Tells the user through TFLite's error reporter, where it has one.
    pub(crate) fn report(self, message: &str) {
        const FORMAT: &CStr = c"xnn-delegate: %s";
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a function of the runtime's, with the runtime's context and a string for `%s`.
        unsafe {
            if let Some(call) = (*self.0.as_ptr()).report_error {
                call(self.0.as_ptr(), FORMAT.as_ptr(), message.as_ptr());
            }
        }
    }
}

impl NodeSubset {
    /// # Safety
    /// The arrays in `params` are live.
    unsafe fn copy_of(params: &TfLiteDelegateParams) -> Self {
        // SAFETY: the caller's promise.
        let copy = |array| unsafe { ints(array) }.to_vec();
        Self { nodes: copy(params.nodes_to_replace), outputs: copy(params.output_tensors) }
    }
}

fn check(function: &'static str, status: TfLiteStatus) -> Result<()> {
    if status == OK { Ok(()) } else { Err(Error::Refused { function, status }) }
}
