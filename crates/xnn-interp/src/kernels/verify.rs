//! NumericVerify: compares quantized values with the floats that they should represent.

use xnn_model::{DType, Op};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, affine};

/// With a smaller tolerance, the operator only logs differences.
const LEAST_TOLERANCE: f32 = 0.1;

/// Returns an error if a value differs from its float by more than this many steps. The operator
/// has no output.
pub(super) fn numeric(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Custom(custom) = &context.operator.op else {
        return refuse(format!("{} is not a custom operator", context.operator.op));
    };
    let Some(bytes) = custom.options.first_chunk::<4>() else {
        return refuse("the options have no tolerance");
    };
    let tolerance = f32::from_le_bytes(*bytes);
    context.expect_input(1, DType::F32)?;
    match context.input(0)?.dtype {
        DType::U8 => integers::<u8>(context, tolerance),
        DType::I8 => integers::<i8>(context, tolerance),
        DType::I16 => integers::<i16>(context, tolerance),
        // fp16 has no quantization step.
        DType::F16 => run(move |call| {
            let reals = call.input::<half::f16>(0)?.iter().map(|half| half.to_f32());
            compare(call, reals, tolerance, 0.0)
        }),
        other => context.unsupported(other),
    }
}

fn integers<T: Quantized>(context: &OperatorContext<'_>, tolerance: f32) -> Result<Run, Refusal> {
    let from = affine(context.input(0)?)?;
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
        return refuse(format!("{} quantized values, but {} floats", reals.len(), expected.len()));
    }
    let mut pairs = reals.zip(expected);
    match pairs
        .find(|(real, expected)| tolerance >= LEAST_TOLERANCE && (real - **expected).abs() > most)
    {
        Some((real, expected)) => {
            refuse(format!("{real} differs from {expected} by more than {most}"))
        }
        None => Ok(()),
    }
}
