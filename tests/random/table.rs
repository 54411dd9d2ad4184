//! Every operator that is lowered, in every type that it has.

use xnn_model::DType;
use xnn_model::op::{
    ActivationOptions, ArgMinMaxOptions, FakeQuantOptions, GeluOptions, LeakyReluOptions, Op,
    SoftmaxOptions,
};

use super::Generator;
use super::Scheme::{Dynamic, DynamicInt4, Fp32, Int8, Int8Int4, Uint8};
use super::shapes::Shapes;

/// Types of activations and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    Fp32,
    Int8,
    Uint8,
    /// fp32 activations, int8 weights.
    Dynamic,
    /// fp32 activations, int4 weights.
    DynamicInt4,
    /// int8 activations, int4 weights.
    Int8Int4,
}

impl Scheme {
    /// Name of the scheme in `docs/op-coverage.md`.
    pub const fn name(self) -> &'static str {
        match self {
            Fp32 => "fp32",
            Int8 => "int8",
            Uint8 => "uint8",
            Dynamic => "dynamic",
            DynamicInt4 => "dynamic int4",
            Int8Int4 => "int8 with int4 weights",
        }
    }

    pub const fn activations(self) -> DType {
        match self {
            Fp32 | Dynamic | DynamicInt4 => DType::F32,
            Int8 | Int8Int4 => DType::I8,
            Uint8 => DType::U8,
        }
    }

    pub const fn weights(self) -> DType {
        match self {
            Fp32 => DType::F32,
            Int8 | Dynamic => DType::I8,
            Uint8 => DType::U8,
            DynamicInt4 | Int8Int4 => DType::I4,
        }
    }

    /// Whether activations may be quantized at run time.
    pub const fn is_dynamic(self) -> bool {
        matches!(self, Dynamic | DynamicInt4)
    }
}

/// Cases of one operator.
#[derive(Clone, Copy)]
pub struct Family {
    /// Name of the operator in `docs/op-coverage.md`.
    pub op: &'static str,
    pub schemes: &'static [Scheme],
    /// Shapes of the first operand.
    pub shapes: Shapes,
    /// Range of the first operand's elements; `None` for any.
    pub values: Option<(f32, f32)>,
    /// Whether a quantized result takes its scale and zero point from its range; else they are the
    /// first operand's, or the operator's own.
    pub calibrated: bool,
    /// Appends one operator that takes the current tensor, or none where that does not fit.
    pub draw: fn(&mut Generator),
}

type Draw = fn(&mut Generator);

/// Results with a range of their own.
const fn computes(
    op: &'static str,
    schemes: &'static [Scheme],
    shapes: Shapes,
    draw: Draw,
) -> Family {
    Family { op, schemes, shapes, values: None, calibrated: true, draw }
}

/// Results with a quantization that the draw gives them.
const fn moves(op: &'static str, schemes: &'static [Scheme], shapes: Shapes, draw: Draw) -> Family {
    Family { calibrated: false, ..computes(op, schemes, shapes, draw) }
}

impl Family {
    const fn within(self, low: f32, high: f32) -> Self {
        Self { values: Some((low, high)), ..self }
    }

    /// Whether it multiplies with weights.
    pub fn has_weights(&self) -> bool {
        LAYERS.iter().any(|layer| layer.op == self.op)
    }

    /// Whether the family can go on with a tensor of this shape, whatever its elements.
    pub fn continues(&self, shape: &[usize]) -> bool {
        self.shapes.fit(shape) && self.values.is_none_or(|(low, _)| low < 0.0)
    }
}

const FLOAT: &[Scheme] = &[Fp32];
const SIGNED: &[Scheme] = &[Fp32, Int8];
const UNSIGNED: &[Scheme] = &[Fp32, Uint8];
const ALL: &[Scheme] = &[Fp32, Int8, Uint8];
const EIGHT_BITS: &[Scheme] = &[Int8, Uint8];
const WEIGHTED: &[Scheme] = &[Fp32, Int8, Uint8, Dynamic, DynamicInt4, Int8Int4];
/// Ranks 1 to 6.
const ANY: Shapes = Shapes::Ranks(1, 6);
const MATRIX: Shapes = Shapes::Ranks(2, 5);
const IMAGE: Shapes = Shapes::Image;

/// Random models take a group first, then a family of it.
pub const GROUPS: &[&[Family]] =
    &[ELEMENTWISE, ELEMENTWISE, LAYERS, LAYERS, SPATIAL, MOVES, COMPOUND];

pub fn families() -> impl Iterator<Item = &'static Family> {
    [ELEMENTWISE, LAYERS, SPATIAL, MOVES, COMPOUND].into_iter().flatten()
}

const ELEMENTWISE: &[Family] = &[
    computes("ABS", SIGNED, ANY, |g| g.unary(Op::Abs)),
    computes("ADD", ALL, ANY, |g| {
        let options = g.arithmetic();
        g.binary(Op::Add(options));
    }),
    computes("ADD_N", FLOAT, ANY, Generator::add_n),
    computes("ATAN2", FLOAT, ANY, |g| g.with_like(Op::Atan2)),
    computes("CEIL", FLOAT, ANY, |g| g.unary(Op::Ceil)),
    computes("COS", FLOAT, ANY, |g| g.unary(Op::Cos)),
    computes("DIV", UNSIGNED, ANY, |g| {
        let activation = g.activation();
        g.binary_by(Op::Div(ActivationOptions { activation }), (0.4, 3.0));
    }),
    computes("ELU", SIGNED, ANY, |g| g.unary(Op::Elu)),
    computes("EXP", SIGNED, ANY, |g| g.unary(Op::Exp)).within(-4.0, 3.0),
    computes("FAKE_QUANT", FLOAT, ANY, |g| {
        let low = -4.0 * g.chance();
        let (max, num_bits) = (low + 0.5 + 4.0 * g.chance(), g.between(2, 16) as i32);
        let narrow_range = g.one_in(2);
        g.unary(Op::FakeQuant(FakeQuantOptions { min: low, max, num_bits, narrow_range }));
    }),
    computes("FLOOR", FLOAT, ANY, |g| g.unary(Op::Floor)),
    computes("FLOOR_DIV", FLOAT, ANY, Generator::floor_div),
    computes("FLOOR_MOD", FLOAT, ANY, Generator::floor_mod),
    computes("GELU", ALL, ANY, |g| {
        let approximate = g.one_in(2);
        g.unary(Op::Gelu(GeluOptions { approximate }));
    }),
    computes("HARD_SWISH", ALL, ANY, |g| g.unary(Op::HardSwish)),
    computes("LEAKY_RELU", ALL, ANY, |g| {
        let alpha = 1.5 * g.chance() - 0.3;
        g.unary(Op::LeakyRelu(LeakyReluOptions { alpha }));
    }),
    computes("LOG", SIGNED, ANY, |g| g.unary(Op::Log)).within(0.05, 6.0),
    moves("LOGISTIC", ALL, ANY, |g| g.bounded(Op::Logistic, 0.0, 1.0)),
    moves("MAXIMUM", ALL, ANY, |g| g.choice(Op::Maximum)),
    moves("MINIMUM", ALL, ANY, |g| g.choice(Op::Minimum)),
    computes("MUL", ALL, ANY, |g| {
        let activation = g.activation();
        g.binary(Op::Mul(ActivationOptions { activation }));
    }),
    computes("NEG", FLOAT, ANY, |g| g.unary(Op::Neg)),
    computes("POW", FLOAT, ANY, |g| g.binary_by(Op::Pow, (-2.0, 2.0))).within(0.05, 6.0),
    computes("PRELU", ALL, ANY, Generator::prelu),
    computes("RELU", ALL, ANY, |g| g.unary(Op::Relu)),
    computes("RELU6", ALL, ANY, |g| g.unary(Op::Relu6)),
    computes("RELU_0_TO_1", ALL, ANY, |g| g.unary(Op::Relu0To1)),
    computes("RELU_N1_TO_1", ALL, ANY, |g| g.unary(Op::ReluN1To1)),
    computes("ROUND", FLOAT, ANY, |g| g.unary(Op::Round)),
    computes("RSQRT", SIGNED, ANY, |g| g.unary(Op::Rsqrt)).within(0.05, 6.0),
    computes("SIGN", FLOAT, ANY, |g| g.unary(Op::Sign)),
    computes("SIN", FLOAT, ANY, |g| g.unary(Op::Sin)),
    computes("SQRT", FLOAT, ANY, |g| g.unary(Op::Sqrt)).within(0.0, 9.0),
    computes("SQUARE", FLOAT, ANY, |g| g.unary(Op::Square)),
    computes("SQUARED_DIFFERENCE", SIGNED, ANY, |g| g.binary(Op::SquaredDifference)),
    computes("SUB", ALL, ANY, |g| {
        let options = g.arithmetic();
        g.binary(Op::Sub(options));
    }),
    moves("TANH", ALL, ANY, |g| g.bounded(Op::Tanh, -1.0, 1.0)),
];

const LAYERS: &[Family] = &[
    computes("BATCH_MATMUL", &[Fp32, Int8, Dynamic], MATRIX, Generator::batch_matmul),
    computes("CONV_2D", WEIGHTED, IMAGE, Generator::conv),
    computes("DEPTHWISE_CONV_2D", WEIGHTED, IMAGE, Generator::depthwise),
    computes("FULLY_CONNECTED", WEIGHTED, Shapes::Ranks(1, 4), Generator::fully_connected),
    computes("TRANSPOSE_CONV", WEIGHTED, IMAGE, Generator::transpose_conv),
];

/// Windows, sums and extremes.
const SPATIAL: &[Family] = &[
    moves("ARG_MAX", ALL, Shapes::Ranks(2, 6), |g| {
        g.arg_reduce(Op::ArgMax(ArgMinMaxOptions { output_type: DType::I32 }));
    }),
    moves("ARG_MIN", ALL, Shapes::Ranks(2, 6), |g| {
        g.arg_reduce(Op::ArgMin(ArgMinMaxOptions { output_type: DType::I32 }));
    }),
    moves("AVERAGE_POOL_2D", ALL, IMAGE, |g| g.pool(Op::AveragePool2d)),
    computes("CUMSUM", FLOAT, Shapes::Ranks(1, 5), Generator::cumsum),
    moves("L2_POOL_2D", FLOAT, IMAGE, |g| g.pool(Op::L2Pool2d)),
    moves("MAX_POOL_2D", ALL, IMAGE, |g| g.pool(Op::MaxPool2d)),
    computes("MEAN", ALL, ANY, |g| g.reduce(Op::Mean)),
    moves("REDUCE_MAX", ALL, ANY, |g| g.reduce(Op::ReduceMax)),
    moves("REDUCE_MIN", ALL, ANY, |g| g.reduce(Op::ReduceMin)),
    computes("REDUCE_PROD", FLOAT, ANY, |g| g.reduce(Op::ReduceProd)),
    moves("RESIZE_BILINEAR", ALL, IMAGE, |g| g.resize(Op::ResizeBilinear)),
    moves("RESIZE_NEAREST_NEIGHBOR", ALL, IMAGE, |g| g.resize(Op::ResizeNearestNeighbor)),
    computes("SUM", ALL, ANY, |g| g.reduce(Op::Sum)),
];

const MOVES: &[Family] = &[
    moves("BATCH_TO_SPACE_ND", ALL, Shapes::Batches, Generator::batch_to_space),
    moves("BROADCAST_TO", ALL, ANY, Generator::broadcast_to),
    moves("CONCATENATION", ALL, ANY, Generator::concatenation),
    moves("DEPTH_TO_SPACE", ALL, Shapes::Depth, Generator::depth_to_space),
    moves("DYNAMIC_UPDATE_SLICE", SIGNED, ANY, Generator::update),
    moves("EXPAND_DIMS", ALL, Shapes::Ranks(1, 5), Generator::expand_dims),
    moves("FILL", SIGNED, Shapes::Ranks(0, 0), Generator::fill),
    moves("GATHER", ALL, ANY, Generator::gather),
    moves("MIRROR_PAD", ALL, Shapes::Ranks(1, 5), Generator::mirror_pad),
    moves("PACK", ALL, Shapes::Ranks(1, 5), Generator::pack),
    moves("PAD", ALL, Shapes::Ranks(1, 5), |g| g.pad(Op::Pad)),
    moves("PADV2", ALL, Shapes::Ranks(1, 5), |g| g.pad(Op::PadV2)),
    moves("RESHAPE", ALL, ANY, Generator::reshape),
    moves("REVERSE_V2", ALL, ANY, Generator::reverse),
    moves("SLICE", ALL, Shapes::Ranks(1, 5), Generator::slice),
    moves("SPACE_TO_BATCH_ND", ALL, IMAGE, Generator::space_to_batch),
    moves("SPACE_TO_DEPTH", ALL, Shapes::Space, Generator::space_to_depth),
    moves("SPLIT", ALL, ANY, Generator::split),
    moves("SPLIT_V", ALL, ANY, Generator::split_v),
    moves("SQUEEZE", ALL, Shapes::Ones, Generator::squeeze),
    moves("STRIDED_SLICE", ALL, Shapes::Ranks(1, 5), Generator::strided_slice),
    moves("TILE", ALL, ANY, Generator::tile),
    moves("TRANSPOSE", ALL, ANY, Generator::transpose),
    moves("UNPACK", ALL, Shapes::Ranks(2, 6), Generator::unpack),
];

/// Normalizations, choices and conversions.
const COMPOUND: &[Family] = &[
    moves("CAST", ALL, ANY, Generator::cast),
    moves("DEQUANTIZE", EIGHT_BITS, ANY, Generator::dequantize),
    computes("INSTANCE_NORM", FLOAT, IMAGE, Generator::instance_norm),
    moves("L2_NORMALIZATION", ALL, Shapes::Ranks(1, 4), |g| {
        g.bounded(Op::L2Normalization(ActivationOptions::default()), -1.0, 1.0);
    }),
    computes("LOCAL_RESPONSE_NORMALIZATION", FLOAT, IMAGE, Generator::local_response),
    moves("LOG_SOFTMAX", ALL, Shapes::Ranks(1, 5), |g| g.bounded(Op::LogSoftmax, -16.0, 0.0)),
    moves("QUANTIZE", EIGHT_BITS, ANY, Generator::quantize),
    computes("RMS_NORM", FLOAT, ANY, Generator::rms_norm),
    computes("ROPE", FLOAT, Shapes::Pairs, Generator::rope),
    computes("SELECT", FLOAT, ANY, |g| g.select(Op::Select)),
    computes("SELECT_V2", FLOAT, ANY, |g| g.select(Op::SelectV2)),
    moves("SOFTMAX", ALL, Shapes::Ranks(1, 5), |g| {
        let beta = if g.one_in(2) { 1.0 } else { 0.2 + 1.8 * g.chance() };
        g.bounded(Op::Softmax(SoftmaxOptions { beta }), 0.0, 1.0);
    }),
];
