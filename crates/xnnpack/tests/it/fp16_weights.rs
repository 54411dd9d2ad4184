//! fp16 weights give the same results as fp32 weights of the same values.

use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use half::f16;
use xnn_testing::Random;
use xnnpack::{
    AlignedBuffer, Binary, BinaryOp, Binding, Conv2d, ExternalId, Finalization, Flags, Fp16,
    Fp16Weights, FullyConnected, OutputRange, PackedWeights, Role, Runtime, RuntimeOptions,
    StaticData, Subgraph, ThreadPool, ValueId, WeightsCache, WeightsCacheProvider, WeightsKey,
};

use crate::fixture::{Fixture, any_f32, conv, depthwise, f32, ramp};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);

/// Values that are exact in fp16.
fn numbers(count: usize) -> Vec<f16> {
    (0..count).map(|i| f16::from_f32(((i * 37 + 11) % 101) as f32 / 64.0 - 0.75)).collect()
}

fn fp16_weights(count: usize) -> Fp16Weights {
    let bytes: Bytes = numbers(count).iter().flat_map(|number| number.to_ne_bytes()).collect();
    Fp16Weights::new(StaticData::new(bytes)).unwrap()
}

/// A filter, stored in fp16 or in fp32.
fn filter(graph: &mut Subgraph, dims: &[usize], in_fp16: bool) -> ValueId {
    let count = dims.iter().product();
    let floats = || numbers(count).iter().map(|number| number.to_f32()).collect::<Vec<f32>>();
    let role = match in_fp16 {
        true => Role::Fp16Weights(fp16_weights(count)),
        false => Role::Static(StaticData::of(&floats())),
    };
    graph.define_tensor(f32(dims).role(role)).unwrap()
}

fn dense(input: ValueId, filter: ValueId, output: ValueId, flags: Flags) -> FullyConnected {
    FullyConnected {
        output_range: OutputRange::default(),
        input,
        filter,
        bias: None,
        output,
        flags,
    }
}

/// Convolutions with kernels of one and of several pixels, two of them with the same filter, and
/// both kinds of matrices. Large enough to be packed in several slices.
fn network(in_fp16: bool) -> Arc<Subgraph> {
    let mut graph = Subgraph::new().unwrap();
    let mut value = graph.define_tensor(f32(&[1, 6, 6, 32]).role(Role::Input(X))).unwrap();
    let pixel = filter(&mut graph, &[32, 1, 1, 32], in_fp16);
    let window = filter(&mut graph, &[320, 3, 3, 32], in_fp16);
    let bias = graph.define_tensor(f32(&[320]).role(Role::Static(StaticData::of(&ramp(320)))));
    let bias = Some(bias.unwrap());
    for (filter, bias) in [(pixel, None), (pixel, None), (window, bias)] {
        let output = graph.define_tensor(any_f32()).unwrap();
        let kernel = if filter == pixel { [1, 1] } else { [3, 3] };
        let outputs = if filter == pixel { 32 } else { 320 };
        let node = conv(value, filter, bias, output);
        let channels = (1, 32, outputs);
        let (groups, group_input_channels, group_output_channels) = channels;
        graph
            .define(Conv2d { kernel, groups, group_input_channels, group_output_channels, ..node })
            .unwrap();
        value = output;
    }
    let rows = filter(&mut graph, &[300, 320], in_fp16);
    let columns = filter(&mut graph, &[300, 20], in_fp16);
    let hidden = graph.define_tensor(any_f32()).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(dense(value, rows, hidden, Flags::NONE)).unwrap();
    graph.define(dense(hidden, columns, output, Flags::TRANSPOSE_WEIGHTS)).unwrap();
    Arc::new(graph)
}

fn run(graph: &Arc<Subgraph>, options: &RuntimeOptions) -> Vec<u8> {
    let mut runtime = Runtime::new(Arc::clone(graph), options).unwrap();
    if let Some(cache) = options.weights_cache.as_ref().filter(|cache| !cache.is_finalized()) {
        cache.finalize(Finalization::Soft).unwrap();
    }
    runtime.reshape().unwrap();
    let input = AlignedBuffer::of(&ramp(6 * 6 * 32));
    let mut output = AlignedBuffer::new(4 * 4 * 20 * 4);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    output.as_slice().to_vec()
}

fn with(cache: WeightsCache) -> RuntimeOptions {
    RuntimeOptions { weights_cache: Some(cache), ..RuntimeOptions::default() }
}

struct Nothing;

// SAFETY: it never returns weights.
unsafe impl WeightsCacheProvider for Nothing {
    fn look_up(&self, _: &WeightsKey) -> Option<PackedWeights> {
        None
    }

    fn insert(&self, _: &WeightsKey, _: &PackedWeights) {}
}

#[test]
fn every_cache_supports_fp16_weights() {
    let expected = run(&network(false), &RuntimeOptions::default());
    assert!(expected.iter().any(|&byte| byte != 0));
    let graph = network(true);
    for options in [
        RuntimeOptions::default(),
        with(WeightsCache::native().unwrap()),
        with(WeightsCache::in_process()),
        with(WeightsCache::custom(Nothing)),
    ] {
        for _ in 0..2 {
            assert!(run(&graph, &options) == expected, "{options:?}");
        }
    }
}

#[test]
fn rewritten_graphs() {
    for (sparse, fp16) in [(true, Fp16::Never), (false, Fp16::Hint)] {
        let options = RuntimeOptions { sparse, fp16, ..RuntimeOptions::default() };
        assert!(run(&network(true), &options) == run(&network(false), &options), "{options:?}");
    }
}

/// Threads share the fp32 values, which are released when both have finished.
#[test]
fn in_several_threads() {
    let graph = network(true);
    let expected = run(&network(false), &RuntimeOptions::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    assert!(run(&graph, &with(WeightsCache::in_process())) == expected);
                    assert!(run(&graph, &RuntimeOptions::default()) == expected);
                }
            });
        }
    });
}

#[test]
fn packed_weights_serve_fp16_and_fp32_filters() {
    let [fp16, floats] = [true, false].map(network);
    let expected = run(&floats, &RuntimeOptions::default());
    for (from, to) in [(&fp16, &floats), (&floats, &fp16), (&fp16, &fp16)] {
        let [one, other] = [0; 2].map(|_| WeightsCache::in_process());
        assert!(run(from, &with(one.clone())) == expected);
        let packed = one.packed(from);
        assert_eq!(packed.len(), 3, "weights of filters that are not shared");
        let places: Vec<*const u8> =
            packed.iter().map(|node| node.weights.bytes().as_ptr()).collect();
        other.add_candidates(to, packed);
        assert!(run(to, &with(other.clone())) == expected);
        let used = other.packed(to);
        let used = used.iter().filter(|node| places.contains(&node.weights.bytes().as_ptr()));
        assert!(used.count() > 0, "some weights were not packed");
    }
}

/// Listeners are told the fp16 bytes that weights were packed from.
#[test]
fn listeners_are_told_of_fp16_data() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let cache = WeightsCache::in_process_with(move |bytes| {
        listener.lock().unwrap().push(bytes.to_vec());
    });
    run(&network(true), &with(cache));
    let told = told.lock().unwrap();
    for count in [320 * 9 * 32, 300 * 320, 300 * 20] {
        let bytes: Vec<u8> = numbers(count).iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert!(told.contains(&bytes), "{count}");
    }
}

#[test]
fn only_products_support_fp16_weights() {
    let mut graph = Subgraph::new().unwrap();
    let image = graph.define_tensor(f32(&[1, 4, 4, 4]).role(Role::Input(X))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let refused = |graph: &mut Subgraph, node: &dyn Fn(&mut Subgraph) -> xnnpack::Result<()>| {
        let error = node(graph).unwrap_err().to_string();
        assert!(error.contains("has fp16 weights"), "{error}");
    };
    let weights = |graph: &mut Subgraph, dims: &[usize]| {
        let role = Role::Fp16Weights(fp16_weights(dims.iter().product()));
        graph.define_tensor(f32(dims).role(role)).unwrap()
    };
    let taps = weights(&mut graph, &[1, 1, 1, 4]);
    refused(&mut graph, &|graph| graph.define(depthwise(4, image, taps, None, output)));
    let groups = weights(&mut graph, &[4, 1, 1, 2]);
    refused(&mut graph, &|graph| {
        let node = conv(image, groups, None, output);
        let (group_input_channels, group_output_channels) = (2, 2);
        graph.define(Conv2d { groups: 2, group_input_channels, group_output_channels, ..node })
    });
    refused(&mut graph, &|graph| {
        let output_range = OutputRange::default();
        graph.define(Binary { op: BinaryOp::Add, output_range, a: image, b: taps, output })
    });
    refused(&mut graph, &|graph| {
        let matrix = weights(graph, &[4, 4]);
        graph.define(dense(matrix, matrix, output, Flags::NONE))
    });
    refused(&mut graph, &|graph| {
        let matrix = weights(graph, &[4, 4]);
        let bias = weights(graph, &[4]);
        graph.define(FullyConnected {
            bias: Some(bias),
            ..dense(image, matrix, output, Flags::NONE)
        })
    });
    for spec in [f32(&[5]), xnnpack::TensorSpec::new(xnnpack::Datatype::F16, &[4])] {
        assert!(graph.define_tensor(spec.role(Role::Fp16Weights(fp16_weights(4)))).is_err());
    }
}

/// fp16 data is reported when it has been converted, before parts of the fp32 values are packed.
#[test]
fn listeners_are_told_of_filters_before_packing() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 400]).role(Role::Input(X))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let filter = filter(&mut graph, &[500, 400], true);
    graph.define(dense(input, filter, output, Flags::NONE)).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    let weights_cache =
        Some(WeightsCache::in_process_with(move |part| tells.lock().unwrap().push(part.to_vec())));
    let options = RuntimeOptions { weights_cache, ..RuntimeOptions::default() };
    Runtime::new(graph, &options).unwrap();
    let told = told.lock().unwrap();
    let fp16: Vec<u8> = numbers(500 * 400).iter().flat_map(|half| half.to_ne_bytes()).collect();
    assert!(told.first() == Some(&fp16));
    let floats: Vec<u8> =
        numbers(500 * 400).iter().flat_map(|half| half.to_f32().to_ne_bytes()).collect();
    let between = told.get(1..told.len() - 1).unwrap().concat();
    assert!(floats.starts_with(&between));
    assert!(told.last() == Some(&fp16));
}

/// Values that include the smallest and the largest ones.
fn extreme_numbers(count: usize) -> Vec<f16> {
    let mut numbers = numbers(count);
    let extremes = [f16::MIN_POSITIVE_SUBNORMAL, f16::MAX, f16::MIN, f16::MIN_POSITIVE, -f16::ZERO];
    for (at, number) in numbers.iter_mut().enumerate().filter(|(at, _)| at % 13 == 5) {
        *number = extremes[at / 13 % extremes.len()];
    }
    numbers
}

/// Products of rows with a filter in fp16, which is packed in fp16 or fp32 depending on flags, or
/// with a filter in fp32.
fn products([rows, inputs, outputs]: [usize; 3], bias: bool, in_fp16: Option<Flags>) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let random = &mut Random::new(31);
    let input = fixture.input(f32(&[rows, inputs]), &random.f32s(rows * inputs, -1.0, 1.0));
    let numbers = extreme_numbers(outputs * inputs);
    let role = match in_fp16 {
        Some(_) => {
            let bytes: Bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            Role::Fp16Weights(Fp16Weights::new(StaticData::new(bytes)).unwrap())
        }
        None => {
            let floats: Vec<f32> = numbers.iter().map(|number| number.to_f32()).collect();
            Role::Static(StaticData::of(&floats))
        }
    };
    let filter = fixture.graph.define_tensor(f32(&[outputs, inputs]).role(role)).unwrap();
    let bias = bias.then(|| fixture.constant(f32(&[outputs]), &random.f32s(outputs, -1.0, 1.0)));
    let output = fixture.output(any_f32());
    let flags = in_fp16.unwrap_or_default();
    let output_range = OutputRange { min: -1e5, max: f32::INFINITY };
    let node = FullyConnected { bias, output_range, ..dense(input, filter, output, flags) };
    let threadpool = Some(Arc::new(ThreadPool::new(1 + outputs % 2).unwrap()));
    let weights_cache = (inputs % 2 == 0).then(WeightsCache::in_process);
    let options = RuntimeOptions { threadpool, weights_cache, ..RuntimeOptions::default() };
    fixture.node(node).run_with(&options).unwrap().remove(0)
}

/// Sizes around the rows of a tile, the inputs of a step, and the channels of a vector, a tile and
/// the tiles of a single row, and sizes beyond those that are packed at once.
#[test]
fn packed_fp16_weights_give_the_same_products() {
    let sizes = [1, 2, 7, 8, 9].map(|rows| [1, 3, 4, 15, 16, 17, 37].map(|inputs| (rows, inputs)));
    for (rows, inputs) in sizes.into_iter().flatten() {
        for outputs in [1, 15, 16, 31, 32, 33, 47, 48, 63, 65, 129, 200] {
            let size = [rows, inputs, outputs];
            for bias in [false, true] {
                let expected = products(size, bias, None);
                assert!(expected.iter().any(|&y| y != 0.0), "{size:?}");
                for flags in [Flags::NONE, Flags::FP16_WEIGHTS] {
                    assert_eq!(products(size, bias, Some(flags)), expected, "{size:?}");
                }
            }
        }
    }
    for rows in [1, 8] {
        let size = [rows, 600, 500];
        assert_eq!(products(size, true, Some(Flags::FP16_WEIGHTS)), products(size, true, None));
    }
}

#[test]
fn only_fp16_weights_are_packed_in_fp16() {
    let refusal = |in_fp16, flags: Flags| {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, 4]), &ramp(4));
        let matrix = filter(&mut fixture.graph, &[4, 4], in_fp16);
        let output = fixture.output(any_f32());
        fixture.refusal(dense(input, matrix, output, flags | Flags::FP16_WEIGHTS)).to_string()
    };
    let of_floats = refusal(false, Flags::NONE);
    assert!(of_floats.contains("requires a filter that is kept in fp16"), "{of_floats}");
    let transposed = refusal(true, Flags::TRANSPOSE_WEIGHTS);
    assert!(transposed.contains("flags"), "{transposed}");
}
