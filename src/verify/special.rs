//! Values that arithmetic treats in a way of its own, and what nobody defines for them.

use xnn_model::{DType, Operator, Subgraph};

use crate::runner::Runner;

/// A kind of values that faulty sensors and overflowing layers give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// What is no number.
    Nan,
    /// Positive infinity.
    Infinity,
    /// Negative infinity.
    NegativeInfinity,
    /// The largest float, whose square and double are infinite.
    Largest,
    /// A number below the least normal one, which processors may take for 0.
    Denormal,
}

impl Special {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Nan, Self::Infinity, Self::NegativeInfinity, Self::Largest, Self::Denormal];

    /// What reports call it.
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

    /// Puts the value in the middle of each fp32 input; returns how many inputs that are.
    pub fn plant(self, runner: &mut Runner) -> usize {
        let mut planted = 0;
        for position in 0..runner.inputs().len() {
            if runner.inputs()[position].dtype != DType::F32 {
                continue;
            }
            let elements = runner.input_mut(position).as_chunks_mut::<4>().0;
            let middle = elements.len() / 2;
            if let Some(element) = elements.get_mut(middle) {
                *element = self.value().to_ne_bytes();
                planted += 1;
            }
        }
        planted
    }
}

/// Operands for which a result is nobody's to define, and why.
struct Undefined {
    op: &'static str,
    /// Whether it is this form of the operator.
    is_form: fn(&Subgraph, &Operator) -> bool,
    /// Whether it is for this element of an fp32 operand, if there are so many.
    is_operand: fn(f32) -> bool,
    count: usize,
    why: &'static str,
}

/// All of them. An operator that is not here gives NaN and infinities where the reference kernels do.
const UNDEFINED: &[Undefined] = &[
    Undefined {
        op: "QUANTIZE",
        is_form: any,
        is_operand: is_beyond_integers,
        count: 1,
        why: "C++ leaves open which integer becomes of NaN, and of what is beyond all integers",
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
        why: "XNNPACK interpolates by differences, and those of infinities are NaN",
    },
    Undefined {
        op: "REDUCE_PROD",
        is_form: any,
        is_operand: |x| x.is_infinite() || x.abs() > 1e30 || x.is_subnormal(),
        count: 1,
        why: "products of very large and very small numbers overflow or vanish in one order and not in another",
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
        why: "sums stop at the largest float in interpreters, so that an infinite logit is a large one",
    },
    squares("INSTANCE_NORM"),
    squares("RMS_NORM"),
    Undefined {
        op: "HARD_SWISH",
        is_form: any,
        is_operand: |x| x.is_finite() && x.abs() > f32::MAX / 6.0,
        count: 1,
        why: "interpreters multiply with 6 before they divide by it, which overflows",
    },
];

/// Floats that are quantized when they arrive.
const fn dynamic(op: &'static str) -> Undefined {
    Undefined {
        op,
        is_form: is_dynamic,
        is_operand: is_beyond_integers,
        count: 1,
        why: "it quantizes floats, and C++ leaves open which integer becomes of NaN or an infinity",
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

/// Circle's normalizations, which have means of squares.
const fn squares(op: &'static str) -> Undefined {
    Undefined {
        op,
        is_form: any,
        is_operand: |x| x.is_finite() && x.abs() > 1e18,
        count: 1,
        why: "squares overflow in single precision, which interpreters add in double precision",
    }
}

/// Whether no 32-bit integer stands for the number, with any scale that quantized tensors have.
fn is_beyond_integers(x: f32) -> bool {
    x.is_nan() || x.abs() > 1e30
}

/// Why interpreters' kernels give an operator no result of their own, or one that depends on the order or the precision of
/// steps in between, where fp32 operands have these elements.
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

/// Whether floats are quantized when they arrive, for weights of fewer bits.
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
