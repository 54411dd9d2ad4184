//! Written graphs read back equal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::BTreeSet;

use bytes::Bytes;
use common::Builder;
use sha2::{Digest, Sha256};
use xnn_format::{
    ALIGNMENT, Blob, Compat, Datatype, ErrorKind, Graph, GraphLimits, Header, NodeOp, Origin,
    PADDING, Quantization, Value, WriteOptions, write,
};

const SEEDS: u64 = 40;

fn to_bytes(graph: &Graph) -> Vec<u8> {
    write(graph, &WriteOptions::default()).unwrap_or_else(|error| panic!("{error}: {graph:?}"))
}

fn round_trip(graph: &Graph) -> Blob {
    let bytes = to_bytes(graph);
    assert_eq!(bytes, to_bytes(graph), "the same graph gives the same bytes");
    let blob = Blob::from_bytes(bytes).unwrap_or_else(|error| panic!("{error}: {graph:?}"));
    assert_eq!(**blob.graph(), *graph);
    blob
}

#[test]
fn every_node() {
    let mut kinds = BTreeSet::new();
    for graph in (0..SEEDS).flat_map(common::every_node) {
        round_trip(&graph);
        kinds.extend(graph.nodes.iter().map(|node| node.op.kind()));
    }
    // 26 functions of one operand, 18 of two, and 25 others.
    assert_eq!(kinds.len(), 69, "{kinds:?}");
}

/// Existing files must stay readable, so a change of the bytes must be deliberate.
#[test]
fn the_bytes_of_a_small_graph() {
    let mut graph = common::one_to_one(0, &[2, 3], &[2, 3], |input, output| NodeOp::Binary {
        op: xnn_format::BinaryOp::Add,
        inputs: [input, xnn_format::ValueId(2)],
        output,
    });
    let slopes: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let constant = Value::new(Datatype::F32, Quantization::None, &[3]);
    graph.push_value(constant.with_data(slopes.into()));
    graph.origin.producer = "test".into();
    let digest = Sha256::digest(to_bytes(&graph));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "0672688b87f0dba72c869612ea15762a60ec5350e85b6e889298f3e89adb3f8e");
}

#[test]
fn shapes_are_inferred() {
    for graph in (0..SEEDS).flat_map(common::every_node) {
        let inputs: Vec<&[usize]> =
            graph.inputs.iter().map(|id| graph.value(*id).unwrap().dims.as_slice()).collect();
        let dims: Vec<_> = graph.values.iter().map(|value| value.dims.clone()).collect();
        assert_eq!(graph.shapes(&inputs, &GraphLimits::default()).unwrap(), dims, "{graph:?}");
    }
}

#[test]
fn bits_of_floats_are_preserved() {
    let mut graph = common::every_node(0).swap_remove(3);
    graph.nodes[0].output_range =
        Some(xnn_format::OutputRange { min: -0.0, max: f32::from_bits(1) });
    let range = round_trip(&graph).graph().nodes[0].output_range.unwrap();
    assert_eq!(range.min.to_bits(), (-0.0f32).to_bits());
    assert_eq!(range.max.to_bits(), 1);
}

#[test]
fn every_datatype_and_quantization() {
    let mut b = Builder::new(1);
    for datatype in [Datatype::F32, Datatype::F16, Datatype::Bf16, Datatype::Int32] {
        b.constant(datatype, Quantization::None, &[3, 5]);
        b.constant(datatype, Quantization::None, &[]);
    }
    for (datatype, zero_point) in [
        (Datatype::QInt8, -128),
        (Datatype::QInt8, 127),
        (Datatype::QUint8, 255),
        (Datatype::QInt32, 0),
    ] {
        b.constant(datatype, Quantization::PerTensor { scale: 1e-30, zero_point }, &[2, 2, 2]);
    }
    for datatype in [Datatype::QcInt8, Datatype::QcInt32, Datatype::QcInt4] {
        for (channel_dim, count) in [(0, 3), (1, 5)] {
            let scales = b.scales(count);
            b.constant(datatype, Quantization::PerChannel { scales, channel_dim }, &[3, 5]);
        }
    }
    let scales = b.scales(6);
    let blocks = Quantization::Blockwise { scales, channel_dim: 0, block_size: 64 };
    b.constant(Datatype::QbInt4, blocks, &[3, 128]);
    let blob = round_trip(&b.graph);
    assert_eq!(blob.info().constant_values, b.graph.values.len());
}

#[test]
fn values_without_nodes_and_empty_graphs() {
    round_trip(&Graph::default());
    let mut graph = Graph::default();
    graph.push_value(Value::new(Datatype::F32, Quantization::None, &[]));
    assert_eq!(round_trip(&graph).info().constants.end, round_trip(&graph).info().file_size);
}

#[test]
fn constants_are_aligned_padded_and_stored_once() {
    let mut b = Builder::new(2);
    let first = b.weights(&[3]);
    b.weights(&[17]);
    let copy = b.graph.value(first).unwrap().clone();
    b.graph.push_value(copy);
    let bytes = to_bytes(&b.graph);
    let header = Header::from_bytes(&bytes).unwrap();
    let blob = Blob::from_bytes(bytes.clone()).unwrap();
    let info = blob.info();
    assert_eq!((info.constant_values, info.distinct_constants), (3, 2));
    assert_eq!((info.constant_bytes, info.distinct_bytes), (12 + 68 + 12, 12 + 68));
    assert_eq!(header.flatbuffer_offset, 32);
    assert_eq!(header.constants_offset as usize % ALIGNMENT, 0);
    assert_eq!(info.constants.end as usize, bytes.len());
    let end = header.constants_offset as usize + 64 + 68;
    assert!(bytes.len() >= end + PADDING);
    assert!(bytes[end..].iter().all(|&byte| byte == 0));
    let storage = blob.storage().as_ptr_range();
    for value in &blob.graph().values {
        assert!(storage.contains(&value.data.as_ref().unwrap().as_ptr()), "no copy");
    }
}

#[test]
fn small_constants_come_first() {
    let mut b = Builder::new(2);
    for elements in [4096, 3, 5000, 4095] {
        b.weights(&[elements]);
    }
    let blob = round_trip(&b.graph);
    let starts = blob.graph().values.iter().map(|value| value.data.as_ref().unwrap().as_ptr());
    let mut order: Vec<_> = starts.zip([4096, 3, 5000, 4095]).collect();
    order.sort_unstable();
    assert!(order.into_iter().map(|(_, elements)| elements).eq([3, 4095, 4096, 5000]));
}

fn origin() -> Origin {
    Origin {
        producer: "test 1.0".into(),
        source_name: "model.tflite".into(),
        source_sha256: Some(std::array::from_fn(|i| i as u8)),
        signature: "serving_default".into(),
        input_names: vec!["x".into()],
        output_names: vec!["probabilities\u{3b1}".into()],
        node_names: vec![(0, "CONV_2D#0".into()), (9, "ADD#9".into())],
        metadata: vec![
            ("labels".into(), Bytes::from_static(b"cat\ndog")),
            ("empty".into(), Bytes::new()),
            ("M001".into(), Bytes::from_static(&[1; 100])),
        ],
    }
}

#[test]
fn the_trailer_holds_the_origin() {
    let mut graph = common::convolution(3, true);
    let bare = to_bytes(&graph);
    graph.origin = origin();
    let bytes = to_bytes(&graph);
    assert_eq!(bytes[..bare.len()], bare, "nothing before the trailer changes");
    let blob = round_trip(&graph);
    assert_eq!(blob.info().trailer_size as usize, bytes.len() - bare.len());
    graph.nodes[0].debug_handle = Some(9);
    assert_eq!(round_trip(&graph).graph().node_name(&graph.nodes[0]), Some("ADD#9"));
}

#[test]
fn trailing_bytes_in_an_unknown_format_are_counted() {
    let mut graph = common::convolution(3, true);
    for origin in [Origin::default(), origin()] {
        graph.origin = origin;
        let mut bytes = to_bytes(&graph);
        bytes.extend([0; 64]);
        assert_eq!(Blob::from_bytes(bytes.clone()).unwrap().info().unknown_size, 0);
        bytes.extend(b"notes");
        // Some of the zeros may be the trailer's padding.
        let size = Blob::from_bytes(bytes).unwrap().info().unknown_size;
        assert!((5..=69).contains(&size), "{size}");
    }
}

#[test]
fn truncated_trailers_are_refused() {
    let mut graph = common::convolution(3, true);
    let without = to_bytes(&graph).len();
    graph.origin = origin();
    let bytes = to_bytes(&graph);
    for end in without..bytes.len() {
        let result = Blob::from_bytes(bytes[..end].to_vec());
        if end < without + 4 {
            // The magic is incomplete, so there is no trailer.
            assert_eq!(result.unwrap().graph().origin, Origin::default());
        } else {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("the trailer is damaged"), "{end}: {error}");
        }
    }
}

#[test]
fn executorch_compatibility_refuses_other_nodes() {
    let mut known = BTreeSet::new();
    for graph in common::every_node(5) {
        match write(&graph, &WriteOptions::new(Compat::Executorch)) {
            Ok(bytes) => {
                assert_eq!(**Blob::from_bytes(bytes).unwrap().graph(), graph);
                known.extend(graph.nodes.iter().map(|node| node.op.kind()));
            }
            Err(error) => {
                let ErrorKind::Incompatible(reasons) = error.kind() else { panic!("{error}") };
                assert!(!reasons.is_empty());
            }
        }
    }
    let expected = "Abs Add AvgPooling2d BatchMatrixMultiply Ceiling Clamp Concatenate Conv2d \
        Convert DepthwiseConv2d Div ELU Floor FullyConnected GlobalAvgPooling2d Hardswish LeakyReLU \
        MaxPooling2d Maximum Minimum Multiply Negate PReLU Sigmoid Softmax Square SquareRoot \
        StaticConstantPad StaticResizeBilinear2D StaticReshape StaticSlice StaticTranspose Subtract";
    let expected: BTreeSet<&str> = expected.split_whitespace().collect();
    assert_eq!(known, expected);
}

#[test]
fn the_list_of_reasons_is_complete() {
    let mut b = Builder::new(6);
    let (x, y) = (b.input(&[4, 4]), b.output(&[4, 4]));
    let middle = b.inside(Datatype::F32, &[4, 4]);
    let unary = |op, input, output| NodeOp::Unary { op, input, output };
    b.node(unary(xnn_format::UnaryOp::Abs, x, middle));
    b.node(unary(xnn_format::UnaryOp::Exp, middle, y));
    b.constant(Datatype::Bf16, Quantization::None, &[2]);
    let extension = b.output(&[4, 4]);
    b.node(unary(xnn_format::UnaryOp::Sign, middle, extension));
    let error = write(&b.graph, &WriteOptions::new(Compat::Executorch)).unwrap_err();
    let ErrorKind::Incompatible(reasons) = error.kind() else { panic!("{error}") };
    assert_eq!(reasons, &["node 1 (Exp)", "node 2 (Sign)", "value 3 (bf16)"]);
    assert_eq!(round_trip(&b.graph).info().extension_nodes, [2]);
}

#[test]
fn reasons_name_the_operators_and_tensors_of_the_model() {
    let mut b = Builder::new(7);
    let (x, y) = (b.input(&[4, 4]), b.output(&[4, 4]));
    let [first, second] = [(); 2].map(|()| b.inside(Datatype::F32, &[4, 4]));
    let unary = |op, input, output| NodeOp::Unary { op, input, output };
    // Two nodes of the same kind come from one operator.
    b.node(unary(xnn_format::UnaryOp::Exp, x, first));
    b.node(unary(xnn_format::UnaryOp::Exp, first, second));
    b.node(unary(xnn_format::UnaryOp::Convert, second, y));
    for node in &mut b.graph.nodes {
        node.debug_handle = Some(3);
    }
    b.graph.values[second.index()].datatype = Datatype::Bf16;
    b.graph.values[y.index()].datatype = Datatype::Bf16;
    b.graph.origin.node_names = vec![(3, "SOFTMAX#3".into())];
    b.graph.origin.input_names = vec!["x".into()];
    b.graph.origin.output_names = vec!["y".into()];
    let error = write(&b.graph, &WriteOptions::new(Compat::Executorch)).unwrap_err();
    let ErrorKind::Incompatible(reasons) = error.kind() else { panic!("{error}") };
    let expected = ["Exp of SOFTMAX#3", "output \"y\" (bf16)", "a value of SOFTMAX#3 (bf16)"];
    assert_eq!(reasons, &expected);
}

#[test]
fn executorch_has_no_fp16_filters_of_fp32_layers() {
    let layer = |input: Datatype, filter: Datatype| {
        let mut b = Builder::new(8);
        let [x, y] = [b.input(&[2, 4]), b.output(&[2, 3])];
        let filter = b.constant(filter, Quantization::None, &[3, 4]);
        b.node(NodeOp::FullyConnected { input: x, filter, bias: None, output: y, sparse: false });
        b.graph.values[x.index()].datatype = input;
        write(&b.graph, &WriteOptions::new(Compat::Executorch)).map_err(|error| error.to_string())
    };
    layer(Datatype::F32, Datatype::F32).unwrap();
    layer(Datatype::F16, Datatype::F16).unwrap();
    let error = layer(Datatype::F32, Datatype::F16).unwrap_err();
    assert!(error.ends_with(": value 2 (fp16)"), "{error}");
}

#[test]
fn executorch_has_no_scalar_outputs() {
    let reshape = |dims: &[usize]| {
        common::one_to_one(0, &[1], dims, |input, output| NodeOp::StaticReshape {
            input,
            output,
            new_shape: dims.to_vec(),
        })
    };
    let write = |graph: &Graph| write(graph, &WriteOptions::new(Compat::Executorch));
    write(&reshape(&[1])).unwrap();
    let error = write(&reshape(&[])).unwrap_err();
    assert!(error.to_string().ends_with(": value 1 (an output of rank 0)"), "{error}");
}
