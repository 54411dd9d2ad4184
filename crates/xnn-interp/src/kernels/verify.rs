//! NumericVerify: quantized numbers beside the floats that they should stand for.

use xnn_model::{DType, Op};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};
use crate::quant::{Quantized, affine};

/// With less tolerance the operator is there to log differences, and refuses none.
const LEAST_TOLERANCE: f32 = 0.1;

/// Ends the run where a number is further from its float than so many steps. There is no output.
pub(super) fn numeric(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Custom(custom) = &node.operator.op else {
        return refuse(format!("{} is not custom", node.operator.op));
    };
    let Some(bytes) = custom.options.first_chunk::<4>() else {
        return refuse("options without a tolerance");
    };
    let tolerance = f32::from_le_bytes(*bytes);
    node.expect_input(1, DType::F32)?;
    match node.input(0)?.dtype {
        DType::U8 => integers::<u8>(node, tolerance),
        DType::I8 => integers::<i8>(node, tolerance),
        DType::I16 => integers::<i16>(node, tolerance),
        // Half precision has no steps.
        DType::F16 => run(move |call| {
            let reals = call.input::<half::f16>(0)?.iter().map(|half| half.to_f32());
            compare(call, reals, tolerance, 0.0)
        }),
        other => node.unsupported(other),
    }
}

fn integers<T: Quantized>(node: &Node<'_>, tolerance: f32) -> Result<Run, Refusal> {
    let from = affine(node.input(0)?)?;
    run(move |call| {
        let real = |&q: &T| (q.into() - from.zero_point) as f32 * from.scale;
        let reals = call.input::<T>(0)?.iter().map(real);
        compare(call, reals, tolerance, tolerance * from.scale)
    })
}

fn compare(
    call: &Call<'_>,
    reals: impl ExactSizeIterator<Item = f32>,
    tolerance: f32,
    most: f32,
) -> Result<(), Refusal> {
    let expected = call.input::<f32>(1)?;
    if reals.len() != expected.len() {
        return refuse(format!("{} numbers and {} floats", reals.len(), expected.len()));
    }
    let mut pairs = reals.zip(expected);
    match pairs
        .find(|(real, expected)| tolerance >= LEAST_TOLERANCE && (real - **expected).abs() > most)
    {
        Some((real, expected)) => refuse(format!("{real} is more than {most} from {expected}")),
        None => Ok(()),
    }
}
