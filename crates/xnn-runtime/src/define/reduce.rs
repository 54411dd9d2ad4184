//! Sums and means over whole dimensions.

use xnn_format::{ReduceOp, ValueId, flags};
use xnnpack::{Flags, GlobalPool, PooledDims, StaticReduce};

use super::definer::NodeDefiner;
use crate::error::{Result, RuntimeError};

const KEEP_DIMS: &[(u32, Flags)] = &[(flags::KEEP_DIMS, Flags::KEEP_DIMS)];

pub(super) fn global_average_pooling_2d(
    cx: &mut NodeDefiner<'_, '_>,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = GlobalPool {
        op: xnnpack::ReduceOp::Mean,
        dims: PooledDims::Two,
        is_fixed: cx.node.flags & flags::FIXED_SIZE != 0,
        output_range: cx.output_range(),
        input: cx.id(input)?,
        output: cx.id(output)?,
        flags: cx.flags(KEEP_DIMS),
    };
    cx.define(node)
}

pub(super) fn static_reduce(
    cx: &mut NodeDefiner<'_, '_>,
    op: ReduceOp,
    axes: &[usize],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let axes = axes
        .iter()
        .map(|&axis| i64::try_from(axis))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| RuntimeError::graph(format!("axes {axes:?} are out of range")))?;
    let node = StaticReduce {
        op: match op {
            ReduceOp::Sum => xnnpack::ReduceOp::Sum,
            ReduceOp::Mean => xnnpack::ReduceOp::Mean,
        },
        axes,
        input: cx.id(input)?,
        output: cx.id(output)?,
        flags: cx.flags(KEEP_DIMS),
    };
    cx.define(node)
}
