//! Graphs and files that must be refused, each with what the error must say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Builder, conv2d, convolution, every_node, fully_connected, one_to_one};
use xnn_format::{
    Blob, Conv2d, Datatype, ErrorKind, Graph, Limits, Node, NodeOp, OutputRange, Padding2d,
    Quantization, ReadOptions, Size2d, UnaryOp, Value, ValueId, WriteOptions, flags, write,
};
use xnn_testing::{Random, files_below, shared_dir};

#[track_caller]
fn refused(graph: &Graph, expected: &str) {
    let message = match graph.check() {
        Ok(()) => panic!("accepted: {graph:?}"),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    let written = write(graph, &WriteOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(written.to_string(), message, "the writer says the same");
}

fn abs(input: u32, output: u32) -> Node {
    Node::new(NodeOp::Unary { op: UnaryOp::Abs, input: ValueId(input), output: ValueId(output) })
}

fn with_value(
    datatype: Datatype,
    quantization: Quantization,
    dims: &[usize],
    bytes: usize,
) -> Graph {
    let mut graph = Graph::default();
    let value = Value::new(datatype, quantization, dims);
    graph.push_value(value.with_data(Bytes::from(vec![0; bytes])));
    graph
}

#[test]
fn undefined_values() {
    let mut graph =
        one_to_one(0, &[2], &[2], |_, output| NodeOp::Softmax { input: ValueId(2), output });
    refused(&graph, "node 0 (Softmax): value 2 does not exist; there are 2");
    graph.nodes[0] = abs(0, u32::MAX);
    refused(&graph, "value 4294967295 does not exist");
    graph.nodes[0] = abs(0, 1);
    graph.inputs.push(ValueId(9));
    refused(&graph, "value 9 does not exist");
}

#[test]
fn cycles_and_wrong_order() {
    let mut b = Builder::new(0);
    let (x, y) = (b.input(&[2]), b.output(&[2]));
    let middle = b.inside(Datatype::F32, &[2]);
    b.graph.nodes = vec![abs(middle.0, y.0), abs(x.0, middle.0)];
    refused(&b.graph, "node 0 (Abs): value 2 is read before it is written");
    b.graph.nodes = vec![abs(middle.0, middle.0), abs(x.0, y.0)];
    refused(&b.graph, "value 2 is read before");
    b.graph.nodes = vec![abs(x.0, middle.0), abs(middle.0, y.0)];
    b.graph.check().unwrap();
}

#[test]
fn values_with_two_sources() {
    let mut b = Builder::new(0);
    let (x, y) = (b.input(&[2]), b.output(&[2]));
    b.graph.nodes = vec![abs(x.0, y.0), abs(x.0, y.0)];
    refused(&b.graph, "node 1 (Abs): value 1 is written, but");
    b.graph.nodes = vec![abs(x.0, y.0), abs(y.0, x.0)];
    refused(&b.graph, "node 1 (Abs): value 0 is written, but it is an input");
    let constant = b.weights(&[2]);
    b.graph.nodes = vec![abs(x.0, y.0), abs(y.0, constant.0)];
    refused(&b.graph, "value 2 is written, but");
}

#[test]
fn inputs_and_outputs() {
    let good = one_to_one(0, &[2], &[2], |input, output| NodeOp::Softmax { input, output });
    let change = |change: &dyn Fn(&mut Graph)| {
        let mut graph = good.clone();
        change(&mut graph);
        graph
    };
    refused(&change(&|g| g.inputs.push(ValueId(0))), "input 0 is a constant or listed twice");
    refused(&change(&|g| g.outputs.push(ValueId(1))), "output 1 is listed twice");
    refused(&change(&|g| g.outputs.push(ValueId(0))), "output 0 is an input or a constant");
    refused(&change(&|g| g.nodes.clear()), "output 1 is never written");
    refused(
        &change(&|g| g.values[0].data = Some(Bytes::from(vec![0; 8]))),
        "input 0 is a constant",
    );
    let many = |count: u32| {
        change(&|g| {
            g.inputs = (0..count).map(|n| ValueId(if n == 0 { 0 } else { n + 1 })).collect();
            let value = g.values[0].clone();
            g.values.resize(count as usize + 1, value);
        })
    };
    many(4095).check().unwrap();
    refused(&many(4096), "the number of external values is 4097, above the limit of 4096");
}

#[test]
fn constants_of_wrong_size() {
    for (datatype, dims, good) in
        [(Datatype::F32, &[3, 5][..], 60), (Datatype::F16, &[3, 5], 30), (Datatype::F32, &[], 4)]
    {
        with_value(datatype, Quantization::None, dims, good).check().unwrap();
        for bad in [0, good - 1, good + 1] {
            refused(&with_value(datatype, Quantization::None, dims, bad), &format!("not {bad}"));
        }
    }
    let scales = Arc::new([1.0; 3]);
    let nibbles = Quantization::PerChannel { scales, channel_dim: 0 };
    with_value(Datatype::QcInt4, nibbles.clone(), &[3, 5], 9).check().unwrap();
    refused(&with_value(Datatype::QcInt4, nibbles, &[3, 5], 8), "take 9 bytes, not 8");
}

#[test]
fn dimensions() {
    let value = |dims: &[usize]| {
        let mut graph = Graph::default();
        graph.push_value(Value::new(Datatype::F32, Quantization::None, dims));
        graph
    };
    value(&[1; 6]).check().unwrap();
    refused(&value(&[1; 7]), "value 0: the rank is 7, above the limit of 6");
    refused(&value(&[2, 0]), "value 0: a dimension of [2, 0] is 0");
    refused(&value(&[1 << 32]), "does not fit 32 bits");
    value(&[1 << 32 >> 1, 2]).check().unwrap();
    refused(&value(&[1 << 31, 3]), "the size in bytes is 25769803776, above the limit");
    refused(&value(&[1 << 31; 6]), "the size in bytes is 18446744073709551615");
}

#[test]
fn scales() {
    let per_tensor = |scale| {
        with_value(Datatype::QInt8, Quantization::PerTensor { scale, zero_point: 0 }, &[1], 1)
    };
    per_tensor(f32::MIN_POSITIVE).check().unwrap();
    per_tensor(f32::MAX).check().unwrap();
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 2.0] {
        refused(&per_tensor(scale), "value 0: the scale");
    }
    let per_channel = |count, channel_dim| {
        let scales = vec![1.0; count].into();
        with_value(Datatype::QcInt8, Quantization::PerChannel { scales, channel_dim }, &[3, 5], 15)
    };
    per_channel(3, 0).check().unwrap();
    per_channel(5, 1).check().unwrap();
    refused(&per_channel(2, 0), "2 scales for 3 channels");
    refused(&per_channel(4, 0), "4 scales for 3 channels");
    refused(&per_channel(0, 1), "0 scales for 5 channels");
    refused(&per_channel(3, 2), "no dimension 2 in [3, 5]");
    refused(&per_channel(3, usize::MAX), "no dimension");
    let mut graph = per_channel(3, 0);
    let scales = Arc::new([1.0, f32::NAN, 1.0]);
    graph.values[0].quantization = Quantization::PerChannel { scales, channel_dim: 0 };
    refused(&graph, "the scale NaN");
}

#[test]
fn blocks() {
    let blockwise = |dims: &[usize], count, block_size, channel_dim| {
        let scales = vec![1.0; count].into();
        let quantization = Quantization::Blockwise { scales, channel_dim, block_size };
        let bytes = dims.iter().product::<usize>().div_ceil(2);
        with_value(Datatype::QbInt4, quantization, dims, bytes)
    };
    blockwise(&[3, 64], 6, 32, 0).check().unwrap();
    blockwise(&[3, 64], 3, 64, 0).check().unwrap();
    refused(&blockwise(&[3, 64], 5, 32, 0), "5 scales for 3 rows of 2 blocks");
    refused(&blockwise(&[3, 64], 12, 16, 0), "blocks of 16 are no multiple of 32");
    refused(&blockwise(&[3, 64], 6, 0, 0), "blocks of 0");
    refused(&blockwise(&[3, 64], 3, 96, 0), "that divides rows of 64");
    refused(&blockwise(&[3, 64], 6, 32, 1), "channel dimension 1 of blocks is not 0");
    refused(&blockwise(&[1, 3, 64], 6, 32, 0), "only matrices");
    let mut graph = blockwise(&[1, 32], 1, 32, 0);
    let scales = Arc::new([f32::MAX]);
    graph.values[0].quantization =
        Quantization::Blockwise { scales, channel_dim: 0, block_size: 32 };
    refused(&graph, "the scale inf");
}

#[test]
fn zero_points() {
    for (datatype, bytes, good, bad) in [
        (Datatype::QInt8, 1, [-128, 127], [-129, 128]),
        (Datatype::QUint8, 1, [0, 255], [-1, 256]),
        (Datatype::QInt32, 4, [0, 0], [-1, 1]),
    ] {
        let graph = |zero_point| {
            with_value(datatype, Quantization::PerTensor { scale: 1.0, zero_point }, &[1], bytes)
        };
        for (good, bad) in good.into_iter().zip(bad) {
            graph(good).check().unwrap();
            refused(&graph(bad), "value 0: the zero point");
        }
    }
}

#[test]
fn datatypes_with_foreign_quantization() {
    let per_tensor = Quantization::PerTensor { scale: 1.0, zero_point: 0 };
    refused(&with_value(Datatype::F32, per_tensor.clone(), &[1], 4), "fp32 does not go with");
    refused(&with_value(Datatype::QcInt8, per_tensor, &[1], 1), "qcint8 does not go with");
    refused(&with_value(Datatype::QInt8, Quantization::None, &[1], 1), "quantization none");
    for datatype in [Datatype::QpInt8, Datatype::PackedF32] {
        let bytes = datatype.bits() / 8;
        refused(&with_value(datatype, Quantization::None, &[1], bytes), "is never stored");
    }
}

#[test]
fn dynamic_quantization() {
    let graph = |num_nonbatch_dims, hint: &[usize]| {
        let mut b = Builder::new(0);
        let (input, output) = (b.input(&[4, 8]), b.output(&[4, 2]));
        let quantization = Quantization::Dynamic { num_nonbatch_dims };
        let rows = b.graph.push_value(Value::new(Datatype::QdInt8, quantization, hint));
        let filter = b.weights(&[2, 8]);
        b.node(NodeOp::Unary { op: UnaryOp::Convert, input, output: rows });
        b.node(NodeOp::FullyConnected { input: rows, filter, bias: None, output, sparse: false });
        b.graph
    };
    graph(1, &[4, 8]).check().unwrap();
    graph(1, &[4, 7]).check().unwrap();
    refused(&graph(0, &[4, 8]), "0 of 2 dimensions cannot share a scale");
    refused(&graph(3, &[4, 8]), "3 of 2 dimensions cannot share a scale");
    refused(&graph(1, &[1, 32]), "rows of [1, 32], but it becomes [4, 8]");
    refused(&graph(3, &[1, 1, 32]), "but it becomes [4, 8]");
    let constant =
        with_value(Datatype::QdInt8, Quantization::Dynamic { num_nonbatch_dims: 1 }, &[1], 1);
    refused(&constant, "constants cannot be quantized at run time");
}

#[test]
fn flags_that_mean_nothing() {
    for graph in every_node(0) {
        for bit in [0x80, 0x8000_0000, 0x100] {
            let mut graph = graph.clone();
            let node = &mut graph.nodes[0];
            node.flags |= bit;
            let expected = format!("node 0 ({}): flags {bit:#x} mean nothing", node.op.kind());
            refused(&graph, &expected);
        }
    }
    let mut graph = one_to_one(0, &[1, 2, 2, 1], &[1, 3, 3, 1], |input, output| {
        NodeOp::StaticResizeBilinear2d { new_height: 3, new_width: 3, input, output }
    });
    graph.nodes[0].flags = flags::ALIGN_CORNERS;
    graph.check().unwrap();
    graph.nodes[0].flags |= flags::TENSORFLOW_LEGACY_MODE;
    refused(&graph, "exclude each other");
}

#[test]
fn output_ranges() {
    let mut graph = fully_connected(0, false, true);
    let mut range = |min, max| {
        graph.nodes[0].output_range = Some(OutputRange { min, max });
        graph.clone()
    };
    range(1.0, 1.0).check().unwrap();
    range(f32::NEG_INFINITY, f32::INFINITY).check().unwrap();
    refused(&range(1.0, 0.5), "[1, 0.5] is not a range");
    refused(&range(f32::NAN, 0.5), "is not a range");
    refused(&range(0.0, f32::NAN), "is not a range");
    let mut graph = one_to_one(0, &[2], &[2], |input, output| NodeOp::Softmax { input, output });
    graph.nodes[0].output_range = Some(OutputRange::UNBOUNDED);
    graph.check().unwrap();
    graph.nodes[0].output_range = Some(OutputRange { min: 0.0, max: 6.0 });
    refused(&graph, "does not clamp");
}

fn change_conv(change: impl FnOnce(&mut Conv2d)) -> Graph {
    let mut graph = convolution(7, true);
    let NodeOp::Conv2d(conv) = &mut graph.nodes[0].op else { unreachable!() };
    change(conv);
    graph
}

#[test]
fn convolution_parameters() {
    change_conv(|_| ()).check().unwrap();
    let zero = Size2d { height: 1, width: 0 };
    refused(&change_conv(|conv| conv.kernel = zero), "the kernel is 1 x 0");
    refused(&change_conv(|conv| conv.stride = zero), "the stride is 1 x 0");
    refused(&change_conv(|conv| conv.dilation = zero), "the dilation is 1 x 0");
    refused(&change_conv(|conv| conv.groups = 0), "groups or channels are 0");
    refused(&change_conv(|conv| conv.group_input_channels = 0), "groups or channels are 0");
    refused(&change_conv(|conv| conv.group_output_channels = 0), "groups or channels are 0");
    refused(&change_conv(|conv| conv.groups += 1), "channels instead of");
    refused(&change_conv(|conv| conv.groups = u32::MAX), "channels instead of");
    refused(&change_conv(|conv| conv.group_output_channels += 1), "the filter is");
    refused(&change_conv(|conv| conv.kernel.height += 1), "the filter is");
    refused(&change_conv(|conv| conv.dilation.height = u32::MAX), "larger than the padded input");
    refused(&change_conv(|conv| conv.filter = conv.input), "is not a constant");
    refused(&change_conv(|conv| conv.bias = Some(conv.input)), "is not a constant");
    refused(&change_conv(|conv| conv.bias = Some(conv.filter)), "the bias has 4 dimensions");
    let mut same = change_conv(|_| ());
    same.nodes[0].flags = flags::TENSORFLOW_SAME_PADDING;
    refused(&same, "SAME padding and explicit padding");
}

#[test]
fn short_bias() {
    let mut b = Builder::new(0);
    let (input, output) = (b.input(&[1, 4, 4, 2]), b.output(&[1, 4, 5, 6]));
    let (filter, bias) = (b.weights(&[6, 3, 2, 2]), b.weights(&[5]));
    b.node(NodeOp::Conv2d(conv2d(1, 2, 6, [input, filter, output], Some(bias))));
    refused(&b.graph, "node 0 (Conv2d): the bias is [5] instead of [6]");
    let mut graph = fully_connected(0, false, true);
    graph.values[3] =
        Value::new(Datatype::F32, Quantization::None, &[100]).with_data(Bytes::from(vec![0; 400]));
    refused(&graph, "the bias is [100] instead of");
}

#[test]
fn quantized_filters() {
    let mut graph = change_conv(|_| ());
    let filter = &mut graph.values[2];
    filter.datatype = Datatype::QInt8;
    filter.quantization = Quantization::PerTensor { scale: 1.0, zero_point: 0 };
    graph.check().unwrap();
    graph.values[2].quantization = Quantization::PerTensor { scale: 1.0, zero_point: 1 };
    refused(&graph, "the filter's zero point is 1 instead of 0");
    let mut graph = change_conv(|_| ());
    let scales = vec![1.0; graph.values[2].dims[1]].into();
    graph.values[2].quantization = Quantization::PerChannel { scales, channel_dim: 1 };
    refused(&graph, "scales along dimension 1 instead of 0");
}

#[test]
fn scales_for_a_batch_of_matrices() {
    let graph = |batch, flags, channel_dim| {
        let mut b = Builder::new(0);
        let (first, output) = (b.input(&[batch, 4, 8]), b.output(&[batch, 4, 8]));
        let scales = b.scales(8);
        let quantization = Quantization::PerChannel { scales, channel_dim };
        let second = b.constant(Datatype::QcInt8, quantization, &[batch, 8, 8]);
        b.node(NodeOp::BatchMatrixMultiply { inputs: [first, second], output }).flags = flags;
        b.graph
    };
    graph(1, 0, 2).check().unwrap();
    graph(1, flags::TRANSPOSE_WEIGHTS, 1).check().unwrap();
    refused(&graph(1, 0, 1), "scales along dimension 1");
    refused(&graph(2, 0, 2), "split them");
}

#[test]
fn permutations() {
    let transpose = |perm: &[usize]| {
        one_to_one(0, &[2, 3], &[3, 2], |input, output| NodeOp::StaticTranspose {
            perm: perm.to_vec(),
            input,
            output,
        })
    };
    transpose(&[1, 0]).check().unwrap();
    refused(&transpose(&[1, 1]), "[1, 1] is not a permutation");
    refused(&transpose(&[0, 2]), "is not a permutation");
    refused(&transpose(&[]), "0 entries of the permutation");
    refused(&transpose(&[2, 1, 0]), "cannot permute [2, 3]");
}

#[test]
fn paddings() {
    let pad = |pre: &[usize], post: &[usize], padding_value| {
        one_to_one(0, &[2, 3], &[3, 3], |input, output| NodeOp::StaticConstantPad {
            pre_paddings: pre.to_vec(),
            post_paddings: post.to_vec(),
            padding_value,
            input,
            output,
        })
    };
    pad(&[1, 0], &[0, 0], 0.0).check().unwrap();
    refused(&pad(&[1, 0], &[0], 0.0), "2 paddings before, but 1 paddings behind");
    refused(&pad(&[1], &[0], 0.0), "paddings for 1 dimensions instead of 2");
    refused(&pad(&[1, 0], &[0, 0], f32::NAN), "NaN cannot be represented");
    refused(&pad(&[1 << 32, 0], &[0, 0], 0.0), "does not fit 32 bits");
    refused(&pad(&[u32::MAX as usize, 0], &[0, u32::MAX as usize], 0.0), "the size in bytes");
}

#[test]
fn shapes_that_do_not_fit() {
    let reshape = |new_shape: &[usize]| {
        one_to_one(0, &[2, 6], &[12], |input, output| NodeOp::StaticReshape {
            new_shape: new_shape.to_vec(),
            input,
            output,
        })
    };
    reshape(&[3, 0]).check().unwrap();
    refused(&reshape(&[5, 0]), "[2, 6] cannot become [5, 0]");
    refused(&reshape(&[13]), "cannot become [13]");
    refused(&reshape(&[6]), "cannot become [6]");
    refused(&reshape(&[0, 0]), "2 dimensions of the new shape");
    refused(&reshape(&[u32::MAX as usize; 4]), "too large");
    let slice = |offset, size| {
        one_to_one(0, &[5], &[2], |input, output| NodeOp::StaticSlice {
            offsets: vec![offset],
            sizes: vec![size],
            input,
            output,
        })
    };
    slice(3, 2).check().unwrap();
    slice(4, 0).check().unwrap();
    refused(&slice(3, 3), "do not fit [5]");
    refused(&slice(5, 0), "do not fit [5]");
    let split = |axis, parts| {
        let mut b = Builder::new(0);
        let input = b.input(&[4, 6]);
        let outputs = (0..parts).map(|_| b.output(&[4, 3])).collect();
        b.node(NodeOp::EvenSplit { axis, input, outputs });
        b.graph
    };
    split(1, 3).check().unwrap();
    refused(&split(0, 3), "4 cannot be cut in 3 equal parts");
    refused(&split(2, 2), "no axis 2 among 2 dimensions");
    refused(&split(1, 5), "5 outputs instead of 2 to 4");
    refused(&split(1, 1), "1 outputs instead of 2 to 4");
}

#[test]
fn concatenations() {
    let concatenate = |axis, dims: &[&[usize]]| {
        let mut b = Builder::new(0);
        let inputs: Vec<ValueId> = dims.iter().map(|dims| b.input(dims)).collect();
        let output = b.output(&[1]);
        b.node(NodeOp::Concatenate { axis, inputs, output });
        b.graph
    };
    concatenate(0, &[&[2, 3], &[4, 3]]).check().unwrap();
    refused(&concatenate(1, &[&[2, 3], &[4, 3]]), "differ in more than dimension 1");
    refused(&concatenate(0, &[&[2, 3], &[4, 3, 1]]), "differ in more than dimension 0");
    refused(&concatenate(2, &[&[2, 3], &[4, 3]]), "no axis 2");
    refused(&concatenate(0, &[&[2]]), "(Concatenate): 1 inputs instead of 2 to 5");
    refused(&concatenate(0, &[&[2][..]; 6]), "6 inputs instead of 2 to 5");
}

#[test]
fn operands_of_the_wrong_shape() {
    let mut graph = fully_connected(3, false, false);
    graph.values[0].dims.push(77);
    refused(&graph, "does not end with the filter's");
    let mut b = Builder::new(0);
    let inputs = [b.input(&[2, 3]), b.input(&[4, 3])];
    let output = b.output(&[2, 3]);
    b.node(NodeOp::Binary { op: xnn_format::BinaryOp::Add, inputs, output });
    refused(&b.graph, "[2, 3] and [4, 3] do not fit together");
    let graph = one_to_one(0, &[2, 3], &[2], |input, output| NodeOp::GlobalAveragePooling2d {
        input,
        output,
    });
    refused(&graph, "has no height, width and channels");
    let mut b = Builder::new(0);
    let (input, output) = (b.input(&[2, 3, 4, 5]), b.output(&[2, 5]));
    let middle = b.inside(Datatype::F32, &[2, 12, 5]);
    b.graph.nodes = vec![abs(input.0, middle.0)];
    b.node(NodeOp::GlobalAveragePooling2d { input: middle, output });
    refused(&b.graph, "node 1 (GlobalAvgPooling2d): the operand is");
    b.graph.values[middle.index()].dims = vec![2, 1, 12, 5];
    b.graph.check().unwrap();
}

#[test]
fn adjustments_and_windows() {
    for graph in every_node(1) {
        let change = |change: &dyn Fn(&mut NodeOp)| {
            let mut graph = graph.clone();
            change(&mut graph.nodes[0].op);
            graph
        };
        match &graph.nodes[0].op {
            NodeOp::ConvTranspose2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.adjustment.width = 2;
                });
                refused(&graph, "the adjustment is not smaller than the stride");
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.padding = Padding2d { top: 1000, ..Padding2d::default() };
                });
                refused(&graph, "leaves nothing of the result");
            }
            NodeOp::DepthwiseConv2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::DepthwiseConv2d(conv) = op else { unreachable!() };
                    conv.group_input_channels = 0;
                });
                refused(&graph, "0 input channels per group instead of 1");
            }
            NodeOp::AveragePooling2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::AveragePooling2d(window) = op else { unreachable!() };
                    window.stride.height = 0;
                });
                refused(&graph, "the stride is 0 x 2");
            }
            NodeOp::ArgMaxPooling2d { .. } => {
                let graph = change(&|op| {
                    let NodeOp::ArgMaxPooling2d { window, .. } = op else { unreachable!() };
                    window.stride.height = 1;
                });
                refused(&graph, "step by its own size");
            }
            _ => {}
        }
    }
}

#[test]
fn names_that_belong_to_nothing() {
    let mut graph = fully_connected(0, false, true);
    graph.origin.input_names = vec!["a".into(), "b".into()];
    refused(&graph, "2 names for 1 inputs");
    graph.origin.input_names.clear();
    graph.origin.node_names = vec![(2, "b".into()), (1, "a".into())];
    refused(&graph, "not in the order");
}

#[test]
fn files_that_are_none() {
    for (bytes, expected) in [
        (&b""[..], "too short (0 bytes)"),
        (b"short", "too short (5 bytes)"),
        (b"this is a text file", "found \" is \""),
        (&[0; 64], "found \"\\\\x00"),
        (b"\x1c\0\0\0TFL3\0\0\0\0", "found \"TFL3\""),
        (b"\0\0\0\0XH00", "bad header: the file ends after 8 bytes"),
        (b"\x08\0\0\0XN01\0\0\0\0", "the lists of values and nodes are missing"),
        (b"\x09\0\0\0XN01\0\0\0\0", "the graph is damaged"),
    ] {
        let message = Blob::from_bytes(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn paths_that_are_no_files() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let error = Blob::open(folder).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(error.to_string().contains(folder), "{error}");
    let error = Blob::open(format!("{folder}/absent.xnn")).unwrap_err();
    assert!(error.to_string().contains("absent.xnn: "), "{error}");
}

#[test]
fn truncated_anywhere() {
    let bytes = write(&convolution(7, true), &WriteOptions::default()).unwrap();
    for end in 0..bytes.len() {
        let error = Blob::from_bytes(bytes[..end].to_vec()).unwrap_err();
        let expected = match end {
            0..8 => "too short",
            8..30 => "the file ends after",
            _ => "beyond the end of the file",
        };
        assert!(error.to_string().contains(expected), "{end}: {error}");
    }
}

#[test]
fn limits_hold() {
    let bytes = write(&convolution(7, true), &WriteOptions::default()).unwrap();
    let read = |change: &dyn Fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        let options = ReadOptions { limits, constants: None };
        Blob::from_bytes_with(bytes.clone(), &options)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    read(&|_| ()).unwrap();
    read(&|limits| limits.max_depth = 4).unwrap();
    assert!(read(&|limits| limits.max_depth = 3).unwrap_err().contains("damaged"));
    assert!(read(&|limits| limits.max_tables = 10).unwrap_err().contains("damaged"));
    assert!(read(&|limits| limits.max_externals = 1).unwrap_err().contains("external values"));
    assert!(read(&|limits| limits.max_value_bytes = 8).unwrap_err().contains("size in bytes"));
}

const MUTANTS: usize = 100_000;
/// Mutations hit what is in front of here: header and flatbuffer, mostly.
const MUTATED: usize = 4096;

/// Changes a byte or a word, copies some bytes elsewhere, or cuts the end off.
fn mutate(original: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [u32; 6] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff];
    let mut bytes = original.to_vec();
    let end = bytes.len().min(MUTATED) - 16;
    let at = random.below(end);
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes[at..at + 4].copy_from_slice(&WORDS[random.below(WORDS.len())].to_le_bytes()),
        2 => bytes.copy_within(at..at + 1 + random.below(16), random.below(end)),
        3 => bytes[at] ^= 1 << random.below(8),
        _ => bytes[at] = random.u8s(1)[0],
    }
    bytes
}

#[test]
fn mutated_files_are_read_or_refused() {
    let mut files: Vec<Vec<u8>> = every_node(11)
        .iter()
        .map(|graph| write(graph, &WriteOptions::default()).unwrap())
        .collect();
    if let Some(interop) = shared_dir("interop") {
        let payloads = files_below(&interop, &["xnn"]);
        let payloads = payloads.iter().map(|path| std::fs::read(path).unwrap());
        files.extend(payloads.filter(|bytes| bytes.len() < 100_000));
    }
    let mut random = Random::new(12);
    let mut read = 0;
    for n in 0..MUTANTS {
        let mutant = mutate(&files[n % files.len()], &mut random);
        let Ok(blob) = Blob::from_bytes(mutant) else { continue };
        let written = write(blob.graph(), &WriteOptions::default()).unwrap();
        assert_eq!(Blob::from_bytes(written).unwrap().graph(), blob.graph());
        read += 1;
    }
    assert!(read > MUTANTS / 10 && read < MUTANTS, "{read} of {MUTANTS}");
}
