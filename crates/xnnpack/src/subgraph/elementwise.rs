//! Operators that work element by element, softmax and copy.

use xnnpack_sys as sys;

use super::OutputRange;
use super::matmul::broadcast;
use super::node::{Context, Fusion, Links, Operator, RawIds};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Quantization, Shape, ValueId};

/// Operation of a [`Unary`] node.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UnaryOp {
    /// To the datatype and quantization of the output.
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
    /// To the nearest integer, halves to the even one.
    BankersRounding,
    /// To the next integer above.
    Ceiling,
    /// `x` where positive, else `alpha * (exp(x) - 1)`.
    Elu {
        /// Factor of the negative part.
        alpha: f32,
    },
    /// `exp(x)`.
    Exp,
    /// To the next integer below.
    Floor,
    /// Gaussian error linear unit, by `erf`.
    Gelu,
    /// `x * min(max(x + 3, 0), 6) / 6`.
    HardSwish,
    /// `x` where positive, else `negative_slope * x`.
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
    /// -1, 0 or 1.
    Sign,
}

/// An operation on each element of a tensor.
#[derive(Clone, Debug)]
pub struct Unary {
    /// The operation.
    pub op: UnaryOp,
    /// Any shape.
    pub input: ValueId,
    /// Same shape.
    pub output: ValueId,
}

/// Operation of a [`Binary`] node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`.
    Multiply,
    /// `a / b`.
    Divide,
    /// The larger one.
    Maximum,
    /// The smaller one.
    Minimum,
    /// Magnitude of `a` with the sign of `b`.
    CopySign,
    /// `(a - b)^2`.
    SquaredDifference,
    /// `a` where positive, else `a * b`.
    Prelu,
    /// Remainder of `a / b`.
    Modulus,
    /// `atan2(a, b)`.
    Atan2,
    /// `a` to the power of `b`.
    Pow,
    /// Bitwise and (integers).
    BitwiseAnd,
    /// Bitwise or (integers).
    BitwiseOr,
    /// Bitwise exclusive or (integers).
    BitwiseXor,
    /// Shift to the left (integers).
    ShiftLeft,
    /// Shift to the right, zeros come in (integers).
    ShiftRightLogical,
    /// Shift to the right, the sign comes in (integers).
    ShiftRightArithmetic,
}

/// An operation on the elements of two tensors, which are broadcast against each other.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The operation.
    pub op: BinaryOp,
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// First operand.
    pub a: ValueId,
    /// Second operand.
    pub b: ValueId,
    /// The broadcast shape.
    pub output: ValueId,
}

/// `exp(x)` normalized to a sum of 1 along the innermost dimension.
#[derive(Clone, Debug)]
pub struct Softmax {
    /// At least one dimension.
    pub input: ValueId,
    /// Same shape.
    pub output: ValueId,
}

/// Copies a tensor.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Any shape.
    pub input: ValueId,
    /// Same shape, datatype and quantization.
    pub output: ValueId,
}

/// Datatypes that elementwise operators work on.
const ELEMENTS: &[D] = &[D::F32, D::F16, D::Bf16, D::I32, D::Qint8, D::Quint8];

/// Datatypes that can be copied.
pub(super) const COPYABLE: &[D] = &[D::F32, D::F16, D::Qint8, D::Quint8];

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

    /// Refuses parameters that are not numbers or the wrong way round.
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
        check_unary_scales(self.op, cx.quantization(self.input)?, cx.quantization(self.output)?)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        if let Quantization::Dynamic { nonbatch_dims } = cx.quantization(self.output)?
            && *nonbatch_dims > shape.len()
        {
            return Err(Error::invalid(format!(
                "rows of {nonbatch_dims} dimensions in shape {shape:?}"
            )));
        }
        Ok(vec![shape])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        let Ok(Quantization::Dynamic { nonbatch_dims }) = new.quantization(self.output) else {
            return true;
        };
        // XNNPACK makes room for the parameters of more rows only when the whole tensor grows.
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
        // SAFETY: passed on from the caller; `params` is what the operation takes.
        unsafe { sys::xnn_define_unary(graph, self.op.raw(), params, input, output, 0) }
    }
}

impl BinaryOp {
    fn raw(self) -> sys::xnn_binary_operator {
        match self {
            Self::Add => sys::xnn_binary_add,
            Self::Subtract => sys::xnn_binary_subtract,
            Self::Multiply => sys::xnn_binary_multiply,
            Self::Divide => sys::xnn_binary_divide,
            Self::Maximum => sys::xnn_binary_maximum,
            Self::Minimum => sys::xnn_binary_minimum,
            Self::CopySign => sys::xnn_binary_copysign,
            Self::SquaredDifference => sys::xnn_binary_squared_difference,
            Self::Prelu => sys::xnn_binary_prelu,
            Self::Modulus => sys::xnn_binary_modulus,
            Self::Atan2 => sys::xnn_binary_atan2,
            Self::Pow => sys::xnn_binary_pow,
            Self::BitwiseAnd => sys::xnn_binary_bitwise_and,
            Self::BitwiseOr => sys::xnn_binary_bitwise_or,
            Self::BitwiseXor => sys::xnn_binary_bitwise_xor,
            Self::ShiftLeft => sys::xnn_binary_shift_left,
            Self::ShiftRightLogical => sys::xnn_binary_shift_right_logical,
            Self::ShiftRightArithmetic => sys::xnn_binary_shift_right_arithmetic,
        }
    }
}

impl Operator for Binary {
    fn kind(&self) -> &'static str {
        "binary_elementwise"
    }

    fn links(&self) -> Links {
        Links::new([self.a, self.b], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        self.output_range.check()?;
        let datatype = cx.expect_datatype(self.output, ELEMENTS)?;
        for operand in [self.a, self.b] {
            cx.expect_datatype(operand, &[datatype])?;
        }
        // The processor traps where the quotient does not fit, `i32::MIN / -1`.
        if datatype == D::I32 && matches!(self.op, BinaryOp::Divide | BinaryOp::Modulus) {
            return Err(Error::unsupported("division of integers"));
        }
        if self.output_range != OutputRange::default() {
            cx.expect_datatype(self.output, COPYABLE)?;
        }
        check_binary_scales(self.op, cx, [self.a, self.b, self.output])
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let (a, b) = (cx.shape(self.a)?, cx.shape(self.b)?);
        let dims = broadcast(&a, &b)
            .ok_or_else(|| Error::invalid(format!("shapes {a:?} and {b:?} do not broadcast")))?;
        Ok(vec![Shape::new(&dims)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // The output may lie over an operand of the same size; XNNPACK does not reconsider it when
        // the operand begins to be broadcast.
        let whole = |cx: &Context<'_>| {
            let output = cx.shape(self.output).ok()?;
            let [a, b] = [self.a, self.b].map(|id| cx.shape(id).map(|shape| shape.elements()));
            Some((a.ok()? == output.elements(), b.ok()? == output.elements()))
        };
        whole(old) == whole(new)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let params = sys::xnn_binary_params {
            output_min: f64::from(self.output_range.min),
            output_max: f64::from(self.output_range.max),
        };
        let [a, b, output] = [self.a, self.b, self.output].map(|id| ids.of(id));
        // SAFETY: passed on from the caller.
        unsafe { sys::xnn_define_binary(graph, self.op.raw(), &raw const params, a, b, output, 0) }
    }
}

impl Operator for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        cx.expect_datatype(self.input, &[D::F32, D::F16])?;
        cx.expect_same_type(self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        if shape.is_empty() {
            return Err(Error::invalid(format!("{} has no dimensions", self.input)));
        }
        Ok(vec![shape])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: passed on from the caller.
        unsafe { sys::xnn_define_softmax(graph, ids.of(self.input), ids.of(self.output), 0) }
    }
}

impl Operator for Copy {
    fn kind(&self) -> &'static str {
        "copy"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        cx.expect_datatype(self.input, COPYABLE)?;
        cx.expect_same_type(self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        Ok(vec![cx.shape(self.input)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: passed on from the caller.
        unsafe { sys::xnn_define_copy(graph, ids.of(self.input), ids.of(self.output), 0) }
    }
}

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
            format!("input scale {input_scale} for output scale {output_scale}"),
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

/// Refuses 8-bit scales outside the ranges of the fixed-point kernels, which do not check them.
fn check_binary_scales(op: BinaryOp, cx: &Context<'_>, operands: [ValueId; 3]) -> Result<()> {
    let mut scales = [0.0; 3];
    for (scale, id) in scales.iter_mut().zip(operands) {
        let Quantization::PerTensor { scale: actual, .. } = cx.quantization(id)? else {
            return Ok(());
        };
        *scale = *actual;
    }
    let [a, b, output] = scales;
    let sums = 1.0 / 1024.0..256.0;
    let products = 1.0 / 65536.0..256.0;
    let fits = match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            sums.contains(&(a / output)) && sums.contains(&(b / output))
        }
        BinaryOp::Multiply => products.contains(&(a * b / output)),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(Error::unsupported(format!("input scales {a} and {b} for output scale {output}")))
}
