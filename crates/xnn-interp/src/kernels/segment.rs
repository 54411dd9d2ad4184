//! SEGMENT_SUM, the UNSORTED_SEGMENT operators, MATRIX_DIAG, MATRIX_SET_DIAG.

use xnn_model::{DType, Op};

use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::Element;
use crate::tensor::width;

/// Folds the rows of the data into the segments of their ids. Rows with negative ids are skipped.
fn fold<T: Element>(call: &mut Call<'_>, start: T, add: impl Fn(T, T) -> T) -> Result<(), Refusal> {
    let ids = call.ints(1)?;
    let data = call.input::<T>(0)?;
    let row = data.len().checked_div(ids.len()).unwrap_or(0);
    let output = call.output::<T>(0)?;
    output.fill(start);
    for (id, values) in ids.into_iter().zip(data.chunks_exact(row.max(1))) {
        let Ok(id) = usize::try_from(id) else { continue };
        let Some(target) = output.get_mut(id * row..).and_then(|rest| rest.get_mut(..row)) else {
            return refuse(format!("segment {id} does not exist"));
        };
        target.iter_mut().zip(values).for_each(|(out, &x)| *out = add(*out, x));
    }
    Ok(())
}

pub(super) fn sum(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    fn of<T: Element>(add: fn(T, T) -> T) -> Result<Run, Refusal> {
        run(move |call| {
            let ids = call.ints(1)?;
            let segments = match ids.last() {
                Some(&last) => size(last)? + 1,
                None => 0,
            };
            if !ids.is_sorted() {
                return refuse("the segment ids are not sorted");
            }
            let rest = call.shape(0)?.get(1..).unwrap_or(&[]);
            call.allocate(0, &[&[segments], rest].concat())?;
            fold(call, T::default(), add)
        })
    }
    match context.common_type()? {
        DType::F32 => of::<f32>(|a, b| a + b),
        DType::I32 => of::<i32>(i32::wrapping_add),
        other => context.unsupported(other),
    }
}

pub(super) fn unsorted(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    macro_rules! of {
        ($ty:ty, $add:expr, $mul:expr) => {
            match context.operator.op {
                Op::UnsortedSegmentSum => run(|call| fold::<$ty>(call, 0 as $ty, $add)),
                Op::UnsortedSegmentProd => run(|call| fold::<$ty>(call, 1 as $ty, $mul)),
                Op::UnsortedSegmentMax => run(|call| fold::<$ty>(call, <$ty>::MIN, <$ty>::max)),
                Op::UnsortedSegmentMin => run(|call| fold::<$ty>(call, <$ty>::MAX, <$ty>::min)),
                _ => refuse(format!("{} is not a segment operator", context.operator.op)),
            }
        };
    }
    match context.common_type()? {
        DType::F32 => of!(f32, |a, b| a + b, |a, b| a * b),
        DType::I32 => of!(i32, i32::wrapping_add, i32::wrapping_mul),
        other => context.unsupported(other),
    }
}

/// Writes diagonals into the square matrices of the output.
fn write_diagonals(call: &mut Call<'_>, position: usize, width: usize) -> Result<(), Refusal> {
    let shape = call.output_shape(0)?;
    let Some((_, &[rows, columns])) = shape.split_last_chunk::<2>() else {
        return refuse(format!("the output has shape {shape:?}, expected square matrices"));
    };
    let count = rows.min(columns);
    let diagonals = call.tensor(position)?.bytes.chunks_exact((count * width).max(1));
    let output = call.output_bytes(0)?;
    let squares = output.chunks_exact_mut((rows * columns * width).max(1));
    for (square, diagonal) in squares.zip(diagonals) {
        for (i, element) in diagonal.chunks_exact(width).enumerate() {
            square[(i * columns + i) * width..][..width].copy_from_slice(element);
        }
    }
    Ok(())
}

pub(super) fn matrix_diag(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    run(move |call| {
        call.output_bytes(0)?.fill(0);
        write_diagonals(call, 0, width)
    })
}

pub(super) fn matrix_set_diag(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    context.expect_input(1, context.input(0)?.dtype)?;
    run(move |call| {
        let input = call.tensor(0)?.bytes;
        call.output_bytes(0)?.copy_from_slice(input);
        write_diagonals(call, 1, width)
    })
}
