//! Sessions: runs of a program.

pub(crate) mod options;
mod tensors;

use std::fmt;

use smallvec::SmallVec;
use xnnpack::{AlignedBuffer, Binding, ExternalId, RawRun, Runtime};

use crate::define;
use crate::element::{self, TensorElement};
use crate::error::{Result, RuntimeError, RuntimeErrorKind};
use crate::profile::{self, OpTiming};
use crate::program::Program;
pub use options::SessionOptions;
pub use tensors::TensorInfo;
use tensors::{Tensors, no_tensor};

/// Number of external tensors up to which a run does not allocate.
const INLINE_BINDINGS: usize = 32;

/// A program with the memory to run it. A session can move between threads.
///
/// ```
/// # use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
/// use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
///
/// # fn main() -> xnn_runtime::Result<()> {
/// # let mut graph = Graph::default();
/// # let value = || Value::new(Datatype::F32, Quantization::None, &[1, 2]);
/// # let (input, output) = (graph.push_value(value()), graph.push_value(value()));
/// # graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input, output }));
/// # graph.inputs.push(input);
/// # graph.outputs.push(output);
/// // The graph computes absolute values of a tensor of shape [1, 2].
/// let program = Program::new(graph, &ProgramOptions::default())?;
/// let mut session = Session::new(&program, &SessionOptions::default())?;
/// session.input_as_mut::<f32>(0)?.copy_from_slice(&[-1.5, 2.0]);
/// session.run()?;
/// assert_eq!(session.output_as::<f32>(0)?, [1.5, 2.0]);
///
/// // Other shapes are possible where the graph accepts them.
/// session.resize_inputs([(0, [3, 2].as_slice())])?;
/// assert_eq!(session.outputs()[0].dims, [3, 2]);
/// # Ok(())
/// # }
/// ```
pub struct Session {
    program: Program,
    runtime: Runtime,
    inputs: Tensors,
    outputs: Tensors,
    /// Dimensions of inputs that the next [`Session::reshape`] applies.
    asked: Vec<(usize, Vec<usize>)>,
    /// Whether an input and all outputs are empty. XNNPACK is not given such shapes.
    is_empty: bool,
}

impl Session {
    /// Creates XNNPACK's operators for `program` and plans their memory.
    ///
    /// # Errors
    /// XNNPACK rejects the graph ([`RuntimeError::failing_node`]), threads cannot be started, or
    /// memory is exhausted.
    pub fn new(program: &Program, options: &SessionOptions) -> Result<Self> {
        let runtime = program.session_runtime(options)?;
        let graph = program.graph();
        let inputs = graph.inputs.iter().enumerate().map(|(at, &id)| (define::input_id(at), id));
        let outputs =
            graph.outputs.iter().enumerate().map(|(at, &id)| (define::output_id(graph, at), id));
        let mut session = Self {
            inputs: Tensors::new(program, inputs, &graph.origin.input_names)?,
            outputs: Tensors::new(program, outputs, &graph.origin.output_names)?,
            program: program.clone(),
            runtime,
            asked: Vec::new(),
            is_empty: false,
        };
        session.adopt_runtime_shapes()?;
        Ok(session)
    }

    /// The session's program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Inputs, in the graph's order.
    #[must_use]
    pub fn inputs(&self) -> &[TensorInfo] {
        &self.inputs.infos
    }

    /// Outputs, in the graph's order.
    #[must_use]
    pub fn outputs(&self) -> &[TensorInfo] {
        &self.outputs.infos
    }

    /// Index of the input with this name.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.inputs.index(name)
    }

    /// Index of the output with this name.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.outputs.index(name)
    }

    /// The session's memory for an input, which [`Session::run`] reads: row-major, aligned to 64
    /// bytes, [`TensorInfo::byte_size`] bytes long. Empty if the input does not exist.
    #[must_use]
    pub fn input_mut(&mut self, index: usize) -> &mut [u8] {
        self.inputs.buffers.get_mut(index).map_or(&mut [], AlignedBuffer::as_mut_slice)
    }

    /// The session's memory for an output, with the results of the last run: row-major,
    /// [`TensorInfo::byte_size`] bytes long. Empty if the output does not exist.
    #[must_use]
    pub fn output(&self, index: usize) -> &[u8] {
        self.outputs.buffers.get(index).map_or(&[], AlignedBuffer::as_slice)
    }

    /// Mutable [`Session::output`], for callers that bind it with [`Session::raw`].
    #[must_use]
    pub fn output_mut(&mut self, index: usize) -> &mut [u8] {
        self.outputs.buffers.get_mut(index).map_or(&mut [], AlignedBuffer::as_mut_slice)
    }

    /// [`Session::input_mut`] as elements of type `T`.
    ///
    /// # Errors
    /// The input does not exist, or its elements have another type.
    pub fn input_as_mut<T: TensorElement>(&mut self, index: usize) -> Result<&mut [T]> {
        element::expect::<T>(self.inputs.info(index)?.datatype)?;
        let elements = self.inputs.buffers.get_mut(index).and_then(AlignedBuffer::elements_mut);
        elements.ok_or_else(|| no_tensor(index))
    }

    /// [`Session::output`] as elements of type `T`.
    ///
    /// # Errors
    /// The output does not exist, or its elements have another type.
    pub fn output_as<T: TensorElement>(&self, index: usize) -> Result<&[T]> {
        element::expect::<T>(self.outputs.info(index)?.datatype)?;
        let elements = self.outputs.buffers.get(index).and_then(AlignedBuffer::elements);
        elements.ok_or_else(|| no_tensor(index))
    }

    /// Computes the outputs from the inputs in the session's own memory.
    ///
    /// # Errors
    /// No [`Session::reshape`] has succeeded since the last [`Session::resize`], or XNNPACK fails.
    pub fn run(&mut self) -> Result<()> {
        self.run_with([])
    }

    /// Computes with the caller's memory for the tensors in `bindings`, and the session's own
    /// memory for the others. Nothing is copied.
    ///
    /// ```no_run
    /// # use xnn_runtime::{AlignedBuffer, Binding, Session};
    /// # fn run(session: &mut Session, image: &AlignedBuffer, scores: &mut [u8]) -> xnn_runtime::Result<()> {
    /// let [image_id, scores_id] = [session.inputs()[0].id, session.outputs()[0].id];
    /// session.run_with([
    ///     Binding::Input(image_id, image.input()),
    ///     Binding::Output(scores_id, scores.into()),
    /// ])
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Session::run`]; a binding for an unknown tensor, or a second one for the
    /// same tensor; a buffer whose size is not [`TensorInfo::byte_size`], that is not aligned for
    /// the elements, or lacks the padding that XNNPACK reads.
    pub fn run_with<'a>(
        &'a mut self,
        bindings: impl IntoIterator<Item = Binding<'a>>,
    ) -> Result<()> {
        let mut all: SmallVec<[Binding<'a>; INLINE_BINDINGS]> = bindings.into_iter().collect();
        let given = all.len();
        if self.is_empty {
            return Ok(());
        }
        let (inputs, outputs) = (&self.inputs, &mut self.outputs);
        if given == inputs.infos.len() + outputs.infos.len() {
            return Ok(self.runtime.run(&mut all)?);
        }
        for (info, buffer) in inputs.infos.iter().zip(&inputs.buffers) {
            if !all.iter().take(given).any(|binding| external_id(binding) == info.id) {
                all.push(Binding::Input(info.id, buffer.input()));
            }
        }
        for (info, buffer) in outputs.infos.iter().zip(&mut outputs.buffers) {
            if !all.iter().take(given).any(|binding| external_id(binding) == info.id) {
                all.push(Binding::Output(info.id, buffer.output()));
            }
        }
        Ok(self.runtime.run(&mut all)?)
    }

    /// [`Session::run_with`] with bindings of all inputs and outputs, which are not copied.
    ///
    /// ```no_run
    /// # use xnn_runtime::{AlignedBuffer, Binding, Session};
    /// # fn run(session: &mut Session, image: &AlignedBuffer, scores: &mut [u8]) -> xnn_runtime::Result<()> {
    /// let [image_id, scores_id] = [session.inputs()[0].id, session.outputs()[0].id];
    /// session.run_bound(&mut [
    ///     Binding::Input(image_id, image.input()),
    ///     Binding::Output(scores_id, scores.into()),
    /// ])
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Session::run_with`], or an input or output is not bound.
    pub fn run_bound(&mut self, bindings: &mut [Binding<'_>]) -> Result<()> {
        if self.is_empty {
            return Ok(());
        }
        Ok(self.runtime.run(bindings)?)
    }

    /// Requests other dimensions for an input, which [`Session::reshape`] applies.
    ///
    /// # Errors
    /// The input does not exist, or the dimensions are not valid for its type.
    pub fn resize(&mut self, index: usize, dims: &[usize]) -> Result<()> {
        let id = self.inputs.info(index)?.id;
        self.runtime.reshape_external(id, &self.stand_in(dims)).map_err(as_argument)?;
        self.asked.push((index, dims.to_vec()));
        Ok(())
    }

    /// Applies the requested dimensions, infers all shapes and allocates memory. The contents of
    /// inputs and outputs whose size changes are lost.
    ///
    /// Dimensions of 0 are supported if all outputs are then empty. Runs do nothing in that case.
    ///
    /// # Errors
    /// The graph does not accept the dimensions, or memory is exhausted. The session then returns
    /// to its former shapes. If XNNPACK cannot do that, runs are refused until another `reshape`
    /// succeeds.
    pub fn reshape(&mut self) -> Result<()> {
        let Err(error) = self.take_on_shapes() else { return Ok(()) };
        self.restore_shapes()?;
        Err(error)
    }

    /// Changes the dimensions of several inputs, given by index: [`Session::resize`] for each, then
    /// [`Session::reshape`].
    ///
    /// # Errors
    /// The errors of [`Session::resize`] and [`Session::reshape`], which describes the state of the
    /// session afterwards.
    pub fn resize_inputs<'a>(
        &mut self,
        dims: impl IntoIterator<Item = (usize, &'a [usize])>,
    ) -> Result<()> {
        let mut dims = dims.into_iter();
        if let Err(error) = dims.try_for_each(|(index, dims)| self.resize(index, dims)) {
            self.restore_shapes()?;
            return Err(error);
        }
        self.reshape()
    }

    fn take_on_shapes(&mut self) -> Result<()> {
        let mut inputs: Vec<Vec<usize>> =
            self.inputs.infos.iter().map(|info| info.dims.clone()).collect();
        for (index, dims) in &self.asked {
            if let Some(slot) = inputs.get_mut(*index) {
                slot.clone_from(dims);
            }
        }
        let dims: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
        if dims.iter().any(|dims| dims.contains(&0)) {
            let outputs = self.program.shapes_of_nothing(&dims)?;
            self.runtime.check_shapes().map_err(as_argument)?;
            self.adopt(inputs, outputs)?;
            self.is_empty = true;
            return Ok(());
        }
        // Checked before memory is allocated.
        if !self.asked.is_empty() {
            self.program.check_sizes(&dims)?;
        }
        let reshaped = self.runtime.reshape().map_err(as_argument);
        reshaped
            .and_then(|()| self.adopt_runtime_shapes())
            .map_err(|error| self.program.sized(error, &dims))
    }

    /// Replaces dimensions of 0 for XNNPACK's inference, which does not support them. Whether a
    /// graph accepts a dimension does not depend on its size, unless it is the defined one, or not
    /// divisible by the number of parts of a split, which is small.
    fn stand_in(&self, dims: &[usize]) -> Vec<usize> {
        const PARTS: usize = 2 * 3 * 4 * 5 * 7;
        let graph = self.program.graph();
        let mut values = graph.inputs.iter().filter_map(|&id| graph.value(id));
        let other = if values.any(|value| value.dims.contains(&PARTS)) { 2 * PARTS } else { PARTS };
        dims.iter().map(|&dim| if dim == 0 { other } else { dim }).collect()
    }

    /// Returns to the shapes of the buffers.
    fn restore_shapes(&mut self) -> Result<()> {
        self.asked.clear();
        for info in &self.inputs.infos {
            self.runtime.reshape_external(info.id, &self.stand_in(&info.dims))?;
        }
        if self.is_empty {
            return Ok(());
        }
        if let Err(error) = self.runtime.reshape() {
            log::warn!("cannot return to the former shapes: {error}");
        }
        Ok(())
    }

    /// Number of threads that compute, including the calling one: [`SessionOptions::threads`],
    /// limited by the processors and the amount of work.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.runtime.threads()
    }

    /// Times of the last run's operators, in execution order. `None` without
    /// [`SessionOptions::profile`], and before the first run.
    #[must_use]
    pub fn profile(&self) -> Option<Vec<OpTiming>> {
        let timings = self.runtime.profile().ok()?;
        Some(profile::attribute(timings, self.program.origins()))
    }

    /// Whether inputs have dimensions of 0, so that runs do nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Runs on raw memory, for callers that cannot borrow it. External ids are those of
    /// [`Session::inputs`] and [`Session::outputs`]. The run fails if [`Session::is_empty`].
    pub fn raw(&mut self) -> RawRun<'_> {
        self.runtime.raw()
    }

    /// Adopts the runtime's shapes.
    fn adopt_runtime_shapes(&mut self) -> Result<()> {
        let inputs = self.inputs.dims_in(&self.runtime)?;
        let outputs = self.outputs.dims_in(&self.runtime)?;
        self.adopt(inputs, outputs)?;
        self.is_empty = false;
        Ok(())
    }

    /// Adopts these shapes and allocates buffers. On error nothing changes.
    fn adopt(&mut self, inputs: Vec<Vec<usize>>, outputs: Vec<Vec<usize>>) -> Result<()> {
        let inputs = self.inputs.shaped(inputs)?;
        let outputs = self.outputs.shaped(outputs)?;
        self.asked.clear();
        self.inputs.adopt(inputs);
        self.outputs.adopt(outputs);
        Ok(())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("inputs", &self.inputs.infos)
            .field("outputs", &self.outputs.infos)
            .finish_non_exhaustive()
    }
}

fn external_id(binding: &Binding<'_>) -> ExternalId {
    match binding {
        Binding::Input(id, _) | Binding::Output(id, _) => *id,
    }
}

/// Converts an error of XNNPACK whose cause is the caller's argument, not the graph.
fn as_argument(error: xnnpack::Error) -> RuntimeError {
    match RuntimeError::from(error) {
        refused if refused.kind() == RuntimeErrorKind::InvalidGraph => {
            RuntimeError::argument(refused.reason())
        }
        other => other,
    }
}
