//! A fake TFLite interpreter: the part that a delegate sees. It groups nodes like TFLite.

mod functions;
mod graph;

use std::ffi::{CString, c_char, c_int};
use std::{mem, ptr};

use xnn_runtime::Program;

use crate::abi::{
    AFFINE_QUANTIZATION, MMAP_RO, OK, Step, TfLiteAffineQuantization, TfLiteContext,
    TfLiteDelegate, TfLiteNode, TfLiteQuantization, TfLiteRegistration, TfLiteStatus, TfLiteTensor,
    ints,
};
use crate::delegate::kernel;
use crate::kernel::Kernel;
pub(crate) use graph::bytes;
use graph::{Inner, zeroed};

/// `kTfLiteArenaRw`.
const ARENA_RW: c_int = 2;
/// `kTfLiteFloat32`.
pub(crate) const FLOAT32: c_int = 1;

/// An interpreter with one subgraph. All state is behind one pointer, as in TFLite.
pub(crate) struct Fake(*mut Inner);

impl Fake {
    pub(crate) fn new() -> Self {
        let inner = Box::into_raw(Box::new(Inner {
            context: zeroed(),
            tensors: Vec::with_capacity(64),
            nodes: Vec::new(),
            registrations: Vec::new(),
            plan: Vec::new(),
            outputs: Vec::new(),
            messages: Vec::new(),
            replacements: 0,
            arrays: Vec::new(),
            memory: Vec::new(),
            strings: Vec::new(),
            handed_out: Vec::new(),
        }));
        // On the systems that tests run on, a variadic function that ignores its variadic arguments
        // has the same calling convention as this one.
        type Plain = unsafe extern "C" fn(*mut TfLiteContext, *const c_char, *const c_char);
        // SAFETY: `inner` is live; see above for the transmuted function.
        unsafe {
            let report = mem::transmute::<Plain, crate::abi::ReportError>(functions::report_error);
            let context = &raw mut (*inner).context;
            (*context).implementation = inner.cast();
            (*context).recommended_num_threads = -1;
            (*context).get_execution_plan = Some(functions::get_execution_plan);
            (*context).get_node_and_registration = Some(functions::get_node_and_registration);
            (*context).preview_delegate_partitioning = Some(functions::preview);
            (*context).replace_node_subsets_with_delegate_kernels = Some(functions::replace);
            (*context).resize_tensor = Some(functions::resize_tensor);
            (*context).report_error = Some(report);
        }
        Self(inner)
    }

    #[allow(clippy::mut_from_ref, reason = "pointers all the way down, as in TFLite; one thread")]
    fn inner(&self) -> &mut Inner {
        // SAFETY: live until `drop`; no two of these borrows are used at the same time.
        unsafe { &mut *self.0 }
    }

    pub(crate) fn context(&self) -> *mut TfLiteContext {
        // SAFETY: live until `drop`.
        unsafe { &raw mut (*self.0).context }
    }

    pub(crate) fn context_mut(&self) -> &mut TfLiteContext {
        &mut self.inner().context
    }

    pub(crate) fn tensor_mut(&self, id: c_int) -> &mut TfLiteTensor {
        &mut self.inner().tensors[id as usize]
    }

    /// Adds a tensor without memory.
    pub(crate) fn tensor(&self, element_type: c_int, dims: &[c_int]) -> c_int {
        let inner = self.inner();
        let mut tensor: TfLiteTensor = zeroed();
        tensor.element_type = element_type;
        tensor.allocation_type = ARENA_RW;
        tensor.dims = inner.array(dims);
        tensor.bytes = bytes(element_type, dims);
        inner.tensors.push(tensor);
        inner.context.tensors = inner.tensors.as_mut_ptr();
        inner.context.tensors_size = inner.tensors.len();
        (inner.tensors.len() - 1) as c_int
    }

    /// Sets the signature of a tensor, in which open dimensions are negative.
    pub(crate) fn set_signature(&self, id: c_int, signature: &[c_int]) {
        let signature = self.inner().array(signature);
        self.tensor_mut(id).dims_signature = signature;
    }

    /// Adds a constant.
    pub(crate) fn constant<T: Copy>(
        &self,
        element_type: c_int,
        dims: &[c_int],
        data: &[T],
    ) -> c_int {
        let id = self.tensor(element_type, dims);
        let memory = self.inner().memory(size_of_val(data), 0);
        // SAFETY: the memory has capacity for the data.
        unsafe { memory.cast::<T>().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        let tensor = self.tensor_mut(id);
        (tensor.data, tensor.allocation_type) = (memory, MMAP_RO);
        id
    }

    /// Sets the quantization of a tensor; several scales are along the dimension `axis`.
    pub(crate) fn quantize(&self, id: c_int, scales: &[f32], zero_point: c_int, axis: c_int) {
        let inner = self.inner();
        // Both kinds of arrays consist of a length and 32-bit words.
        let words: Vec<c_int> = scales.iter().map(|scale| scale.to_bits() as c_int).collect();
        let params = TfLiteAffineQuantization {
            scale: inner.array(&words).cast(),
            zero_point: inner.array(&vec![zero_point; scales.len()]),
            quantized_dimension: axis,
        };
        let memory = inner.memory(size_of_val(&params), 0);
        // SAFETY: the memory has capacity for the structure, whose alignment is at most 8.
        unsafe { memory.cast::<TfLiteAffineQuantization>().write(params) };
        let quantization = TfLiteQuantization { kind: AFFINE_QUANTIZATION, params: memory };
        self.tensor_mut(id).quantization = quantization;
    }

    /// Adds a builtin node; `params` is its `builtin_data`.
    pub(crate) fn node<P>(
        &self,
        code: i32,
        params: Option<P>,
        inputs: &[c_int],
        outputs: &[c_int],
    ) -> c_int {
        let inner = self.inner();
        let mut node: TfLiteNode = zeroed();
        node.inputs = inner.array(inputs);
        node.outputs = inner.array(outputs);
        if let Some(params) = params {
            let memory = inner.memory(size_of::<P>(), 0);
            // SAFETY: the memory has capacity for the parameters, whose alignment is at most 8.
            unsafe { memory.cast::<P>().write(params) };
            node.builtin_data = memory;
        }
        let mut registration: TfLiteRegistration = zeroed();
        registration.builtin_code = code;
        registration.version = 1;
        inner.nodes.push(Box::new(node));
        inner.registrations.push(Box::new(registration));
        let index = (inner.nodes.len() - 1) as c_int;
        inner.plan.push(index);
        index
    }

    /// Adds a custom node with these options.
    pub(crate) fn custom(&self, name: &str, options: &[u8], inputs: &[c_int], outputs: &[c_int]) {
        let index = self.node::<()>(xnn_model::op::CUSTOM_CODE, None, inputs, outputs) as usize;
        let inner = self.inner();
        let memory = inner.memory(options.len(), 0);
        // SAFETY: the memory has capacity for the options.
        unsafe { memory.cast::<u8>().copy_from_nonoverlapping(options.as_ptr(), options.len()) };
        inner.nodes[index].custom_initial_data = memory;
        inner.nodes[index].custom_initial_data_size = options.len() as c_int;
        inner.strings.push(CString::new(name).unwrap());
        inner.registrations[index].custom_name = inner.strings.last().unwrap().as_ptr();
    }

    pub(crate) fn set_outputs(&self, outputs: &[c_int]) {
        self.inner().outputs = outputs.to_vec();
    }

    /// Messages that `ReportError` received.
    pub(crate) fn messages(&self) -> String {
        self.inner().messages.join("\n")
    }

    /// Number of kernels that delegates have added to the graph.
    pub(crate) fn replacements(&self) -> usize {
        self.inner().replacements
    }

    /// Builtin codes of the nodes that are not delegated.
    pub(crate) fn left(&self) -> Vec<i32> {
        let inner = self.inner();
        let registrations = inner.plan.iter().map(|&index| &inner.registrations[index as usize]);
        registrations.filter(|r| r.invoke.is_none()).map(|r| r.builtin_code).collect()
    }

    /// Applies a delegate to the graph.
    pub(crate) fn apply(&self, delegate: *mut TfLiteDelegate) -> TfLiteStatus {
        // SAFETY: the same call as TFLite's.
        unsafe { (*delegate).prepare.unwrap()(self.context(), delegate) }
    }

    /// Prepares all nodes, then allocates memory for all tensors that are not empty, `offset` bytes
    /// after an aligned address.
    pub(crate) fn allocate(&self, offset: usize) -> TfLiteStatus {
        let status = self.each(|registration| registration.prepare);
        let inner = self.inner();
        for index in 0..inner.tensors.len() {
            if inner.tensors[index].allocation_type == ARENA_RW {
                let bytes = inner.tensors[index].bytes;
                inner.tensors[index].data = match bytes {
                    0 => ptr::null_mut(),
                    bytes => inner.memory(bytes, offset),
                };
            }
        }
        status
    }

    /// Program that XNNPACK runs for the only kernel of a delegate.
    pub(crate) fn program(&self) -> Program {
        self.kernel().program().unwrap().clone()
    }

    /// Whether XNNPACK computes the only kernel of a delegate.
    pub(crate) fn is_on_xnnpack(&self) -> bool {
        self.kernel().program().is_some()
    }

    fn kernel(&self) -> &Kernel {
        let [only] = self.inner().plan.as_slice() else { panic!("one node") };
        let node = &raw mut *self.inner().nodes[*only as usize];
        // SAFETY: the delegate has replaced all nodes with this one.
        unsafe { kernel(node) }.unwrap()
    }

    /// Runs all nodes. Nodes that are not delegated must be NEG (59).
    pub(crate) fn invoke(&self) -> TfLiteStatus {
        self.each(|registration| registration.invoke)
    }

    /// Runs the kernels of delegates, and skips other nodes.
    pub(crate) fn invoke_kernels(&self) -> TfLiteStatus {
        let inner = self.inner();
        inner.plan.retain(|&index| inner.registrations[index as usize].invoke.is_some());
        self.invoke()
    }

    fn each(&self, step: impl Fn(&TfLiteRegistration) -> Option<Step>) -> TfLiteStatus {
        for index in self.inner().plan.clone() {
            let inner = self.inner();
            let node: *mut TfLiteNode = &raw mut *inner.nodes[index as usize];
            match step(&inner.registrations[index as usize]) {
                // SAFETY: the same call as TFLite's.
                Some(call) => match unsafe { call(self.context(), node) } {
                    OK => {}
                    status => return status,
                },
                None => self.negate(node),
            }
        }
        OK
    }

    fn negate(&self, node: *mut TfLiteNode) {
        // SAFETY: a node of the fake's own.
        let (inputs, outputs) = unsafe { (ints((*node).inputs), ints((*node).outputs)) };
        let (Some(&input), Some(&output)) = (inputs.first(), outputs.first()) else { return };
        if input < 0 || self.tensor_mut(input).bytes != self.tensor_mut(output).bytes {
            return;
        }
        if !self.tensor_mut(input).data.is_null() && !self.tensor_mut(output).data.is_null() {
            let values: Vec<f32> = self.read(input).iter().map(|value| -value).collect();
            self.write(output, &values);
        }
    }

    pub(crate) fn write(&self, id: c_int, values: &[f32]) {
        let tensor = self.tensor_mut(id);
        assert_eq!(tensor.bytes, size_of_val(values));
        if values.is_empty() {
            return;
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        // SAFETY: the tensor has memory for its bytes.
        unsafe { tensor.data.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn read(&self, id: c_int) -> Vec<f32> {
        let tensor = self.tensor_mut(id);
        if tensor.bytes == 0 {
            return Vec::new();
        }
        // SAFETY: the tensor has memory for its bytes.
        let bytes = unsafe { std::slice::from_raw_parts(tensor.data.cast::<u8>(), tensor.bytes) };
        bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_ne_bytes(*chunk)).collect()
    }

    /// Changes the dimensions of an input, like `ResizeInputTensor`.
    pub(crate) fn resize(&self, id: c_int, dims: &[c_int]) {
        let array = self.inner().array(dims);
        let tensor = self.tensor_mut(id);
        tensor.dims = array;
        tensor.bytes = bytes(tensor.element_type, dims);
    }

    pub(crate) fn dims(&self, id: c_int) -> Vec<c_int> {
        // SAFETY: arrays of the fake's own.
        unsafe { ints(self.tensor_mut(id).dims) }.to_vec()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let inner = self.inner();
        for (node, registration) in inner.nodes.iter().zip(&inner.registrations) {
            if let Some(free) = registration.free {
                // SAFETY: the same call as TFLite's.
                unsafe { free(self.context(), node.user_data) };
            }
        }
        // SAFETY: created by `new`, dropped once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
