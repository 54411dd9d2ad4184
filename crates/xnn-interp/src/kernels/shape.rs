//! Operators that return shapes, and tensors computed from shapes and scalars.

use xnn_model::{DType, Op, densified};

use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::width;

/// Writes integers to an `i32` or `i64` output.
pub(super) fn store(
    call: &mut Call<'_>,
    position: usize,
    values: impl Iterator<Item = usize>,
) -> Result<(), Refusal> {
    match call.outputs.get(position).map(|output| output.dtype()) {
        Some(DType::I64) => {
            let output = call.output::<i64>(position)?;
            output.iter_mut().zip(values).for_each(|(out, value)| *out = value as i64);
        }
        _ => {
            let output = call.output::<i32>(position)?;
            output.iter_mut().zip(values).for_each(|(out, value)| *out = value as i32);
        }
    }
    Ok(())
}

/// Returns an error unless an output is `i32` or `i64`.
pub(super) fn expect_index_type(
    context: &OperatorContext<'_>,
    position: usize,
) -> Result<(), Refusal> {
    match context.output(position)?.dtype {
        DType::I32 | DType::I64 => Ok(()),
        other => context.unsupported(other),
    }
}

pub(super) fn shape(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    expect_index_type(context, 0)?;
    run(|call| {
        let shape = call.shape(0)?;
        store(call, 0, shape.iter().copied())
    })
}

pub(super) fn rank(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    expect_index_type(context, 0)?;
    run(|call| {
        let rank = call.shape(0)?.len();
        store(call, 0, std::iter::once(rank))
    })
}

pub(super) fn broadcast_args(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    expect_index_type(context, 0)?;
    run(|call| {
        let shape = |position| -> Result<Vec<usize>, Refusal> {
            call.ints(position)?.into_iter().map(size).collect()
        };
        let (a, b) = (shape(0)?, shape(1)?);
        match xnn_model::infer::broadcast_shapes(&a, &b) {
            Some(shape) => store(call, 0, shape.into_iter()),
            None => refuse(format!("shapes {a:?} and {b:?} do not broadcast")),
        }
    })
}

pub(super) fn fill(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let dtype = context.output(0)?.dtype;
    context.expect_input(1, dtype)?;
    let width = width(dtype)?;
    run(move |call| {
        let value = call.tensor(1)?.bytes;
        if value.len() != width {
            return refuse("the fill value (input 1) is not a scalar");
        }
        let targets = call.output_bytes(0)?.chunks_exact_mut(width);
        targets.for_each(|target| target.copy_from_slice(value));
        Ok(())
    })
}

pub(super) fn range(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    macro_rules! range_of {
        ($ty:ty, $step:expr) => {
            run(|call| {
                let first = |position| -> Result<$ty, Refusal> {
                    match call.input::<$ty>(position)? {
                        [value] => Ok(*value),
                        _ => refuse(format!("input {position} is not a scalar")),
                    }
                };
                let (mut value, delta) = (first(0)?, first(2)?);
                let step: fn($ty, $ty) -> $ty = $step;
                for out in call.output::<$ty>(0)? {
                    *out = value;
                    value = step(value, delta);
                }
                Ok(())
            })
        };
    }
    match context.common_type()? {
        DType::F32 => range_of!(f32, |value, delta| value + delta),
        DType::I32 => range_of!(i32, i32::wrapping_add),
        DType::I64 => range_of!(i64, i64::wrapping_add),
        other => context.unsupported(other),
    }
}

/// DENSIFY: moves the elements of a sparse constant to their places. A constant that another
/// operator reads as weights is dense already.
pub(super) fn densify(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.common_type()?;
    let input = context.input(0)?;
    let dense = match (&input.sparsity, &input.data) {
        (None, Some(data)) => data.clone(),
        _ => densified(input).map_err(|reason| Refusal(format!("input 0: {reason}")))?.into(),
    };
    run(move |call| {
        let output = call.output_bytes(0)?;
        if output.len() != dense.len() {
            return refuse("the size of the output does not match the input");
        }
        output.copy_from_slice(&dense);
        Ok(())
    })
}

pub(super) fn sparse_to_dense(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let dtype = context.output(0)?.dtype;
    context.expect_input(2, dtype)?;
    context.expect_input(3, dtype)?;
    let Op::SparseToDense(_) = context.operator.op else {
        return refuse(format!("{} is not SPARSE_TO_DENSE", context.operator.op));
    };
    let width = width(dtype)?;
    run(move |call| {
        let shape = call.output_shape(0)?;
        let steps = super::strides::strides(&shape);
        let depth = if call.shape(0)?.len() == 2 { call.shape(0)?[1] } else { 1 };
        if depth != shape.len() {
            return refuse(format!("indices of {depth} dimensions do not match shape {shape:?}"));
        }
        let indices = call.ints(0)?;
        let (values, default) = (call.tensor(2)?.bytes, call.tensor(3)?.bytes);
        if default.len() != width {
            return refuse("the default value must have one element");
        }
        let single = values.len() == width;
        let output = call.output_bytes(0)?;
        output.chunks_exact_mut(width).for_each(|out| out.copy_from_slice(default));
        for (at, index) in indices.chunks_exact(depth.max(1)).enumerate() {
            let mut target = 0;
            for ((&i, &dim), step) in index.iter().zip(&shape).zip(&steps) {
                match usize::try_from(i) {
                    Ok(i) if i < dim => target += i * step,
                    _ => {
                        return refuse(format!(
                            "index {i} is out of range for a dimension of {dim}"
                        ));
                    }
                }
            }
            let from = if single { 0 } else { at * width };
            let value = values.get(from..from + width);
            let value =
                value.ok_or_else(|| Refusal("there are fewer values than indices".into()))?;
            output[target * width..][..width].copy_from_slice(value);
        }
        Ok(())
    })
}
