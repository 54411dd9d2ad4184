//! Options of interpreters: the second part of `c_api.h`.

use std::collections::BTreeSet;
use std::ffi::c_void;

use xnn::Model;
use xnn_model::op::Op;
use xnn_tflite_abi::{ERROR, OK, TfLiteDelegate, TfLiteStatus};

use crate::delegates::{self, Settings};
use crate::guard;
use crate::operator::TfLiteOperator;
use crate::reporter::{Callback, Reporter};

/// Options of interpreters.
#[derive(Clone, Debug, Default)]
pub struct TfLiteInterpreterOptions {
    /// `None` for TFLite's default.
    pub(crate) threads: Option<usize>,
    pub(crate) reporter: Reporter,
    pub(crate) can_cancel: bool,
    /// Addresses of delegates.
    delegates: Vec<usize>,
    /// Names of the operators that the caller has kernels for.
    pub(crate) registered: BTreeSet<String>,
    /// Whether the caller resolves operators with functions.
    pub(crate) has_resolver: bool,
}

impl TfLiteInterpreterOptions {
    /// Settings that the delegates of this library have.
    pub(crate) fn delegate_settings(&self) -> Result<Settings, String> {
        let known = self.delegates.iter().map(|&address| {
            delegates::settings(address).ok_or_else(|| delegates::REFUSAL.to_owned())
        });
        known.reduce(|all, next| Ok(all?.or(next?))).unwrap_or_else(|| Ok(Settings::default()))
    }

    /// Returns an error if the caller's kernels would have to run.
    pub(crate) fn check(&self, model: &Model) -> Result<(), String> {
        if self.has_resolver {
            return Err("operators that functions of the caller resolve are not supported: this \
                        library runs its own kernels"
                .into());
        }
        for (id, graph) in model.subgraphs.iter().enumerate() {
            for (index, operator) in graph.operators.iter().enumerate() {
                let name = operator.op.name();
                let is_own = matches!(operator.op, Op::Custom(_))
                    && xnn_interp::supported_operators().any(|known| known == name);
                if self.registered.contains(name) && !is_own {
                    return Err(format!(
                        "subgraph {id}: operator {index} ({name}): the kernel that the caller \
                         registered for it cannot run in this library; remove the registration of \
                         a builtin operator, and use TFLite's library for a custom one"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Returns default options.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsCreate() -> Option<Box<TfLiteInterpreterOptions>> {
    Some(Box::default())
}

/// Returns a copy of options.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsCopy(
    from: Option<&TfLiteInterpreterOptions>,
) -> Option<Box<TfLiteInterpreterOptions>> {
    guard(None, || Some(Box::new(from?.clone())))
}

/// Destroys options. Interpreters that were created with them keep working.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsDelete(options: Option<Box<TfLiteInterpreterOptions>>) {
    guard((), || drop(options));
}

/// Sets the number of threads. Numbers below 1 stand for the default, one thread.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsSetNumThreads(
    options: Option<&mut TfLiteInterpreterOptions>,
    num_threads: i32,
) {
    if let Some(options) = options {
        options.threads = usize::try_from(num_threads).ok().filter(|&threads| threads > 0);
    }
}

/// Adds a delegate. Creating an interpreter fails unless it is one of this library's.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsAddDelegate(
    options: Option<&mut TfLiteInterpreterOptions>,
    delegate: *mut TfLiteDelegate,
) {
    guard((), || {
        if let (Some(options), false) = (options, delegate.is_null()) {
            options.delegates.push(delegate.addr());
        }
    });
}

/// The name of [`TfLiteInterpreterOptionsAddDelegate`] in versions before 2.13.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsAddOpaqueDelegate(
    options: Option<&mut TfLiteInterpreterOptions>,
    delegate: *mut TfLiteDelegate,
) {
    TfLiteInterpreterOptionsAddDelegate(options, delegate);
}

/// Sets the function that messages are reported to.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsSetErrorReporter(
    options: Option<&mut TfLiteInterpreterOptions>,
    reporter: Option<Callback>,
    user_data: *mut c_void,
) {
    if let Some(options) = options {
        options.reporter = Reporter::new(reporter, user_data);
    }
}

/// Registers a kernel of the caller. Creating an interpreter fails if the model needs it.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsAddOperator(
    options: Option<&mut TfLiteInterpreterOptions>,
    registration: Option<&TfLiteOperator>,
) {
    guard((), || {
        if let (Some(options), Some(operator)) = (options, registration) {
            options.registered.extend(operator.name());
        }
    });
}

/// The name of [`TfLiteInterpreterOptionsAddOperator`] in versions before 2.15.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsAddRegistrationExternal(
    options: Option<&mut TfLiteInterpreterOptions>,
    registration: Option<&TfLiteOperator>,
) {
    TfLiteInterpreterOptionsAddOperator(options, registration);
}

/// Allows `TfLiteInterpreterCancel`.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterOptionsEnableCancellation(
    options: Option<&mut TfLiteInterpreterOptions>,
    enable: bool,
) -> TfLiteStatus {
    match options {
        Some(options) => {
            options.can_cancel = enable;
            OK
        }
        None => ERROR,
    }
}
