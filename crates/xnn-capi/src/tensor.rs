//! Inputs and outputs of sessions.

use std::ffi::{CString, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use xnn_delegate::tensor::Side;
use xnn_delegate::{DType, TensorSpec};

use crate::arguments::{array, array_mut, object, result};
use crate::binding::Bound;
use crate::core::{Core, State, dims};
use crate::element::{xnnd_string_t, xnnd_type_t};
use crate::error::xnnd_error_code_t::XNND_ERROR_UNSUPPORTED;
use crate::error::{Result, guard, xnnd_error_t};
use crate::text::c_string;

/// An input or output of a session.
///
/// Threads: those of its session. Name, type and quantization never change, so that any thread may read them.
pub struct xnnd_tensor_t {
    core: Arc<Core>,
    side: Side,
    index: usize,
    /// The description when the session was created. Dimensions may have changed.
    pub(crate) spec: TensorSpec,
    name: CString,
}

impl xnnd_tensor_t {
    pub(crate) fn new(core: &Arc<Core>, side: Side, index: usize, spec: TensorSpec) -> Self {
        let name = c_string(spec.name.as_str());
        Self { core: Arc::clone(core), side, index, spec, name }
    }

    /// The present description.
    fn present<'a>(&self, state: &'a State) -> Result<&'a TensorSpec> {
        let specs = match self.side {
            Side::Input => state.runner.inputs(),
            Side::Output => state.runner.outputs(),
        };
        specs.get(self.index).ok_or_else(|| self.error("the session does not have it"))
    }

    /// An error about this tensor.
    fn error(&self, what: impl std::fmt::Display) -> xnnd_error_t {
        let Self { side, index, spec, .. } = self;
        match spec.name.as_str() {
            "" => xnnd_error_t::argument(format!("{side} {index}: {what}")),
            name => xnnd_error_t::argument(format!("{side} {index} {name:?}: {what}")),
        }
    }

    fn byte_size(&self, state: &State) -> Result<usize> {
        self.present(state)?.byte_size().ok_or_else(|| self.no_fixed_size())
    }

    fn no_fixed_size(&self) -> xnnd_error_t {
        let (side, dtype) = (self.side, self.spec.dtype);
        let what = format!("elements of type {dtype} have no fixed size");
        match (dtype, side) {
            (DType::String, Side::Input) => {
                self.error(format!("{what}; use xnnd_tensor_write_strings"))
            }
            (DType::String, Side::Output) => {
                self.error(format!("{what}; use xnnd_tensor_read_strings"))
            }
            _ => {
                xnnd_error_t::new(XNND_ERROR_UNSUPPORTED, format!("{side} {}: {what}", self.index))
            }
        }
    }

    /// Refuses outputs that no run has computed.
    fn check_computed(&self, state: &State) -> Result {
        if self.side == Side::Input || state.has_run {
            return Ok(());
        }
        let message = format!("output {} has not been computed; call xnnd_session_run", self.index);
        Err(xnnd_error_t::state(message))
    }

    /// The elements: those in the caller's memory if it is bound, otherwise in the session's.
    fn memory(&self, state: &mut State) -> Result<(*mut u8, usize)> {
        self.check_computed(state)?;
        let size = self.byte_size(state)?;
        if let Some(bound) =
            state.bindings.iter().find(|bound| bound.is_of((self.side, self.index)))
        {
            return Ok((bound.data().as_ptr(), size));
        }
        Ok(match self.side {
            Side::Input => {
                let bytes = state.runner.input_bytes_mut(self.index)?;
                (bytes.as_mut_ptr(), bytes.len())
            }
            Side::Output => {
                let bytes = state.runner.output_bytes(self.index)?;
                (bytes.as_ptr().cast_mut(), bytes.len())
            }
        })
    }

    fn expect_size(&self, expected: usize, found: usize) -> Result {
        match expected == found {
            true => Ok(()),
            false => Err(self.error(format!("expected {expected} bytes, found {found}"))),
        }
    }
}

/// Name of a tensor in the model, or in the signature that is run; empty if it has none. It belongs to the session. NULL if
/// `tensor` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_tensor_name(tensor: *const xnnd_tensor_t) -> *const c_char {
    // SAFETY: the caller passes NULL or a tensor whose session it has not deleted.
    unsafe { tensor.as_ref() }.map_or(ptr::null(), |tensor| tensor.name.as_ptr())
}

/// Element type of a tensor. `XNND_TYPE_OTHER` if `tensor` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_tensor_type(tensor: *const xnnd_tensor_t) -> xnnd_type_t {
    // SAFETY: the caller passes NULL or a tensor whose session it has not deleted.
    let tensor = unsafe { tensor.as_ref() };
    tensor.map_or(xnnd_type_t::XNND_TYPE_OTHER, |tensor| tensor.spec.dtype.into())
}

/// Quantization of a tensor: an element `q` stands for the real number `(q - zero_point) * scale`. Returns false, and sets
/// scale 1 and zero point 0, if the tensor is not quantized or `tensor` is NULL. `scale` and `zero_point` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_tensor_quantization(
    tensor: *const xnnd_tensor_t,
    scale: *mut f32,
    zero_point: *mut i64,
) -> bool {
    // SAFETY: the caller passes NULL or a tensor whose session it has not deleted.
    let quantization = unsafe { tensor.as_ref() }.and_then(|tensor| tensor.spec.quantization);
    let values = quantization.unwrap_or((1.0, 0));
    // SAFETY: the caller passes NULL or valid places.
    unsafe {
        if !scale.is_null() {
            scale.write(values.0);
        }
        if !zero_point.is_null() {
            zero_point.write(values.1);
        }
    }
    quantization.is_some()
}

/// Present dimensions of a tensor, outermost first. The elements are row-major: the last dimension varies fastest. Images
/// are NHWC. The dimensions belong to the session, and are valid until it is resized; those of outputs until it runs. `*dims`
/// is NULL if `*rank` is 0, for a scalar. If only a run tells the shape of an output, it is `{0}` before.
///
/// Errors: another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_dims(
    tensor: *const xnnd_tensor_t,
    dims: *mut *const usize,
    rank: *mut usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or valid places and a tensor whose session it has not deleted.
        let (dims, rank, tensor) = unsafe {
            (
                result(dims, ptr::null(), "dims")?,
                result(rank, 0, "rank")?,
                object(tensor, "tensor")?,
            )
        };
        let state = tensor.core.state()?;
        let present = &tensor.present(&state)?.dims;
        if !present.is_empty() {
            (*dims, *rank) = (present.as_ptr(), present.len());
        }
        Ok(())
    })
}

/// Present size of the elements in bytes.
///
/// Errors: elements have no fixed size; another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_byte_size(
    tensor: *const xnnd_tensor_t,
    size: *mut usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place and a tensor whose session it has not deleted.
        let (size, tensor) = unsafe { (result(size, 0, "size")?, object(tensor, "tensor")?) };
        *size = tensor.byte_size(&*tensor.core.state()?)?;
        Ok(())
    })
}

/// Gives access to the elements of a tensor without a copy: dense, row-major, in native byte order. Inputs may be written
/// and keep their values from run to run. Outputs may only be read.
///
/// The pointer is valid until the session is resized or deleted or the tensor is bound; that of an output also only until
/// the next run. It is that of the caller if the tensor is bound. Memory of the session is aligned to 64 bytes. `size`, the
/// number of bytes, may be NULL.
///
/// Errors: no run has computed the output; elements have no fixed size; another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_data(
    tensor: *const xnnd_tensor_t,
    data: *mut *mut c_void,
    size: *mut usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or valid places and a tensor whose session it has not deleted.
        let (data, tensor) =
            unsafe { (result(data, ptr::null_mut(), "data")?, object(tensor, "tensor")?) };
        let memory = tensor.memory(&mut *tensor.core.state()?)?;
        *data = memory.0.cast();
        if !size.is_null() {
            // SAFETY: it is not NULL, and the caller passes a valid place.
            unsafe { size.write(memory.1) };
        }
        Ok(())
    })
}

/// Copies `size` bytes to an input, which must be all of it.
///
/// Errors: the tensor is an output, or has another size; another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_write(
    tensor: *const xnnd_tensor_t,
    data: *const c_void,
    size: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a tensor whose session it has not deleted and `size` bytes.
        let (tensor, bytes) =
            unsafe { (object(tensor, "tensor")?, array(data.cast::<u8>(), size, "data")?) };
        if tensor.side == Side::Output {
            return Err(tensor.error("an output cannot be written"));
        }
        let (memory, expected) = tensor.memory(&mut *tensor.core.state()?)?;
        tensor.expect_size(expected, size)?;
        // SAFETY: both have `size` bytes. They may overlap if the caller copies bound memory to itself.
        unsafe { ptr::copy(bytes.as_ptr(), memory, size) };
        Ok(())
    })
}

/// Copies all elements of an input or output, `size` bytes, to `data`.
///
/// Errors: no run has computed the output; the tensor has another size; another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_read(
    tensor: *const xnnd_tensor_t,
    data: *mut c_void,
    size: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or a tensor whose session it has not deleted.
        let tensor = unsafe { object(tensor, "tensor") }?;
        let (memory, expected) = tensor.memory(&mut *tensor.core.state()?)?;
        tensor.expect_size(expected, size)?;
        if size == 0 {
            return Ok(());
        }
        if data.is_null() {
            return Err(xnnd_error_t::argument("data is NULL"));
        }
        // SAFETY: both have `size` bytes. They may overlap if the caller copies bound memory to itself.
        unsafe { ptr::copy(memory, data.cast(), size) };
        Ok(())
    })
}

/// Copies the elements of a tensor as real numbers: converted to fp32, and dequantized if they are quantized. `count` must
/// be the number of elements. Integers above 2^24 are rounded.
///
/// Errors: no run has computed the output; the tensor has another number of elements, or elements that are not numbers;
/// another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_read_reals(
    tensor: *const xnnd_tensor_t,
    values: *mut f32,
    count: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a tensor whose session it has not deleted and `count` values.
        let (tensor, values) =
            unsafe { (object(tensor, "tensor")?, array_mut(values, count, "values")?) };
        let mut state = tensor.core.state()?;
        let (memory, size) = tensor.memory(&mut state)?;
        // SAFETY: the tensor has `size` bytes, and the caller keeps bound memory.
        let elements = unsafe { array(memory.cast_const(), size, "data") }?;
        let reals = tensor.present(&state)?.reals(elements).ok_or_else(|| {
            tensor.error(format!("elements of type {} are not numbers", tensor.spec.dtype))
        })?;
        if reals.len() != count {
            let expected = reals.len();
            return Err(tensor.error(format!("expected {expected} elements, found {count}")));
        }
        values.copy_from_slice(&reals);
        Ok(())
    })
}

/// Makes runs use the caller's memory for a tensor: `size` bytes at `data`. NULL ends that: the session's own memory is used
/// again. `xnnd_session_resize` ends it, too.
///
/// The memory must be aligned for the elements; 64 bytes are best. An input needs the bytes of its elements and
/// `XNND_PADDING` readable bytes after them, whose values do not matter. An output needs the bytes of its elements. The
/// memory belongs to the caller, must exist while it is bound, at most until the session is deleted, and must not be used by
/// others during a run. Memory of an output must not overlap memory of another bound tensor.
///
/// Nothing is copied if the model is fully delegated. Otherwise elements are copied from and to the session's memory in
/// each run. After a binding of an output has changed, outputs can be read when the session has run again.
///
/// Errors: the memory is too small, is not aligned, or overlaps that of another tensor; elements have no fixed size; another
/// thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_bind(
    tensor: *const xnnd_tensor_t,
    data: *mut c_void,
    size: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or a tensor whose session it has not deleted.
        let tensor = unsafe { object(tensor, "tensor") }?;
        let mut state = tensor.core.state()?;
        let place = (tensor.side, tensor.index);
        match NonNull::new(data.cast::<u8>()) {
            Some(data) => {
                let bytes = tensor.byte_size(&state)?;
                Bound::new(place, &tensor.spec, bytes, data, size)
                    .and_then(|bound| bound.replace_in(&mut state.bindings))
                    .map_err(|what| tensor.error(what))?;
            }
            None => state.bindings.retain(|bound| !bound.is_of(place)),
        }
        // The other memory does not have the results of the last run.
        state.has_run &= tensor.side == Side::Input;
        Ok(())
    })
}

/// Gives one input other dimensions. See `xnnd_session_resize`.
///
/// Errors: those of `xnnd_session_resize`; the tensor is an output.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_resize(
    tensor: *const xnnd_tensor_t,
    dims: *const usize,
    rank: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a tensor whose session it has not deleted and `rank` dimensions.
        let (tensor, dims) = unsafe { (object(tensor, "tensor")?, self::dims(dims, rank)?) };
        if tensor.side == Side::Output {
            return Err(
                tensor.error("an output cannot be resized; its shape follows from the inputs")
            );
        }
        tensor.core.state()?.resize(&[(tensor.index, dims)])
    })
}

/// Copies strings to an input of type `XNND_TYPE_STRING`, in row-major order. `count` must be its number of elements.
///
/// Errors: the tensor is an output, has another type, or another number of elements; another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_write_strings(
    tensor: *const xnnd_tensor_t,
    strings: *const xnnd_string_t,
    count: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a tensor whose session it has not deleted and `count` strings.
        let (tensor, strings) =
            unsafe { (object(tensor, "tensor")?, array(strings, count, "strings")?) };
        if tensor.side == Side::Output {
            return Err(tensor.error("an output cannot be written"));
        }
        let mut bytes = Vec::with_capacity(strings.len());
        for string in strings {
            // SAFETY: the caller passes `size` bytes in each string.
            bytes.push(unsafe { array(string.data.cast::<u8>(), string.size, "strings") }?);
        }
        Ok(tensor.core.state()?.runner.set_strings(tensor.index, &bytes)?)
    })
}

/// Gives access to the elements of an output of type `XNND_TYPE_STRING`, in row-major order. `count` must be its number of
/// elements. The bytes belong to the session, and are valid until its next run, or until it is resized or deleted.
///
/// Errors: the tensor is an input, has another type, or another number of elements; no run has computed it; another thread
/// uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_tensor_read_strings(
    tensor: *const xnnd_tensor_t,
    strings: *mut xnnd_string_t,
    count: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a tensor whose session it has not deleted and `count` places.
        let (tensor, strings) =
            unsafe { (object(tensor, "tensor")?, array_mut(strings, count, "strings")?) };
        if tensor.side == Side::Input {
            return Err(tensor.error("strings of an input cannot be read"));
        }
        let state = tensor.core.state()?;
        tensor.check_computed(&state)?;
        let elements = state.runner.output_strings(tensor.index)?;
        if elements.len() != count {
            let expected = elements.len();
            return Err(tensor.error(format!("expected {expected} elements, found {count}")));
        }
        for (string, element) in strings.iter_mut().zip(elements) {
            *string = xnnd_string_t { data: element.as_ptr().cast(), size: element.len() };
        }
        Ok(())
    })
}
