//! Parameters of nodes, and the shapes of their operands.

use bytes::Bytes;
use xnn_format::{
    Amplification, Blob, Conv2d, Datatype, Graph, GraphLimits, NodeOp, Padding2d, Pooling2d,
    Quantization, ReadOptions, Size2d, Value, ValueId, WriteOptions, flags, write,
};

use super::{abs, refused};
use crate::common::{Builder, conv2d, convolution, every_node, fully_connected, one_to_one};

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
                refused(&graph, "beyond the reach");
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.kernel.height = 4000;
                    conv.padding = Padding2d { top: 3000, ..Padding2d::default() };
                });
                refused(&graph, "the filter is");
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

/// A window over the whole of a small image, on every pixel of it.
fn wide_window(
    side: usize,
    kernel: u32,
    op: impl FnOnce(Pooling2d, &mut Builder) -> NodeOp,
) -> Graph {
    let mut b = Builder::new(0);
    let (input, output) = (b.input(&[1, side, side, 1]), b.output(&[1, side, side, 1]));
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: kernel, width: kernel },
        stride: Size2d::ONE,
        dilation: Size2d::ONE,
        input,
        output,
    };
    let op = op(window, &mut b);
    b.node(op).flags = flags::TENSORFLOW_SAME_PADDING;
    b.graph
}

/// 900 weights at each pixel.
fn wide_filter(
    op: impl FnOnce(Conv2d) -> NodeOp,
) -> impl FnOnce(Pooling2d, &mut Builder) -> NodeOp {
    |window, b| {
        let filter = b.weights(&[1, 30, 30, 1]);
        let conv = conv2d(1, 1, 1, [window.input, filter, window.output], None);
        let Pooling2d { kernel, stride, dilation, padding, .. } = window;
        op(Conv2d { kernel, stride, dilation, padding, ..conv })
    }
}

#[test]
fn pointers_of_windows_have_the_limit_of_values() {
    let mut larger = wide_window(10, 30, wide_filter(NodeOp::ConvTranspose2d));
    larger.nodes[0].flags = 0;
    let resized = one_to_one(0, &[1, 2, 3, 1], &[1, 150, 150, 1], |input, output| {
        NodeOp::StaticResizeBilinear2d { new_height: 150, new_width: 150, input, output }
    });
    let mut b = Builder::new(0);
    let (input, output) = (b.input(&[2, 20, 25, 1]), b.output(&[2, 20, 25, 1]));
    let small = [2, 5, 5, 1];
    let (maximum, index) = (b.inside(Datatype::F32, &small), b.inside(Datatype::Int32, &small));
    let kernel = Size2d { height: 4, width: 5 };
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel,
        stride: kernel,
        dilation: Size2d::ONE,
        input,
        output: maximum,
    };
    let back = Pooling2d { input: maximum, output, ..window.clone() };
    b.node(NodeOp::ArgMaxPooling2d { window, index });
    b.node(NodeOp::Unpooling2d { window: back, index });

    let cases = [
        (wide_window(10, 30, |window, _| NodeOp::AveragePooling2d(window)), 900 * 10 * 10),
        (wide_window(10, 30, |window, _| NodeOp::MaxPooling2d(window)), 900 * 10 * 10),
        (wide_window(10, 30, wide_filter(NodeOp::Conv2d)), 900 * 10 * 10),
        (wide_window(10, 30, wide_filter(NodeOp::DepthwiseConv2d)), 900 * 10 * 10),
        (larger, 900 * 39 * 39),
        (resized, 4 * 150 * 150),
        (b.graph, 20 * 2 * 5 * 5),
    ];
    for (graph, pointers) in cases {
        let mut limits = GraphLimits::default();
        limits.max_value_bytes = 8 * pointers;
        graph.check_with(&limits).unwrap();
        limits.max_value_bytes -= 1;
        let error = graph.check_with(&limits).unwrap_err().to_string();
        let expected = format!("pointers into the image is {}, above the limit", 8 * pointers);
        assert!(error.contains(&expected), "{error}");
    }
    let huge = wide_window(10, 1 << 23, |window, _| NodeOp::MaxPooling2d(window));
    refused(&huge, "pointers into the image is");
}

/// A dilated window of 3 covers 7 pixels, and 6 of padding leave it one of the image.
#[test]
fn paddings_that_no_window_leaves() {
    type Put = fn(Pooling2d, &mut Builder) -> NodeOp;
    let convolution: Put = |window, b| {
        let filter = b.weights(&[1, 3, 3, 1]);
        let conv = conv2d(1, 1, 1, [window.input, filter, window.output], None);
        let Pooling2d { kernel, stride, dilation, padding, .. } = window;
        NodeOp::Conv2d(Conv2d { kernel, stride, dilation, padding, ..conv })
    };
    let maximum: Put = |window, _| NodeOp::MaxPooling2d(window);
    for op in [convolution, maximum] {
        for side in 0..4 {
            let graph = |pixels: u32| {
                let mut b = Builder::new(0);
                let sides: [u32; 4] = std::array::from_fn(|at| if at == side { pixels } else { 0 });
                let [top, right, bottom, left] = sides;
                let result = |before, after| 9 + (before + after) as usize - 6;
                let input = b.input(&[1, 9, 9, 1]);
                let output = b.output(&[1, result(top, bottom), result(left, right), 1]);
                let window = Pooling2d {
                    padding: Padding2d { top, right, bottom, left },
                    kernel: Size2d { height: 3, width: 3 },
                    stride: Size2d::ONE,
                    dilation: Size2d { height: 3, width: 3 },
                    input,
                    output,
                };
                let op = op(window, &mut b);
                b.node(op);
                b.graph
            };
            graph(9).check().unwrap();
            refused(&graph(10), "is beyond the reach of a window of 3 x 3");
            refused(&graph(6_619_138), "is beyond the reach");
        }
    }
}

/// A few hundred bytes that ask for much: as much as is free, and not more.
#[test]
fn small_files_ask_for_little() {
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
    // Larger inputs may ask for more.
    let graph = pad(1000);
    let mut limits = GraphLimits::default();
    limits.amplification.free_bytes = 4096 * 1001;
    graph.check_demand(&[&[1, 1024]], &limits).unwrap();
    assert!(graph.check_demand(&[&[2, 1024]], &limits).is_err());
    limits.amplification.inputs = 8192;
    limits.amplification.bytes_per_byte = 4096;
    graph.check_demand(&[&[2, 1024]], &limits).unwrap();
    // Products of small matrices that broadcast.
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
fn names_that_belong_to_nothing() {
    let mut graph = fully_connected(0, false, true);
    graph.origin.input_names = vec!["a".into(), "b".into()];
    refused(&graph, "2 names for 1 inputs");
    graph.origin.input_names.clear();
    graph.origin.node_names = vec![(2, "b".into()), (1, "a".into())];
    refused(&graph, "not in the order");
}
