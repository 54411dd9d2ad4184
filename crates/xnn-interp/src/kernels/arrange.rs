//! Operators that rearrange elements.

use smallvec::smallvec;
use xnn_model::Op;
use xnn_model::infer::axes_of_reduction;

use super::copy::View;
use super::strides::broadcast_strides;
use crate::call::{Call, axis, size};
use crate::dims::Dims;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::width;

/// RESHAPE, SQUEEZE and EXPAND_DIMS: the order of elements stays.
pub(super) fn reshape(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    width(context.common_type()?)?;
    run(|call| {
        let input = call.tensor(0)?.bytes;
        call.output_bytes(0)?.copy_from_slice(input);
        Ok(())
    })
}

pub(super) fn bitcast(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (width(context.input(0)?.dtype)?, width(context.output(0)?.dtype)?);
    run(move |call| {
        let input = call.tensor(0)?;
        let mut shape = input.shape.to_vec();
        if from > to {
            shape.push(from / to);
        } else if from < to && shape.pop() != Some(to / from) {
            return refuse(format!(
                "the last dimension of shape {:?} does not match the larger element type",
                input.shape
            ));
        }
        call.allocate(0, &shape)?;
        call.output_bytes(0)?.copy_from_slice(input.bytes);
        Ok(())
    })
}

/// Copies a view of the first input into the first output.
fn viewed(
    context: &OperatorContext<'_>,
    view: impl Fn(&Call<'_>) -> Result<View, Refusal> + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    run(move |call| {
        let view = view(call)?;
        let input = call.tensor(0)?.bytes;
        view.copy(width, input, call.output_bytes(0)?)
    })
}

pub(super) fn transpose(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let whole = View::of(call.shape(0)?);
        let rank = whole.shape.len();
        let order = call.ints(1)?.into_iter().map(|p| axis(p, rank));
        let order = order.collect::<Result<Dims, _>>()?;
        Ok(View {
            start: 0,
            shape: order.iter().map(|&p| whole.shape[p]).collect(),
            strides: order.iter().map(|&p| whole.strides[p]).collect(),
        })
    })
}

pub(super) fn broadcast_to(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let shape = call.output_shape(0)?;
        let strides = broadcast_strides(call.shape(0)?, &shape);
        Ok(View { start: 0, shape, strides: strides.into_iter().map(usize::cast_signed).collect() })
    })
}

/// Views every dimension as two: the repetition, with stride 0, and the dimension itself.
pub(super) fn tile(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let whole = View::of(call.shape(0)?);
        let mut view = View { start: 0, shape: smallvec![], strides: smallvec![] };
        for ((dim, stride), times) in whole.shape.iter().zip(whole.strides).zip(call.ints(1)?) {
            view.shape.extend([size(times)?, *dim]);
            view.strides.extend([0, stride]);
        }
        Ok(view)
    })
}

pub(super) fn reverse(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let mut view = View::of(call.shape(0)?);
        for axis in axes_of_reduction(&call.ints(1)?, view.shape.len())? {
            let last = view.shape[axis].saturating_sub(1).cast_signed();
            view.start = view.start.wrapping_add_signed(last * view.strides[axis]);
            view.strides[axis] = -view.strides[axis];
        }
        Ok(view)
    })
}

/// Views `[n, h, w, b, b, c]` as `[n, h, b, w, b, c]`.
pub(super) fn depth_to_space(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let [n, h, w, _] = call.dims(0)?;
        let [_, out_h, _, c] = call.output_dims(0)?;
        let block = out_h.checked_div(h).unwrap_or(0);
        Ok(swapped(&[n, h, w, block, block, c], 2, 3))
    })
}

/// Views `[n, h, b, w, b, c]` as `[n, h, w, b, b, c]`.
pub(super) fn space_to_depth(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    viewed(context, |call| {
        let [n, h, _, c] = call.dims(0)?;
        let [_, out_h, out_w, _] = call.output_dims(0)?;
        let block = h.checked_div(out_h).unwrap_or(0);
        Ok(swapped(&[n, out_h, block, out_w, block, c], 2, 3))
    })
}

fn swapped(shape: &[usize], a: usize, b: usize) -> View {
    let mut view = View::of(shape);
    view.shape.swap(a, b);
    view.strides.swap(a, b);
    view
}

pub(super) fn unpack(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Unpack(options) = &context.operator.op else {
        return refuse(format!("{} is not UNPACK", context.operator.op));
    };
    let along = options.axis;
    let width = width(context.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let at = axis(along.into(), shape.len())?;
        let input = call.tensor(0)?.bytes;
        for position in 0..call.outputs.len() {
            let view = View::of(shape).slice(at, position, 1);
            view.copy(width, input, call.output_bytes(position)?)?;
        }
        Ok(())
    })
}

/// SPLIT and SPLIT_V, which differ in the positions of value and axis.
pub(super) fn split(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (value, axis_at) = match context.operator.op {
        Op::Split(_) => (1, 0),
        _ => (0, 2),
    };
    let width = width(context.input(value)?.dtype)?;
    context.expect_output(0, context.input(value)?.dtype)?;
    run(move |call| {
        let shape = call.shape(value)?;
        let at = axis(call.int(axis_at)?, shape.len())?;
        let input = call.tensor(value)?.bytes;
        let mut start = 0;
        for position in 0..call.outputs.len() {
            let count = call.output_shape(position)?[at];
            let view = View::of(shape).slice(at, start, count);
            view.copy(width, input, call.output_bytes(position)?)?;
            start += count;
        }
        Ok(())
    })
}
