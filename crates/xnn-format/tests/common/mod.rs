//! Graphs for each kind of node, with random sizes.

#![allow(dead_code, reason = "each test uses a part")]

mod builder;

use xnn_format::{
    BinaryOp, Conv2d, Datatype, Graph, NodeOp, OutputRange, Padding2d, Pooling2d, Quantization,
    ReduceOp, Size2d, UnaryOp, Value, ValueId, flags,
};

pub use builder::Builder;

/// A graph with one input, one output and one node.
pub fn one_to_one(
    seed: u64,
    dims: &[usize],
    result: &[usize],
    op: impl FnOnce(ValueId, ValueId) -> NodeOp,
) -> Graph {
    let mut builder = Builder::new(seed);
    let (input, output) = (builder.input(dims), builder.output(result));
    builder.node(op(input, output));
    builder.graph
}

pub const UNARY: [UnaryOp; 26] = [
    UnaryOp::Abs,
    UnaryOp::BankersRounding,
    UnaryOp::Ceiling,
    UnaryOp::Clamp,
    UnaryOp::Convert,
    UnaryOp::Copy,
    UnaryOp::Cosine,
    UnaryOp::CubeRoot,
    UnaryOp::BitwiseNot,
    UnaryOp::CountLeadingZeros,
    UnaryOp::Popcount,
    UnaryOp::Elu { alpha: 0.5 },
    UnaryOp::Exp,
    UnaryOp::Floor,
    UnaryOp::Gelu,
    UnaryOp::HardSwish,
    UnaryOp::LeakyRelu { negative_slope: -0.25 },
    UnaryOp::Log,
    UnaryOp::Negate,
    UnaryOp::ReciprocalSquareRoot,
    UnaryOp::Sigmoid,
    UnaryOp::Sign,
    UnaryOp::Sine,
    UnaryOp::Square,
    UnaryOp::SquareRoot,
    UnaryOp::Tanh,
];

pub const BINARY: [BinaryOp; 18] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Maximum,
    BinaryOp::Minimum,
    BinaryOp::Prelu,
    BinaryOp::SquaredDifference,
    BinaryOp::CopySign,
    BinaryOp::Modulus,
    BinaryOp::Atan2,
    BinaryOp::Pow,
    BinaryOp::BitwiseAnd,
    BinaryOp::BitwiseOr,
    BinaryOp::BitwiseXor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRightLogical,
    BinaryOp::ShiftRightArithmetic,
];

/// A graph for every kind of node.
pub fn every_node(seed: u64) -> Vec<Graph> {
    let dims = Builder::new(seed).sizes(4, 6);
    let unary = UNARY.map(|op| one_to_one(seed, &dims, &dims, |i, o| unary(op, i, o)));
    let binary = BINARY.map(|op| binary(seed, op));
    let mut graphs: Vec<Graph> = unary.into_iter().chain(binary).collect();
    graphs.extend((2..=5).map(|count| concatenate(seed, count)));
    graphs.extend((2..=4).map(|count| even_split(seed, count)));
    graphs.extend([
        convolution(seed, true),
        convolution(seed, false),
        depthwise(seed),
        conv_transpose(seed),
        fully_connected(seed, false, true),
        fully_connected(seed, true, false),
        batch_matrix_multiply(seed),
        pooling(seed, NodeOp::AveragePooling2d),
        pooling(seed, NodeOp::MaxPooling2d),
        arg_max_and_back(seed),
        rope(seed),
        attention(seed),
        dynamic(seed),
    ]);
    graphs.extend(shape_nodes(seed));
    graphs
}

fn unary(op: UnaryOp, input: ValueId, output: ValueId) -> NodeOp {
    NodeOp::Unary { op, input, output }
}

fn binary(seed: u64, op: BinaryOp) -> Graph {
    let mut b = Builder::new(seed);
    let dims = b.sizes(3, 5);
    let inputs = [b.input(&dims), b.weights(&dims[1..])];
    let output = b.output(&dims);
    let node = b.node(NodeOp::Binary { op, inputs, output });
    node.debug_handle = Some(7);
    if matches!(op, BinaryOp::Add | BinaryOp::Divide) {
        node.output_range = Some(OutputRange { min: -0.0, max: f32::INFINITY });
    }
    b.graph
}

fn concatenate(seed: u64, count: usize) -> Graph {
    let mut b = Builder::new(seed);
    let outer = b.size(5);
    let sizes = b.sizes(count, 5);
    let inputs: Vec<ValueId> = sizes.iter().map(|&size| b.input(&[outer, size])).collect();
    let output = b.output(&[outer, sizes.iter().sum()]);
    b.node(NodeOp::Concatenate { axis: 1, inputs, output });
    b.graph
}

fn even_split(seed: u64, count: usize) -> Graph {
    let mut b = Builder::new(seed);
    let size = b.size(5);
    let input = b.input(&[size * count, 3]);
    let outputs: Vec<ValueId> = (0..count).map(|_| b.output(&[size, 3])).collect();
    b.node(NodeOp::EvenSplit { axis: 0, input, outputs });
    b.graph
}

/// A convolution with a window of 3 x 2 and stride 1 x 2.
pub fn conv2d(
    groups: usize,
    inputs: usize,
    outputs: usize,
    values: [ValueId; 3],
    bias: Option<ValueId>,
) -> Conv2d {
    let [input, filter, output] = values;
    Conv2d {
        padding: Padding2d { top: 1, right: 1, bottom: 4, left: 0 },
        kernel: Size2d { height: 3, width: 2 },
        stride: Size2d { height: 1, width: 2 },
        dilation: Size2d { height: 2, width: 1 },
        adjustment: Size2d { height: 0, width: 0 },
        groups: groups as u32,
        group_input_channels: inputs as u32,
        group_output_channels: outputs as u32,
        input,
        filter,
        bias,
        output,
    }
}

/// Height and width of the result.
fn conv2d_result(height: usize, width: usize) -> (usize, usize) {
    (height + 1, (width - 1) / 2 + 1)
}

pub fn convolution(seed: u64, quantized: bool) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, height, width, groups, inputs, outputs] = b.sizes(6, 4).try_into().unwrap();
    let dims = [batch, height, width, groups * inputs];
    let (result_height, result_width) = conv2d_result(height, width);
    let result = [batch, result_height, result_width, groups * outputs];
    let filter_dims = [groups * outputs, 3, 2, inputs];
    let (input, output) = (b.input(&dims), b.output(&result));
    let (filter, bias) = if quantized {
        let activation = Quantization::PerTensor { scale: 0.5, zero_point: -128 };
        for id in [input, output] {
            let value = &mut b.graph.values[id.index()];
            (value.datatype, value.quantization) = (Datatype::QInt8, activation.clone());
        }
        let scales = b.scales(groups * outputs);
        let per_channel = Quantization::PerChannel { scales, channel_dim: 0 };
        let filter = b.constant(Datatype::QcInt8, per_channel.clone(), &filter_dims);
        (filter, Some(b.constant(Datatype::QcInt32, per_channel, &[groups * outputs])))
    } else {
        (b.weights(&filter_dims), None)
    };
    let conv = conv2d(groups, inputs, outputs, [input, filter, output], bias);
    b.node(NodeOp::Conv2d(conv)).output_range = Some(OutputRange { min: 0.0, max: 6.0 });
    b.graph
}

fn depthwise(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, height, width, channels, multiplier] = b.sizes(5, 4).try_into().unwrap();
    let input = b.input(&[batch, height, width, channels]);
    let output = b.output(&[batch, height, width.div_ceil(2), channels * multiplier]);
    let scales = b.scales(channels * multiplier);
    let filter = b.constant(
        Datatype::QcInt8,
        Quantization::PerChannel { scales, channel_dim: 3 },
        &[1, 3, 2, channels * multiplier],
    );
    let mut conv = conv2d(channels, 1, multiplier, [input, filter, output], None);
    conv.padding = Padding2d::default();
    b.node(NodeOp::DepthwiseConv2d(conv)).flags = flags::TENSORFLOW_SAME_PADDING;
    b.graph
}

fn conv_transpose(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, height, width, groups, inputs, outputs] = b.sizes(6, 4).try_into().unwrap();
    let input = b.input(&[batch, height, width, groups * inputs]);
    let result = [batch, height + 4, 2 * width + 1, groups * outputs];
    let output = b.output(&result);
    let filter = b.weights(&[groups * outputs, 3, 2, inputs]);
    let mut conv = conv2d(groups, inputs, outputs, [input, filter, output], None);
    conv.padding = Padding2d::default();
    conv.adjustment = Size2d { height: 0, width: 1 };
    b.node(NodeOp::ConvTranspose2d(conv));
    b.graph
}

pub fn fully_connected(seed: u64, sparse: bool, biased: bool) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, inputs, outputs] = b.sizes(3, 6).try_into().unwrap();
    let (input, output) = (b.input(&[batch, inputs]), b.output(&[batch, outputs]));
    let filter = b.weights(&[outputs, inputs]);
    let bias = biased.then(|| b.weights(&[outputs]));
    b.node(NodeOp::FullyConnected { input, filter, bias, output, sparse });
    b.graph
}

fn batch_matrix_multiply(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, m, k, n] = b.sizes(4, 6).try_into().unwrap();
    let inputs = [b.input(&[batch, m, k]), b.input(&[1, n, k])];
    let output = b.output(&[batch, m, n]);
    b.node(NodeOp::BatchMatrixMultiply { inputs, output }).flags = flags::TRANSPOSE_WEIGHTS;
    b.graph
}

fn pooling(seed: u64, op: impl FnOnce(Pooling2d) -> NodeOp) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, height, width, channels] = b.sizes(4, 6).try_into().unwrap();
    let input = b.input(&[batch, height + 2, width + 1, channels]);
    let output = b.output(&[batch, height, width.div_ceil(2), channels]);
    b.node(op(Pooling2d {
        padding: Padding2d { top: 0, right: 1, bottom: 1, left: 0 },
        kernel: Size2d { height: 4, width: 3 },
        stride: Size2d { height: 1, width: 2 },
        dilation: Size2d::ONE,
        input,
        output,
    }));
    b.graph
}

fn arg_max_and_back(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, height, width, channels] = b.sizes(4, 6).try_into().unwrap();
    let kernel = Size2d { height: 2, width: 3 };
    b.arg_max_and_back([batch, height, width, channels], kernel);
    b.graph
}

fn rope(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, tokens, heads, pairs] = b.sizes(4, 5).try_into().unwrap();
    let dims = [batch, tokens, heads, 2 * pairs];
    let (input, output) = (b.input(&dims), b.output(&dims));
    let weights = b.weights(&[tokens + 2, 2 * pairs]);
    b.node(NodeOp::Rope { max_tokens: tokens + 2, input, weights, output });
    b.graph
}

fn attention(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, heads, tokens, keys, channels, value_channels] = b.sizes(6, 4).try_into().unwrap();
    let query = b.input(&[batch, heads, tokens, channels]);
    let key = b.input(&[batch, keys, channels]);
    let value = b.input(&[batch, keys, value_channels]);
    let (scale, mask) = (b.weights(&[channels]), b.weights(&[tokens, keys]));
    let output = b.output(&[batch, heads, tokens, value_channels]);
    b.node(NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output });
    b.graph
}

/// Dynamic quantization and a product with blockwise 4-bit weights.
fn dynamic(seed: u64) -> Graph {
    let mut b = Builder::new(seed);
    let [batch, outputs, blocks] = b.sizes(3, 4).try_into().unwrap();
    let inputs = 32 * blocks;
    let (input, output) = (b.input(&[batch, inputs]), b.output(&[batch, outputs]));
    let quantization = Quantization::Dynamic { num_nonbatch_dims: 1 };
    let quantized =
        b.graph.push_value(Value::new(Datatype::QdInt8, quantization, &[batch, inputs]));
    let scales = b.scales(outputs * blocks);
    let quantization = Quantization::Blockwise { scales, channel_dim: 0, block_size: 32 };
    let filter = b.constant(Datatype::QbInt4, quantization, &[outputs, inputs]);
    b.node(unary(UnaryOp::Convert, input, quantized));
    b.node(NodeOp::FullyConnected { input: quantized, filter, bias: None, output, sparse: false });
    b.graph
}

fn shape_nodes(seed: u64) -> Vec<Graph> {
    let dims: [usize; 4] = Builder::new(seed).sizes(4, 6).try_into().unwrap();
    let [n, h, w, c] = dims;
    vec![
        one_to_one(seed, &dims, &dims, |input, output| NodeOp::Softmax { input, output }),
        one_to_one(seed, &dims, &[n, c], |input, output| NodeOp::GlobalAveragePooling2d {
            input,
            output,
        }),
        one_to_one(seed, &dims, &[h * w, n * c], |input, output| NodeOp::StaticReshape {
            new_shape: vec![h * w, 0],
            input,
            output,
        }),
        one_to_one(seed, &dims, &[n, 1, h, w, c, 1], |input, output| NodeOp::StaticExpandDims {
            new_axes: vec![1, 5],
            input,
            output,
        }),
        one_to_one(seed, &dims, &[c, n, w, h], |input, output| NodeOp::StaticTranspose {
            perm: vec![3, 0, 2, 1],
            input,
            output,
        }),
        one_to_one(seed, &dims, &[1, h, w, 1], |input, output| NodeOp::StaticSlice {
            offsets: vec![n - 1, 0, 0, 0],
            sizes: vec![0, h, 0, 1],
            input,
            output,
        }),
        one_to_one(seed, &dims, &[n + 1, h, w + 5, c], |input, output| NodeOp::StaticConstantPad {
            pre_paddings: vec![1, 0, 2, 0],
            post_paddings: vec![0, 0, 3, 0],
            padding_value: f32::NEG_INFINITY,
            input,
            output,
        }),
        one_to_one(seed, &dims, &[n, 7, 9, c], |input, output| NodeOp::StaticResizeBilinear2d {
            new_height: 7,
            new_width: 9,
            input,
            output,
        }),
        one_to_one(seed, &dims, &[h, w], |input, output| NodeOp::StaticReduce {
            op: ReduceOp::Sum,
            axes: vec![0, 3],
            input,
            output,
        }),
        one_to_one(seed, &dims, &[n, h, w], |input, output| NodeOp::StaticReduce {
            op: ReduceOp::Mean,
            axes: vec![3],
            input,
            output,
        }),
        one_to_one(seed, &[n, h, w, 9 * c], &[n, 3 * h, 3 * w, c], |input, output| {
            NodeOp::DepthToSpace2d { block_size: 3, input, output }
        }),
        one_to_one(seed, &[n, 3 * h, 3 * w, c], &[n, h, w, 9 * c], |input, output| {
            NodeOp::SpaceToDepth2d { block_size: 3, input, output }
        }),
    ]
}
