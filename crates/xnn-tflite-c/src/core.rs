//! The state that an interpreter and its signature runners share.

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use xnn::{CancelFlag, Model, RunnerOptions, SessionOptions};
use xnn_model::{SubgraphId, TensorId};
use xnn_tflite_abi::{ERROR, OK, TfLiteStatus, TfLiteTensor};

use crate::CANCELLED;
use crate::instance::{Failure, Instance};
use crate::options::TfLiteInterpreterOptions;
use crate::reporter::Reporter;
use crate::text::c_string;

/// An interpreter: a model with the subgraphs of it that were asked for.
#[derive(Debug)]
pub(crate) struct Core {
    pub model: Model,
    pub reporter: Reporter,
    /// Inputs of the main subgraph. Callers read the array.
    pub inputs: Box<[c_int]>,
    pub outputs: Box<[c_int]>,
    /// Variable tensors of the main subgraph.
    pub variables: Box<[c_int]>,
    /// Keys of the signatures, which callers read.
    pub keys: Box<[CString]>,
    options: Mutex<RunnerOptions>,
    can_cancel: bool,
    /// Flags of all runners. They have a lock of their own, because a run holds the other one.
    flags: Mutex<Vec<CancelFlag>>,
    instances: Mutex<Vec<Instance>>,
}

impl Core {
    pub(crate) fn new(model: Model, options: &TfLiteInterpreterOptions) -> Result<Self, String> {
        options.check(&model)?;
        let settings = options.delegate_settings()?;
        let threads = settings.threads.or(options.threads).unwrap_or(1);
        let session = SessionOptions { threads, ..SessionOptions::default() };
        let mut runner_options = RunnerOptions::new(Default::default(), session);
        runner_options.program.cache_dir = settings.cache_dir;
        let main = model.main().ok_or("the model has no subgraph")?;
        let ids = |ids: &[TensorId]| ids.iter().map(|&id| id as c_int).collect();
        let variables = main.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_variable);
        let keys = model.signatures.iter().map(|signature| c_string(&signature.key));
        Ok(Self {
            inputs: ids(&main.inputs),
            outputs: ids(&main.outputs),
            variables: variables.map(|(id, _)| id as c_int).collect(),
            keys: keys.collect(),
            reporter: options.reporter,
            options: Mutex::new(runner_options),
            can_cancel: options.can_cancel,
            flags: Mutex::default(),
            instances: Mutex::default(),
            model,
        })
    }

    /// Sets the number of threads of subgraphs that are allocated later.
    pub(crate) fn set_threads(&self, threads: usize) {
        lock(&self.options).session.threads = threads;
    }

    /// Calls a function with a subgraph, and reports its error. No lock is held while the error is
    /// reported.
    fn with<T>(
        &self,
        subgraph: SubgraphId,
        failed: T,
        body: impl FnOnce(&mut Instance) -> Result<T, Failure>,
    ) -> (T, TfLiteStatus) {
        let result = {
            let mut instances = lock(&self.instances);
            self.first(&mut instances, subgraph).and_then(|(instance, _)| body(instance))
        };
        match result {
            Ok(value) => (value, OK),
            Err(Failure { status, message }) => {
                self.reporter.report(&message);
                (failed, status)
            }
        }
    }

    /// The instance of a subgraph, which is made where it is missing, and the other ones.
    fn first<'a>(
        &self,
        instances: &'a mut Vec<Instance>,
        subgraph: SubgraphId,
    ) -> Result<(&'a mut Instance, &'a mut [Instance]), Failure> {
        let known = instances.iter().position(|instance| instance.subgraph() == subgraph);
        let place = match known {
            Some(place) => place,
            None => {
                instances.push(Instance::new(&self.model, subgraph)?);
                instances.len() - 1
            }
        };
        instances.swap(0, place);
        instances.split_first_mut().ok_or_else(Failure::not_ready)
    }

    /// A tensor of a subgraph; null if it does not exist.
    pub(crate) fn tensor(&self, subgraph: SubgraphId, id: c_int) -> *mut TfLiteTensor {
        let Ok(id) = usize::try_from(id) else { return ptr::null_mut() };
        self.with(subgraph, ptr::null_mut(), |instance| Ok(instance.tensor(id))).0
    }

    pub(crate) fn resize(
        &self,
        subgraph: SubgraphId,
        id: c_int,
        dims: &[c_int],
        is_strict: bool,
    ) -> TfLiteStatus {
        let Ok(id) = usize::try_from(id) else { return ERROR };
        self.with(subgraph, (), |instance| instance.resize(id, dims, is_strict)).1
    }

    pub(crate) fn allocate(&self, subgraph: SubgraphId) -> TfLiteStatus {
        let options = lock(&self.options).clone();
        let status = self.with(subgraph, (), |instance| {
            let allocated = instance.allocate(&self.model, &options);
            lock(&self.flags).extend(instance.take_flag());
            allocated
        });
        status.1
    }

    pub(crate) fn invoke(&self, subgraph: SubgraphId) -> TfLiteStatus {
        lock(&self.flags).iter().for_each(CancelFlag::lower);
        let result = {
            let mut instances = lock(&self.instances);
            self.first(&mut instances, subgraph).and_then(|(instance, others)| {
                others.iter_mut().for_each(|other| instance.adopt_state(other));
                instance.invoke()
            })
        };
        match result {
            Ok(()) => OK,
            Err(Failure { status, message }) => {
                self.reporter.report(&message);
                status
            }
        }
    }

    /// Makes a run in progress end with [`CANCELLED`]. Returns whether that is enabled.
    pub(crate) fn cancel(&self) -> bool {
        if self.can_cancel {
            lock(&self.flags).iter().for_each(CancelFlag::raise);
        }
        self.can_cancel
    }

    pub(crate) fn reset_variables(&self) {
        lock(&self.instances).iter_mut().for_each(Instance::reset_variables);
    }

    /// Makes a tensor use memory of the caller.
    pub(crate) fn set_memory(
        &self,
        id: TensorId,
        memory: *mut std::ffi::c_void,
        bytes: usize,
    ) -> TfLiteStatus {
        self.with(0, (), |instance| instance.set_memory(id, memory, bytes)).1
    }
}

const _: () = {
    const fn is_thread_safe<T: Send + Sync>() {}
    is_thread_safe::<Core>();
    assert!(CANCELLED != ERROR);
};

/// State stays usable after a panic: the call that panicked returned an error.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
