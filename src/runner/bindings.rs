//! Runs in the caller's memory.

use smallvec::SmallVec;
use xnn_interp::ErrorKind;
use xnn_runtime::{OutputSlice, PaddedSlice, TensorInfo};

use super::tensors::{inputs, outputs};
use super::{Engine, Runner};
use crate::error::Error;
use crate::tensor::{BINDING_PADDING, Binding, TensorError, TensorKey, Tensors};

/// Number of bindings up to which a run does not allocate.
const INLINE_BINDINGS: usize = 32;

impl Runner {
    /// Runs as [`Runner::run`] with the caller's memory for some inputs and outputs, and the runner's own for the others.
    ///
    /// Nothing is copied if XNNPACK runs all operators. Otherwise the elements are copied into the runner's inputs before the
    /// run, and from its outputs afterwards. The runner's own memory of a bound output is not changed if nothing is copied.
    ///
    /// ```
    /// use xnn_delegate::Runner;
    /// use xnn_delegate::tensor::{BINDING_PADDING, Binding};
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// # let mut runner = Runner::open(path)?;
    /// let pixels = vec![0.5f32; runner.input_as_mut::<f32>(0)?.len() + BINDING_PADDING / 4];
    /// let mut probabilities = [0f32; 10];
    /// runner.run_bound([
    ///     Binding::Input(0, bytemuck::cast_slice(&pixels)),
    ///     Binding::Output(0, bytemuck::cast_slice_mut(&mut probabilities)),
    /// ])?;
    /// assert!(probabilities.iter().sum::<f32>() > 0.99);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such input or output, a tensor is bound twice, or memory is too small or not aligned for the elements; the
    /// errors of [`Runner::run`].
    pub fn run_bound<'a>(
        &mut self,
        bindings: impl IntoIterator<Item = Binding<'a>>,
    ) -> Result<(), Error> {
        match &self.engine {
            Engine::Whole(_) => self.run_in_place(bindings),
            Engine::Partial(_) => self.run_with_copies(bindings),
        }
    }

    fn run_in_place<'a>(
        &mut self,
        bindings: impl IntoIterator<Item = Binding<'a>>,
    ) -> Result<(), Error> {
        let Engine::Whole(session) = &mut self.engine else { return Ok(()) };
        if self.cancel.is_raised() {
            return Err(xnn_interp::Error::from(ErrorKind::Cancelled).into());
        }
        let mut all: SmallVec<[xnn_runtime::Binding<'_>; INLINE_BINDINGS]> = SmallVec::new();
        for binding in bindings {
            all.push(match binding {
                Binding::Input(index, memory) => {
                    let tensors = inputs(&self.inputs);
                    let info = info(tensors, session.inputs(), index)?;
                    let bytes = info.byte_size();
                    let expected = bytes.saturating_add(BINDING_PADDING);
                    let slice = PaddedSlice::within(memory, 0..bytes)
                        .filter(|_| memory.len() >= expected)
                        .ok_or_else(|| too_small(tensors, index, expected, memory.len()))?;
                    xnn_runtime::Binding::Input(info.id, slice)
                }
                Binding::Output(index, memory) => {
                    let tensors = outputs(&self.outputs);
                    let info = info(tensors, session.outputs(), index)?;
                    let (bytes, found) = (info.byte_size(), memory.len());
                    let slice = OutputSlice::within(memory, 0..bytes)
                        .ok_or_else(|| too_small(tensors, index, bytes, found))?;
                    xnn_runtime::Binding::Output(info.id, slice)
                }
            });
        }
        Ok(session.run_with(all)?)
    }

    fn run_with_copies<'a>(
        &mut self,
        bindings: impl IntoIterator<Item = Binding<'a>>,
    ) -> Result<(), Error> {
        let mut bound_outputs: SmallVec<[(usize, &mut [u8]); INLINE_BINDINGS]> = SmallVec::new();
        let mut bound_inputs: SmallVec<[usize; INLINE_BINDINGS]> = SmallVec::new();
        for binding in bindings {
            let (tensors, index, is_new) = match &binding {
                Binding::Input(index, _) => {
                    (inputs(&self.inputs), *index, !bound_inputs.contains(index))
                }
                Binding::Output(index, _) => {
                    let is_new = !bound_outputs.iter().any(|(other, _)| other == index);
                    (outputs(&self.outputs), *index, is_new)
                }
            };
            tensors.find(TensorKey::Index(index))?;
            if !is_new {
                return Err(tensors.elements_error(index, "it is bound twice").into());
            }
            match binding {
                Binding::Input(index, memory) => {
                    let bytes = self.input_bytes_mut(index)?.len();
                    let expected = bytes.saturating_add(BINDING_PADDING);
                    if memory.len() < expected {
                        return Err(
                            too_small(inputs(&self.inputs), index, expected, memory.len()).into()
                        );
                    }
                    let elements = memory.get(..bytes).unwrap_or_default();
                    self.input_bytes_mut(index)?.copy_from_slice(elements);
                    bound_inputs.push(index);
                }
                Binding::Output(index, memory) => bound_outputs.push((index, memory)),
            }
        }
        self.run()?;
        for (index, memory) in bound_outputs {
            let elements = self.output_bytes(index)?;
            match memory.get_mut(..elements.len()) {
                Some(target) => target.copy_from_slice(elements),
                None => {
                    let tensors = outputs(&self.outputs);
                    return Err(too_small(tensors, index, elements.len(), memory.len()).into());
                }
            }
        }
        Ok(())
    }
}

/// XNNPACK's description of a tensor.
fn info<'a>(
    tensors: Tensors<'_>,
    infos: &'a [TensorInfo],
    index: usize,
) -> Result<&'a TensorInfo, TensorError> {
    tensors.find(TensorKey::Index(index))?;
    infos.get(index).ok_or_else(|| tensors.elements_error(index, "XNNPACK does not have it"))
}

fn too_small(tensors: Tensors<'_>, index: usize, expected: usize, found: usize) -> TensorError {
    TensorError::Size { side: tensors.side, tensor: tensors.label(index), expected, found }
}
