//! A subgraph of an interpreter: its tensors, and the runner behind them.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use xnn::model::Subgraph;
use xnn::{CancelFlag, Model, Runner, RunnerBuilder, RunnerOptions};
use xnn_interp::ErrorKind;
use xnn_model::{DType, SubgraphId, TensorId};
use xnn_tflite_abi::{ARENA_RW, ARENA_RW_PERSISTENT, DYNAMIC, ERROR, TfLiteStatus, TfLiteTensor};

use crate::table::TensorTable;
use crate::{CANCELLED, UNRESOLVED, strings};

/// A subgraph with its tensors. It can run once its tensors are allocated.
#[derive(Debug)]
pub(crate) struct Instance {
    subgraph: SubgraphId,
    graph: Arc<Subgraph>,
    tensors: TensorTable,
    runner: Option<Runner>,
    /// Dimensions of inputs, by position, that differ from the runner's.
    resized: BTreeMap<usize, Vec<usize>>,
    is_allocated: bool,
    /// The flag that cancels runs, until it is taken.
    flag: Option<CancelFlag>,
    /// Tensors besides inputs and outputs that the caller has asked for.
    shown: Vec<TensorId>,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: TfLiteStatus,
    pub message: String,
}

impl Failure {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { status: ERROR, message: message.into() }
    }

    pub(crate) fn not_ready() -> Self {
        Self::error("Invoke called on model that is not ready.")
    }
}

impl From<xnn::Error> for Failure {
    fn from(error: xnn::Error) -> Self {
        let kind = match &error {
            xnn::Error::Interpreter(cause) => Some(cause.kind()),
            _ => None,
        };
        match kind {
            Some(ErrorKind::Cancelled) => {
                let message = "Client requested cancel during Invoke()".into();
                Self { status: CANCELLED, message }
            }
            Some(ErrorKind::Unsupported(_)) => {
                Self { status: UNRESOLVED, message: error.to_string() }
            }
            _ => Self::error(error.to_string()),
        }
    }
}

impl Instance {
    pub(crate) fn new(model: &Model, subgraph: SubgraphId) -> Result<Self, Failure> {
        let graph = model.subgraphs.get(subgraph).cloned();
        let graph =
            graph.ok_or_else(|| Failure::error(format!("there is no subgraph {subgraph}")))?;
        let mut tensors = TensorTable::new(&graph);
        for (id, tensor) in graph.tensors.iter().enumerate() {
            if let Some(data) = tensor.data.as_ref().filter(|_| !tensor.is_variable) {
                tensors.set_constant(id, data);
            } else if tensor.dtype == DType::String {
                tensors.set_allocation(id, DYNAMIC);
            } else if tensor.is_variable {
                tensors.set_allocation(id, ARENA_RW_PERSISTENT);
            }
        }
        Ok(Self {
            subgraph,
            graph,
            tensors,
            runner: None,
            resized: BTreeMap::new(),
            is_allocated: false,
            flag: None,
            shown: Vec::new(),
        })
    }

    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    /// A tensor, which lives as long as the interpreter; null if it does not exist. An intermediate
    /// tensor has memory only if it has a value.
    pub(crate) fn tensor(&mut self, id: TensorId) -> *mut TfLiteTensor {
        if id >= self.graph.tensors.len() {
            return ptr::null_mut();
        }
        let is_boundary = self.graph.inputs.contains(&id) || self.graph.outputs.contains(&id);
        if !is_boundary && !self.tensors.is_constant(id) && !self.shown.contains(&id) {
            self.shown.push(id);
            self.show(id);
        }
        self.tensors.pointer(id)
    }

    /// Copies the value of a tensor besides inputs and outputs.
    fn show(&mut self, id: TensorId) {
        if let Some(value) = self.runner.as_ref().and_then(|runner| runner.tensor(id)) {
            // Without memory for the copy, the tensor has no value.
            let _ = self.tensors.store(id, value.shape, value.bytes);
        }
    }

    /// Gives an input other dimensions. If that is strict, only those that the model leaves open may
    /// change.
    pub(crate) fn resize(
        &mut self,
        id: TensorId,
        dims: &[c_int],
        is_strict: bool,
    ) -> Result<(), Failure> {
        let position = self.graph.inputs.iter().position(|&input| input == id);
        let position =
            position.ok_or_else(|| Failure::error(format!("tensor {id} is not an input")))?;
        if is_strict {
            self.check_open(id, dims)?;
        }
        let sizes: Result<Vec<usize>, _> = dims.iter().map(|&dim| usize::try_from(dim)).collect();
        let sizes = sizes.map_err(|_| {
            let name = &self.graph.tensor(id).name;
            Failure::error(format!("tensor {id} {name:?}: dimensions {dims:?} are negative"))
        })?;
        if self.tensors.has_memory(id) && self.tensors.dims(id) == dims {
            return Ok(());
        }
        let current = self.runner.as_ref().and_then(|runner| runner.inputs().get(position));
        match current {
            Some(spec) if spec.dims == sizes => self.resized.remove(&position),
            _ => self.resized.insert(position, sizes.clone()),
        };
        self.is_allocated = false;
        self.tensors.release(id);
        self.tensors.set_shape(id, &sizes).map_err(Failure::error)
    }

    fn check_open(&self, id: TensorId, dims: &[c_int]) -> Result<(), Failure> {
        let known = self.tensors.dims(id);
        if known.len() != dims.len() {
            return Err(Failure::error(format!(
                "tensor {id} has {} dimensions, {} were given",
                known.len(),
                dims.len()
            )));
        }
        let signature = self.graph.tensor(id).shape_signature.as_deref();
        let open = signature.filter(|signature| !signature.is_empty()).unwrap_or(known);
        let fixed = open.iter().zip(dims).enumerate();
        match fixed.into_iter().find(|(_, (open, dim))| **open != -1 && open != dim) {
            None => Ok(()),
            Some((axis, (fixed, dim))) => Err(Failure::error(format!(
                "Attempting to resize dimension {axis} of tensor {id} with value {fixed} to {dim}. \
                 ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            ))),
        }
    }

    /// The flag that cancels runs, once after the subgraph was compiled.
    pub(crate) fn take_flag(&mut self) -> Option<CancelFlag> {
        self.flag.take()
    }

    /// Prepares the subgraph to run with the dimensions of its inputs.
    pub(crate) fn allocate(
        &mut self,
        model: &Model,
        options: &RunnerOptions,
    ) -> Result<(), Failure> {
        if self.is_allocated {
            return Ok(());
        }
        match &mut self.runner {
            Some(runner) => {
                let dims = self.resized.iter().map(|(position, dims)| (*position, dims.as_slice()));
                runner.resize_inputs(&dims.collect::<Vec<_>>())?;
            }
            place => {
                let dims = self.resized.iter().map(|(position, dims)| (*position, dims.clone()));
                let builder = RunnerBuilder::from_model(model).options(options.clone());
                let runner = builder.subgraph(self.subgraph).input_dims(dims).build()?;
                self.flag = Some(runner.cancel_flag());
                *place = Some(runner);
            }
        }
        self.resized.clear();
        let ready = self.place_tensors();
        self.is_allocated = ready.is_ok();
        ready
    }

    /// Gives all tensors their dimensions, and the inputs and outputs memory.
    fn place_tensors(&mut self) -> Result<(), Failure> {
        let Some(runner) = &self.runner else { return Err(Failure::not_ready()) };
        let dims_of = |id: TensorId| runner.subgraph()?.tensors.get(id)?.shape.as_deref();
        for id in 0..self.graph.tensors.len() {
            if let Some(dims) = dims_of(id).filter(|_| !self.tensors.is_constant(id)) {
                self.tensors.set_shape(id, dims).map_err(Failure::error)?;
            }
        }
        let is_whole = runner.program().is_some();
        let sides =
            [(&self.graph.inputs, runner.inputs()), (&self.graph.outputs, runner.outputs())];
        for (side, (ids, specs)) in sides.into_iter().enumerate() {
            for (&id, spec) in ids.iter().zip(specs) {
                let dtype = self.graph.tensor(id).dtype;
                if self.tensors.is_constant(id) || dtype.bits().is_none() {
                    continue;
                }
                let is_known = side == 0 || is_whole || dims_of(id).is_some();
                if is_known {
                    self.tensors.set_shape(id, &spec.dims).map_err(Failure::error)?;
                    let class = if self.graph.tensor(id).is_variable {
                        ARENA_RW_PERSISTENT
                    } else {
                        ARENA_RW
                    };
                    self.tensors.allocate(id, class).map_err(Failure::error)?;
                } else {
                    self.tensors.set_allocation(id, DYNAMIC);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn adopt_state(&mut self, other: &mut Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.runner, &mut other.runner) {
            mine.adopt_state(theirs);
        }
    }

    pub(crate) fn invoke(&mut self) -> Result<(), Failure> {
        let Some(runner) = self.runner.as_mut().filter(|_| self.is_allocated) else {
            return Err(Failure::not_ready());
        };
        for (position, &id) in self.graph.inputs.iter().enumerate() {
            let tensor = self.graph.tensor(id);
            let source = self.tensors.bytes(id);
            let mismatch = |expected: usize| {
                let found = source.map_or(0, <[u8]>::len);
                let name = &tensor.name;
                Failure::error(format!(
                    "input {position} (tensor {id} {name:?}): expected {expected} bytes, found {found}"
                ))
            };
            if tensor.dtype == DType::String {
                let strings = source.and_then(strings::unpack);
                runner.set_strings(position, &strings.ok_or_else(|| mismatch(8))?)?;
            } else if tensor.dtype.bits().is_some() {
                let memory = runner.input_bytes_mut(position)?;
                match source {
                    Some(source) if source.len() == memory.len() => memory.copy_from_slice(source),
                    None if memory.is_empty() => {}
                    _ => return Err(mismatch(memory.len())),
                }
            }
        }
        runner.run()?;
        for (position, &id) in self.graph.outputs.iter().enumerate() {
            let Some(spec) = runner.outputs().get(position) else { continue };
            if !self.tensors.is_constant(id)
                && !matches!(spec.dtype, DType::Resource | DType::Variant)
            {
                let bytes = runner.output_bytes(position)?;
                self.tensors.store(id, &spec.dims, bytes).map_err(Failure::error)?;
            }
        }
        for index in 0..self.shown.len() {
            self.show(self.shown[index]);
        }
        Ok(())
    }

    pub(crate) fn reset_variables(&mut self) {
        if let Some(runner) = &mut self.runner {
            runner.reset_variables();
        }
        for index in 0..self.shown.len() {
            self.show(self.shown[index]);
        }
    }

    /// Makes an input or output use memory of the caller.
    pub(crate) fn set_memory(
        &mut self,
        id: TensorId,
        memory: *mut c_void,
        bytes: usize,
    ) -> Result<(), Failure> {
        let is_boundary = self.graph.inputs.contains(&id) || self.graph.outputs.contains(&id);
        let Some(tensor) = self.graph.tensors.get(id).filter(|_| is_boundary) else {
            return Err(Failure::error(format!("tensor {id} is not an input or output")));
        };
        let expected = self.tensors.byte_size(id);
        if self.tensors.is_constant(id) || tensor.dtype.bits().is_none() {
            return Err(Failure::error(format!("tensor {id} has memory of its own")));
        }
        if bytes < expected {
            return Err(Failure::error(format!(
                "tensor {id} {:?} needs {expected} bytes, {bytes} were given",
                tensor.name
            )));
        }
        self.tensors.set_caller_memory(id, memory, bytes);
        self.is_allocated = false;
        Ok(())
    }
}
