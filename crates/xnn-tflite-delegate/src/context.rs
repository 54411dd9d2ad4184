//! Safe methods for the function pointers of TFLite's context.

use std::ffi::{CStr, CString, c_int};
use std::ptr::{self, NonNull};

use xnn_model::TensorId;

use crate::abi::{
    IntArray, OK, PaddedRegistration, TfLiteContext, TfLiteDelegate, TfLiteDelegateParams,
    TfLiteNode, TfLiteRegistration, TfLiteStatus, TfLiteTensor, ints,
};
use crate::error::{Error, Result};

/// Context of one call from TFLite. No reference that it returns outlives the call.
#[derive(Clone, Copy)]
pub(crate) struct Context(NonNull<TfLiteContext>);

/// Nodes that TFLite would replace with one kernel.
pub(crate) struct NodeSubset {
    pub(crate) nodes: Vec<c_int>,
    pub(crate) outputs: Vec<c_int>,
}

impl Context {
    /// # Safety
    /// `raw` is null, or the context of a TFLite interpreter that lives as long as the result.
    pub(crate) unsafe fn new(raw: *mut TfLiteContext) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Address that identifies the interpreter's subgraph while it lives.
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    pub(crate) fn recommended_threads(self) -> Option<usize> {
        // SAFETY: live, as `new` requires.
        let threads = unsafe { (*self.0.as_ptr()).recommended_num_threads };
        usize::try_from(threads).ok().filter(|&threads| threads > 0)
    }

    /// All tensors; valid until a call that may add some.
    pub(crate) fn tensors(&self) -> &[TfLiteTensor] {
        // SAFETY: live, as `new` requires; `tensors` has `tensors_size` elements.
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
        // SAFETY: a function of the interpreter with its own context. The returned array is valid
        // until the next such call, and is copied here.
        unsafe {
            let call = (*self.0.as_ptr()).get_execution_plan;
            let call = call.ok_or(Error::NoFunction("GetExecutionPlan"))?;
            check("GetExecutionPlan", call(self.0.as_ptr(), &raw mut plan))?;
            Ok(ints(plan).to_vec())
        }
    }

    /// Returns the node with this index, and its registration.
    pub(crate) fn node(&self, index: c_int) -> Result<(&TfLiteNode, &TfLiteRegistration)> {
        let (mut node, mut registration) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a function of the interpreter with its own context. Node and registration do not
        // move until nodes are added.
        unsafe {
            let call = (*self.0.as_ptr()).get_node_and_registration;
            let call = call.ok_or(Error::NoFunction("GetNodeAndRegistration"))?;
            let status = call(self.0.as_ptr(), index, &raw mut node, &raw mut registration);
            check("GetNodeAndRegistration", status)?;
            node.as_ref().zip(registration.as_ref()).ok_or(Error::NoNode(index))
        }
    }

    /// Returns the groups of nodes that TFLite would replace with one kernel each.
    pub(crate) fn preview(self, nodes: &[c_int]) -> Result<Vec<NodeSubset>> {
        let (mut subsets, mut count) = (ptr::null_mut::<TfLiteDelegateParams>(), 0);
        let nodes = IntArray::new(nodes);
        // SAFETY: a function of the interpreter with its own context. The returned structures are
        // valid until the next such call, and are copied here.
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

    /// Has TFLite replace nodes with kernels.
    ///
    /// # Safety
    /// TFLite may call and keep `registration` and `delegate`.
    pub(crate) unsafe fn replace(
        self,
        nodes: &[c_int],
        registration: PaddedRegistration,
        delegate: *mut TfLiteDelegate,
    ) -> Result<()> {
        let nodes = IntArray::new(nodes);
        // SAFETY: a function of the interpreter with its own context; the caller guarantees the
        // rest.
        unsafe {
            let call = (*self.0.as_ptr()).replace_node_subsets_with_delegate_kernels;
            let call = call.ok_or(Error::NoFunction("ReplaceNodeSubsetsWithDelegateKernels"))?;
            let status = call(self.0.as_ptr(), registration, nodes.as_ptr(), delegate);
            check("ReplaceNodeSubsetsWithDelegateKernels", status)
        }
    }

    /// Changes the dimensions of a tensor, and allocates memory if the tensor is dynamic.
    pub(crate) fn resize(self, id: TensorId, dims: &[usize]) -> Result<()> {
        let dims = dims.iter().map(|&dim| c_int::try_from(dim));
        let dims: Vec<c_int> =
            dims.collect::<std::result::Result<_, _>>().map_err(|_| Error::TooLarge(id))?;
        let dims = IntArray::new(&dims);
        // SAFETY: a function of the interpreter with its own context and tensor, and an array that
        // it may free.
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

    /// Reports an error through TFLite's error reporter, if it has one.
    ///
    /// The message ends with a newline: the reporter of the Python interpreters appends messages to
    /// each other without a separator.
    pub(crate) fn report(self, message: &str) {
        const FORMAT: &CStr = c"xnn-delegate: %s\n";
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a function of the interpreter with its own context, and a string for `%s`.
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
        // SAFETY: guaranteed by the caller.
        let copy = |array| unsafe { ints(array) }.to_vec();
        Self { nodes: copy(params.nodes_to_replace), outputs: copy(params.output_tensors) }
    }
}

fn check(function: &'static str, status: TfLiteStatus) -> Result<()> {
    if status == OK { Ok(()) } else { Err(Error::Refused { function, status }) }
}
