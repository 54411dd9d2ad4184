//! Operators with weights, windows, products, and functions of elements.

use xnn_model::op::{
    Activation, BatchMatMulOptions, Conv2dOptions, CustomOptions, DepthwiseConv2dOptions,
    FakeQuantOptions, FullyConnectedOptions, Op, Padding, Pool2dOptions, TransposeConvOptions,
    WeightsFormat,
};
use xnn_model::{DType, Quantization, Tensor};
use xnn_testing::{GraphBuilder, le_bytes};

use super::{
    Constraint, Model, constant, f32s, i8s, ints, list, numbers, one, quantized, row, tensor,
};

/// 1x1 steps over `[1, 4, 4, 2]`, to 3 channels.
fn conv(options: Conv2dOptions, weights: Tensor) -> Model {
    let options = Conv2dOptions { stride_h: 1, stride_w: 1, ..options };
    one(Op::Conv2d(options), [f32s(&[1, 4, 4, 2]), weights], [f32s(&[1, 4, 4, 3])])
}

fn transposed(weights: &[usize], rows: i32) -> Model {
    let options = TransposeConvOptions { stride_h: 2, stride_w: 2, ..Default::default() };
    let shape = [1, rows, 8, 3];
    let inputs = [ints(&shape), constant(f32s(weights)), f32s(&[1, 4, 4, 2])];
    one(Op::TransposeConv(options), inputs, [f32s(&shape.map(|dim| dim as usize))])
}

fn dense(options: FullyConnectedOptions, input: &[usize], weights: &[usize]) -> Model {
    let output = [&input[..1], &[3]].concat();
    one(Op::FullyConnected(options), [f32s(input), constant(f32s(weights))], [f32s(&output)])
}

/// A pooling of `[1, 4, 4, 1]` from windows of this size, three apart.
fn pool(window: i32, activation: Activation) -> Model {
    let options = Pool2dOptions {
        padding: Padding::Same,
        stride_w: 3,
        stride_h: 3,
        filter_width: window,
        filter_height: window,
        activation,
    };
    one(Op::MaxPool2d(options), [f32s(&[1, 4, 4, 1])], [f32s(&[1, 2, 2, 1])])
}

/// An average of an int8 image of 64 rows with `columns`.
fn image_average(columns: usize) -> Model {
    let options = Pool2dOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        filter_width: columns as i32,
        filter_height: 64,
        activation: Activation::None,
    };
    one(Op::AveragePool2d(options), [i8s(&[1, 64, columns, 3])], [i8s(&[1, 1, 1, 3])])
}

/// Fields of a custom operator of MediaPipe.
fn custom(code: &str, fields: &[i32]) -> Op {
    let options = le_bytes(fields, |field| field.to_le_bytes()).into();
    Op::Custom(CustomOptions { code: code.into(), options })
}

/// Where an index goes, or comes from.
enum Index {
    Pooled,
    Outside,
}

/// Maxima of 2x2 windows, `stride` apart, and the way back.
fn unpooled(height: usize, stride: i32, out: Index, back: Index) -> Model {
    let fields = [1, stride, stride, 2, 2, 0];
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, height, 4, 3]);
    let half = [1, height.div_ceil(2), 2, 3];
    let most = g.tensor("most", DType::F32, &half);
    let index = g.tensor("index", DType::F32, &half);
    let y = g.tensor("y", DType::F32, &[1, height, 4, 3]);
    let read = if matches!(back, Index::Pooled) { index } else { g.input("i", DType::F32, &half) };
    g.op(custom("MaxPoolingWithArgmax2D", &fields), &[x], &[most, index])
        .op(custom("MaxUnpooling2D", &fields), &[most, read], &[y])
        .output(y);
    if matches!(out, Index::Outside) {
        g.output(index);
    }
    Model::new(g.build())
}

fn transposed_with_bias(code: &str, fields: &[i32], input: Tensor) -> Model {
    let inputs = [input, constant(f32s(&[3, 2, 2, 2])), numbers(&[0.0, 0.5, 1.0])];
    one(custom(code, fields), inputs, [f32s(&[1, 8, 8, 3])])
}

const WITH_BIAS: &str = "Convolution2DTransposeBias";
/// SAME, and strides of 2.
const STEPS: &[i32] = &[1, 2, 2];

/// Weights in blocks of 32, for activations of this type.
fn blockwise(dtype: DType) -> Model {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", dtype, &[1, 64]);
    let w = g.constant("w", DType::I4, &[2, 64], vec![0x21; 64]);
    let scales = g.constant_f32("scales", &[2, 2], &[0.5, 0.25, 1.0, 2.0]);
    g.quantization(w, Quantization::Blockwise { scales, zero_points: None, block_size: 32 });
    let y = g.tensor("y", dtype, &[1, 2]);
    if dtype == DType::I8 {
        g.quantize(x, 0.5, 0).quantize(y, 0.5, 0);
    }
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
    Model::new(g.build())
}

pub fn constraints() -> Vec<Constraint> {
    let none = Conv2dOptions::default;
    let weights = |shape: &[usize]| constant(f32s(shape));
    let layer = FullyConnectedOptions::default;
    let like = |op: Op, shape: &[usize]| one(op, [f32s(&[2, 3]), f32s(shape)], [f32s(&[2, 3])]);
    vec![
        row(
            "conv::conv_2d",
            "shape",
            "do not divide into groups",
            |inputs| conv(none(), weights(&[3, 1, 1, inputs])),
            2,
            3,
        )
        .stated(),
        row(
            "conv::depthwise_conv_2d",
            "shape",
            "a depthwise filter must be [1, H, W, 2 x multiplier]",
            |outputs| {
                let options =
                    DepthwiseConv2dOptions { stride_h: 1, stride_w: 1, ..Default::default() };
                let inputs = [f32s(&[1, 4, 4, 2]), weights(&[1, 1, 1, outputs])];
                one(Op::DepthwiseConv2d(options), inputs, [f32s(&[1, 4, 4, outputs])])
            },
            4,
            5,
        )
        .stated(),
        row(
            "transpose_conv::transposed",
            "shape",
            "must be [3, H, W, 2]",
            |outputs| transposed(&[outputs, 2, 2, 2], 8),
            3,
            4,
        ),
        row(
            "transpose_conv::transposed",
            "shape",
            "do not make 9",
            |rows| transposed(&[3, 2, 2, 2], rows),
            8,
            9,
        )
        .stated(),
        row(
            "conv::same_padding",
            "shape",
            "the padding is too large",
            |dilation_w| {
                let options = Conv2dOptions { stride_h: 2, stride_w: 1, dilation_w, ..none() };
                one(
                    Op::Conv2d(options),
                    [f32s(&[1, 4, 4, 2]), weights(&[3, 1, 4, 2])],
                    [f32s(&[1, 2, 4, 3])],
                )
            },
            1,
            i32::MAX,
        ),
        row(
            "weights::arithmetic",
            "empty",
            "no elements",
            |height| conv(none(), weights(&[3, height, 1, 2])),
            1,
            0,
        ),
        row(
            "weights::arithmetic",
            "type",
            "f32, f16, i8 or i4 weights for f32",
            |dtype| {
                let weights = constant(tensor(dtype, &[3, 1, 1, 2]));
                conv(none(), if dtype == DType::U8 { quantized(weights, 0.5, 0) } else { weights })
            },
            DType::F32,
            DType::U8,
        ),
        list(
            "elementwise::atan2",
            "shape",
            "is not [2, 3]",
            |x: &[usize]| like(Op::Atan2, x),
            &[2, 3],
            &[3],
        ),
        row(
            "elementwise::floor_div",
            "unusable",
            "not a power of two",
            |divisor| one(Op::FloorDiv, [f32s(&[2, 1]), numbers(&[divisor])], [f32s(&[2, 1])]),
            -0.5,
            0.75,
        ),
        row(
            "elementwise::floor_mod",
            "unusable",
            "the divisor is not finite",
            |divisor| one(Op::FloorMod, [f32s(&[2, 1]), numbers(&[divisor])], [f32s(&[2, 1])]),
            f32::MAX,
            f32::INFINITY,
        ),
        list(
            "elementwise::add_n",
            "shape",
            "is not [2, 3]",
            |other: &[usize]| like(Op::AddN, other),
            &[2, 3],
            &[3],
        ),
        row(
            "elementwise::fake_quant",
            "attribute",
            "2 to 16 bits",
            |num_bits| {
                let options =
                    FakeQuantOptions { min: -1.0, max: 1.0, num_bits, narrow_range: false };
                one(Op::FakeQuant(options), [f32s(&[2])], [f32s(&[2])])
            },
            16,
            17,
        ),
        row(
            "elementwise::fake_quant",
            "attribute",
            "finite bounds",
            |max| {
                let options = FakeQuantOptions { min: -1.0, max, num_bits: 2, narrow_range: false };
                one(Op::FakeQuant(options), [f32s(&[2])], [f32s(&[2])])
            },
            -0.9,
            -1.0,
        ),
        list(
            "elementwise::broadcasts",
            "shape",
            "does not broadcast",
            |other: &[usize]| like(Op::SquaredDifference, other),
            &[3],
            &[2],
        )
        .stated(),
        row(
            "fully_connected::blockwise",
            "quantization",
            "for f32 activations",
            blockwise,
            DType::F32,
            DType::I8,
        ),
        row(
            "fully_connected::fully_connected",
            "attribute",
            "supported: DEFAULT",
            |weights_format| {
                dense(FullyConnectedOptions { weights_format, ..layer() }, &[2, 4], &[3, 4])
            },
            WeightsFormat::Default,
            WeightsFormat::Shuffled4x16Int8,
        ),
        row(
            "fully_connected::fully_connected",
            "empty",
            "no elements",
            |inputs| dense(layer(), &[2, 4], &[3, inputs]),
            4,
            0,
        ),
        row(
            "fully_connected::fully_connected",
            "shape",
            "do not divide into rows of",
            |inputs| dense(layer(), &[2, 4], &[3, inputs]),
            4,
            3,
        )
        .stated(),
        row(
            "fully_connected::fully_connected",
            "shape",
            "the last dimension must be",
            |inputs| {
                dense(
                    FullyConnectedOptions { keep_num_dims: true, ..layer() },
                    &[2, 4],
                    &[3, inputs],
                )
            },
            4,
            2,
        )
        .stated(),
        list(
            "matmul::batch_matmul",
            "rank",
            "2 to 6",
            |shape: &[usize]| {
                let op = Op::BatchMatMul(BatchMatMulOptions::default());
                one(op, [f32s(shape), f32s(&[3, 2])], [f32s(&[1, 2])])
            },
            &[1, 3],
            &[3],
        )
        .stated(),
        row(
            "matmul::batch_matmul",
            "shape",
            "does not multiply",
            |depth| {
                let op = Op::BatchMatMul(BatchMatMulOptions::default());
                one(op, [f32s(&[1, depth]), f32s(&[3, 2])], [f32s(&[1, 2])])
            },
            3,
            4,
        )
        .stated(),
        row(
            "mediapipe::custom",
            "unsupported-operator",
            "no XNNPACK counterpart",
            |code| transposed_with_bias(code, STEPS, f32s(&[1, 4, 4, 2])),
            WITH_BIAS,
            "Convolution2DTransposeBiases",
        ),
        row(
            "mediapipe::argmax_pooling",
            "shape",
            "only MaxUnpooling2D may read positions",
            |out| unpooled(4, 2, out, Index::Pooled),
            Index::Pooled,
            Index::Outside,
        ),
        row(
            "mediapipe::unpooling",
            "shape",
            "must come from MaxPoolingWithArgmax2D",
            |back| unpooled(4, 2, Index::Pooled, back),
            Index::Pooled,
            Index::Outside,
        ),
        row(
            "mediapipe::pool",
            "attribute",
            "the filter size",
            |stride| unpooled(4, stride, Index::Pooled, Index::Pooled),
            2,
            1,
        ),
        row(
            "mediapipe::pool",
            "shape",
            "does not divide into windows",
            |height| unpooled(height, 2, Index::Pooled, Index::Pooled),
            4,
            5,
        ),
        row(
            "mediapipe::float",
            "type",
            "supported: f32",
            |input| transposed_with_bias(WITH_BIAS, STEPS, input),
            f32s(&[1, 4, 4, 2]),
            i8s(&[1, 4, 4, 2]),
        ),
        row(
            "mediapipe::fields",
            "attribute",
            "the fields of TFLite's structure",
            |count| transposed_with_bias(WITH_BIAS, &STEPS[..count], f32s(&[1, 4, 4, 2])),
            3,
            2,
        ),
        row(
            "mediapipe::padding",
            "attribute",
            "1 (SAME) or 2 (VALID)",
            |padding| transposed_with_bias(WITH_BIAS, &[padding, 2, 2], f32s(&[1, 4, 4, 2])),
            1,
            0,
        ),
        row(
            "pool::pool_2d",
            "attribute",
            "is TANH",
            |activation| pool(1, activation),
            Activation::Relu6,
            Activation::Tanh,
        ),
        row("pool::pool_2d", "attribute", "at most 4096 pixels", image_average, 64, 65),
        row(
            "pool::windows",
            "attribute",
            "reaches over the edge",
            |window| pool(window, Activation::None),
            1,
            2,
        ),
    ]
}
