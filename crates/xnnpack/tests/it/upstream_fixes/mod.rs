//! Bugs that XNNPACK has fixed since the pinned commit (see `docs/upstream-fixes.md`). Each test is
//! named after the correct behaviour, and fails if the bug reappears.

mod numbers;
mod shapes;

use xnn_testing::Random;
use xnnpack::{
    Binary, BinaryOp, Datatype, ExternalId, Flags, FullyConnected, OutputRange, TensorSpec, Unary,
    UnaryOp, ValueId,
};

/// A second input.
const OTHER: ExternalId = ExternalId(9);

fn any_f16() -> TensorSpec {
    TensorSpec::inferred(Datatype::F16)
}

fn convert(input: ValueId, output: ValueId) -> Unary {
    Unary { op: UnaryOp::Convert, input, output }
}

fn add(a: ValueId, b: ValueId, output: ValueId) -> Binary {
    Binary { op: BinaryOp::Add, output_range: OutputRange::default(), a, b, output }
}

fn dense(input: ValueId, filter: ValueId, output: ValueId) -> FullyConnected {
    let output_range = OutputRange::default();
    FullyConnected { output_range, input, filter, bias: None, output, flags: Flags::NONE }
}

/// Integers from -3 to 3.
fn small(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| f32::from(u8::try_from(random.below(7)).unwrap()) - 3.0).collect()
}

fn bytes(values: &[f32]) -> Vec<i8> {
    values.iter().map(|&value| value as i8).collect()
}
