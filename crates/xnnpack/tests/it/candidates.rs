//! Candidates of packed weights: correct ones are used, and wrong ones are harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::{any_f32, conv, deconv, depthwise, f32};
use xnnpack::{
    AlignedBuffer, Binding, Conv2d, Datatype, Deconv2d, DepthwiseConv2d, ExternalId, Flags,
    FullyConnected, OutputRange, PackedNode, PackedWeights, Quantization, Role, Runtime,
    RuntimeOptions, StaticData, Subgraph, TensorSpec, Unary, UnaryOp, ValueId, WeightsCache,
};

pub const X: ExternalId = ExternalId(0);
pub const Y: ExternalId = ExternalId(1);
/// Indices of the nodes of [`network`].
const CONV_3X3: usize = 0;
const GROUPED: usize = 1;
const DEPTHWISE: usize = 2;
const CONV_1X1: usize = 3;
const LARGE_CONV_1X1: usize = 4;
const LARGE_DEPTHWISE: usize = 5;
const DECONV: usize = 6;
const LARGE_DENSE: usize = 7;
const DENSE: usize = 8;

/// Pseudo-random weights.
fn weights(count: usize, factor: f32) -> Vec<f32> {
    (0..count).map(|i| (((i * 37 + 11) % 101) as f32 - 50.0) * factor).collect()
}

fn constant(graph: &mut Subgraph, dims: &[usize], factor: f32) -> ValueId {
    let data = StaticData::of(&weights(dims.iter().product(), factor));
    graph.define_tensor(f32(dims).role(Role::Static(data))).unwrap()
}

/// A convolution with this kernel size and number of channels per group, and weights from
/// [`weights`].
fn convolve(
    graph: &mut Subgraph,
    input: ValueId,
    [kernel, groups, from, to]: [usize; 4],
    factor: f32,
) -> ValueId {
    let filter = constant(graph, &[groups * to, kernel, kernel, from], factor);
    let bias = Some(constant(graph, &[groups * to], factor));
    let output = graph.define_tensor(any_f32()).unwrap();
    let node = Conv2d {
        kernel: [kernel as u32; 2],
        groups: groups as u32,
        group_input_channels: from,
        group_output_channels: to,
        ..conv(input, filter, bias, output)
    };
    graph.define(node).unwrap();
    output
}

/// A depthwise convolution with as many output as input channels.
fn convolve_depthwise(
    graph: &mut Subgraph,
    input: ValueId,
    channels: usize,
    factor: f32,
) -> ValueId {
    let filter = constant(graph, &[1, 3, 3, channels], factor);
    let bias = Some(constant(graph, &[channels], factor));
    let output = graph.define_tensor(any_f32()).unwrap();
    let node = depthwise(channels, input, filter, bias, output);
    graph.define(DepthwiseConv2d { flags: Flags::SAME_PADDING, ..node }).unwrap();
    output
}

/// A network with every way of packing dense fp32 weights, some of them twice.
fn network(factor: f32) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let mut value = graph.define_tensor(f32(&[1, 8, 8, 4]).role(Role::Input(X))).unwrap();
    value = convolve(&mut graph, value, [3, 1, 4, 16], factor);
    value = convolve(&mut graph, value, [3, 16, 1, 1], factor);
    value = convolve_depthwise(&mut graph, value, 16, factor);
    value = convolve(&mut graph, value, [1, 1, 16, 24], factor);
    value = convolve(&mut graph, value, [1, 1, 24, 40], factor);
    value = convolve_depthwise(&mut graph, value, 40, factor);
    let filter = constant(&mut graph, &[40, 3, 3, 40], factor);
    let output = graph.define_tensor(any_f32()).unwrap();
    let node = Deconv2d {
        kernel: [3, 3],
        group_input_channels: 40,
        group_output_channels: 40,
        ..deconv(value, filter, None, output)
    };
    value = node.output;
    graph.define(node).unwrap();
    for (from, to, role) in [(40, 33, Role::Internal), (33, 16, Role::Output(Y))] {
        let output = graph.define_tensor(any_f32().role(role)).unwrap();
        let filter = constant(&mut graph, &[to, from], factor);
        graph.define(dense(value, filter, output)).unwrap();
        value = output;
    }
    Arc::new(graph)
}

fn dense(input: ValueId, filter: ValueId, output: ValueId) -> FullyConnected {
    let (output_range, flags) = (OutputRange::default(), Flags::NONE);
    FullyConnected { output_range, input, filter, bias: None, output, flags }
}

/// Returns the bytes of the output for a fixed input.
fn run(graph: &Arc<Subgraph>, cache: &WeightsCache) -> Vec<u8> {
    let options =
        RuntimeOptions { weights_cache: Some(cache.clone()), ..RuntimeOptions::default() };
    let mut runtime = Runtime::new(Arc::clone(graph), &options).unwrap();
    runtime.reshape().unwrap();
    let input = AlignedBuffer::of(&weights(runtime.external(X).unwrap().bytes / 4, 0.01));
    let mut output = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    output.elements::<u8>().unwrap().to_vec()
}

/// The packed weights of a graph, and its result.
pub fn packed(graph: &Arc<Subgraph>) -> (Vec<PackedNode>, Vec<u8>) {
    let cache = WeightsCache::in_process();
    let result = run(graph, &cache);
    (cache.packed(graph), result)
}

/// A copy, as if read from a file.
pub fn copied(node: &PackedNode, change: impl FnOnce(&mut Vec<u8>)) -> PackedNode {
    let mut bytes = node.weights.bytes().to_vec();
    change(&mut bytes);
    let weights = PackedWeights::new(AlignedBuffer::copy_of(&bytes).into()).unwrap();
    PackedNode { weights, ..*node }
}

/// The nodes whose candidate weights are used.
fn used(graph: &Arc<Subgraph>, cache: &WeightsCache, candidates: &[PackedNode]) -> Vec<usize> {
    let start = |packed: &PackedNode| packed.weights.bytes().as_ptr();
    let taken =
        |packed: &PackedNode| candidates.iter().any(|candidate| start(candidate) == start(packed));
    cache.packed(graph).iter().filter(|packed| taken(packed)).map(|packed| packed.node).collect()
}

/// The nodes whose candidates are used, and the result.
pub fn run_with_candidates(
    graph: &Arc<Subgraph>,
    candidates: &[PackedNode],
) -> (Vec<usize>, Vec<u8>) {
    let cache = WeightsCache::in_process();
    cache.add_candidates(graph, candidates.iter().cloned());
    let result = run(graph, &cache);
    (used(graph, &cache, candidates), result)
}

const ALL: [usize; 9] = [
    CONV_3X3,
    GROUPED,
    DEPTHWISE,
    CONV_1X1,
    LARGE_CONV_1X1,
    LARGE_DEPTHWISE,
    DECONV,
    LARGE_DENSE,
    DENSE,
];

#[test]
fn correct_candidates_are_used() {
    let (nodes, expected) = packed(&network(0.01));
    assert_eq!(nodes.iter().map(|packed| packed.node).collect::<Vec<_>>(), ALL);
    let candidates: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
    assert_eq!(run_with_candidates(&network(0.01), &candidates), (ALL.to_vec(), expected));
}

#[test]
fn listeners_are_told_of_packed_data() {
    let told = |candidates: Vec<PackedNode>| {
        let count = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&count);
        let cache = WeightsCache::in_process_with(move |_| {
            counting.fetch_add(1, Ordering::Relaxed);
        });
        let graph = network(0.01);
        cache.add_candidates(&graph, candidates);
        run(&graph, &cache);
        let first = count.load(Ordering::Relaxed);
        run(&graph, &cache);
        assert_eq!(count.load(Ordering::Relaxed), first, "weights are packed again");
        first
    };
    assert_eq!(told(Vec::new()), ALL.len());
    // Small weights are packed regardless, for comparison.
    let (nodes, _) = packed(&network(0.01));
    let large = [LARGE_CONV_1X1, LARGE_DEPTHWISE, LARGE_DENSE];
    assert!(told(nodes) <= ALL.len() - large.len());
}

#[test]
fn candidates_of_another_length_are_packed_again() {
    let (nodes, expected) = packed(&network(0.01));
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.truncate(bytes.len() - 64),
        |bytes| bytes.resize(bytes.len() + 64, 0),
        Vec::clear,
    ];
    for index in ALL {
        for change in changes {
            let candidates: Vec<PackedNode> = nodes
                .iter()
                .map(|node| {
                    copied(node, |bytes| {
                        if node.node == index {
                            change(bytes)
                        }
                    })
                })
                .collect();
            let (used, result) = run_with_candidates(&network(0.01), &candidates);
            assert!(used.is_empty(), "{index}: {used:?}");
            assert!(result == expected, "{index}");
        }
    }
}

#[test]
fn candidates_of_another_model_are_detected() {
    let (nodes, _) = packed(&network(0.01));
    let candidates: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
    let (_, expected) = packed(&network(0.02));
    assert_eq!(run_with_candidates(&network(0.02), &candidates), (vec![], expected));
}

/// The smallest of each kind is compared, and those that XNNPACK packs regardless.
#[test]
fn wrong_values_are_detected_where_compared() {
    let (nodes, expected) = packed(&network(0.01));
    for index in ALL {
        let flip = |bytes: &mut Vec<u8>| bytes[3] ^= 0x40;
        let candidates: Vec<PackedNode> = nodes
            .iter()
            .map(|node| {
                copied(node, |bytes| {
                    if node.node == index {
                        flip(bytes)
                    }
                })
            })
            .collect();
        let (used, result) = run_with_candidates(&network(0.01), &candidates);
        let compared = [GROUPED, DEPTHWISE, CONV_1X1, DECONV, DENSE].contains(&index);
        assert_eq!(used, if compared { vec![] } else { ALL.to_vec() }, "{index}");
        assert_eq!(result == expected, compared, "{index}");
    }
}

#[test]
fn candidates_for_missing_nodes_or_other_layouts_are_not_used() {
    let (nodes, expected) = packed(&network(0.01));
    let candidates: Vec<PackedNode> = nodes
        .iter()
        .flat_map(|node| {
            let elsewhere = PackedNode { node: node.node + ALL.len(), ..copied(node, |_| {}) };
            let otherwise = PackedNode { seed: !node.seed, ..copied(node, |_| {}) };
            [elsewhere, otherwise]
        })
        .collect();
    assert_eq!(run_with_candidates(&network(0.01), &candidates), (vec![], expected));
}

#[test]
fn runtimes_of_one_subgraph_share_candidates() {
    let (nodes, expected) = packed(&network(0.01));
    let graph = network(0.01);
    let cache = WeightsCache::in_process();
    cache.add_candidates(&graph, nodes);
    assert_eq!(run(&graph, &cache), expected);
    let first = cache.packed(&graph);
    assert_eq!(run(&graph, &cache), expected);
    let starts = |nodes: &[PackedNode]| -> Vec<*const u8> {
        nodes.iter().map(|packed| packed.weights.bytes().as_ptr()).collect()
    };
    assert_eq!(starts(&cache.packed(&graph)), starts(&first));
}

/// A layer with weights of this datatype and rows quantized at run time.
fn dynamic(datatype: Datatype, outputs: usize) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[2, 64]).role(Role::Input(X))).unwrap();
    let rows = Quantization::Dynamic { nonbatch_dims: 1 };
    let rows = TensorSpec::inferred(Datatype::Qdint8).quantized(rows);
    let rows = graph.define_tensor(rows).unwrap();
    graph.define(Unary { op: UnaryOp::Convert, input, output: rows }).unwrap();
    let zero_point = if datatype == Datatype::Qcint8 { 0 } else { 8 };
    let (quantization, bytes) = if datatype == Datatype::Qbint4 {
        let scales = (0..2 * outputs).map(|block| 0x3c00 + block as u16).collect();
        (Quantization::Blockwise { zero_point, axis: 0, block_size: 32, scales }, 32 * outputs)
    } else {
        let scales = (0..outputs).map(|channel| 0.01 + channel as f32 * 0.001).collect();
        let row = if datatype == Datatype::Qcint8 { 64 } else { 32 };
        (Quantization::PerChannel { zero_point, axis: 0, scales }, row * outputs)
    };
    let bytes: Vec<u8> = (0..bytes).map(|i| (i * 89 % 251) as u8 & 0x77).collect();
    let filter = TensorSpec::new(datatype, &[outputs, 64])
        .quantized(quantization)
        .role(Role::Static(StaticData::of(&bytes)));
    let filter = graph.define_tensor(filter).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(dense(rows, filter, output)).unwrap();
    Arc::new(graph)
}

/// Weights that are too large to be packed for comparison, so that only the size is validated.
#[test]
fn packed_sizes_are_probed_for_every_datatype() {
    let large = |datatype| dynamic(datatype, 2500);
    for datatype in [Datatype::Qcint8, Datatype::Qcint4, Datatype::Qbint4] {
        let (nodes, expected) = packed(&large(datatype));
        let right: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
        assert_eq!(
            run_with_candidates(&large(datatype), &right),
            (vec![1], expected.clone()),
            "{datatype}"
        );
        let short = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 64);
        let short: Vec<PackedNode> = nodes.iter().map(|node| copied(node, short)).collect();
        assert_eq!(run_with_candidates(&large(datatype), &short), (vec![], expected), "{datatype}");
    }
}

/// A depthwise convolution of `channels` channels, with these tensors for input, filter, bias and
/// output.
fn depthwise_of(channels: usize, [input, filter, bias, output]: [TensorSpec; 4]) -> Arc<Subgraph> {
    let shaped =
        |spec: TensorSpec, dims: &[usize]| TensorSpec { dims: Some(dims.to_vec()), ..spec };
    let mut graph = Subgraph::new().unwrap();
    let is_dynamic = input.datatype == Datatype::Qdint8;
    let image = if is_dynamic { any_f32() } else { input.clone() };
    let image = shaped(image, &[1, 4, 4, channels]).role(Role::Input(X));
    let mut image = graph.define_tensor(image).unwrap();
    if is_dynamic {
        let quantized = graph.define_tensor(input).unwrap();
        graph.define(Unary { op: UnaryOp::Convert, input: image, output: quantized }).unwrap();
        image = quantized;
    }
    let mut constant = |spec: TensorSpec, dims: &[usize], below: usize| {
        let count = dims.iter().product::<usize>() * spec.datatype.bits() / 8;
        let bytes: Vec<u8> = (0..count).map(|i| (i * 89 % below) as u8).collect();
        let data = StaticData::of(&bytes);
        graph.define_tensor(shaped(spec, dims).role(Role::Static(data))).unwrap()
    };
    let filter = constant(filter, &[1, 3, 3, channels], 63);
    let bias = Some(constant(bias, &[channels], 1));
    let output = graph.define_tensor(output.role(Role::Output(Y))).unwrap();
    graph.define(depthwise(channels, image, filter, bias, output)).unwrap();
    Arc::new(graph)
}

#[test]
fn depthwise_weights_are_cached_for_every_datatype() {
    const CHANNELS: usize = 8000;
    let per_tensor = |datatype, zero_point, scale| {
        TensorSpec::inferred(datatype).quantized(Quantization::PerTensor { zero_point, scale })
    };
    let per_channel = |datatype, axis| {
        let scales = (0..CHANNELS).map(|channel| 0.01 + channel as f32 * 1e-5).collect();
        let quantization = Quantization::PerChannel { zero_point: 0, axis, scales };
        TensorSpec::inferred(datatype).quantized(quantization)
    };
    let dynamic = TensorSpec::inferred(Datatype::Qdint8)
        .quantized(Quantization::Dynamic { nonbatch_dims: 3 });
    let all = [
        [(); 4].map(|()| any_f32()),
        [
            per_tensor(Datatype::Qint8, 3, 0.1),
            per_tensor(Datatype::Qint8, 0, 0.1),
            per_tensor(Datatype::Qint32, 0, 0.01),
            per_tensor(Datatype::Qint8, -5, 9.0),
        ],
        [
            per_tensor(Datatype::Qint8, 3, 0.1),
            per_channel(Datatype::Qcint8, 3),
            per_channel(Datatype::Qcint32, 0),
            per_tensor(Datatype::Qint8, -5, 9.0),
        ],
        [
            per_tensor(Datatype::Quint8, 3, 0.1),
            per_tensor(Datatype::Quint8, 7, 0.1),
            per_tensor(Datatype::Qint32, 0, 0.01),
            per_tensor(Datatype::Quint8, 5, 9.0),
        ],
        [dynamic, per_channel(Datatype::Qcint8, 3), any_f32(), any_f32()],
    ];
    for types in all {
        let large = || depthwise_of(CHANNELS, types.clone());
        let (nodes, expected) = packed(&large());
        assert_eq!(nodes.len(), 1, "{types:?}");
        let candidates = |change: fn(&mut Vec<u8>)| -> Vec<PackedNode> {
            nodes.iter().map(|node| copied(node, change)).collect()
        };
        let node = nodes[0].node;
        assert!(
            run_with_candidates(&large(), &candidates(|_| {})) == (vec![node], expected.clone()),
            "{types:?}"
        );
        let short = candidates(|bytes| bytes.truncate(bytes.len() - 64));
        assert!(run_with_candidates(&large(), &short) == (vec![], expected.clone()), "{types:?}");
        // Large weights are not packed when candidates are known, so wrong ones affect the result.
        let other =
            candidates(|bytes| bytes.iter_mut().skip(64).step_by(5).for_each(|byte| *byte ^= 1));
        let (used, result) = run_with_candidates(&large(), &other);
        assert_eq!(used, [node], "{types:?}");
        assert!(result != expected, "{types:?}");
    }
}
