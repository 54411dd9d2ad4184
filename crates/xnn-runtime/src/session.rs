//! Running a program.

mod options;
mod tensors;

use std::fmt;

use smallvec::SmallVec;
use xnnpack::{AlignedBuffer, Binding, ExternalId, Runtime};

use crate::define;
use crate::element::{self, TensorElement};
use crate::error::{Result, RuntimeError, RuntimeErrorKind};
use crate::profile::{self, OpTiming};
use crate::program::Program;
pub use options::SessionOptions;
pub use tensors::TensorInfo;
use tensors::{Tensors, no_tensor};

/// External tensors up to which a run allocates nothing.
const INLINE_BINDINGS: usize = 32;

/// A program with the memory to run it: for one thread at a time, but for any.
pub struct Session {
    program: Program,
    runtime: Runtime,
    inputs: Tensors,
    outputs: Tensors,
    /// Dimensions of inputs that the next [`Session::reshape`] is to take on.
    asked: Vec<(usize, Vec<usize>)>,
    /// No output has elements, and an input has none either: shapes that XNNPACK is not told of.
    is_empty: bool,
}

impl Session {
    /// Has XNNPACK create all operators of `program` and plan its memory.
    ///
    /// # Errors
    /// XNNPACK refuses the graph ([`RuntimeError::culprit`] tells the node); the threads cannot be
    /// started; memory is exhausted.
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

    /// The program that is run.
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

    /// Position of the input with this name.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.inputs.index(name)
    }

    /// Position of the output with this name.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.outputs.index(name)
    }

    /// The session's own memory for an input, which [`Session::run`] reads: dense, aligned to 64
    /// bytes. Empty if there is no such input.
    #[must_use]
    pub fn input_mut(&mut self, index: usize) -> &mut [u8] {
        self.inputs.buffers.get_mut(index).map_or(&mut [], AlignedBuffer::as_mut_slice)
    }

    /// The session's own memory for an output, as the last run left it. Empty if there is no such
    /// output.
    #[must_use]
    pub fn output(&self, index: usize) -> &[u8] {
        self.outputs.buffers.get(index).map_or(&[], AlignedBuffer::as_slice)
    }

    /// [`Session::output`], for callers that have [`Session::runtime_mut`] write to it. Empty if there is no such output.
    #[must_use]
    pub fn output_mut(&mut self, index: usize) -> &mut [u8] {
        self.outputs.buffers.get_mut(index).map_or(&mut [], AlignedBuffer::as_mut_slice)
    }

    /// [`Session::input_mut`] as elements.
    ///
    /// # Errors
    /// There is no such input, or its elements are of another type.
    pub fn input_as_mut<T: TensorElement>(&mut self, index: usize) -> Result<&mut [T]> {
        element::expect::<T>(self.inputs.info(index)?.datatype)?;
        let elements = self.inputs.buffers.get_mut(index).and_then(AlignedBuffer::elements_mut);
        elements.ok_or_else(|| no_tensor(index))
    }

    /// [`Session::output`] as elements.
    ///
    /// # Errors
    /// There is no such output, or its elements are of another type.
    pub fn output_as<T: TensorElement>(&self, index: usize) -> Result<&[T]> {
        element::expect::<T>(self.outputs.info(index)?.datatype)?;
        let elements = self.outputs.buffers.get(index).and_then(AlignedBuffer::elements);
        elements.ok_or_else(|| no_tensor(index))
    }

    /// Computes the outputs from the inputs, in the session's own memory.
    ///
    /// # Errors
    /// A [`Session::resize`] has not been followed by a [`Session::reshape`] that succeeded.
    pub fn run(&mut self) -> Result<()> {
        self.run_with([])
    }

    /// Computes with memory of the caller for the tensors that `bindings` name, and the session's
    /// own for the others. Nothing is copied.
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
    /// As [`Session::run`]; a binding for what is no such tensor, or a second one for the same; a
    /// buffer of another size than the tensor's [`TensorInfo::byte_size`], not aligned to its
    /// elements, or without the padding that XNNPACK reads.
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

    /// Asks for other dimensions of an input, which [`Session::reshape`] takes on.
    ///
    /// # Errors
    /// There is no such input, or the dimensions are none that a tensor can have.
    pub fn resize(&mut self, index: usize, dims: &[usize]) -> Result<()> {
        let id = self.inputs.info(index)?.id;
        self.runtime.reshape_external(id, &self.stand_in(dims)).map_err(as_argument)?;
        self.asked.push((index, dims.to_vec()));
        Ok(())
    }

    /// Takes on the dimensions that were asked for: shapes and memory of all tensors follow.
    /// The contents of inputs and outputs whose size changes are lost.
    ///
    /// Dimensions of 0 are possible where they leave no elements to any output; runs have nothing to do then.
    ///
    /// # Errors
    /// The graph cannot be computed with these dimensions, or memory is exhausted. The session then
    /// has its former shapes again, or, where XNNPACK does not allow that, refuses to run until
    /// another `reshape` succeeds.
    pub fn reshape(&mut self) -> Result<()> {
        let Err(error) = self.take_on_shapes() else { return Ok(()) };
        self.restore_shapes()?;
        Err(error)
    }

    /// Gives inputs, named by position, other dimensions, all at once: [`Session::resize`] of each, then
    /// [`Session::reshape`].
    ///
    /// # Errors
    /// As theirs. The session then has its former shapes, with the same exception.
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
        // Before memory is taken.
        if !self.asked.is_empty() {
            self.program.check_sizes(&dims)?;
        }
        self.runtime.reshape().map_err(as_argument)?;
        self.adopt_runtime_shapes()
    }

    /// Dimensions for XNNPACK's inference, which knows none of 0: whether a graph follows a dimension does not depend on
    /// its size, but for one that it was defined with, and for parts that it is cut in, which are few.
    fn stand_in(&self, dims: &[usize]) -> Vec<usize> {
        const PARTS: usize = 2 * 3 * 4 * 5 * 7;
        let graph = self.program.graph();
        let mut values = graph.inputs.iter().filter_map(|&id| graph.value(id));
        let other = if values.any(|value| value.dims.contains(&PARTS)) { 2 * PARTS } else { PARTS };
        dims.iter().map(|&dim| if dim == 0 { other } else { dim }).collect()
    }

    /// Goes back to the shapes that the buffers are for.
    fn restore_shapes(&mut self) -> Result<()> {
        self.asked.clear();
        for info in &self.inputs.infos {
            self.runtime.reshape_external(info.id, &self.stand_in(&info.dims))?;
        }
        if self.is_empty {
            return Ok(());
        }
        if let Err(error) = self.runtime.reshape() {
            log::warn!("the former shapes are not possible any more: {error}");
        }
        Ok(())
    }

    /// How many threads compute, the calling one included: those of [`SessionOptions::threads`] that there are processors
    /// and enough work for.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.runtime.threads()
    }

    /// Times of the last run's operators, in their order; `None` without
    /// [`SessionOptions::profile`], and before the first run.
    #[must_use]
    pub fn profile(&self) -> Option<Vec<OpTiming>> {
        let timings = self.runtime.profile().ok()?;
        Some(profile::attribute(timings, self.program.origins()))
    }

    /// Whether inputs have dimensions of 0, so that runs have nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// XNNPACK's runtime, for callers that bind raw memory. Its externals are those of
    /// [`Session::inputs`] and [`Session::outputs`]; shapes are to be changed through the session.
    /// It refuses to run where [`Session::is_empty`].
    pub fn runtime_mut(&mut self) -> &mut Runtime {
        &mut self.runtime
    }

    /// Takes over the runtime's shapes.
    fn adopt_runtime_shapes(&mut self) -> Result<()> {
        let inputs = self.inputs.dims_in(&self.runtime)?;
        let outputs = self.outputs.dims_in(&self.runtime)?;
        self.adopt(inputs, outputs)?;
        self.is_empty = false;
        Ok(())
    }

    /// Takes over these shapes, with buffers to match; all of them or none.
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

/// XNNPACK's refusal, where the graph is fine and the caller's wish is not.
fn as_argument(error: xnnpack::Error) -> RuntimeError {
    match RuntimeError::from(error) {
        refused if refused.kind() == RuntimeErrorKind::InvalidGraph => {
            RuntimeError::argument(refused.reason())
        }
        other => other,
    }
}
