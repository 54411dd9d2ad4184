use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::fixture::{any_f32, assert_close, f32, ramp};
use xnnpack::{
    AlignedBuffer, Binding, ExternalId, Finalization, Flags, Fp16, FullyConnected,
    FullyConnectedSparse, OutputRange, PackedWeights, Role, Runtime, RuntimeOptions, StaticData,
    Status, Subgraph, WeightsCache, WeightsCacheProvider, WeightsKey,
};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);

/// Two layers whose weights are `factor` times the identity matrix.
fn layers(factor: f32) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 16]).role(Role::Input(X))).unwrap();
    let hidden = graph.define_tensor(any_f32()).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let mut unit = vec![0.0; 256];
    unit.iter_mut().step_by(17).for_each(|value| *value = factor);
    for (input, output) in [(input, hidden), (hidden, output)] {
        let filter = f32(&[16, 16]).role(Role::Static(StaticData::of(&unit)));
        let filter = graph.define_tensor(filter).unwrap();
        let (output_range, flags) = (OutputRange::default(), Flags::NONE);
        let node = FullyConnected { output_range, input, filter, bias: None, output, flags };
        graph.define(node).unwrap();
    }
    Arc::new(graph)
}

fn with(cache: &WeightsCache) -> RuntimeOptions {
    RuntimeOptions { weights_cache: Some(cache.clone()), ..RuntimeOptions::default() }
}

fn check(runtime: &mut Runtime, factor: f32) {
    runtime.reshape().unwrap();
    let input = AlignedBuffer::of(&ramp(16));
    let mut output = AlignedBuffer::new(64);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    let expected: Vec<f32> = ramp(16).iter().map(|value| value * factor * factor).collect();
    assert_close(output.elements().unwrap(), &expected, 0.0);
}

#[test]
fn native_cache_must_be_finalized_before_running() {
    for finalization in [Finalization::Soft, Finalization::Hard] {
        let cache = WeightsCache::native().unwrap();
        let graph = layers(2.0);
        let mut first = Runtime::new(Arc::clone(&graph), &with(&cache)).unwrap();
        let mut second = Runtime::new(graph, &with(&cache)).unwrap();
        assert_eq!(first.reshape().unwrap_err().status(), Status::InvalidState);
        assert!(!cache.is_finalized());
        cache.finalize(finalization).unwrap();
        assert!(cache.is_finalized());
        assert!(cache.finalize(finalization).is_err());
        check(&mut first, 2.0);
        check(&mut second, 2.0);
    }
}

#[test]
fn finalized_native_caches_refuse_other_weights_and_stay_sound() {
    let cache = WeightsCache::native().unwrap();
    let graph = layers(2.0);
    let mut first = Runtime::new(Arc::clone(&graph), &with(&cache)).unwrap();
    cache.finalize(Finalization::Soft).unwrap();
    let mut again = Runtime::new(graph, &with(&cache)).unwrap();
    // XNNPACK itself would use a wild pointer here.
    let mut other = Runtime::new(layers(3.0), &with(&cache)).unwrap();
    check(&mut other, 3.0);
    check(&mut first, 2.0);
    check(&mut again, 2.0);

    let cache = WeightsCache::native().unwrap();
    let mut first = Runtime::new(layers(2.0), &with(&cache)).unwrap();
    cache.finalize(Finalization::Hard).unwrap();
    assert!(Runtime::new(layers(3.0), &with(&cache)).is_err());
    check(&mut first, 2.0);
}

#[test]
fn in_process_cache() {
    let cache = WeightsCache::in_process();
    let (double, triple) = (layers(2.0), layers(3.0));
    for (graph, factor) in [(&double, 2.0), (&triple, 3.0), (&double, 2.0)] {
        check(&mut Runtime::new(Arc::clone(graph), &with(&cache)).unwrap(), factor);
    }
}

/// Counts insertions, and stores weights by node.
#[derive(Default)]
struct Counting {
    hits: AtomicUsize,
    entries: Mutex<HashMap<(u64, usize, u32), PackedWeights>>,
}

struct Shared(Arc<Counting>);

// SAFETY: entries are returned only for the node that they were packed for.
unsafe impl WeightsCacheProvider for Shared {
    fn look_up(&self, key: &WeightsKey) -> Option<PackedWeights> {
        let key = (key.subgraph, key.node, key.seed);
        let found = self.0.entries.lock().unwrap().get(&key).cloned();
        self.0.hits.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
        found
    }

    fn insert(&self, key: &WeightsKey, packed: &PackedWeights) {
        assert_ne!(key.kernel, 0);
        let key = (key.subgraph, key.node, key.seed);
        // A copy, as if written to a file and read again.
        let copy = AlignedBuffer::copy_of(packed.bytes());
        self.0.entries.lock().unwrap().insert(key, PackedWeights::new(copy.into()).unwrap());
    }
}

#[test]
fn custom_provider() {
    let counting = Arc::new(Counting::default());
    let cache = WeightsCache::custom(Shared(Arc::clone(&counting)));
    let graph = layers(2.0);
    let mut first = Runtime::new(Arc::clone(&graph), &with(&cache)).unwrap();
    assert_eq!(counting.hits.load(Ordering::Relaxed), 0);
    assert_eq!(counting.entries.lock().unwrap().len(), 2);
    let mut second = Runtime::new(graph, &with(&cache)).unwrap();
    assert_eq!(counting.hits.load(Ordering::Relaxed), 2);
    let mut other = Runtime::new(layers(3.0), &with(&cache)).unwrap();
    assert_eq!(counting.hits.load(Ordering::Relaxed), 2);
    drop(cache);
    check(&mut first, 2.0);
    check(&mut second, 2.0);
    check(&mut other, 3.0);
}

struct Panicking;

// SAFETY: it never returns weights.
unsafe impl WeightsCacheProvider for Panicking {
    fn look_up(&self, _: &WeightsKey) -> Option<PackedWeights> {
        panic!("look up");
    }

    fn insert(&self, _: &WeightsKey, _: &PackedWeights) {
        panic!("insert");
    }
}

#[test]
fn a_panicking_provider_is_contained() {
    let cache = WeightsCache::custom(Panicking);
    check(&mut Runtime::new(layers(2.0), &with(&cache)).unwrap(), 2.0);
}

/// Packing depends on more than the address, so nodes must not share entries for shared data.
#[test]
fn one_constant_in_two_shapes() {
    let mut graph = Subgraph::new().unwrap();
    let data = StaticData::of(&ramp(32));
    let input = graph.define_tensor(f32(&[1, 4]).role(Role::Input(X))).unwrap();
    let hidden = graph.define_tensor(any_f32()).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    for (input, output, dims) in [(input, hidden, [8, 4]), (hidden, output, [4, 8])] {
        let filter = graph.define_tensor(f32(&dims).role(Role::Static(data.clone()))).unwrap();
        let (output_range, flags) = (OutputRange::default(), Flags::NONE);
        let node = FullyConnected { output_range, input, filter, bias: None, output, flags };
        graph.define(node).unwrap();
    }
    let graph = Arc::new(graph);
    let mut results = Vec::new();
    for options in [RuntimeOptions::default(), with(&WeightsCache::in_process())] {
        let mut runtime = Runtime::new(Arc::clone(&graph), &options).unwrap();
        runtime.reshape().unwrap();
        let input = AlignedBuffer::of(&ramp(4));
        let mut output = AlignedBuffer::new(16);
        runtime
            .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
            .unwrap();
        results.push(output.elements::<f32>().unwrap().to_vec());
    }
    assert_eq!(results[0], results[1]);
}

#[test]
fn computation_in_fp16_refuses_a_cache() {
    for fp16 in [Fp16::Hint, Fp16::Force] {
        let options = RuntimeOptions { fp16, ..with(&WeightsCache::in_process()) };
        let error = Runtime::new(layers(2.0), &options).unwrap_err();
        assert_eq!(error.status(), Status::UnsupportedParameter);
    }
}

#[test]
fn sparse_kernels_refuse_a_cache() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 2]).role(Role::Input(X))).unwrap();
    let filter = f32(&[1, 2]).role(Role::Static(StaticData::of(&[0.0f32, 1.0])));
    let filter = graph.define_tensor(filter).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let output_range = OutputRange::default();
    graph.define(FullyConnectedSparse { output_range, input, filter, bias: None, output }).unwrap();
    let error = Runtime::new(graph, &with(&WeightsCache::in_process())).unwrap_err();
    assert_eq!(error.status(), Status::UnsupportedParameter);
}
