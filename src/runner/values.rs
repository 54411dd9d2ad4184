//! Runs with the caller's memory for outputs, and values of tensors that are neither inputs nor outputs.

use smallvec::SmallVec;
use xnn_interp::TensorView;
use xnn_model::{Subgraph, TensorId};

use super::tensors::outputs;
use super::{Engine, Runner};
use crate::error::Error;
use crate::tensor::{Binding, Side, TensorError};
use crate::tensor_spec::TensorSpec;

/// Alignment in bytes that memory of the caller needs to be bound to XNNPACK: that of the largest element.
const BOUND_ALIGNMENT: usize = 16;

/// Number of outputs up to which a run does not allocate.
const INLINE: usize = 8;

impl Runner {
    /// Runs as [`Runner::run`], and writes the outputs at these positions to the caller's memory: dense, row-major, in native
    /// byte order. The runner's own memory for them does not change.
    ///
    /// XNNPACK writes to the memory directly if it runs all operators and the memory is aligned to 16 bytes. Otherwise the
    /// elements are copied.
    ///
    /// ```
    /// # use xnn_delegate::Runner;
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// # let mut runner = Runner::open(path)?;
    /// let mut probabilities = vec![0u8; 10 * size_of::<f32>()];
    /// runner.run_into(&mut [(0, probabilities.as_mut_slice())])?;
    /// assert_ne!(probabilities, vec![0; 40]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Runner::run`]; an output that does not exist or is listed twice, or memory of another size. If only a
    /// run determines the size of an output, the error comes after the run.
    pub fn run_into(&mut self, memory: &mut [(usize, &mut [u8])]) -> Result<(), Error> {
        for (at, (index, _)) in memory.iter().enumerate() {
            let tensors = outputs(&self.outputs);
            tensors.find((*index).into())?;
            if memory.iter().take(at).any(|(other, _)| other == index) {
                return Err(tensors.elements_error(*index, "it is listed twice").into());
            }
        }
        let mut bound: SmallVec<[Binding<'_>; INLINE]> = SmallVec::new();
        let mut copied: SmallVec<[(usize, &mut [u8]); INLINE]> = SmallVec::new();
        for (index, memory) in memory.iter_mut() {
            let (index, memory) = (*index, &mut **memory);
            let info = match &self.engine {
                Engine::Whole(session) => session.outputs().get(index),
                Engine::Partial(_) => None,
            };
            if let Some(info) = info {
                fits(&self.outputs, index, info.byte_size(), memory.len())?;
            }
            if info.is_some() && memory.as_ptr().addr().is_multiple_of(BOUND_ALIGNMENT) {
                bound.push(Binding::Output(index, memory));
            } else {
                copied.push((index, memory));
            }
        }
        self.run_bound(bound)?;
        for (index, memory) in copied {
            let elements = self.output_bytes(index)?;
            fits(&self.outputs, index, elements.len(), memory.len())?;
            memory.copy_from_slice(elements);
        }
        Ok(())
    }

    /// The subgraph that runs, with the shapes that are known before a run; `None` for a blob.
    #[must_use]
    pub fn subgraph(&self) -> Option<&Subgraph> {
        self.graph()
    }

    /// Value of a tensor of the subgraph, if memory holds it at the moment. A run reuses the memory of intermediate tensors,
    /// unless [`RunnerBuilder::keep_intermediates`](crate::RunnerBuilder::keep_intermediates) is set. Always `None` if XNNPACK
    /// runs all operators.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorView<'_>> {
        let interpreter = self.interpreter()?;
        let exists = id < interpreter.subgraph().tensors.len();
        exists.then(|| interpreter.tensor(id)).flatten()
    }
}

fn fits(
    specs: &[TensorSpec],
    index: usize,
    expected: usize,
    found: usize,
) -> Result<(), TensorError> {
    if expected == found {
        return Ok(());
    }
    let tensor = outputs(specs).label(index);
    Err(TensorError::Size { side: Side::Output, tensor, expected, found })
}
