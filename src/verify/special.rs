//! Special values, such as NaN, and operators whose results are undefined for them.

use xnn_model::{DType, Operator, Subgraph};

use crate::runner::Runner;

/// A kind of special values, as faulty sensors and overflowing layers produce them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Not a number.
    Nan,
    /// Positive infinity.
    Infinity,
    /// Negative infinity.
    NegativeInfinity,
    /// The largest finite float.
    Largest,
    /// A subnormal float, which processors may treat as 0.
    Denormal,
}

impl Special {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Nan, Self::Infinity, Self::NegativeInfinity, Self::Largest, Self::Denormal];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nan => "nan",
            Self::Infinity => "infinity",
            Self::NegativeInfinity => "negative-infinity",
            Self::Largest => "largest",
            Self::Denormal => "denormal",
        }
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> f32 {
        match self {
            Self::Nan => f32::NAN,
            Self::Infinity => f32::INFINITY,
            Self::NegativeInfinity => f32::NEG_INFINITY,
            Self::Largest => f32::MAX,
            Self::Denormal => 1e-40,
        }
    }

    /// Writes the value to the middle of each fp32 input, and returns the number of such inputs.
    pub fn plant(self, runner: &mut Runner) -> usize {
        let mut planted = 0;
        for position in 0..runner.inputs().len() {
            let Ok(elements) = runner.input_as_mut::<f32>(position) else { continue };
            let middle = elements.len() / 2;
            if let Some(element) = elements.get_mut(middle) {
                *element = self.value();
                planted += 1;
            }
        }
        planted
    }
}

/// Operands for which the result of an operator is undefined, and why.
struct Undefined {
    op: &'static str,
    /// Whether an operator is of the form that is meant.
    is_form: fn(&Subgraph, &Operator) -> bool,
    /// Whether an element of an fp32 operand counts. `count` of them make the result undefined.
    is_operand: fn(f32) -> bool,
    count: usize,
    why: &'static str,
}

/// All such operators. Other operators compute NaN and infinities exactly where the reference kernels do.
const UNDEFINED: &[Undefined] = &[
    Undefined {
        op: "QUANTIZE",
        is_form: any,
        is_operand: is_beyond_integers,
        count: 1,
        why: "C++ does not define the conversion of NaN, or of values out of range, to integers",
    },
    dynamic("BATCH_MATMUL"),
    dynamic("CONV_2D"),
    dynamic("DEPTHWISE_CONV_2D"),
    dynamic("FULLY_CONNECTED"),
    dynamic("TRANSPOSE_CONV"),
    Undefined {
        op: "RESIZE_BILINEAR",
        is_form: any,
        is_operand: |x| x.is_infinite() || x.abs() > f32::MAX / 2.0,
        count: 1,
        why: "XNNPACK interpolates with differences, and differences of infinities are NaN",
    },
    Undefined {
        op: "REDUCE_PROD",
        is_form: any,
        is_operand: |x| x.is_infinite() || x.abs() > 1e30 || x.is_subnormal(),
        count: 1,
        why: "products of very large and very small values overflow or underflow in one order and not in another",
    },
    sums("AVERAGE_POOL_2D"),
    sums("BATCH_MATMUL"),
    sums("CONV_2D"),
    sums("CUMSUM"),
    sums("DEPTHWISE_CONV_2D"),
    sums("FULLY_CONNECTED"),
    sums("MEAN"),
    sums("SUM"),
    sums("TRANSPOSE_CONV"),
    Undefined {
        op: "STABLEHLO_COMPOSITE",
        is_form: any,
        is_operand: f32::is_infinite,
        count: 1,
        why: "interpreters clamp sums to the largest float, so that an infinite logit becomes a finite one",
    },
    squares("INSTANCE_NORM"),
    squares("RMS_NORM"),
    Undefined {
        op: "HARD_SWISH",
        is_form: any,
        is_operand: |x| x.is_finite() && x.abs() > f32::MAX / 6.0,
        count: 1,
        why: "interpreters multiply by 6 before they divide by 6, which overflows",
    },
];

/// Operators with dynamic-range quantization.
const fn dynamic(op: &'static str) -> Undefined {
    Undefined {
        op,
        is_form: is_dynamic,
        is_operand: is_beyond_integers,
        count: 1,
        why: "it quantizes floats, and C++ does not define the conversion of NaN or an infinity to integers",
    }
}

/// Sums of elements or of products.
const fn sums(op: &'static str) -> Undefined {
    Undefined {
        op,
        is_form: any,
        is_operand: |x| x.is_finite() && x.abs() > 1e30,
        count: 2,
        why: "sums of several of the largest floats overflow in one order and not in another",
    }
}

/// Circle's normalizations, which compute means of squares.
const fn squares(op: &'static str) -> Undefined {
    Undefined {
        op,
        is_form: any,
        is_operand: |x| x.is_finite() && x.abs() > 1e18,
        count: 1,
        why: "squares overflow in single precision; interpreters add them in double precision",
    }
}

/// Whether the value is out of the range of quantized integers, with any scale that tensors have.
fn is_beyond_integers(x: f32) -> bool {
    x.is_nan() || x.abs() > 1e30
}

/// Why the result of an operator is undefined, or depends on the order or precision of its computation, if its fp32 operands
/// have these elements.
#[must_use]
pub fn why_undefined(
    graph: &Subgraph,
    operator: &Operator,
    elements: impl Iterator<Item = f32> + Clone,
) -> Option<&'static str> {
    let name = operator.op.name();
    let row = |it: &&Undefined| {
        let mut meant = elements.clone().filter(|x| (it.is_operand)(*x));
        it.op == name && (it.is_form)(graph, operator) && meant.nth(it.count - 1).is_some()
    };
    UNDEFINED.iter().find(row).map(|it| it.why)
}

/// Whether the operator quantizes floats, because its weights have fewer bits.
fn is_dynamic(graph: &Subgraph, operator: &Operator) -> bool {
    let mut tensors = operator.inputs.iter().flatten().map(|&id| graph.tensor(id));
    let has_floats = tensors.clone().any(|it| it.dtype == DType::F32 && !it.is_constant());
    let is_quantized =
        tensors.any(|it| it.is_constant() && matches!(it.dtype, DType::I8 | DType::I4));
    has_floats && is_quantized
}

fn any(_: &Subgraph, _: &Operator) -> bool {
    true
}
