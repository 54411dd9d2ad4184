//! Signature runners: the third part of `c_api.h`.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::Arc;

use xnn_model::{Signature, SubgraphId, TensorId};
use xnn_tflite_abi::{ERROR, OK, TfLiteStatus, TfLiteTensor};

use crate::c_api::TfLiteInterpreter;
use crate::core::Core;
use crate::text::c_string;
use crate::{c_str, elements, guard};

/// A signature of an interpreter. Runners of the same subgraph, and the interpreter itself, share
/// tensors.
#[derive(Debug)]
pub struct TfLiteSignatureRunner {
    core: Arc<Core>,
    subgraph: SubgraphId,
    inputs: Names,
    outputs: Names,
}

/// Names and tensors, in the order of the names, which is TFLite's.
#[derive(Debug)]
struct Names(Vec<(CString, TensorId)>);

impl Names {
    fn new<'a>(names: impl Iterator<Item = (&'a str, TensorId)>) -> Self {
        let mut names: Vec<_> = names.map(|(name, id)| (c_string(name), id)).collect();
        names.sort();
        Self(names)
    }

    fn at(&self, position: i32) -> *const c_char {
        let name = usize::try_from(position).ok().and_then(|position| self.0.get(position));
        name.map_or(ptr::null(), |(name, _)| name.as_ptr())
    }

    fn find(&self, name: &CStr) -> Option<c_int> {
        let named = self.0.iter().find(|(known, _)| known.as_c_str() == name);
        named.map(|(_, id)| *id as c_int)
    }
}

impl TfLiteSignatureRunner {
    fn new(core: &Arc<Core>, signature: &Signature) -> Self {
        let names = |list: &[(String, TensorId)]| {
            Names::new(list.iter().map(|(name, id)| (name.as_str(), *id)))
        };
        Self {
            core: Arc::clone(core),
            subgraph: signature.subgraph,
            inputs: names(&signature.inputs),
            outputs: names(&signature.outputs),
        }
    }

    /// The main subgraph of a model without signatures, with the names of its tensors.
    fn of_main(core: &Arc<Core>) -> Option<Self> {
        let graph = core.model.main()?;
        let names = |ids: &[TensorId]| {
            Names::new(ids.iter().map(|&id| (graph.tensor(id).name.as_str(), id)))
        };
        let (inputs, outputs) = (names(&graph.inputs), names(&graph.outputs));
        Some(Self { core: Arc::clone(core), subgraph: 0, inputs, outputs })
    }

    /// # Safety
    /// `name` is null, or a C string.
    unsafe fn tensor(
        &self,
        side: &str,
        names: fn(&Self) -> &Names,
        name: *const c_char,
    ) -> Option<c_int> {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { c_str(name) };
        let found = name.and_then(|name| names(self).find(name));
        if found.is_none() {
            let name = name.map(CStr::to_string_lossy).unwrap_or_default();
            self.core.reporter.report(&format!("{side} name {name} was not found"));
        }
        found
    }
}

/// Returns the number of signatures.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetSignatureCount(
    interpreter: Option<&TfLiteInterpreter>,
) -> i32 {
    interpreter.map_or(0, |interpreter| interpreter.0.keys.len() as i32)
}

/// Returns the key of a signature, in the order of the file; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteInterpreterGetSignatureKey(
    interpreter: Option<&TfLiteInterpreter>,
    signature_index: i32,
) -> *const c_char {
    let key = interpreter
        .and_then(|interpreter| interpreter.0.keys.get(usize::try_from(signature_index).ok()?));
    key.map_or(ptr::null(), |key| key.as_ptr())
}

/// Returns a runner of a signature; null if it does not exist. A null key stands for the main
/// subgraph of a model without signatures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteInterpreterGetSignatureRunner(
    interpreter: Option<&TfLiteInterpreter>,
    signature_key: *const c_char,
) -> Option<Box<TfLiteSignatureRunner>> {
    guard(None, || {
        let TfLiteInterpreter(core) = interpreter?;
        // SAFETY: guaranteed by the caller.
        let runner = match unsafe { c_str(signature_key) } {
            Some(key) => {
                let place = core.keys.iter().position(|known| known.as_c_str() == key)?;
                TfLiteSignatureRunner::new(core, core.model.signatures.get(place)?)
            }
            None if core.keys.is_empty() => TfLiteSignatureRunner::of_main(core)?,
            None => return None,
        };
        Some(Box::new(runner))
    })
}

/// Destroys a runner. Tensors of the signature belong to the interpreter.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerDelete(
    signature_runner: Option<Box<TfLiteSignatureRunner>>,
) {
    guard((), || drop(signature_runner));
}

/// Returns the number of inputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerGetInputCount(
    signature_runner: Option<&TfLiteSignatureRunner>,
) -> usize {
    signature_runner.map_or(0, |runner| runner.inputs.0.len())
}

/// Returns the name of an input, in alphabetical order; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerGetInputName(
    signature_runner: Option<&TfLiteSignatureRunner>,
    input_index: i32,
) -> *const c_char {
    signature_runner.map_or(ptr::null(), |runner| runner.inputs.at(input_index))
}

/// Gives an input other dimensions, where the model leaves them open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteSignatureRunnerResizeInputTensor(
    signature_runner: Option<&TfLiteSignatureRunner>,
    input_name: *const c_char,
    input_dims: *const c_int,
    input_dims_size: i32,
) -> TfLiteStatus {
    guard(ERROR, || {
        let Some(runner) = signature_runner else { return ERROR };
        // SAFETY: guaranteed by the caller.
        let dims = unsafe { elements(input_dims, input_dims_size) };
        // SAFETY: guaranteed by the caller.
        match unsafe { runner.tensor("Input", |runner| &runner.inputs, input_name) } {
            Some(id) => runner.core.resize(runner.subgraph, id, dims, true),
            None => ERROR,
        }
    })
}

/// Computes the shapes of all tensors, and prepares the signature to run with them.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerAllocateTensors(
    signature_runner: Option<&TfLiteSignatureRunner>,
) -> TfLiteStatus {
    guard(ERROR, || signature_runner.map_or(ERROR, |runner| runner.core.allocate(runner.subgraph)))
}

/// Returns an input; null, with a message, if it does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteSignatureRunnerGetInputTensor(
    signature_runner: Option<&TfLiteSignatureRunner>,
    input_name: *const c_char,
) -> *mut TfLiteTensor {
    guard(ptr::null_mut(), || {
        let Some(runner) = signature_runner else { return ptr::null_mut() };
        // SAFETY: guaranteed by the caller.
        let id = unsafe { runner.tensor("Input", |runner| &runner.inputs, input_name) };
        id.map_or(ptr::null_mut(), |id| runner.core.tensor(runner.subgraph, id))
    })
}

/// Computes the outputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerInvoke(
    signature_runner: Option<&TfLiteSignatureRunner>,
) -> TfLiteStatus {
    guard(ERROR, || signature_runner.map_or(ERROR, |runner| runner.core.invoke(runner.subgraph)))
}

/// Returns the number of outputs.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerGetOutputCount(
    signature_runner: Option<&TfLiteSignatureRunner>,
) -> usize {
    signature_runner.map_or(0, |runner| runner.outputs.0.len())
}

/// Returns the name of an output, in alphabetical order; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerGetOutputName(
    signature_runner: Option<&TfLiteSignatureRunner>,
    output_index: i32,
) -> *const c_char {
    signature_runner.map_or(ptr::null(), |runner| runner.outputs.at(output_index))
}

/// Returns an output; null, with a message, if it does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteSignatureRunnerGetOutputTensor(
    signature_runner: Option<&TfLiteSignatureRunner>,
    output_name: *const c_char,
) -> *const TfLiteTensor {
    guard(ptr::null(), || {
        let Some(runner) = signature_runner else { return ptr::null() };
        // SAFETY: guaranteed by the caller.
        let id = unsafe { runner.tensor("Output", |runner| &runner.outputs, output_name) };
        id.map_or(ptr::null(), |id| runner.core.tensor(runner.subgraph, id).cast_const())
    })
}

/// Cancels runs in progress of the interpreter, from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteSignatureRunnerCancel(
    signature_runner: Option<&TfLiteSignatureRunner>,
) -> TfLiteStatus {
    guard(ERROR, || match signature_runner {
        Some(runner) if runner.core.cancel() => OK,
        _ => ERROR,
    })
}
