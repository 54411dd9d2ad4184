//! Packed weights from a damaged file: without VNNI those of 8 bits are followed by places of inputs, and without AVX512F and SME sparse
//! ones of 32 bits, which must not make microkernels read elsewhere.

use std::sync::Arc;

use crate::candidates::{X, Y, copied, packed, run_with_candidates};
use crate::fixture::{any_f32, conv, f32};
use xnnpack::{
    Conv2d, Datatype, Flags, FullyConnected, OutputRange, PackedNode, Quantization, Role,
    StaticData, Subgraph, TensorSpec, Unary, UnaryOp, isa_levels, processor,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Int8,
    Uint8,
    Dynamic,
}

/// Edge of the kernel, and of the image, so that there is one output.
const EDGE: usize = 3;

/// A convolution of one position with weights of this type.
fn layer(of: Type, inputs: usize, outputs: usize) -> Arc<Subgraph> {
    let per_tensor = |zero_point, scale| Quantization::PerTensor { zero_point, scale };
    let image_dims = [1, EDGE, EDGE, inputs];
    let mut graph = Subgraph::new().unwrap();
    let datatype = match of {
        Type::Int8 => Datatype::Qint8,
        Type::Uint8 => Datatype::Quint8,
        Type::Dynamic => Datatype::F32,
    };
    let mut image = TensorSpec::new(datatype, &image_dims).role(Role::Input(X));
    let mut result = TensorSpec::inferred(datatype).role(Role::Output(Y));
    if of != Type::Dynamic {
        image = image.quantized(per_tensor(3, 0.1));
        result = result.quantized(per_tensor(5, 9.0));
    }
    let mut input = graph.define_tensor(image).unwrap();
    if of == Type::Dynamic {
        let quantized = TensorSpec::inferred(Datatype::Qdint8)
            .quantized(Quantization::Dynamic { nonbatch_dims: 3 });
        let output = graph.define_tensor(quantized).unwrap();
        graph.define(Unary { op: UnaryOp::Convert, input, output }).unwrap();
        input = output;
    }
    let (datatype, quantization) = match of {
        Type::Uint8 => (Datatype::Quint8, per_tensor(7, 0.1)),
        Type::Int8 | Type::Dynamic => {
            let scales = (0..outputs).map(|channel| 0.01 + channel as f32 * 1e-4).collect();
            (Datatype::Qcint8, Quantization::PerChannel { zero_point: 0, axis: 0, scales })
        }
    };
    let dims = [outputs, EDGE, EDGE, inputs];
    // Some steps are exact with one pairing, some with none. Inputs of few outputs are not copied, unless a weight is -128.
    let values = if outputs < 8 { 127 } else { 251 };
    let byte = |i: usize| (i * 89 % values) as u8;
    let bytes: Vec<u8> = (0..dims.iter().product()).map(byte).collect();
    let filter = TensorSpec::new(datatype, &dims)
        .quantized(quantization)
        .role(Role::Static(StaticData::of(&bytes)));
    let filter = graph.define_tensor(filter).unwrap();
    let output = graph.define_tensor(result).unwrap();
    let node = Conv2d {
        kernel: [EDGE as u32; 2],
        group_input_channels: inputs,
        group_output_channels: outputs,
        ..conv(input, filter, None, output)
    };
    graph.define(node).unwrap();
    Arc::new(graph)
}

/// Places, from the end, of the 16-bit numbers in packed weights that are refused if they are `u16::MAX`. Those that are not change
/// results at most.
fn refused(graph: &impl Fn() -> Arc<Subgraph>, region: usize) -> Vec<usize> {
    let (nodes, expected) = packed(&graph());
    let right: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
    let (used, result) = run_with_candidates(&graph(), &right);
    assert_eq!((used.len(), result), (1, expected.clone()));
    let is_refused = |from_end: &usize| {
        let damage = |bytes: &mut Vec<u8>| {
            let at = bytes.len() - from_end;
            bytes[at..at + 2].fill(u8::MAX);
        };
        let damaged: Vec<PackedNode> = nodes.iter().map(|node| copied(node, damage)).collect();
        let (used, result) = run_with_candidates(&graph(), &damaged);
        // Weights are packed again, or taken as they are.
        assert!(!used.is_empty() || result == expected, "{from_end} bytes from the end");
        used.is_empty()
    };
    (1..=region / 2).rev().map(|word| 2 * word).filter(is_refused).collect()
}

/// A fully connected layer of a few rows, with weights of which two thirds are 0.
fn sparse_layer(inputs: usize, outputs: usize) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[5, inputs]).role(Role::Input(X))).unwrap();
    let weight = |i: usize| if i.is_multiple_of(3) { (i % 17) as f32 + 0.5 } else { 0.0 };
    let weights: Vec<f32> = (0..outputs * inputs).map(weight).collect();
    let filter = f32(&[outputs, inputs]).role(Role::Static(StaticData::of(&weights)));
    let filter = graph.define_tensor(filter).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let output_range = OutputRange::default();
    let flags = Flags::SPARSE_WEIGHTS;
    let node = FullyConnected { output_range, input, filter, bias: None, output, flags };
    graph.define(node).unwrap();
    Arc::new(graph)
}

#[test]
fn places_of_weights_that_do_not_exist_are_refused() {
    // More than is packed only for comparison. Places behind the last one are not read.
    for (inputs, outputs) in [(64, 400), (63, 401)] {
        let behind = 2 * (1 + inputs / 2 * 2 + 1);
        let found = refused(&|| sparse_layer(inputs, outputs), behind);
        if xnnpack::skips_zero_weights([64, inputs, outputs]) {
            let last = (outputs - 1) * inputs;
            let count = (last..last + inputs).filter(|i| i.is_multiple_of(3)).count();
            assert_eq!(found.len(), 1 + count, "{found:?}");
        }
    }
}

#[test]
fn places_of_inputs_that_do_not_exist_are_refused() {
    let is_x86 = cfg!(target_arch = "x86_64") && isa_levels().next().is_some();
    let sorts = is_x86 && !processor().contains("avx512vnni");
    let block = if processor().contains("avx512") { 2048 } else { 4096 };
    for of in [Type::Int8, Type::Uint8, Type::Dynamic] {
        // More than is packed only for comparison. Numbers of steps: WIDE and SIGNS; whether inputs are in several orders, which is
        // possible for few of them, and whether they are not copied; and places, behind four numbers of steps in a position.
        let few = refused(&|| layer(of, 64, 128), 512);
        let steps = EDGE * EDGE * 64 / 4;
        let many = refused(&|| layer(of, 256, 32), 2048);
        refused(&|| layer(of, 64, 4), 512);
        if !sorts {
            continue;
        }
        assert_eq!(few.len(), 3 + steps, "{of:?}");
        let distances: Vec<usize> = few.windows(2).take(3).map(|two| two[0] - two[1]).collect();
        assert_eq!(distances, [2, 4, 10], "{of:?}");
        assert_eq!(few[3] - few[few.len() - 1], 2 * (steps - 1), "{of:?}");
        let depth = EDGE * EDGE * 256;
        let blocks = depth.div_ceil(block);
        assert_eq!(many.len(), 4 * blocks + depth / 4, "{of:?}");
        assert_eq!(many[0] - many[many.len() - 1], 2 * (many.len() - 1) + 8 * blocks, "{of:?}");
    }
}
