//! Operators that work on pairs of elements of two tensors.

use xnnpack_sys as sys;

use super::OutputRange;
use super::checks::{COPYABLE, ELEMENTS, broadcast};
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Quantization, Shape, ValueId};

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
    /// `a` where it is positive, otherwise `a * b`.
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
    /// Logical shift to the right (integers).
    ShiftRightLogical,
    /// Arithmetic shift to the right (integers).
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
        // The processor traps if the quotient overflows: `i32::MIN / -1`.
        if datatype == D::I32 && matches!(self.op, BinaryOp::Divide | BinaryOp::Modulus) {
            return Err(Error::unsupported("integers cannot be divided"));
        }
        if self.output_range != OutputRange::default() {
            cx.expect_datatype(self.output, COPYABLE)?;
        }
        check_binary_scales(self.op, cx, [self.a, self.b, self.output])
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let (a, b) = (cx.shape(self.a)?, cx.shape(self.b)?);
        let dims = broadcast(&a, &b)
            .ok_or_else(|| Error::invalid(format!("shapes {a:?} and {b:?} cannot be broadcast")))?;
        Ok(vec![Shape::new(&dims)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // XNNPACK may place the output in the memory of an operand of the same size, and does not
        // reconsider this when the operand becomes one that is broadcast.
        let whole = |cx: &Context<'_>| {
            let output = cx.shape(self.output).ok()?;
            let [a, b] = [self.a, self.b].map(|id| cx.shape(id).map(|shape| shape.elements()));
            Some((a.ok()? == output.elements(), b.ok()? == output.elements()))
        };
        whole(old) == whole(new)
    }

    fn fusion(&self) -> Fusion {
        // XNNPACK defines a clamp for the bounds.
        Fusion::Bounds(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let params = sys::xnn_binary_params {
            output_min: f64::from(self.output_range.min),
            output_max: f64::from(self.output_range.max),
        };
        let [a, b, output] = [self.a, self.b, self.output].map(|id| ids.of(id));
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe { sys::xnn_define_binary(graph, self.op.raw(), &raw const params, a, b, output, 0) }
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
    Err(Error::unsupported(format!(
        "input scales {a} and {b} are out of range for output scale {output}"
    )))
}
