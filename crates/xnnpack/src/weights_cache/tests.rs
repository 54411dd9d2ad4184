#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::Range;

use super::*;
use crate::static_data::StaticData;
use crate::{
    Conv2d, Datatype, ExternalId, Flags, FullyConnected, OutputRange, Padding2d, Quantization,
    Role, Runtime, RuntimeOptions, TensorSpec,
};

fn with(cache: &WeightsCache) -> RuntimeOptions {
    RuntimeOptions { weights_cache: Some(cache.clone()), ..RuntimeOptions::default() }
}

/// Each runtime packs these weights itself.
#[test]
fn weights_shared_by_nodes_are_stored_once() {
    let tensor = || TensorSpec::new(Datatype::F32, &[4, 4]);
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(tensor().role(Role::Input(ExternalId(0)))).unwrap();
    let filter = tensor().role(Role::Static(StaticData::of(&[0.5f32; 16])));
    let filter = graph.define_tensor(filter).unwrap();
    let hidden = graph.define_tensor(tensor()).unwrap();
    let output = graph.define_tensor(tensor().role(Role::Output(ExternalId(1)))).unwrap();
    for (input, output) in [(input, hidden), (hidden, output)] {
        let (output_range, flags) = (OutputRange::default(), Flags::NONE);
        let node = FullyConnected { output_range, input, filter, bias: None, output, flags };
        graph.define(node).unwrap();
    }
    let graph = Arc::new(graph);
    let cache = WeightsCache::in_process();
    for _ in 0..3 {
        Runtime::new(Arc::clone(&graph), &with(&cache)).unwrap();
        assert_eq!(lock(&cache.0.adapter.state).count(), 1);
    }
}

/// They were not validated with it, and another runtime would not validate them either.
#[test]
fn weights_of_a_runtime_that_is_not_created_are_dropped() {
    let cache = WeightsCache::in_process();
    let graph = Subgraph::new().unwrap();
    let state = &cache.0.adapter.state;
    let weights = || PackedWeights::new(StaticData::of(&[0.5f32; 16])).unwrap();
    let create = |is_created: bool, is_failed: bool| {
        let keep = || {
            let mut state = lock(state);
            let position = state.keep(weights()) & !state::OWN_ENTRY;
            let at = weights::NodeSeed { subgraph: graph.token(), node: 0, seed: 0 };
            state.packed.insert(at, position);
            state.failed = is_failed;
            if is_created { Ok(()) } else { Err(Error::state("no runtime")) }
        };
        let is_ok = cache.creating(&graph, None, keep, |_, _| None, |()| true).is_ok();
        let count = lock(state).count();
        (is_ok, count, cache.packed(&graph).len())
    };
    assert_eq!(create(false, false), (false, 0, 0));
    assert_eq!(create(true, true), (false, 0, 0));
    assert_eq!(create(true, false), (true, 1, 1));
}

/// Stores nothing. XNNPACK packs weights for it at once, not in slices.
struct Forgetful;

// SAFETY: it never returns weights.
unsafe impl WeightsCacheProvider for Forgetful {
    fn look_up(&self, _: &WeightsKey) -> Option<PackedWeights> {
        None
    }

    fn insert(&self, _: &WeightsKey, _: &PackedWeights) {}
}

/// A layer with many weights.
#[derive(Clone, Copy, Debug)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Kernel of a convolution; `None` for a fully connected layer.
    kernel: Option<[u32; 2]>,
    is_quantized: bool,
    has_bias: bool,
}

/// `count` varied elements.
fn elements<T>(count: usize, element: impl Fn(u8) -> T) -> Vec<T> {
    let mixed = |i: usize| i.wrapping_mul(0x9E37_79B9).to_le_bytes()[2];
    (0..count).map(|i| element(mixed(i))).collect()
}

/// A graph of the layer, and the address range of its filter.
fn graph_of(layer: Layer) -> (Subgraph, Range<usize>) {
    let Layer { inputs, outputs, kernel, is_quantized, has_bias } = layer;
    let [height, width] = kernel.unwrap_or([1, 1]).map(|size| usize::try_from(size).unwrap());
    let activation = |channels: usize| {
        let dims = if kernel.is_some() { vec![1, 5, 5, channels] } else { vec![2, channels] };
        if is_quantized {
            let quantization = Quantization::PerTensor { zero_point: 3, scale: 0.25 };
            TensorSpec::new(Datatype::Qint8, &dims).quantized(quantization)
        } else {
            TensorSpec::new(Datatype::F32, &dims)
        }
    };
    let constant = |dims: &[usize], quantized: Datatype, data: StaticData| {
        let scales = elements(outputs, |byte| 0.001 + f32::from(byte) / 1e6).into();
        let per_channel = Quantization::PerChannel { zero_point: 0, axis: 0, scales };
        let spec = if is_quantized {
            TensorSpec::new(quantized, dims).quantized(per_channel)
        } else {
            TensorSpec::new(Datatype::F32, dims)
        };
        spec.role(Role::Static(data))
    };
    let count = outputs * height * width * inputs;
    let data = if is_quantized {
        let mut weights = elements(count, |byte| byte.cast_signed().max(-i8::MAX));
        for (channel, weights) in weights.chunks_mut(count / outputs).enumerate() {
            // Some microkernels pair the first of four weights with the third here, in every second tile.
            if channel / 32 % 2 == 1 {
                weights.iter_mut().enumerate().for_each(|(at, weight)| {
                    *weight = [100, 50, -100, 50][at % inputs % 4] + *weight % 20;
                });
            }
        }
        StaticData::of(&weights)
    } else {
        StaticData::of(&elements(count, f32::from))
    };
    let start = data.start().addr();
    let filter = start..start + data.bytes().len();
    let dims = match kernel {
        Some(_) => vec![outputs, height, width, inputs],
        None => vec![outputs, inputs],
    };
    let bias_data = if is_quantized {
        StaticData::of(&elements(outputs, i32::from))
    } else {
        StaticData::of(&elements(outputs, f32::from))
    };
    let mut graph = Subgraph::new().unwrap();
    let mut define = |spec| graph.define_tensor(spec).unwrap();
    let input = define(activation(inputs).role(Role::Input(ExternalId(0))));
    let output = define(activation(outputs).role(Role::Output(ExternalId(1))));
    let weights = define(constant(&dims, Datatype::Qcint8, data));
    let bias = has_bias.then(|| define(constant(&[outputs], Datatype::Qcint32, bias_data)));
    let (output_range, flags) = (OutputRange::default(), Flags::NONE);
    match kernel {
        None => {
            let filter = weights;
            graph.define(FullyConnected { output_range, input, filter, bias, output, flags })
        }
        Some(kernel) => graph.define(Conv2d {
            padding: Padding2d::default(),
            kernel,
            stride: [1, 1],
            dilation: [1, 1],
            groups: 1,
            group_input_channels: inputs,
            group_output_channels: outputs,
            output_range,
            input,
            filter: weights,
            bias,
            output,
            flags: Flags::SAME_PADDING,
        }),
    }
    .unwrap();
    (graph, filter)
}

#[test]
fn packing_in_slices_and_by_threads_gives_the_same_weights() {
    let dense =
        Layer { inputs: 1000, outputs: 501, kernel: None, is_quantized: false, has_bias: true };
    let of_1 = Layer { inputs: 1024, outputs: 1001, kernel: Some([1, 1]), ..dense };
    let of_9 = Layer { inputs: 130, outputs: 301, kernel: Some([3, 3]), ..dense };
    let alone = None;
    let pool = Some(Arc::new(ThreadPool::new(3).unwrap()));
    let mut is_told = [0, 0];
    for layer in [dense, of_1, of_9].into_iter().flat_map(|layer| {
        [(false, true), (false, false), (true, true), (true, false)]
            .map(|(is_quantized, has_bias)| Layer { is_quantized, has_bias, ..layer })
    }) {
        let (graph, filter) = graph_of(layer);
        let graph = Arc::new(graph);
        let packed = |cache: WeightsCache, threadpool: &Option<Arc<ThreadPool>>| {
            let options = RuntimeOptions { threadpool: threadpool.clone(), ..with(&cache) };
            Runtime::new(Arc::clone(&graph), &options).unwrap();
            cache.packed(&graph).pop().unwrap().weights
        };
        let whole = packed(WeightsCache::custom(Forgetful), &alone);
        let shared = packed(WeightsCache::custom(Forgetful), &pool);
        assert!(shared.bytes() == whole.bytes(), "{layer:?}");
        for ((threads, most), is_told) in
            [(&alone, 1 << 18), (&pool, 3 << 20)].into_iter().zip(&mut is_told)
        {
            let told = Arc::<Mutex<Vec<Range<usize>>>>::default();
            let tells = Arc::clone(&told);
            let listened = WeightsCache::in_process_with(move |part| {
                let part = part.as_ptr_range();
                lock(&tells).push(part.start.addr()..part.end.addr());
            });
            let sliced = packed(listened, threads);
            assert!(sliced.bytes() == whole.bytes(), "{layer:?}");
            let mut parts = lock(&told).clone();
            assert_eq!(parts.pop(), Some(filter.clone()), "{layer:?}");
            let mut end = filter.start;
            for part in parts {
                assert_eq!(part.start, end, "{layer:?}");
                assert!(part.len() <= most, "{layer:?}");
                end = part.end;
                *is_told += 1;
            }
            assert!(end < filter.end, "{layer:?}");
        }
    }
    // A system-provided XNNPACK packs all weights at once.
    let is_own = sys::build::SOURCE != "system";
    assert_eq!(is_told.map(|count| count > 1), [is_own; 2], "{is_told:?}");
    assert_eq!(is_told[0] > 20, is_own, "{is_told:?}");
}
