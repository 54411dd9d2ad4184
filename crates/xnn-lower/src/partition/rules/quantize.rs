//! May QUANTIZE and DEQUANTIZE go?

use xnn_format::UnaryOp;

use super::checks::{self, Elem};
use super::elementwise::{CONVERT_RATIO, Unary};
use crate::view::OpView;
use crate::why_not::WhyNot;

/// QUANTIZE (from floats, or from other 8-bit integers) and DEQUANTIZE.
pub(crate) fn convert(view: OpView<'_>) -> Result<Unary, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let in_float = match (checks::elem(input)?, checks::elem(output)?) {
        (Elem::Q8(from), Elem::Q8(to)) => {
            from.signed == to.signed && !CONVERT_RATIO.contains(&(from.scale / to.scale))
        }
        _ => false,
    };
    Ok(Unary { op: UnaryOp::Convert, range: None, input: input.id, output: output.id, in_float })
}
