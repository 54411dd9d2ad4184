//! Part of a deviation that rounding explains.
//!
//! Kernels add products in different orders, and quantize the inputs of layers with 8-bit weights to different ranges. The
//! effect on a sum depends on cancellation. To measure it, the reference runs once more on inputs that are changed by the size
//! of a rounding error (Monte Carlo arithmetic: D. S. Parker, UCLA CSD-970002, 1997).

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use xnn_interp::{Entry, Executed, InterpOptions, Interpreter, TensorBuf, TensorView};
use xnn_model::op::Op;
use xnn_model::{DType, Subgraph};

use super::deviation::{Deviation, Scale};

/// Relative change of an input: 16 rounding errors, as sums of some hundred products differ between two orders.
const MOVE: f32 = 16.0 * f32::EPSILON / 2.0;

/// Sets [`Deviation::rounding`] if an operator that has just run, the only one of `graph`, adds floats and deviates.
pub(super) fn measure(graph: &Subgraph, executed: &Executed<'_>, deviations: &mut [Deviation]) {
    let is_large = |it: &Deviation| it.scale == Scale::Range && it.distance > Deviation::SMALL;
    if !deviations.iter().any(is_large) {
        return;
    }
    let reference = Rounding::of(graph).and_then(|rounding| rounding.run(graph, executed));
    let Some(reference) = reference else { return };
    for deviation in deviations.iter_mut().filter(|it| is_large(it)) {
        let output = graph.outputs.iter().position(|&id| id == deviation.tensor);
        let actual = output.and_then(|position| reference.output(position).ok());
        let expected = executed.tensor(deviation.tensor);
        if let (Some(expected), Some(actual)) = (expected, actual) {
            let graph = (executed.subgraph_id(), executed.subgraph());
            let moved =
                Deviation::new(graph, deviation.operator, deviation.tensor, expected, actual.bytes);
            deviation.rounding = Some(moved.distance);
        }
    }
}

/// Treatment of the inputs of a sum.
enum Rounding {
    /// Inputs are multiplied as floats.
    Float,
    /// Inputs are quantized to 8 bits, each row of the last dimension, or each sample of the first, to its own range.
    Quantized { rows: bool },
}

impl Rounding {
    /// `None` for operators that do not sum products: they round only their results, or are not continuous.
    fn of(graph: &Subgraph) -> Option<Self> {
        let operator = graph.operators.first()?;
        let rows = match operator.op {
            Op::FullyConnected(_) | Op::BatchMatMul(_) => true,
            Op::Conv2d(_) | Op::DepthwiseConv2d(_) | Op::TransposeConv(_) => false,
            Op::Mean(_) | Op::Sum(_) | Op::AveragePool2d(_) => return Some(Self::Float),
            _ => return None,
        };
        let tensors = operator.inputs.iter().flatten().map(|&id| graph.tensor(id));
        let mut weights = tensors.filter(|it| it.is_constant() && it.quantization.is_some());
        Some(match weights.any(|it| !it.dtype.is_float()) {
            true => Self::Quantized { rows },
            false => Self::Float,
        })
    }

    /// Runs the reference on changed inputs; `None` if that fails.
    fn run(&self, graph: &Subgraph, executed: &Executed<'_>) -> Option<Interpreter> {
        let options = InterpOptions::default();
        let mut reference = Interpreter::new(&graph.clone().into(), Entry::Main, &options).ok()?;
        let mut random = ChaCha8Rng::seed_from_u64(0);
        for (position, &id) in graph.inputs.iter().enumerate() {
            let value = executed.tensor(id)?;
            let value = match value.dtype {
                DType::F32 => self.moved(value, &mut random)?,
                dtype => TensorBuf::from_bytes(dtype, value.shape, value.bytes)?,
            };
            reference.set_input(position, value).ok()?;
        }
        reference.run().ok()?;
        Some(reference)
    }

    /// Changes each element by a little, up or down.
    fn moved(&self, value: TensorView<'_>, random: &mut ChaCha8Rng) -> Option<TensorBuf> {
        let elements =
            value.bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
        let mut elements: Vec<f32> = elements.collect();
        let group = match self {
            Self::Float => 1,
            Self::Quantized { rows: true } => value.shape.last().copied().unwrap_or(1),
            Self::Quantized { rows: false } => value.shape.iter().skip(1).product(),
        };
        for group in elements.chunks_mut(group.max(1)) {
            let finite = group.iter().filter(|it| it.is_finite());
            let largest = finite.fold(0.0f32, |largest, it| largest.max(it.abs()));
            let step = match self {
                Self::Float => largest * MOVE,
                Self::Quantized { .. } => largest / 127.0 / 2.0,
            };
            for element in group {
                *element += if random.random() { step } else { -step };
            }
        }
        TensorBuf::from_slice(value.shape, &elements)
    }
}
