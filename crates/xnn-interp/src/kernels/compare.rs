//! Comparisons.

use xnn_model::{DType, Op};

use super::binary::{operand_type, zip};
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::node::{Node, Run};
use crate::quant::{Quantized, affine, is_quantized};
use crate::tensor::Element;

/// A comparison, as what it makes of the order of two elements; of those
/// without order, such as NaN, nothing holds.
#[derive(Clone, Copy)]
struct Verdict {
    less: bool,
    equal: bool,
    greater: bool,
    /// Whether the answer is the opposite.
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

    /// Without branches, so that many are found at once.
    fn on<T: PartialOrd>(self, a: T, b: T) -> u8 {
        let holds = (a < b) & self.less | (a == b) & self.equal | (a > b) & self.greater;
        u8::from(holds ^ self.not)
    }
}

pub(super) fn compare(node: &Node<'_>) -> Result<Run, Refusal> {
    fn plain<T: Element + PartialOrd>(verdict: Verdict) -> Result<Run, Refusal> {
        zip(move |a: T, b: T| verdict.on(a, b))
    }
    let Some(verdict) = Verdict::of(&node.operator.op) else {
        return refuse(format!("{} does not compare", node.operator.op));
    };
    node.expect_output(0, DType::Bool)?;
    match operand_type(node)? {
        DType::F32 => plain::<f32>(verdict),
        DType::I32 => plain::<i32>(verdict),
        DType::I64 => plain::<i64>(verdict),
        DType::U32 => plain::<u32>(verdict),
        DType::I16 => plain::<i16>(verdict),
        DType::Bool => plain::<u8>(verdict),
        DType::I8 if is_quantized(node.input(0)?) => compare_quantized::<i8>(node, verdict),
        DType::U8 if is_quantized(node.input(0)?) => compare_quantized::<u8>(node, verdict),
        DType::I8 => plain::<i8>(verdict),
        DType::U8 => plain::<u8>(verdict),
        other => node.unsupported(other),
    }
}

/// Both operands are scaled with 8 more bits.
fn compare_quantized<T: Quantized>(node: &Node<'_>, verdict: Verdict) -> Result<Run, Refusal> {
    const HEADROOM: u32 = 8;
    let (a, b) = (affine(node.input(0)?)?, affine(node.input(1)?)?);
    let (scale_a, scale_b) = (Multiplier::new(a.scale.into()), Multiplier::new(b.scale.into()));
    zip(move |x: T, y: T| {
        let x = scale_a.apply((x.into() - a.zero_point) << HEADROOM);
        let y = scale_b.apply((y.into() - b.zero_point) << HEADROOM);
        verdict.on(x, y)
    })
}
