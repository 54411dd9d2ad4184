//! Lowers SELECT and SELECT_V2.

use xnn_format::{BinaryOp, NodeOp, OutputRange, UnaryOp};

use super::builder::Builder;
use crate::rules::select::Select;

/// `is_true * x + (1 - is_true) * y`. This is exact, because one factor is 0 and the other is 1.
pub(super) fn select(b: &mut Builder<'_>, plan: &Select) {
    let condition = b.value(plan.condition);
    let byte = b.f32_unary(UnaryOp::Convert, condition);
    let is_true = b.temporary_f32(&b.value_dims(byte));
    // Every byte except 0 is true.
    b.unary(UnaryOp::Clamp, byte, is_true).output_range = Some(OutputRange { min: 0.0, max: 1.0 });
    let one = b.scalar(1.0);
    let is_false = b.f32_binary(BinaryOp::Subtract, [one, is_true]);
    let [x, y] = plan.branches.map(|id| b.value(id));
    let x = b.f32_binary(BinaryOp::Multiply, [is_true, x]);
    let y = b.f32_binary(BinaryOp::Multiply, [is_false, y]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [x, y], output });
}
