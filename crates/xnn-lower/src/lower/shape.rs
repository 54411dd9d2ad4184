//! Lowers operators that only move data.

use xnn_format::{NodeOp, UnaryOp, ValueId, flags};
use xnn_model::TensorId;

use super::builder::Builder;
use crate::rules::shape::{Concatenation, Conversion, LeadingDim, Pad, Reshape, Transpose};

pub(super) fn reshape(b: &mut Builder<'_>, plan: &Reshape) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let node = b.push(NodeOp::StaticReshape { new_shape: plan.new_shape.clone(), input, output });
    if plan.is_open {
        node.flags |= flags::OPEN_DIMENSION;
    }
}

pub(super) fn transpose(b: &mut Builder<'_>, plan: &Transpose) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    b.push(NodeOp::StaticTranspose { perm: plan.perm.clone(), input, output });
}

pub(super) fn pad(b: &mut Builder<'_>, plan: &Pad) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    b.push(NodeOp::StaticConstantPad {
        pre_paddings: plan.pre.clone(),
        post_paddings: plan.post.clone(),
        padding_value: plan.value,
        input,
        output,
    });
}

/// CONCATENATION and PACK.
pub(super) fn concatenation(b: &mut Builder<'_>, plan: &Concatenation) {
    let mut inputs: Vec<ValueId> = plan.inputs.iter().map(|joined| b.value(joined.id)).collect();
    let output = b.value(plan.output);
    for (input, joined) in inputs.iter_mut().zip(&plan.inputs) {
        let source = match joined.conversion {
            Conversion::None => continue,
            Conversion::Node => *input,
            Conversion::ThroughFloat => b.as_f32(joined.id),
        };
        let converted = b.temporary_like(output, b.dims(joined.id));
        b.unary(UnaryOp::Convert, source, converted);
        *input = converted;
    }
    if plan.new_axis {
        let mut slice = b.dims(plan.output).to_vec();
        slice[plan.axis] = 1;
        for input in &mut inputs {
            *input = reshaped(b, *input, &slice, LeadingDim::inferred_if(plan.axis > 0));
        }
    }
    join(b, inputs, plan.axis, output);
}

/// A new value with the elements of `input` and another shape.
pub(super) fn reshaped(
    b: &mut Builder<'_>,
    input: ValueId,
    shape: &[usize],
    leading: LeadingDim,
) -> ValueId {
    let output = b.temporary_like(input, shape);
    reshape_to(b, input, output, leading);
    output
}

/// Reshapes `input` to `output`.
pub(super) fn reshape_to(
    b: &mut Builder<'_>,
    input: ValueId,
    output: ValueId,
    leading: LeadingDim,
) {
    let new_shape = leading.apply(&b.value_dims(output));
    b.push(NodeOp::StaticReshape { new_shape, input, output });
}

/// A new value with the dimensions of `input` in another order.
pub(super) fn transposed(b: &mut Builder<'_>, input: ValueId, perm: &[usize]) -> ValueId {
    let dims = b.value_dims(input);
    let moved: Vec<usize> = perm.iter().map(|&axis| dims[axis]).collect();
    let output = b.temporary_like(input, &moved);
    b.push(NodeOp::StaticTranspose { perm: perm.to_vec(), input, output });
    output
}

/// The result of `f`, which is given a value whose slices along an axis are contiguous, and the
/// position of that axis. Its result has the dimensions of the value, except along the axis.
pub(super) fn with_contiguous_slices(
    b: &mut Builder<'_>,
    input: ValueId,
    axis: usize,
    f: impl FnOnce(&mut Builder<'_>, ValueId, usize) -> ValueId,
) -> ValueId {
    let dims = b.value_dims(input);
    if dims[..axis].iter().all(|&dim| dim == 1) {
        return f(b, input, axis);
    }
    let others = (0..dims.len()).filter(|&other| other != axis);
    let perm: Vec<usize> = std::iter::once(axis).chain(others).collect();
    let first = transposed(b, input, &perm);
    let result = f(b, first, 0);
    let mut back: Vec<usize> = (1..dims.len()).collect();
    back.insert(axis, 0);
    transposed(b, result, &back)
}

/// Copies a value to a tensor.
pub(super) fn copied(b: &mut Builder<'_>, value: ValueId, tensor: TensorId) {
    let output = b.value(tensor);
    b.unary(UnaryOp::Copy, value, output);
}

/// Largest number of operands of a concatenation, `XNN_MAX_INPUTS`.
pub(super) const MAX_CONCATENATED: usize = 5;

/// Joins any number of values, in several rounds if a node cannot join all of them.
pub(super) fn join(b: &mut Builder<'_>, mut inputs: Vec<ValueId>, dim: usize, output: ValueId) {
    // Rules have checked that the axis is below the rank, which is at most 6.
    let axis = dim as u32;
    while inputs.len() > MAX_CONCATENATED {
        let parts: Vec<Vec<ValueId>> =
            inputs.chunks(MAX_CONCATENATED).map(<[ValueId]>::to_vec).collect();
        inputs = parts
            .into_iter()
            .map(|part| match part.as_slice() {
                &[single] => single,
                _ => {
                    let mut dims = b.value_dims(part[0]);
                    dims[dim] = part.iter().map(|&id| b.value_dims(id)[dim]).sum();
                    let joined = b.temporary_like(output, &dims);
                    b.push(NodeOp::Concatenate { axis, inputs: part, output: joined });
                    joined
                }
            })
            .collect();
    }
    match inputs.as_slice() {
        &[input] => {
            b.unary(UnaryOp::Copy, input, output);
        }
        _ => {
            b.push(NodeOp::Concatenate { axis, inputs, output });
        }
    }
}
