//! Matrix products of two operands.

use xnn_format::{ValueId, flags};
use xnnpack::{BatchMatMul, Flags};

use super::definer::NodeDefiner;
use crate::error::Result;

pub(super) fn batch_matrix_multiply(
    cx: &mut NodeDefiner<'_, '_>,
    [a, b]: [ValueId; 2],
    output: ValueId,
) -> Result<()> {
    let node = BatchMatMul {
        a: cx.id(a)?,
        b: cx.id(b)?,
        output: cx.id(output)?,
        flags: cx.flags(&[(flags::TRANSPOSE_WEIGHTS, Flags::TRANSPOSE_B)]),
    };
    cx.define(node)
}
