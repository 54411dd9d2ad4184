//! `c_api_experimental.h`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_model::op::Op;
use xnn_tflite_abi::{ERROR, OK, TfLiteDelegate, TfLiteStatus, TfLiteTensor, c_struct};

use crate::c_api::{TfLiteInterpreter, TfLiteInterpreterCreate, TfLiteModel};
use crate::options::TfLiteInterpreterOptions;
use crate::{APPLICATION_ERROR, c_str, delegates, guard};

/// `kTfLiteCustomAllocationFlagsSkipAlignCheck`.
const SKIP_ALIGN_CHECK: i64 = 1;
/// Alignment in bytes of memory that the caller provides.
const ALIGNMENT: usize = 64;

c_struct! {
    /// Memory of the caller for a tensor.
    TfLiteCustomAllocation: 16 {
        /// The first byte.
        data @ 0: *mut c_void,
        /// Size in bytes.
        bytes @ 8: usize,
    }
}

/// A function that resolves operators. It is never called.
pub type Resolver = unsafe extern "C" fn();

/// Sets variables and the state of recurrent operators to their initial values.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterResetVariableTensors(
    interpreter: Option<&TfLiteInterpreter>,
) -> TfLiteStatus {
    guard(ERROR, || match interpreter {
        Some(interpreter) => {
            interpreter.0.reset_variables();
            OK
        }
        None => ERROR,
    })
}

/// Returns the number of variable tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetVariableTensorCount(
    interpreter: Option<&TfLiteInterpreter>,
) -> i32 {
    interpreter.map_or(0, |interpreter| interpreter.0.variables.len() as i32)
}

/// Returns a variable tensor, with a copy of its value after each run; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetVariableTensor(
    interpreter: Option<&TfLiteInterpreter>,
    variable_index: i32,
) -> *mut TfLiteTensor {
    guard(ptr::null_mut(), || {
        let core = interpreter.map(|interpreter| &interpreter.0);
        let place = usize::try_from(variable_index).ok();
        let id = core.zip(place).and_then(|(core, place)| core.variables.get(place));
        core.zip(id).map_or(ptr::null_mut(), |(core, &id)| core.tensor(0, id))
    })
}

/// Registers a kernel of the caller for a builtin operator. Creating an interpreter fails if the
/// model has the operator.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsAddBuiltinOp(
    options: Option<&mut TfLiteInterpreterOptions>,
    op: c_int,
    _registration: *const c_void,
    _min_version: i32,
    _max_version: i32,
) {
    guard((), || {
        if let (Some(options), Some(name)) = (options, Op::name_of(op)) {
            options.registered.insert(name.to_owned());
        }
    });
}

/// Registers a kernel of the caller for a custom operator. Creating an interpreter fails if the
/// model has the operator, unless this library has a kernel for it, which then runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteInterpreterOptionsAddCustomOp(
    options: Option<&mut TfLiteInterpreterOptions>,
    name: *const c_char,
    _registration: *const c_void,
    _min_version: i32,
    _max_version: i32,
) {
    guard((), || {
        // SAFETY: guaranteed by the caller.
        if let (Some(options), Some(name)) = (options, unsafe { c_str(name) }) {
            options.registered.insert(name.to_string_lossy().into_owned());
        }
    });
}

/// Makes functions of the caller resolve operators. Creating an interpreter fails then.
fn set_resolver(options: Option<&mut TfLiteInterpreterOptions>, functions: &[Option<Resolver>]) {
    if let Some(options) = options {
        options.has_resolver = functions.iter().any(Option::is_some);
    }
}

macro_rules! resolvers {
    ($($(#[$doc:meta])* $name:ident($($function:ident),*);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            options: Option<&mut TfLiteInterpreterOptions>,
            $($function: Option<Resolver>,)*
            _op_resolver_user_data: *mut c_void,
        ) {
            set_resolver(options, &[$($function),*]);
        }
    )*};
}

resolvers! {
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolver(find_builtin_op, find_custom_op);
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolverV1(find_builtin_op, find_custom_op);
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolverV2(find_builtin_op, find_custom_op);
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolverV3(find_builtin_op, find_custom_op);
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolverExternal(find_builtin_op, find_custom_op);
    /// Sets functions that resolve operators. Creating an interpreter fails.
    TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
        find_builtin_op_external, find_custom_op_external, find_builtin_op, find_custom_op
    );
}

/// Creates an interpreter as [`TfLiteInterpreterCreate`]: all operators of this library are
/// available.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterCreateWithSelectedOps(
    model: Option<&TfLiteModel>,
    options: Option<&TfLiteInterpreterOptions>,
) -> Option<Box<TfLiteInterpreter>> {
    TfLiteInterpreterCreate(model, options)
}

/// No effect: there is no NNAPI.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsSetUseNNAPI(
    _options: Option<&mut TfLiteInterpreterOptions>,
    _enable: bool,
) {
}

/// No effect: operators that are not delegated always run on reference kernels.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsSetEnableDelegateFallback(
    _options: Option<&mut TfLiteInterpreterOptions>,
    _enable: bool,
) {
}

/// No effect: nothing is reported to the profiler.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsSetTelemetryProfiler(
    _options: Option<&mut TfLiteInterpreterOptions>,
    _profiler: *mut c_void,
) {
}

/// Applies a delegate of this library: tensors that are allocated later use its threads. Other
/// delegates are rejected with `kTfLiteApplicationError`.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterModifyGraphWithDelegate(
    interpreter: Option<&TfLiteInterpreter>,
    delegate: *mut TfLiteDelegate,
) -> TfLiteStatus {
    guard(ERROR, || {
        let Some(TfLiteInterpreter(core)) = interpreter else { return ERROR };
        match delegates::settings(delegate.addr()) {
            Some(settings) => {
                settings.threads.into_iter().for_each(|threads| core.set_threads(threads));
                OK
            }
            None => {
                core.reporter.report(delegates::REFUSAL);
                APPLICATION_ERROR
            }
        }
    })
}

/// Returns the index of an input among all tensors; -1 if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetInputTensorIndex(
    interpreter: Option<&TfLiteInterpreter>,
    input_index: i32,
) -> i32 {
    index(interpreter.map(|interpreter| &*interpreter.0.inputs), input_index)
}

/// Returns the index of an output among all tensors; -1 if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetOutputTensorIndex(
    interpreter: Option<&TfLiteInterpreter>,
    output_index: i32,
) -> i32 {
    index(interpreter.map(|interpreter| &*interpreter.0.outputs), output_index)
}

fn index(list: Option<&[c_int]>, position: i32) -> i32 {
    let place = usize::try_from(position).ok();
    let id = list.zip(place).and_then(|(list, place)| list.get(place));
    id.copied().unwrap_or(-1)
}

/// Makes an input or output use memory of the caller. Tensors must be allocated before the next
/// run.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterSetCustomAllocationForTensor(
    interpreter: Option<&TfLiteInterpreter>,
    tensor_index: c_int,
    allocation: Option<&TfLiteCustomAllocation>,
    flags: i64,
) -> TfLiteStatus {
    guard(ERROR, || {
        let (Some(TfLiteInterpreter(core)), Some(allocation)) = (interpreter, allocation) else {
            return ERROR;
        };
        let is_aligned = allocation.data.addr().is_multiple_of(ALIGNMENT);
        if allocation.data.is_null() || !(is_aligned || flags & SKIP_ALIGN_CHECK != 0) {
            core.reporter.report(&format!(
                "memory for tensor {tensor_index} must not be null, and must be aligned to \
                 {ALIGNMENT} bytes"
            ));
            return ERROR;
        }
        match usize::try_from(tensor_index) {
            Ok(id) => core.set_memory(id, allocation.data, allocation.bytes),
            Err(_) => ERROR,
        }
    })
}

/// Returns an error: no delegate has buffer handles.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterSetBufferHandle(
    _interpreter: Option<&TfLiteInterpreter>,
    _tensor: *mut TfLiteTensor,
    _buffer_handle: c_int,
    _delegate: *mut TfLiteDelegate,
) -> TfLiteStatus {
    ERROR
}

/// Returns an error: no delegate has buffer handles.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetBufferHandle(
    _interpreter: Option<&TfLiteInterpreter>,
    _tensor_index: c_int,
    _buffer_handle: *mut c_int,
    _delegate: *mut *mut TfLiteDelegate,
) -> TfLiteStatus {
    ERROR
}

/// No effect: data of tensors is always in memory.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSetAllowBufferHandleOutput(
    _interpreter: Option<&TfLiteInterpreter>,
    _allow_buffer_handle_output: bool,
) {
}

/// Returns whether the tensor exists: data of tensors is always in memory.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterEnsureTensorDataIsReadable(
    interpreter: Option<&TfLiteInterpreter>,
    tensor_index: c_int,
) -> TfLiteStatus {
    guard(ERROR, || match interpreter {
        Some(interpreter) if !interpreter.0.tensor(0, tensor_index).is_null() => OK,
        _ => ERROR,
    })
}
