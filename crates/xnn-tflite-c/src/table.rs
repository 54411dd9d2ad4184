//! The `TfLiteTensor` structures of a subgraph, which callers read and write.

use std::ffi::{CString, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use xnn::model::Subgraph;
use xnn_model::{DType, Quantization, Tensor, TensorId, element_count};
use xnn_runtime::AlignedBuffer;
use xnn_tflite_abi::{
    AFFINE_QUANTIZATION, ARENA_RW, BLOCKWISE_QUANTIZATION, CUSTOM, DYNAMIC, FloatArray, IntArray,
    MEM_NONE, MMAP_RO, TfLiteAffineQuantization, TfLiteBlockwiseQuantization, TfLiteQuantization,
    TfLiteTensor, ints, type_code,
};

use crate::text::c_string;

/// Tensors at addresses that do not change.
#[derive(Debug)]
pub(crate) struct TensorTable {
    /// One structure per slot. Callers have pointers to them, so no reference outlives a call.
    tensors: NonNull<TfLiteTensor>,
    slots: Vec<Slot>,
}

/// Memory that a structure points to. Dimensions and dynamic data come from `malloc`, because
/// `common.h` has functions that replace them; the structure owns them.
#[derive(Debug)]
struct Slot {
    dtype: DType,
    name: CString,
    signature: Option<IntArray>,
    affine: Option<Box<Affine>>,
    blockwise: Option<Box<TfLiteBlockwiseQuantization>>,
    memory: Option<AlignedBuffer>,
    /// Size of the caller's memory, where a tensor uses that.
    caller_bytes: usize,
}

/// Affine quantization with its arrays.
struct Affine {
    params: TfLiteAffineQuantization,
    scales: FloatArray,
    zero_points: IntArray,
}

// SAFETY: the table owns all memory that it points to, except for constants of the model and memory
// of the caller, whose use the API's thread rules cover.
unsafe impl Send for TensorTable {}

impl TensorTable {
    pub(crate) fn new(graph: &Subgraph) -> Self {
        let slots: Vec<Slot> = graph.tensors.iter().map(Slot::new).collect();
        let structures = graph.tensors.iter().zip(&slots).map(|(tensor, slot)| slot.tensor(tensor));
        let structures: Box<[TfLiteTensor]> = structures.collect();
        // A box is never null.
        let tensors = NonNull::new(Box::into_raw(structures).cast()).unwrap_or(NonNull::dangling());
        Self { tensors, slots }
    }

    /// The structure of a tensor; null if it does not exist.
    pub(crate) fn pointer(&self, id: TensorId) -> *mut TfLiteTensor {
        match id < self.slots.len() {
            // SAFETY: the array has as many structures as there are slots.
            true => unsafe { self.tensors.as_ptr().add(id) },
            false => ptr::null_mut(),
        }
    }

    fn get(&self, id: TensorId) -> Option<&TfLiteTensor> {
        // SAFETY: null, or a structure of the table; callers do not write to it during a call.
        unsafe { self.pointer(id).as_ref() }
    }

    fn parts(&mut self, id: TensorId) -> Option<(&mut TfLiteTensor, &mut Slot)> {
        // SAFETY: null, or a structure of the table; callers do not access it during a call.
        let tensor = unsafe { self.pointer(id).as_mut() }?;
        Some((tensor, self.slots.get_mut(id)?))
    }

    pub(crate) fn is_constant(&self, id: TensorId) -> bool {
        self.get(id).is_some_and(|tensor| tensor.allocation_type == MMAP_RO)
    }

    pub(crate) fn has_memory(&self, id: TensorId) -> bool {
        self.get(id).is_some_and(|tensor| !tensor.data.is_null())
    }

    pub(crate) fn dims(&self, id: TensorId) -> &[c_int] {
        // SAFETY: null, or an array that the structure owns.
        self.get(id).map_or(&[], |tensor| unsafe { ints(tensor.dims) })
    }

    pub(crate) fn byte_size(&self, id: TensorId) -> usize {
        self.get(id).map_or(0, |tensor| tensor.bytes)
    }

    /// The elements as the caller has written them.
    pub(crate) fn bytes(&self, id: TensorId) -> Option<&[u8]> {
        let tensor = self.get(id).filter(|tensor| !tensor.data.is_null())?;
        // SAFETY: `data` has `bytes` bytes: memory of the slot, of `malloc`, of the model or of the
        // caller. Callers do not write to it during a call.
        Some(unsafe { slice::from_raw_parts(tensor.data.cast::<u8>(), tensor.bytes) })
    }

    /// Points a tensor to its data in the model.
    pub(crate) fn set_constant(&mut self, id: TensorId, data: &[u8]) {
        if let Some((tensor, _)) = self.parts(id) {
            tensor.allocation_type = MMAP_RO;
            tensor.data = data.as_ptr().cast_mut().cast();
            tensor.bytes = data.len();
        }
    }

    pub(crate) fn set_allocation(&mut self, id: TensorId, allocation: c_int) {
        if self.get(id).is_some_and(|tensor| tensor.allocation_type != allocation) {
            self.release(id);
            if let Some((tensor, _)) = self.parts(id) {
                tensor.allocation_type = allocation;
                if allocation == DYNAMIC {
                    tensor.bytes = 0;
                }
            }
        }
    }

    /// Sets dimensions, and the size in bytes that follows from them.
    pub(crate) fn set_shape(&mut self, id: TensorId, dims: &[usize]) -> Result<(), String> {
        let Some((tensor, slot)) = self.parts(id) else { return Ok(()) };
        let too_large =
            || format!("tensor {id} {:?}: dimensions {dims:?} are too large", slot.name);
        let sizes: Result<Vec<c_int>, _> = dims.iter().map(|&dim| c_int::try_from(dim)).collect();
        let sizes = sizes.map_err(|_| too_large())?;
        if slot.dtype.bits().is_some() && tensor.allocation_type != DYNAMIC {
            let bytes = element_count(dims).and_then(|count| slot.dtype.byte_size(count));
            tensor.bytes = bytes.ok_or_else(too_large)?;
        }
        // SAFETY: null, or an array that the structure owns.
        if tensor.dims.is_null() || unsafe { ints(tensor.dims) } != sizes {
            // SAFETY: see above; the structure forgets the array.
            unsafe { free(tensor.dims.cast_mut().cast()) };
            tensor.dims = IntArray::new(&sizes).to_malloc();
        }
        Ok(())
    }

    /// Gives a tensor memory for its size, aligned for XNNPACK. Memory of that size is kept.
    pub(crate) fn allocate(&mut self, id: TensorId, allocation: c_int) -> Result<(), String> {
        let Some((tensor, slot)) = self.parts(id) else { return Ok(()) };
        if tensor.allocation_type == CUSTOM {
            return match tensor.bytes <= slot.caller_bytes {
                true => Ok(()),
                false => Err(format!(
                    "tensor {id} {:?} needs {} bytes, but the caller's memory has {}",
                    slot.name, tensor.bytes, slot.caller_bytes
                )),
            };
        }
        let is_kept = tensor.allocation_type == allocation
            && slot.memory.as_ref().is_some_and(|memory| memory.len() == tensor.bytes);
        if !is_kept {
            let no_memory = |_| format!("tensor {id} {:?}: there is no memory for it", slot.name);
            let mut memory = AlignedBuffer::try_new(tensor.bytes).map_err(no_memory)?;
            if tensor.allocation_type == DYNAMIC {
                // SAFETY: null, or memory from `malloc` that the tensor owns and forgets.
                unsafe { free(tensor.data) };
            }
            tensor.data = memory.as_mut_slice().as_mut_ptr().cast();
            tensor.allocation_type = allocation;
            slot.memory = Some(memory);
        }
        Ok(())
    }

    /// Sets dimensions and elements.
    pub(crate) fn store(
        &mut self,
        id: TensorId,
        dims: &[usize],
        bytes: &[u8],
    ) -> Result<(), String> {
        self.set_shape(id, dims)?;
        let Some((tensor, slot)) = self.parts(id) else { return Ok(()) };
        let has_room = match tensor.allocation_type {
            CUSTOM => bytes.len() <= slot.caller_bytes,
            DYNAMIC => false,
            _ => slot.memory.as_ref().is_some_and(|memory| memory.len() == bytes.len()),
        };
        if !has_room {
            if tensor.allocation_type == CUSTOM {
                return Err(format!(
                    "tensor {id} {:?} needs {} bytes, but the caller's memory has {}",
                    slot.name,
                    bytes.len(),
                    slot.caller_bytes
                ));
            }
            set_dynamic(tensor, bytes.len())?;
            slot.memory = None;
        }
        tensor.bytes = bytes.len();
        if !tensor.data.is_null() {
            // SAFETY: the memory has the size of `bytes`, and does not belong to the runner, whose
            // memory `bytes` is.
            unsafe { tensor.data.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
        }
        Ok(())
    }

    /// Takes the memory from a tensor, except for the caller's.
    pub(crate) fn release(&mut self, id: TensorId) {
        if let Some((tensor, slot)) = self.parts(id) {
            match tensor.allocation_type {
                CUSTOM | MMAP_RO => {}
                DYNAMIC => {
                    // SAFETY: null, or memory from `malloc` that the tensor owns and forgets.
                    unsafe { free(tensor.data) };
                    (tensor.data, tensor.bytes) = (ptr::null_mut(), 0);
                }
                _ => {
                    tensor.data = ptr::null_mut();
                    slot.memory = None;
                }
            }
        }
    }

    pub(crate) fn set_caller_memory(&mut self, id: TensorId, memory: *mut c_void, bytes: usize) {
        self.release(id);
        if let Some((tensor, slot)) = self.parts(id) {
            tensor.allocation_type = CUSTOM;
            tensor.data = memory;
            slot.caller_bytes = bytes;
        }
    }
}

impl Drop for TensorTable {
    fn drop(&mut self) {
        for id in 0..self.slots.len() {
            if let Some((tensor, _)) = self.parts(id) {
                // SAFETY: null, or memory from `malloc` that the tensor owns; it is not used
                // afterwards.
                unsafe {
                    free(tensor.dims.cast_mut().cast());
                    if tensor.allocation_type == DYNAMIC {
                        free(tensor.data);
                    }
                }
            }
        }
        let tensors = ptr::slice_from_raw_parts_mut(self.tensors.as_ptr(), self.slots.len());
        // SAFETY: the table was made from a box of this length.
        drop(unsafe { Box::from_raw(tensors) });
    }
}

impl Slot {
    fn new(tensor: &Tensor) -> Self {
        let mut slot = Self {
            dtype: tensor.dtype,
            name: c_string(&tensor.name),
            signature: tensor.shape_signature.as_deref().map(IntArray::new),
            affine: None,
            blockwise: None,
            memory: None,
            caller_bytes: 0,
        };
        let (scales, zero_points, axis): (Vec<f32>, Vec<c_int>, usize) = match &tensor.quantization
        {
            Some(Quantization::PerTensor { scale, zero_point }) => {
                (vec![*scale], vec![narrow(*zero_point)], 0)
            }
            Some(Quantization::PerAxis { scales, zero_points, axis }) => {
                let zero_points = (0..scales.len()).map(|slice| narrow(zero_points.at(slice)));
                (scales.to_vec(), zero_points.collect(), *axis)
            }
            Some(Quantization::Blockwise { scales, zero_points, block_size }) => {
                let last = tensor.rank().unwrap_or(1).saturating_sub(1);
                slot.blockwise = Some(Box::new(TfLiteBlockwiseQuantization {
                    scale: *scales as i32,
                    zero_point: zero_points.map_or(-1, |id| id as i32),
                    block_size: *block_size as i32,
                    quantized_dimension: last as i32,
                }));
                return slot;
            }
            _ => return slot,
        };
        let (scales, zero_points) = (FloatArray::new(&scales), IntArray::new(&zero_points));
        let params = TfLiteAffineQuantization {
            scale: scales.as_ptr(),
            zero_point: zero_points.as_ptr(),
            quantized_dimension: axis as i32,
        };
        slot.affine = Some(Box::new(Affine { params, scales, zero_points }));
        slot
    }

    /// The structure of a tensor without memory.
    fn tensor(&self, tensor: &Tensor) -> TfLiteTensor {
        let dims: Vec<c_int> =
            tensor.shape.iter().flatten().map(|&dim| c_int::try_from(dim).unwrap_or(0)).collect();
        let (scale, zero_point) = tensor.per_tensor().unwrap_or_default();
        let (kind, params): (c_int, *const c_void) = match (&self.affine, &self.blockwise) {
            (Some(affine), _) => (AFFINE_QUANTIZATION, (&raw const affine.params).cast()),
            (None, Some(blockwise)) => (BLOCKWISE_QUANTIZATION, (&raw const **blockwise).cast()),
            (None, None) => (0, ptr::null()),
        };
        TfLiteTensor {
            element_type: type_code(tensor.dtype),
            data: ptr::null_mut(),
            dims: IntArray::new(&dims).to_malloc(),
            scale,
            zero_point: narrow(zero_point),
            allocation_type: if tensor.dtype.bits().is_some() { ARENA_RW } else { MEM_NONE },
            bytes: tensor.byte_size().unwrap_or(0),
            allocation: ptr::null(),
            name: self.name.as_ptr(),
            delegate: ptr::null_mut(),
            buffer_handle: -1,
            data_is_stale: 0,
            is_variable: u8::from(tensor.is_variable),
            quantization: TfLiteQuantization { kind, params },
            sparsity: ptr::null(),
            dims_signature: self.signature.as_ref().map_or(ptr::null(), IntArray::as_ptr),
        }
    }
}

impl std::fmt::Debug for Affine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Affine")
            .field("scales", &self.scales)
            .field("zero_points", &self.zero_points)
            .field("quantized_dimension", &self.params.quantized_dimension)
            .finish()
    }
}

fn narrow(zero_point: i64) -> c_int {
    c_int::try_from(zero_point).unwrap_or(0)
}

/// Makes memory from `malloc` of this size the data of a tensor.
pub(crate) fn set_dynamic(tensor: &mut TfLiteTensor, bytes: usize) -> Result<(), String> {
    let old = if tensor.allocation_type == DYNAMIC { tensor.data } else { ptr::null_mut() };
    // SAFETY: null, or memory from `malloc` that the tensor owns. `realloc` of 0 bytes would free it.
    let data = unsafe { libc::realloc(old, bytes.max(1)) };
    if data.is_null() {
        return Err(format!("there is no memory for a tensor of {bytes} bytes"));
    }
    tensor.allocation_type = DYNAMIC;
    tensor.data = data;
    tensor.bytes = bytes;
    Ok(())
}

/// Frees memory.
///
/// # Safety
/// `memory` is null, or comes from `malloc` and is not used afterwards.
pub(crate) unsafe fn free(memory: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::free(memory) };
}
