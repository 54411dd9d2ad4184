//! Values and their use by nodes.

use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{
    Datatype, Graph, NodeOp, OutputRange, Quantization, UnaryOp, Value, ValueId, flags,
};

use super::{abs, refused, with_value};
use crate::common::{Builder, every_node, fully_connected, one_to_one};

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
    refused(&value(&[1 << 32]), "does not fit in 32 bits");
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
    refused(&per_channel(3, 2), "the channel dimension 2 is out of range for [3, 5]");
    refused(&per_channel(3, usize::MAX), "is out of range for [3, 5]");
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
    refused(&blockwise(&[3, 64], 12, 16, 0), "the block size 16 is not a multiple of 32");
    refused(&blockwise(&[3, 64], 6, 0, 0), "the block size 0");
    refused(&blockwise(&[3, 64], 3, 96, 0), "that divides rows of 64");
    refused(&blockwise(&[3, 64], 6, 32, 1), "channel dimension of blocks is 1, expected 0");
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
    refused(
        &with_value(Datatype::F32, per_tensor.clone(), &[1], 4),
        "fp32 cannot have the quantization",
    );
    refused(
        &with_value(Datatype::QcInt8, per_tensor, &[1], 1),
        "qcint8 cannot have the quantization",
    );
    refused(&with_value(Datatype::QInt8, Quantization::None, &[1], 1), "quantization \"none\"");
    for datatype in [Datatype::QpInt8, Datatype::PackedF32] {
        let bytes = datatype.bits() / 8;
        refused(&with_value(datatype, Quantization::None, &[1], bytes), "must not be stored");
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
    refused(&graph(1, &[1, 32]), "rows of [1, 32] differ from those of the inferred shape [4, 8]");
    refused(&graph(3, &[1, 1, 32]), "the inferred shape [4, 8]");
    let constant =
        with_value(Datatype::QdInt8, Quantization::Dynamic { num_nonbatch_dims: 1 }, &[1], 1);
    refused(&constant, "constants cannot be quantized at run time");
}

/// Flags that nodes of each kind use, and flags that are refused. XNNPACK ignores all others.
fn known_flags(op: &NodeOp) -> (u32, u32) {
    match op {
        NodeOp::Conv2d(_) | NodeOp::DepthwiseConv2d(_) => (0x4, !0x24),
        NodeOp::StaticResizeBilinear2d { .. } => (0xC, !0x2C),
        NodeOp::FullyConnected { sparse: true, .. } => (0x5, 0x2),
        NodeOp::FullyConnected { sparse: false, .. } => (0x5, 0),
        NodeOp::BatchMatrixMultiply { .. } => (0x1, 0x2),
        NodeOp::AveragePooling2d(_) | NodeOp::MaxPooling2d(_) => (0x4, 0),
        NodeOp::ArgMaxPooling2d { .. } => (0, 0x4),
        NodeOp::GlobalAveragePooling2d { .. } | NodeOp::StaticReduce { .. } => (0x40, 0),
        _ => (0, 0),
    }
}

#[test]
fn flags_that_are_ignored_and_flags_that_are_refused() {
    for graph in every_node(0) {
        for (index, bit) in
            (0..graph.nodes.len()).flat_map(|index| (0..32).map(move |bit| (index, 1 << bit)))
        {
            let mut graph = graph.clone();
            let node = &mut graph.nodes[index];
            let (meant, refused_flags) = known_flags(&node.op);
            node.flags |= bit;
            if bit & refused_flags != 0 {
                let kind = node.op.kind();
                refused(
                    &graph,
                    &format!("node {index} ({kind}): the flags {bit:#x} are not supported"),
                );
            } else if bit & meant == 0 {
                graph.check().unwrap_or_else(|error| panic!("{bit:#x}: {error}"));
            }
        }
    }
}

/// The flag would make XNNPACK read fp16 filters as fp32.
#[test]
fn flags_for_fp16_filters() {
    for (datatype, is_refused) in [(Datatype::F32, false), (Datatype::F16, true)] {
        let mut b = Builder::new(0);
        let (input, output) = (b.input(&[4, 8]), b.output(&[4, 2]));
        let filter = b.constant(datatype, Quantization::None, &[2, 8]);
        b.node(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false });
        b.graph.nodes[0].flags = flags::FP32_STATIC_WEIGHTS;
        match is_refused {
            true => refused(&b.graph, "the flags 0x8 are not supported"),
            false => b.graph.check().unwrap(),
        }
    }
}

#[test]
fn mutually_exclusive_flags() {
    let mut graph = one_to_one(0, &[1, 2, 2, 1], &[1, 3, 3, 1], |input, output| {
        NodeOp::StaticResizeBilinear2d { new_height: 3, new_width: 3, input, output }
    });
    graph.nodes[0].flags = flags::ALIGN_CORNERS;
    graph.check().unwrap();
    graph.nodes[0].flags |= flags::TENSORFLOW_LEGACY_MODE;
    refused(&graph, "mutually exclusive");
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
