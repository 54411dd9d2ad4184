//! Parameters of nodes, and the shapes of their operands.

use bytes::Bytes;
use xnn_format::{
    Amplification, Blob, Conv2d, Datatype, Graph, GraphLimits, NodeOp, Quantization, ReadOptions,
    Size2d, Value, ValueId, WriteOptions, flags, write,
};

use super::{abs, refused};
use crate::common::{Builder, conv2d, convolution, fully_connected, one_to_one};

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
    refused(&graph(2, 0, 2), "split the batches");
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
    refused(&pad(&[1, 0], &[0], 0.0), "2 paddings before, but 1 paddings after");
    refused(&pad(&[1], &[0], 0.0), "paddings for 1 dimensions instead of 2");
    refused(&pad(&[1, 0], &[0, 0], f32::NAN), "NaN cannot be represented");
    refused(&pad(&[1 << 32, 0], &[0, 0], 0.0), "does not fit in 32 bits");
    refused(&pad(&[u32::MAX as usize, 0], &[0, u32::MAX as usize], 0.0), "the size in bytes");
}

#[test]
fn shapes_that_do_not_match() {
    let reshape = |new_shape: &[usize]| {
        one_to_one(0, &[2, 6], &[12], |input, output| NodeOp::StaticReshape {
            new_shape: new_shape.to_vec(),
            input,
            output,
        })
    };
    reshape(&[3, 0]).check().unwrap();
    refused(&reshape(&[5, 0]), "[2, 6] cannot be reshaped to [5, 0]");
    refused(&reshape(&[13]), "cannot be reshaped to [13]");
    refused(&reshape(&[6]), "cannot be reshaped to [6]");
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
    refused(&split(0, 3), "4 cannot be split into 3 equal parts");
    refused(&split(2, 2), "the axis 2 is out of range for 2 dimensions");
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
    refused(&concatenate(2, &[&[2, 3], &[4, 3]]), "the axis 2 is out of range");
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
    refused(&b.graph, "[2, 3] and [4, 3] do not broadcast");
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

/// Files of a few hundred bytes may request their fixed allowance and not more.
#[test]
fn requests_of_small_files_are_limited() {
    let pad = |rows: usize| {
        one_to_one(0, &[1, 1024], &[rows, 1024], |input, output| NodeOp::StaticConstantPad {
            pre_paddings: vec![0, 0],
            post_paddings: vec![rows - 1, 0],
            padding_value: 0.0,
            input,
            output,
        })
    };
    let read = |graph: &Graph, change: &dyn Fn(&mut GraphLimits)| {
        let mut limits = GraphLimits::default();
        change(&mut limits);
        let file = write(graph, &WriteOptions::default()).unwrap();
        Blob::from_bytes_with(file, &ReadOptions { limits, constants: None }).map(drop)
    };
    let rows = GraphLimits::default().amplification.free_bytes as usize / 4096;
    read(&pad(rows - 1), &|_| ()).unwrap();
    let error = read(&pad(rows), &|_| ()).unwrap_err().to_string();
    assert!(error.contains("the memory for tensors"), "{error}");
    read(&pad(rows), &|limits| limits.amplification.free_bytes *= 2).unwrap();
    // Larger inputs allow more.
    let graph = pad(1000);
    let mut limits = GraphLimits::default();
    limits.amplification.free_bytes = 4096 * 1001;
    graph.check_demand(&[&[1, 1024]], &limits).unwrap();
    assert!(graph.check_demand(&[&[2, 1024]], &limits).is_err());
    limits.amplification.inputs = 8192;
    limits.amplification.bytes_per_byte = 4096;
    graph.check_demand(&[&[2, 1024]], &limits).unwrap();
    // Broadcast products of small matrices.
    let mut b = Builder::new(0);
    let (left, right) = (b.input(&[100, 1, 400, 400]), b.input(&[1, 100, 400, 400]));
    let output = b.output(&[100, 100, 400, 400]);
    b.node(NodeOp::BatchMatrixMultiply { inputs: [left, right], output });
    let only_work = |limits: &mut GraphLimits| limits.amplification.free_bytes = u64::MAX;
    let error = read(&b.graph, &only_work).unwrap_err().to_string();
    assert!(error.contains("the work of a run"), "{error}");
    read(&b.graph, &|limits| limits.amplification = Amplification::UNBOUNDED).unwrap();
}

#[test]
fn names_without_inputs_or_nodes() {
    let mut graph = fully_connected(0, false, true);
    graph.origin.input_names = vec!["a".into(), "b".into()];
    refused(&graph, "2 names for 1 inputs");
    graph.origin.input_names.clear();
    graph.origin.node_names = vec![(2, "b".into()), (1, "a".into())];
    refused(&graph, "not in the order");
}
