//! Operators that work element by element.

use xnn_format::{BinaryOp, UnaryOp, ValueId};
use xnnpack::{Binary, Unary};

use super::definer::NodeDefiner;
use crate::error::{Result, RuntimeError};

pub(super) fn unary(
    cx: &mut NodeDefiner<'_, '_>,
    op: UnaryOp,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let (input, output) = (cx.id(input)?, cx.id(output)?);
    let op = match op {
        UnaryOp::Clamp => {
            let xnnpack::OutputRange { min, max } = cx.output_range();
            return cx.define(Unary { op: xnnpack::UnaryOp::Clamp { min, max }, input, output });
        }
        UnaryOp::Copy => {
            return cx.define(xnnpack::Copy { input, output });
        }
        UnaryOp::Abs => xnnpack::UnaryOp::Abs,
        UnaryOp::BankersRounding => xnnpack::UnaryOp::BankersRounding,
        UnaryOp::BitwiseNot => xnnpack::UnaryOp::BitwiseNot,
        UnaryOp::Ceiling => xnnpack::UnaryOp::Ceiling,
        UnaryOp::Convert => xnnpack::UnaryOp::Convert,
        UnaryOp::Cosine => xnnpack::UnaryOp::Cosine,
        UnaryOp::CountLeadingZeros => xnnpack::UnaryOp::CountLeadingZeros,
        UnaryOp::CubeRoot => xnnpack::UnaryOp::CubeRoot,
        UnaryOp::Elu { alpha } => xnnpack::UnaryOp::Elu { alpha },
        UnaryOp::Exp => xnnpack::UnaryOp::Exp,
        UnaryOp::Floor => xnnpack::UnaryOp::Floor,
        UnaryOp::Gelu => xnnpack::UnaryOp::Gelu,
        UnaryOp::HardSwish => xnnpack::UnaryOp::HardSwish,
        UnaryOp::LeakyRelu { negative_slope } => xnnpack::UnaryOp::LeakyRelu { negative_slope },
        UnaryOp::Log => xnnpack::UnaryOp::Log,
        UnaryOp::Negate => xnnpack::UnaryOp::Negate,
        UnaryOp::Popcount => xnnpack::UnaryOp::Popcount,
        UnaryOp::ReciprocalSquareRoot => xnnpack::UnaryOp::ReciprocalSquareRoot,
        UnaryOp::Sigmoid => xnnpack::UnaryOp::Sigmoid,
        UnaryOp::Sign => xnnpack::UnaryOp::Sign,
        UnaryOp::Sine => xnnpack::UnaryOp::Sine,
        UnaryOp::Square => xnnpack::UnaryOp::Square,
        UnaryOp::SquareRoot => xnnpack::UnaryOp::SquareRoot,
        UnaryOp::Tanh => xnnpack::UnaryOp::Tanh,
        other => {
            return Err(RuntimeError::unsupported(format!("operation {other:?} is not supported")));
        }
    };
    cx.define(Unary { op, input, output })
}

pub(super) fn binary(
    cx: &mut NodeDefiner<'_, '_>,
    op: BinaryOp,
    [a, b]: [ValueId; 2],
    output: ValueId,
) -> Result<()> {
    let op = match op {
        BinaryOp::Add => xnnpack::BinaryOp::Add,
        BinaryOp::Subtract => xnnpack::BinaryOp::Subtract,
        BinaryOp::Multiply => xnnpack::BinaryOp::Multiply,
        BinaryOp::Divide => xnnpack::BinaryOp::Divide,
        BinaryOp::Maximum => xnnpack::BinaryOp::Maximum,
        BinaryOp::Minimum => xnnpack::BinaryOp::Minimum,
        BinaryOp::Prelu => xnnpack::BinaryOp::Prelu,
        BinaryOp::SquaredDifference => xnnpack::BinaryOp::SquaredDifference,
        BinaryOp::CopySign => xnnpack::BinaryOp::CopySign,
        BinaryOp::Modulus => xnnpack::BinaryOp::Modulus,
        BinaryOp::Atan2 => xnnpack::BinaryOp::Atan2,
        BinaryOp::Pow => xnnpack::BinaryOp::Pow,
        BinaryOp::BitwiseAnd => xnnpack::BinaryOp::BitwiseAnd,
        BinaryOp::BitwiseOr => xnnpack::BinaryOp::BitwiseOr,
        BinaryOp::BitwiseXor => xnnpack::BinaryOp::BitwiseXor,
        BinaryOp::ShiftLeft => xnnpack::BinaryOp::ShiftLeft,
        BinaryOp::ShiftRightLogical => xnnpack::BinaryOp::ShiftRightLogical,
        BinaryOp::ShiftRightArithmetic => xnnpack::BinaryOp::ShiftRightArithmetic,
        other => {
            return Err(RuntimeError::unsupported(format!("operation {other:?} is not supported")));
        }
    };
    let node = Binary {
        op,
        output_range: cx.output_range(),
        a: cx.id(a)?,
        b: cx.id(b)?,
        output: cx.id(output)?,
    };
    cx.define(node)
}
