//! Operators that work on each element of a tensor.

use xnnpack_sys as sys;

use super::OutputRange;
use super::checks::ELEMENTS;
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Quantization, Shape, ValueId};

/// Operation of a [`Unary`] node.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UnaryOp {
    /// Conversion to the datatype and quantization of the output.
    Convert,
    /// `min(max(x, min), max)`.
    Clamp {
        /// Lower bound.
        min: f32,
        /// Upper bound.
        max: f32,
    },
    /// `|x|`.
    Abs,
    /// Rounding to the nearest integer, ties to even.
    BankersRounding,
    /// Rounding up to an integer.
    Ceiling,
    /// `x` where it is positive, otherwise `alpha * (exp(x) - 1)`.
    Elu {
        /// Factor of the negative part.
        alpha: f32,
    },
    /// `exp(x)`.
    Exp,
    /// Rounding down to an integer.
    Floor,
    /// Gaussian error linear unit, computed with `erf`.
    Gelu,
    /// `x * min(max(x + 3, 0), 6) / 6`.
    HardSwish,
    /// `x` where it is positive, otherwise `negative_slope * x`.
    LeakyRelu {
        /// Factor of the negative part.
        negative_slope: f32,
    },
    /// Natural logarithm.
    Log,
    /// `-x`.
    Negate,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x * x`.
    Square,
    /// Square root.
    SquareRoot,
    /// `1 / sqrt(x)`.
    ReciprocalSquareRoot,
    /// Hyperbolic tangent.
    Tanh,
    /// Cube root.
    CubeRoot,
    /// Cosine.
    Cosine,
    /// Sine.
    Sine,
    /// Number of leading zero bits (integers).
    CountLeadingZeros,
    /// Bitwise complement (integers).
    BitwiseNot,
    /// Number of one bits (integers).
    Popcount,
    /// Sign: -1, 0 or 1.
    Sign,
}

/// An operation on each element of a tensor.
#[derive(Clone, Debug)]
pub struct Unary {
    /// The operation.
    pub op: UnaryOp,
    /// Tensor of any shape.
    pub input: ValueId,
    /// Shape of the input.
    pub output: ValueId,
}

impl UnaryOp {
    fn raw(self) -> sys::xnn_unary_operator {
        match self {
            Self::Convert => sys::xnn_unary_convert,
            Self::Clamp { .. } => sys::xnn_unary_clamp,
            Self::Abs => sys::xnn_unary_abs,
            Self::BankersRounding => sys::xnn_unary_bankers_rounding,
            Self::Ceiling => sys::xnn_unary_ceiling,
            Self::Elu { .. } => sys::xnn_unary_elu,
            Self::Exp => sys::xnn_unary_exp,
            Self::Floor => sys::xnn_unary_floor,
            Self::Gelu => sys::xnn_unary_gelu,
            Self::HardSwish => sys::xnn_unary_hardswish,
            Self::LeakyRelu { .. } => sys::xnn_unary_leaky_relu,
            Self::Log => sys::xnn_unary_log,
            Self::Negate => sys::xnn_unary_negate,
            Self::Sigmoid => sys::xnn_unary_sigmoid,
            Self::Square => sys::xnn_unary_square,
            Self::SquareRoot => sys::xnn_unary_square_root,
            Self::ReciprocalSquareRoot => sys::xnn_unary_reciprocal_square_root,
            Self::Tanh => sys::xnn_unary_tanh,
            Self::CubeRoot => sys::xnn_unary_cube_root,
            Self::Cosine => sys::xnn_unary_cosine,
            Self::Sine => sys::xnn_unary_sine,
            Self::CountLeadingZeros => sys::xnn_unary_count_leading_zeros,
            Self::BitwiseNot => sys::xnn_unary_bitwise_not,
            Self::Popcount => sys::xnn_unary_popcount,
            Self::Sign => sys::xnn_unary_sign,
        }
    }

    fn params(self) -> Option<sys::xnn_unary_params> {
        match self {
            Self::Clamp { min, max } => Some(sys::xnn_unary_params {
                clamp: sys::xnn_unary_params__bindgen_ty_1 { min, max },
            }),
            Self::Elu { alpha } => {
                Some(sys::xnn_unary_params { elu: sys::xnn_unary_params__bindgen_ty_2 { alpha } })
            }
            Self::LeakyRelu { negative_slope } => Some(sys::xnn_unary_params {
                leaky_relu: sys::xnn_unary_params__bindgen_ty_3 { negative_slope },
            }),
            _ => None,
        }
    }

    /// Refuses NaN, and bounds in the wrong order.
    fn check(self) -> Result<()> {
        match self {
            Self::Clamp { min, max } => OutputRange { min, max }.check(),
            Self::Elu { alpha: factor } | Self::LeakyRelu { negative_slope: factor }
                if !factor.is_finite() =>
            {
                Err(Error::invalid(format!("the factor {factor} is not finite")))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for Unary {
    fn kind(&self) -> &'static str {
        match self.op {
            UnaryOp::Convert => "convert",
            _ => "unary_elementwise",
        }
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        self.op.check()?;
        let from = cx.expect_datatype(self.input, ELEMENTS)?;
        let to = cx.datatype(self.output)?;
        if self.op == UnaryOp::Convert {
            if to == D::Qdint8 {
                cx.expect_datatype(self.input, &[D::F32, D::F16])?;
            } else {
                cx.expect_datatype(self.output, ELEMENTS)?;
            }
        } else if from != to {
            return Err(Error::invalid(format!(
                "{} is {from}, but {} is {to}",
                self.input, self.output
            )));
        }
        let (input, output) = (cx.quantization(self.input)?, cx.quantization(self.output)?);
        if let Quantization::PerTensor { scale, .. } = output
            && self.op == UnaryOp::Convert
            && cx.datatype(self.input)? == D::F16
            && !HALF_SCALES.contains(scale)
        {
            return Err(Error::unsupported(format!(
                "scale {scale} is out of range for half precision"
            )));
        }
        check_unary_scales(self.op, input, output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        if let Quantization::Dynamic { nonbatch_dims } = cx.quantization(self.output)?
            && *nonbatch_dims > shape.len()
        {
            return Err(Error::invalid(format!(
                "rows of {nonbatch_dims} dimensions do not fit shape {shape:?}"
            )));
        }
        Ok(vec![shape])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        let Ok(Quantization::Dynamic { nonbatch_dims }) = new.quantization(self.output) else {
            return true;
        };
        // XNNPACK allocates memory for the parameters of more rows only when the whole tensor
        // grows.
        let row = |cx: &Context<'_>| {
            let shape = cx.shape(self.input).ok()?;
            Some(shape.iter().rev().take(*nonbatch_dims).product::<usize>())
        };
        row(old) == row(new)
    }

    fn fusion(&self) -> Fusion {
        match self.op {
            UnaryOp::Clamp { min, max } => Fusion::Clamp(OutputRange { min, max }),
            _ => Fusion::None,
        }
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let params = self.op.params();
        let params = params.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`; `params` has the type that
        // the operation expects.
        unsafe { sys::xnn_define_unary(graph, self.op.raw(), params, input, output, 0) }
    }
}

/// Scales of 8-bit integers that half precision can be converted to. XNNPACK multiplies by the
/// reciprocal in half precision, which for other scales would be infinite, subnormal or 0.
const HALF_SCALES: std::ops::RangeInclusive<f32> = 1.0 / 65504.0..=16384.0;

/// Refuses 8-bit scales outside the ranges of the fixed-point kernels, which do not check them.
fn check_unary_scales(op: UnaryOp, input: &Quantization, output: &Quantization) -> Result<()> {
    let (
        Quantization::PerTensor { scale: input_scale, .. },
        Quantization::PerTensor { scale: output_scale, .. },
    ) = (input, output)
    else {
        return Ok(());
    };
    let ratio = input_scale / output_scale;
    let fits = |ratio: f32| (1.0 / 256.0..=128.0).contains(&ratio);
    match op {
        UnaryOp::Convert | UnaryOp::LeakyRelu { .. } if !fits(ratio) => Err(Error::unsupported(
            format!("input scale {input_scale} is out of range for output scale {output_scale}"),
        )),
        UnaryOp::LeakyRelu { negative_slope } if !fits((ratio * negative_slope).abs()) => {
            Err(Error::unsupported(format!(
                "slope {negative_slope} with input scale {input_scale} and output scale \
                 {output_scale}"
            )))
        }
        _ => Ok(()),
    }
}
