//! Models and interpreters: the first part of `c_api.h`.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;
use std::sync::Arc;

use bytes::Bytes;
use xnn::Model;
use xnn_runtime::AlignedBuffer;
use xnn_tflite_abi::{ERROR, OK, TfLiteStatus, TfLiteTensor};

use crate::core::Core;
use crate::options::TfLiteInterpreterOptions;
use crate::reporter::{Callback, Reporter};
use crate::{c_str, elements, guard};

/// Alignment in bytes that a model in memory needs to be used in place.
const ALIGNMENT: usize = 64;

/// A model. Interpreters keep what they need of it.
#[derive(Debug)]
pub struct TfLiteModel(Model);

/// An interpreter. All functions may be called from any thread, one at a time; cancelling may be
/// called at any time.
#[derive(Debug)]
pub struct TfLiteInterpreter(pub(crate) Arc<Core>);

/// Returns the version of TFLite whose C API this library has.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteVersion() -> *const c_char {
    c"2.19.0".as_ptr()
}

/// Returns the version of TFLite whose extension API this library has.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteExtensionApisVersion() -> *const c_char {
    TfLiteVersion()
}

/// Returns the version of the schema of model files.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSchemaVersion() -> c_int {
    3
}

/// Reads a model from memory, which must outlive the model and its interpreters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteModelCreate(
    model_data: *const c_void,
    model_size: usize,
) -> Option<Box<TfLiteModel>> {
    // SAFETY: guaranteed by the caller.
    unsafe { of_bytes(model_data, model_size, Reporter::default()) }
}

/// Reads a model from memory, and reports errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteModelCreateWithErrorReporter(
    model_data: *const c_void,
    model_size: usize,
    reporter: Option<Callback>,
    user_data: *mut c_void,
) -> Option<Box<TfLiteModel>> {
    // SAFETY: guaranteed by the caller.
    unsafe { of_bytes(model_data, model_size, Reporter::new(reporter, user_data)) }
}

/// Maps a model file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteModelCreateFromFile(
    model_path: *const c_char,
) -> Option<Box<TfLiteModel>> {
    // SAFETY: guaranteed by the caller.
    unsafe { of_file(model_path, Reporter::default()) }
}

/// Maps a model file, and reports errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteModelCreateFromFileWithErrorReporter(
    model_path: *const c_char,
    reporter: Option<Callback>,
    user_data: *mut c_void,
) -> Option<Box<TfLiteModel>> {
    // SAFETY: guaranteed by the caller.
    unsafe { of_file(model_path, Reporter::new(reporter, user_data)) }
}

/// # Safety
/// See [`TfLiteModelCreate`].
unsafe fn of_bytes(
    data: *const c_void,
    size: usize,
    reporter: Reporter,
) -> Option<Box<TfLiteModel>> {
    let read = || -> Result<Model, String> {
        if data.is_null() {
            return Err("the model's data is a null pointer".into());
        }
        // SAFETY: the caller guarantees that the memory outlives all uses of the model.
        let bytes: &'static [u8] = unsafe { slice::from_raw_parts(data.cast(), size) };
        let bytes = if data.addr().is_multiple_of(ALIGNMENT) {
            Bytes::from_static(bytes)
        } else {
            let copy = AlignedBuffer::try_copy_of(bytes);
            let copy = copy.map_err(|_| "there is no memory for an aligned copy of the model")?;
            Bytes::from_owner(copy)
        };
        Model::from_bytes(bytes).map_err(|error| error.to_string())
    };
    model(reporter, read)
}

/// # Safety
/// See [`TfLiteModelCreateFromFile`].
unsafe fn of_file(path: *const c_char, reporter: Reporter) -> Option<Box<TfLiteModel>> {
    let read = || {
        // SAFETY: guaranteed by the caller.
        let path = unsafe { c_str(path) }.ok_or("the model's path is a null pointer")?;
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        Model::open(path).map_err(|error| error.to_string())
    };
    model(reporter, read)
}

fn model(
    reporter: Reporter,
    read: impl FnOnce() -> Result<Model, String>,
) -> Option<Box<TfLiteModel>> {
    guard(None, || match read() {
        Ok(model) => Some(Box::new(TfLiteModel(model))),
        Err(message) => {
            reporter.report(&message);
            None
        }
    })
}

/// Destroys a model. Interpreters of it keep working.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteModelDelete(model: Option<Box<TfLiteModel>>) {
    guard((), || drop(model));
}

/// Creates an interpreter. Without options, it has the default ones.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterCreate(
    model: Option<&TfLiteModel>,
    optional_options: Option<&TfLiteInterpreterOptions>,
) -> Option<Box<TfLiteInterpreter>> {
    guard(None, || {
        let options = optional_options.cloned().unwrap_or_default();
        let reporter = options.reporter;
        let core = match model {
            Some(TfLiteModel(model)) => Core::new(model.clone(), &options),
            None => Err("the model is a null pointer".to_owned()),
        };
        match core {
            Ok(core) => Some(Box::new(TfLiteInterpreter(Arc::new(core)))),
            Err(message) => {
                reporter.report(&message);
                None
            }
        }
    })
}

/// Destroys an interpreter. Signature runners of it keep working.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterDelete(interpreter: Option<Box<TfLiteInterpreter>>) {
    guard((), || drop(interpreter));
}

/// Returns the number of inputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetInputTensorCount(
    interpreter: Option<&TfLiteInterpreter>,
) -> i32 {
    interpreter.map_or(0, |interpreter| interpreter.0.inputs.len() as i32)
}

/// Returns the indices of the inputs among all tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterInputTensorIndices(
    interpreter: Option<&TfLiteInterpreter>,
) -> *const c_int {
    interpreter.map_or(std::ptr::null(), |interpreter| interpreter.0.inputs.as_ptr())
}

/// Returns an input; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetInputTensor(
    interpreter: Option<&TfLiteInterpreter>,
    input_index: i32,
) -> *mut TfLiteTensor {
    tensor(interpreter, |core| &core.inputs, input_index)
}

/// Returns the number of outputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetOutputTensorCount(
    interpreter: Option<&TfLiteInterpreter>,
) -> i32 {
    interpreter.map_or(0, |interpreter| interpreter.0.outputs.len() as i32)
}

/// Returns the indices of the outputs among all tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOutputTensorIndices(
    interpreter: Option<&TfLiteInterpreter>,
) -> *const c_int {
    interpreter.map_or(std::ptr::null(), |interpreter| interpreter.0.outputs.as_ptr())
}

/// Returns an output; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetOutputTensor(
    interpreter: Option<&TfLiteInterpreter>,
    output_index: i32,
) -> *const TfLiteTensor {
    tensor(interpreter, |core| &core.outputs, output_index)
}

/// The tensor at a position of a list of tensors.
fn tensor(
    interpreter: Option<&TfLiteInterpreter>,
    list: fn(&Core) -> &[c_int],
    position: i32,
) -> *mut TfLiteTensor {
    guard(std::ptr::null_mut(), || {
        let id = |core: &Core| list(core).get(usize::try_from(position).ok()?).copied();
        interpreter
            .and_then(|interpreter| Some((&interpreter.0, id(&interpreter.0)?)))
            .map_or(std::ptr::null_mut(), |(core, id)| core.tensor(0, id))
    })
}

/// Returns a tensor by its index among all tensors; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetTensor(
    interpreter: Option<&TfLiteInterpreter>,
    index: c_int,
) -> *mut TfLiteTensor {
    guard(std::ptr::null_mut(), || {
        interpreter.map_or(std::ptr::null_mut(), |interpreter| interpreter.0.tensor(0, index))
    })
}

/// Gives an input other dimensions. Tensors must be allocated before the next run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteInterpreterResizeInputTensor(
    interpreter: Option<&TfLiteInterpreter>,
    input_index: i32,
    input_dims: *const c_int,
    input_dims_size: i32,
) -> TfLiteStatus {
    guard(ERROR, || {
        let Some(TfLiteInterpreter(core)) = interpreter else { return ERROR };
        // SAFETY: guaranteed by the caller.
        let dims = unsafe { elements(input_dims, input_dims_size) };
        let position = usize::try_from(input_index).ok();
        let id = position.and_then(|position| core.inputs.get(position));
        match id {
            Some(&id) => core.resize(0, id, dims, false),
            None => {
                core.reporter.report(&format!(
                    "there is no input {input_index}; the model has {} inputs",
                    core.inputs.len()
                ));
                ERROR
            }
        }
    })
}

/// Computes the shapes of all tensors, and prepares the model to run with them.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterAllocateTensors(
    interpreter: Option<&TfLiteInterpreter>,
) -> TfLiteStatus {
    guard(ERROR, || interpreter.map_or(ERROR, |interpreter| interpreter.0.allocate(0)))
}

/// Computes the outputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterInvoke(interpreter: Option<&TfLiteInterpreter>) -> TfLiteStatus {
    guard(ERROR, || interpreter.map_or(ERROR, |interpreter| interpreter.0.invoke(0)))
}

/// Cancels a run in progress, from any thread. It must have been enabled in the options.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterCancel(interpreter: Option<&TfLiteInterpreter>) -> TfLiteStatus {
    guard(ERROR, || match interpreter {
        Some(interpreter) if interpreter.0.cancel() => OK,
        _ => ERROR,
    })
}
