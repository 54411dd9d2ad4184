//! Packed weights from elsewhere: right ones are used as they are, wrong ones do no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::{any_f32, conv, deconv, f32};
use xnnpack::{
    AlignedBuffer, Binding, Conv2d, Datatype, Deconv2d, ExternalId, Flags, FullyConnected,
    OutputRange, PackedNode, PackedWeights, Quantization, Role, Runtime, RuntimeOptions,
    StaticData, Subgraph, TensorSpec, Unary, UnaryOp, ValueId, WeightsCache,
};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);
/// Nodes of [`network`].
const CONV_3X3: usize = 0;
const GROUPED: usize = 1;
const CONV_1X1: usize = 2;
const LARGE_CONV_1X1: usize = 3;
const DECONV: usize = 4;
const LARGE_DENSE: usize = 5;
const DENSE: usize = 6;

/// Numbers without a pattern, for weights.
fn weights(count: usize, factor: f32) -> Vec<f32> {
    (0..count).map(|i| (((i * 37 + 11) % 101) as f32 - 50.0) * factor).collect()
}

fn constant(graph: &mut Subgraph, dims: &[usize], factor: f32) -> ValueId {
    let data = StaticData::of(&weights(dims.iter().product(), factor));
    graph.define_tensor(f32(dims).role(Role::Static(data))).unwrap()
}

/// All ways of packing dense floats, two of some. (XNNPACK's depthwise node takes no cache; a
/// convolution with a group for each channel is computed alike, and does.)
fn network(factor: f32) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let mut value = graph.define_tensor(f32(&[1, 8, 8, 4]).role(Role::Input(X))).unwrap();
    for (kernel, groups, from, to) in [(3, 1, 4, 16), (3, 16, 1, 1), (1, 1, 16, 24), (1, 1, 24, 40)]
    {
        let outputs = groups as usize * to;
        let size = kernel as usize;
        let filter = constant(&mut graph, &[outputs, size, size, from], factor);
        let bias = Some(constant(&mut graph, &[outputs], factor));
        let output = graph.define_tensor(any_f32()).unwrap();
        let node = Conv2d {
            kernel: [kernel; 2],
            groups,
            group_input_channels: from,
            group_output_channels: to,
            ..conv(value, filter, bias, output)
        };
        value = node.output;
        graph.define(node).unwrap();
    }
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
    for (from, to, role) in [(40, 33, Role::Internal), (33, 50, Role::Output(Y))] {
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

/// The output for some input.
fn run(graph: &Arc<Subgraph>, cache: &WeightsCache) -> Vec<f32> {
    let options =
        RuntimeOptions { weights_cache: Some(cache.clone()), ..RuntimeOptions::default() };
    let mut runtime = Runtime::new(Arc::clone(graph), &options).unwrap();
    runtime.reshape().unwrap();
    let input = AlignedBuffer::of(&weights(runtime.external(X).unwrap().bytes / 4, 0.01));
    let mut output = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    output.elements().unwrap().to_vec()
}

fn packed(graph: &Arc<Subgraph>) -> (Vec<PackedNode>, Vec<f32>) {
    let cache = WeightsCache::in_process();
    let result = run(graph, &cache);
    (cache.packed(graph), result)
}

/// As if read from a file.
fn copied(node: &PackedNode, change: impl FnOnce(&mut Vec<u8>)) -> PackedNode {
    let mut bytes = node.weights.bytes().to_vec();
    change(&mut bytes);
    let weights = PackedWeights::new(AlignedBuffer::copy_of(&bytes).into()).unwrap();
    PackedNode { weights, ..*node }
}

/// The nodes whose offered weights are used.
fn used(graph: &Arc<Subgraph>, cache: &WeightsCache, offered: &[PackedNode]) -> Vec<usize> {
    let start = |packed: &PackedNode| packed.weights.bytes().as_ptr();
    let taken = |packed: &PackedNode| offered.iter().any(|offer| start(offer) == start(packed));
    cache.packed(graph).iter().filter(|packed| taken(packed)).map(|packed| packed.node).collect()
}

fn offered(graph: &Arc<Subgraph>, offers: &[PackedNode]) -> (Vec<usize>, Vec<f32>) {
    let cache = WeightsCache::in_process();
    cache.offer(graph, offers.iter().cloned());
    let result = run(graph, &cache);
    (used(graph, &cache, offers), result)
}

const ALL: [usize; 7] = [CONV_3X3, GROUPED, CONV_1X1, LARGE_CONV_1X1, DECONV, LARGE_DENSE, DENSE];

#[test]
fn right_weights_are_used_as_they_are() {
    let (nodes, expected) = packed(&network(0.01));
    assert_eq!(nodes.iter().map(|packed| packed.node).collect::<Vec<_>>(), ALL);
    let offers: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
    assert_eq!(offered(&network(0.01), &offers), (ALL.to_vec(), expected));
}

#[test]
fn what_was_packed_is_told() {
    let told = |offers: Vec<PackedNode>| {
        let count = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&count);
        let cache = WeightsCache::in_process_with(move |_| {
            counting.fetch_add(1, Ordering::Relaxed);
        });
        let graph = network(0.01);
        cache.offer(&graph, offers);
        run(&graph, &cache);
        let first = count.load(Ordering::Relaxed);
        run(&graph, &cache);
        assert_eq!(count.load(Ordering::Relaxed), first, "nothing is packed again");
        first
    };
    assert_eq!(told(Vec::new()), ALL.len());
    // Small ones are packed all the same, to be compared.
    let (nodes, _) = packed(&network(0.01));
    let large = [LARGE_CONV_1X1, LARGE_DENSE];
    assert!(told(nodes) <= ALL.len() - large.len());
}

#[test]
fn weights_of_another_length_are_packed_anew() {
    let (nodes, expected) = packed(&network(0.01));
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.truncate(bytes.len() - 64),
        |bytes| bytes.resize(bytes.len() + 64, 0),
        Vec::clear,
    ];
    for index in ALL {
        for change in changes {
            let offers: Vec<PackedNode> = nodes
                .iter()
                .map(|node| {
                    copied(node, |bytes| {
                        if node.node == index {
                            change(bytes)
                        }
                    })
                })
                .collect();
            let (used, result) = offered(&network(0.01), &offers);
            assert!(used.is_empty(), "{index}: {used:?}");
            assert!(result == expected, "{index}");
        }
    }
}

#[test]
fn weights_of_another_model_are_noticed() {
    let (nodes, _) = packed(&network(0.01));
    let offers: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
    let (_, expected) = packed(&network(0.02));
    assert_eq!(offered(&network(0.02), &offers), (vec![], expected));
}

/// Of each kind the smallest is compared, and what XNNPACK packs in any case.
#[test]
fn other_numbers_are_noticed_where_they_are_compared() {
    let (nodes, expected) = packed(&network(0.01));
    for index in ALL {
        let flip = |bytes: &mut Vec<u8>| bytes[3] ^= 0x40;
        let offers: Vec<PackedNode> = nodes
            .iter()
            .map(|node| {
                copied(node, |bytes| {
                    if node.node == index {
                        flip(bytes)
                    }
                })
            })
            .collect();
        let (used, result) = offered(&network(0.01), &offers);
        let compared = [GROUPED, CONV_1X1, DECONV, DENSE].contains(&index);
        assert_eq!(used, if compared { vec![] } else { ALL.to_vec() }, "{index}");
        assert_eq!(result == expected, compared, "{index}");
    }
}

#[test]
fn offers_for_no_such_node_or_another_layout_are_not_used() {
    let (nodes, expected) = packed(&network(0.01));
    let offers: Vec<PackedNode> = nodes
        .iter()
        .flat_map(|node| {
            let elsewhere = PackedNode { node: node.node + 7, ..copied(node, |_| {}) };
            let otherwise = PackedNode { seed: !node.seed, ..copied(node, |_| {}) };
            [elsewhere, otherwise]
        })
        .collect();
    assert_eq!(offered(&network(0.01), &offers), (vec![], expected));
}

#[test]
fn sessions_of_one_subgraph_share_what_was_offered() {
    let (nodes, expected) = packed(&network(0.01));
    let graph = network(0.01);
    let cache = WeightsCache::in_process();
    cache.offer(&graph, nodes);
    assert_eq!(run(&graph, &cache), expected);
    let first = cache.packed(&graph);
    assert_eq!(run(&graph, &cache), expected);
    let starts = |nodes: &[PackedNode]| -> Vec<*const u8> {
        nodes.iter().map(|packed| packed.weights.bytes().as_ptr()).collect()
    };
    assert_eq!(starts(&cache.packed(&graph)), starts(&first));
}

/// A layer with weights of this datatype over dynamically quantized rows.
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

/// Larger ones than are packed for comparison, so that only XNNPACK's own size counts.
#[test]
fn sizes_of_layers_are_found_out_for_every_datatype() {
    let large = |datatype| dynamic(datatype, 2500);
    for datatype in [Datatype::Qcint8, Datatype::Qcint4, Datatype::Qbint4] {
        let (nodes, expected) = packed(&large(datatype));
        let right: Vec<PackedNode> = nodes.iter().map(|node| copied(node, |_| {})).collect();
        assert_eq!(offered(&large(datatype), &right), (vec![1], expected.clone()), "{datatype}");
        let short = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 64);
        let short: Vec<PackedNode> = nodes.iter().map(|node| copied(node, short)).collect();
        assert_eq!(offered(&large(datatype), &short), (vec![], expected), "{datatype}");
    }
}
