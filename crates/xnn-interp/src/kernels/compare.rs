//! EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL.

use xnn_model::{DType, Op};

use super::binary::{operand_type, zip};
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run};
use crate::quant::{Quantized, affine, is_quantized};
use crate::tensor::Element;

/// A comparison, by the order of its operands for which it holds. Without an order (NaN) it does
/// not hold.
#[derive(Clone, Copy)]
struct Verdict {
    less: bool,
    equal: bool,
    greater: bool,
    /// Whether the result is inverted.
    not: bool,
}

impl Verdict {
    fn of(op: &Op) -> Option<Self> {
        let (less, equal, greater) = match op {
            Op::Equal | Op::NotEqual => (false, true, false),
            Op::Less => (true, false, false),
            Op::LessEqual => (true, true, false),
            Op::Greater => (false, false, true),
            Op::GreaterEqual => (false, true, true),
            _ => return None,
        };
        Some(Self { less, equal, greater, not: matches!(op, Op::NotEqual) })
    }

    /// Without branches, so that loops are vectorized.
    fn on<T: PartialOrd>(self, a: T, b: T) -> u8 {
        let holds = (a < b) & self.less | (a == b) & self.equal | (a > b) & self.greater;
        u8::from(holds ^ self.not)
    }
}

pub(super) fn compare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    fn plain<T: Element + PartialOrd>(verdict: Verdict) -> Result<Run, Refusal> {
        zip(move |a: T, b: T| verdict.on(a, b))
    }
    let Some(verdict) = Verdict::of(&context.operator.op) else {
        return refuse(format!("{} is not a comparison", context.operator.op));
    };
    context.expect_output(0, DType::Bool)?;
    match operand_type(context)? {
        DType::F32 => plain::<f32>(verdict),
        DType::I32 => plain::<i32>(verdict),
        DType::I64 => plain::<i64>(verdict),
        DType::U32 => plain::<u32>(verdict),
        DType::I16 => plain::<i16>(verdict),
        DType::Bool => plain::<u8>(verdict),
        DType::I8 if is_quantized(context.input(0)?) => compare_quantized::<i8>(context, verdict),
        DType::U8 if is_quantized(context.input(0)?) => compare_quantized::<u8>(context, verdict),
        DType::I8 => plain::<i8>(verdict),
        DType::U8 => plain::<u8>(verdict),
        other => context.unsupported(other),
    }
}

/// Scales both operands with 8 more bits.
fn compare_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    verdict: Verdict,
) -> Result<Run, Refusal> {
    const HEADROOM: u32 = 8;
    let (a, b) = (affine(context.input(0)?)?, affine(context.input(1)?)?);
    let (scale_a, scale_b) = (Multiplier::new(a.scale.into()), Multiplier::new(b.scale.into()));
    zip(move |x: T, y: T| {
        let x = scale_a.apply((x.into() - a.zero_point) << HEADROOM);
        let y = scale_b.apply((y.into() - b.zero_point) << HEADROOM);
        verdict.on(x, y)
    })
}
