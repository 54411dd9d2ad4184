//! Sessions: models with the memory to run them.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use xnn_delegate::tensor::Side;
use xnn_delegate::{CancelFlag, Runner};

use crate::arguments::{array, delete, give, new_object, object, text};
use crate::bytes::xnnd_bytes_t;
use crate::core::{Core, State};
use crate::error::{Result, guard, guard_or, xnnd_error_t};
use crate::explain;
use crate::model::{model, xnnd_model_t};
use crate::options::{or_default, xnnd_options_t};
use crate::tensor::xnnd_tensor_t;

/// A model with the memory to run it.
///
/// Operators that XNNPACK does not support run on reference kernels.
///
/// Threads: only one thread at a time may use a session and its tensors, but it need not always be the same one. A second
/// one gets `XNND_ERROR_INVALID_STATE`. Only `xnnd_session_set_cancelled` may be called at any time until the session is
/// deleted. Threads that run the same model at the same time need a session each: `xnnd_session_fork`.
pub struct xnnd_session_t {
    core: Arc<Core>,
    cancel: CancelFlag,
    inputs: Box<[xnnd_tensor_t]>,
    outputs: Box<[xnnd_tensor_t]>,
}

/// New dimensions of an input, for `xnnd_session_resize`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct xnnd_shape_t {
    /// Index of the input.
    pub input: usize,
    /// Dimensions, outermost first. May be NULL if `rank` is 0.
    pub dims: *const usize,
    /// Number of dimensions.
    pub rank: usize,
}

impl xnnd_session_t {
    fn new(runner: Runner) -> Self {
        let cancel = runner.cancel_flag();
        let specs =
            [(Side::Input, runner.inputs().to_vec()), (Side::Output, runner.outputs().to_vec())];
        let core = Arc::new(Core::new(runner));
        let [inputs, outputs] = specs.map(|(side, specs)| {
            let specs = specs.into_iter().enumerate();
            specs.map(|(index, spec)| xnnd_tensor_t::new(&core, side, index, spec)).collect()
        });
        Self { core, cancel, inputs, outputs }
    }

    fn tensors(&self, side: Side) -> &[xnnd_tensor_t] {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }

    fn at(&self, side: Side, index: usize) -> Result<*const xnnd_tensor_t> {
        let tensors = self.tensors(side);
        let tensor = tensors.get(index).map(ptr::from_ref);
        tensor.ok_or_else(|| {
            let count = tensors.len();
            xnnd_error_t::argument(format!(
                "no {side} {index}; the model has {count} {side}s, from 0"
            ))
        })
    }

    fn named(&self, side: Side, name: &str) -> Result<*const xnnd_tensor_t> {
        let tensors = self.tensors(side);
        let found = tensors.iter().find(|tensor| tensor.spec.name == name && !name.is_empty());
        found.map(ptr::from_ref).ok_or_else(|| {
            let names = tensors.iter().map(|tensor| format!("{:?}", tensor.spec.name));
            let names = names.collect::<Vec<_>>().join(", ");
            xnnd_error_t::argument(format!("no {side} {name:?}; the {side}s are: {names}"))
        })
    }
}

/// Creates a session of a model or blob: partitions it and packs weights. The caller deletes it with
/// `xnnd_session_delete`.
///
/// Errors: an operator is supported neither by XNNPACK nor by a reference kernel; a limit is exceeded; there is no such
/// signature.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_new(
    model: *const xnnd_model_t,
    options: *const xnnd_options_t,
    out: *mut *mut xnnd_session_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place, a model and options that it has not deleted.
        let (out, model, options) =
            unsafe { (new_object(out)?, self::model(model)?, or_default(options)) };
        model.check_signature(options.signature.as_deref())?;
        let mut builder = model.file.runner().options(options.runner);
        if let Some(key) = options.signature {
            builder = builder.signature(key);
        }
        give(out, xnnd_session_t::new(builder.build()?));
        Ok(())
    })
}

/// Creates another session of the same model and options, for another thread. It shares weights with the first, and has
/// inputs, outputs, state, bindings and a cancel flag of its own.
///
/// Errors: another thread uses the session; memory is exhausted.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_fork(
    session: *const xnnd_session_t,
    out: *mut *mut xnnd_session_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place and a session that it has not deleted.
        let (out, session) = unsafe { (new_object(out)?, object(session, "session")?) };
        let fork = session.core.state()?.runner.fork()?;
        give(out, xnnd_session_t::new(fork));
        Ok(())
    })
}

/// Number of inputs. 0 if `session` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_session_input_count(session: *const xnnd_session_t) -> usize {
    // SAFETY: the caller passes NULL or a session that it has not deleted.
    unsafe { session.as_ref() }.map_or(0, |session| session.inputs.len())
}

/// Number of outputs. 0 if `session` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_session_output_count(session: *const xnnd_session_t) -> usize {
    // SAFETY: the caller passes NULL or a session that it has not deleted.
    unsafe { session.as_ref() }.map_or(0, |session| session.outputs.len())
}

/// Finds an input by its index, in the model's order. It belongs to the session, and is valid until the session is deleted.
///
/// Errors: there is no such input.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_input(
    session: *const xnnd_session_t,
    index: usize,
    out: *mut *const xnnd_tensor_t,
) -> *mut xnnd_error_t {
    // SAFETY: as the caller guarantees.
    guard(|| unsafe { find(session, out, |session| session.at(Side::Input, index)) })
}

/// Finds an output by its index, in the model's order. It belongs to the session, and is valid until the session is deleted.
///
/// Errors: there is no such output.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_output(
    session: *const xnnd_session_t,
    index: usize,
    out: *mut *const xnnd_tensor_t,
) -> *mut xnnd_error_t {
    // SAFETY: as the caller guarantees.
    guard(|| unsafe { find(session, out, |session| session.at(Side::Output, index)) })
}

/// Finds an input by its name in the model, or in the signature that is run.
///
/// Errors: there is no such input; the text lists the names of all inputs.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_input_named(
    session: *const xnnd_session_t,
    name: *const c_char,
    out: *mut *const xnnd_tensor_t,
) -> *mut xnnd_error_t {
    // SAFETY: as the caller guarantees.
    guard(|| unsafe {
        find(session, out, |session| session.named(Side::Input, text(name, "name")?))
    })
}

/// Finds an output by its name in the model, or in the signature that is run.
///
/// Errors: there is no such output; the text lists the names of all outputs.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_output_named(
    session: *const xnnd_session_t,
    name: *const c_char,
    out: *mut *const xnnd_tensor_t,
) -> *mut xnnd_error_t {
    // SAFETY: as the caller guarantees.
    guard(|| unsafe {
        find(session, out, |session| session.named(Side::Output, text(name, "name")?))
    })
}

/// # Safety
///
/// `session` is NULL or valid, and `out` is NULL or valid for writes.
unsafe fn find(
    session: *const xnnd_session_t,
    out: *mut *const xnnd_tensor_t,
    find: impl FnOnce(&xnnd_session_t) -> Result<*const xnnd_tensor_t>,
) -> Result {
    // SAFETY: as the caller of this function guarantees.
    let (out, session) = unsafe {
        (crate::arguments::result(out, ptr::null(), "out")?, object(session, "session")?)
    };
    *out = find(session)?;
    Ok(())
}

/// Computes the outputs from the inputs. Inputs keep their values. Variables and the state of recurrent operators continue
/// from the last run.
///
/// Errors: values do not fit an operator; a limit is exceeded; the session is cancelled.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_run(session: *const xnnd_session_t) -> *mut xnnd_error_t {
    // SAFETY: the caller passes NULL or a session that it has not deleted.
    guard(|| unsafe { object(session, "session") }?.core.state()?.run())
}

/// Gives inputs other dimensions, all at once, because the shape of one may depend on that of another.
///
/// Resized inputs lose their values, others keep them; state is reset, all bindings end, and pointers to data and dimensions
/// become invalid. A model is lowered again, which may take as long as creating the session. Blobs cannot be lowered again,
/// and accept only shapes that suit their constants.
///
/// Errors: there is no such input; the model cannot be computed with these dimensions; a limit is exceeded. The session is
/// unchanged then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_resize(
    session: *const xnnd_session_t,
    shapes: *const xnnd_shape_t,
    count: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a session that it has not deleted and `count` shapes.
        let (session, shapes) =
            unsafe { (object(session, "session")?, array(shapes, count, "shapes")?) };
        let mut dims = Vec::with_capacity(shapes.len());
        for shape in shapes {
            // SAFETY: the caller passes `rank` dimensions in each shape.
            dims.push((shape.input, unsafe { crate::core::dims(shape.dims, shape.rank) }?));
        }
        session.core.state()?.resize(&dims)
    })
}

/// Sets variables and the state of recurrent operators to their initial values.
///
/// Errors: another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_reset(session: *const xnnd_session_t) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or a session that it has not deleted.
        unsafe { object(session, "session") }?.core.state()?.runner.reset_variables();
        Ok(())
    })
}

/// Sets whether the run in progress, and later ones, end with `XNND_ERROR_CANCELLED`. A run ends before the next reference
/// kernel or partition. XNNPACK cannot be interrupted: a partition that has started runs to its end, and so does a fully
/// delegated model.
///
/// Threads: any thread may call it at any time until the session is deleted.
///
/// Errors: `session` is NULL.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_set_cancelled(
    session: *const xnnd_session_t,
    cancelled: bool,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or a session that it has not deleted.
        let session = unsafe { object(session, "session") }?;
        match cancelled {
            true => session.cancel.raise(),
            false => session.cancel.lower(),
        }
        Ok(())
    })
}

/// Number of threads that compute: at most that of the options, as far as there are processors and enough work. 0 if
/// `session` is NULL or another thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_session_threads(session: *const xnnd_session_t) -> usize {
    // SAFETY: the caller passes NULL or a session that it has not deleted.
    let session = unsafe { session.as_ref() };
    guard_or(0, || {
        session.and_then(|session| Some(session.core.state().ok()?.runner.threads())).unwrap_or(0)
    })
}

/// Number of operators that run on XNNPACK, as JSON: `{"delegated": 60, "operators": 64, "partitions": 3, "deferred": 0,
/// "fully_delegated": false}`. Deferred operators may be delegated during a run, when their shapes are known. The caller
/// deletes `*out` with `xnnd_bytes_delete`.
///
/// Errors: another thread uses the session.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_coverage_json(
    session: *const xnnd_session_t,
    out: *mut *mut xnnd_bytes_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place and a session that it has not deleted.
        let (out, session) = unsafe { (new_object(out)?, object(session, "session")?) };
        give(out, explain::coverage(&session.core.state()?.runner)?);
        Ok(())
    })
}

/// Time of each operator in the last run, in microseconds, as JSON: `[{"operator": "Convolution (NHWC, F32)", "node": 0,
/// "origin": "CONV_2D#0", "us": 25}]`. `node` is the index in the graph and `origin` the model's operator; both may be null.
/// The caller deletes `*out` with `xnnd_bytes_delete`.
///
/// Errors: the session has not run; the options do not ask for a profile (`xnnd_options_set_profile`); the model is not
/// fully delegated.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_session_profile_json(
    session: *const xnnd_session_t,
    out: *mut *mut xnnd_bytes_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place and a session that it has not deleted.
        let (out, session) = unsafe { (new_object(out)?, object(session, "session")?) };
        let state = session.core.state()?;
        let profile = explain::profile(&state.runner)?.filter(|_| state.has_run);
        give(out, profile.ok_or_else(|| no_profile(&state))?);
        Ok(())
    })
}

fn no_profile(state: &State) -> xnnd_error_t {
    let why = if state.runner.program().is_none() {
        "the model is not fully delegated"
    } else if state.has_run {
        "set xnnd_options_set_profile before xnnd_session_new"
    } else {
        "call xnnd_session_run first"
    };
    xnnd_error_t::state(format!("the session has no profile: {why}"))
}

/// Deletes a session and its tensors. It must not be running. `session` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_session_delete(session: *mut xnnd_session_t) {
    // SAFETY: the caller passes NULL or a session of this library that it has not deleted.
    unsafe { delete(session) }
}
