//! Operators that move elements without computing.

use xnn_format::{ValueId, flags};
use xnnpack::{
    Concatenate, ConstantPad, DepthToSpace2d, EvenSplit, ExpandDims, Reshape, Slice,
    SpaceToDepth2d, Transpose,
};

use super::definer::NodeDefiner;
use crate::error::{Result, RuntimeError};

pub(super) fn concatenate(
    cx: &mut NodeDefiner<'_, '_>,
    axis: u32,
    inputs: &[ValueId],
    output: ValueId,
) -> Result<()> {
    let node =
        Concatenate { axis: self::axis(axis)?, inputs: cx.ids(inputs)?, output: cx.id(output)? };
    cx.define(node)
}

pub(super) fn even_split(
    cx: &mut NodeDefiner<'_, '_>,
    axis: u32,
    input: ValueId,
    outputs: &[ValueId],
) -> Result<()> {
    let node =
        EvenSplit { axis: self::axis(axis)?, input: cx.id(input)?, outputs: cx.ids(outputs)? };
    cx.define(node)
}

pub(super) fn static_reshape(
    cx: &mut NodeDefiner<'_, '_>,
    new_shape: &[usize],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = Reshape {
        dims: new_shape.to_vec(),
        is_open: cx.node.flags & flags::OPEN_DIMENSION != 0,
        input: cx.id(input)?,
        output: cx.id(output)?,
    };
    cx.define(node)
}

pub(super) fn static_expand_dims(
    cx: &mut NodeDefiner<'_, '_>,
    new_axes: &[usize],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = ExpandDims { axes: new_axes.to_vec(), input: cx.id(input)?, output: cx.id(output)? };
    cx.define(node)
}

pub(super) fn static_transpose(
    cx: &mut NodeDefiner<'_, '_>,
    perm: &[usize],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = Transpose { perm: perm.to_vec(), input: cx.id(input)?, output: cx.id(output)? };
    cx.define(node)
}

pub(super) fn static_slice(
    cx: &mut NodeDefiner<'_, '_>,
    offsets: &[usize],
    sizes: &[usize],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = Slice {
        offsets: offsets.to_vec(),
        sizes: sizes.to_vec(),
        input: cx.id(input)?,
        output: cx.id(output)?,
    };
    cx.define(node)
}

pub(super) fn static_constant_pad(
    cx: &mut NodeDefiner<'_, '_>,
    [before, after]: [&[usize]; 2],
    value: f32,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = ConstantPad {
        before: before.to_vec(),
        after: after.to_vec(),
        value,
        input: cx.id(input)?,
        output: cx.id(output)?,
    };
    cx.define(node)
}

pub(super) fn depth_to_space_2d(
    cx: &mut NodeDefiner<'_, '_>,
    block_size: u32,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = DepthToSpace2d { block_size, input: cx.id(input)?, output: cx.id(output)? };
    cx.define(node)
}

pub(super) fn space_to_depth_2d(
    cx: &mut NodeDefiner<'_, '_>,
    block_size: u32,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = SpaceToDepth2d { block_size, input: cx.id(input)?, output: cx.id(output)? };
    cx.define(node)
}

fn axis(axis: u32) -> Result<i32> {
    i32::try_from(axis).map_err(|_| RuntimeError::graph(format!("axis {axis} is out of range")))
}
