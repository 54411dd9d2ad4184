//! Partitioning rules for QUANTIZE, DEQUANTIZE and CAST.

use xnn_format::UnaryOp;
use xnn_model::DType;

use super::checks::{self, Elem};
use super::elementwise::{CONVERT_RATIO, Unary, UnaryForm};
use crate::view::OpView;
use crate::why_not::WhyNot;

/// Rule for DEQUANTIZE, and for QUANTIZE of floats and of other 8-bit integers.
pub(crate) fn convert(view: OpView<'_>) -> Result<Unary, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    if input.tensor.dtype == DType::F16 {
        return cast(view);
    }
    let form = match (checks::elem(input)?, checks::elem(output)?) {
        (Elem::Q8(from), Elem::Q8(to))
            if from.signed == to.signed && !CONVERT_RATIO.contains(&(from.scale / to.scale)) =>
        {
            UnaryForm::ConvertThroughFloat
        }
        _ => UnaryForm::Node,
    };
    Ok(Unary { form, op: UnaryOp::Convert, range: None, input: input.id, output: output.id })
}

/// Rule for CAST between floats, and to floats from unquantized integers and booleans.
pub(crate) fn cast(view: OpView<'_>) -> Result<Unary, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    for t in [input, output] {
        checks::extent(t)?;
        checks::usable(t)?;
    }
    let to = output.tensor.dtype;
    match (input.tensor.dtype, to) {
        (DType::F32 | DType::F16 | DType::I32, DType::F32) | (DType::F32, DType::F16) => {}
        (DType::I8 | DType::U8 | DType::Bool, DType::F32) => {
            if !matches!(input.tensor.per_tensor(), Some((1.0, 0)))
                && input.tensor.quantization.is_some()
            {
                return Err(WhyNot::Quantization {
                    tensor: input.to_ref(),
                    expected: "none, because casts ignore it",
                });
            }
        }
        (dtype, DType::F32) => {
            let expected = "f32, f16, i32, i8, u8 or bool";
            return Err(WhyNot::Type { tensor: input.to_ref(), dtype, expected });
        }
        _ => {
            return Err(WhyNot::Type { tensor: output.to_ref(), dtype: to, expected: "f32" });
        }
    }
    Ok(Unary {
        op: if input.tensor.dtype == to { UnaryOp::Copy } else { UnaryOp::Convert },
        range: None,
        input: input.id,
        output: output.id,
        form: UnaryForm::Node,
    })
}
