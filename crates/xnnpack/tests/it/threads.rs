//! Thread pools: which threads compute, and their state between runs.

use std::sync::Arc;
use std::thread;

use crate::fixture::{Fixture, any_f32, conv, f32, ramp};
use crate::runtime::{one_node, run};
use xnnpack::{
    AlignedBuffer, Binary, BinaryOp, Binding, Concatenate, Conv2d, ExternalId, OutputRange,
    OutputSlice, Runtime, RuntimeOptions, ThreadPool, Unary, UnaryOp,
};

#[test]
fn thread_pools() {
    for count in [0, ThreadPool::MAX_THREADS + 1, usize::MAX] {
        assert!(ThreadPool::new(count).is_err());
    }
    let pools = [1, 2, 3].map(|threads| Arc::new(ThreadPool::new(threads).unwrap()));
    assert_eq!(pools[1].threads(), 2);
    let input = ramp(10_000);
    let expected: Vec<f32> = input.iter().map(|value| -value).collect();
    thread::scope(|scope| {
        // Each pool serves two runtimes in two threads.
        for pool in pools.iter().chain(&pools) {
            scope.spawn(|| {
                let threadpool = Some(Arc::clone(pool));
                let options = RuntimeOptions { threadpool, ..RuntimeOptions::default() };
                let mut runtime = one_node(&[100, 100], &options, |graph, input, output| {
                    graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
                });
                runtime.reshape().unwrap();
                for _ in 0..20 {
                    assert_eq!(run(&mut runtime, &input), expected);
                }
            });
        }
    });
}

/// The first runs use all threads, half of them and so on, all threads again, and the fastest choice
/// for each operator. All give the same results.
#[test]
fn first_runs_try_numbers_of_threads() {
    let most_first = |most, fewest, turns: &[_]| try_threads(most, fewest, false, turns);
    let fewest_first = |most, fewest, turns: &[_]| try_threads(most, fewest, true, turns);
    let two = most_first(2, 1, &[2, 1, 2, 1, 2, 2, 2]);
    assert_eq!(most_first(4, 1, &[4, 2, 1, 4, 2, 1, 4, 4, 4]), two);
    assert_eq!(most_first(6, 2, &[6, 4, 2, 6, 4, 2, 6, 6, 6]), two);
    assert_eq!(fewest_first(2, 1, &[1, 2, 1, 2, 2, 2, 2]), two);
    assert_eq!(fewest_first(6, 2, &[2, 4, 6, 2, 4, 6, 6, 6, 6]), two);
    // Nothing to choose from.
    assert_eq!(most_first(2, 2, &[]), two);
    assert_eq!(fewest_first(2, 2, &[]), two);
}

/// Threads fetch some rows of a concatenation of channels at a time, and many if rows are short.
#[test]
fn threads_share_the_rows_of_copies() {
    for (rows, channels) in
        [(1, 3), (2, 4095), (5, 4096), (5, 5000), (1365, 3), (1366, 3), (9000, 1)]
    {
        let mut fixture = Fixture::new();
        let values = ramp(rows * channels);
        let inputs = vec![
            fixture.input(f32(&[rows, channels]), &values),
            fixture.input(f32(&[rows, 2]), &ramp(rows * 2)),
        ];
        let output = fixture.output(any_f32());
        let fixture = fixture.node(Concatenate { axis: 1, inputs, output });
        let threadpool = Some(Arc::new(ThreadPool::new(3).unwrap()));
        let options = RuntimeOptions { threadpool, ..RuntimeOptions::default() };
        let results = fixture.run_with::<f32>(&options).unwrap();
        let pairs = values.chunks(channels).zip(results[0].chunks(channels + 2)).enumerate();
        for (row, (expected, found)) in pairs {
            assert_eq!(&found[..channels], expected);
            assert_eq!(found[channels..], [2 * row, 2 * row + 1].map(|value| value as f32));
        }
        assert_eq!(results[0].len(), rows * (channels + 2));
    }
}

/// Results of runs whose first turns have these `turns` numbers of threads.
fn try_threads(most: usize, fewest: usize, fewest_first: bool, turns: &[usize]) -> Vec<Vec<f32>> {
    let threadpool = Some(Arc::new(ThreadPool::new(most).unwrap()));
    let fewest_threads = Some(fewest);
    let options =
        RuntimeOptions { threadpool, fewest_threads, fewest_first, ..RuntimeOptions::default() };
    let mut graph = Fixture::new();
    let mut x = graph.input::<f32>(f32(&[1, 20, 20, 16]), &[]);
    for layer in 0..3 {
        let weights: Vec<f32> = ramp(16 * 16).iter().map(|w| w / 256.0 - 0.5).collect();
        let filter = graph.constant(f32(&[16, 1, 1, 16]), &weights);
        let y = if layer == 2 { graph.output(any_f32()) } else { graph.internal(any_f32()) };
        let convolution = Conv2d {
            kernel: [1, 1],
            group_input_channels: 16,
            group_output_channels: 16,
            ..conv(x, filter, None, y)
        };
        graph.graph.define(convolution).unwrap();
        x = y;
    }
    let mut runtime = Runtime::new(graph.graph, &options).unwrap();
    let (input, output) = (ExternalId(0), ExternalId(1));
    let mut results = Vec::new();
    for rows in [20, 7] {
        runtime.reshape_external(input, &[1, rows, 20, 16]).unwrap();
        runtime.reshape().unwrap();
        let values = AlignedBuffer::of(&ramp(rows * 20 * 16));
        let turns: Vec<usize> = turns.iter().flat_map(|&turn| [turn; 3]).collect();
        // Two more runs have the number that the trial chose.
        let threads: Vec<usize> = (0..turns.len() + 2)
            .map(|_| {
                let threads = runtime.threads();
                let mut memory = AlignedBuffer::new(rows * 20 * 16 * size_of::<f32>());
                let bindings = &mut [
                    Binding::Input(input, values.input()),
                    Binding::Output(output, OutputSlice::from(memory.as_mut_slice())),
                ];
                runtime.run(bindings).unwrap();
                results.push((rows, memory.elements::<f32>().unwrap().to_vec()));
                threads
            })
            .collect();
        let (tried, after) = threads.split_at(turns.len());
        assert_eq!(tried, turns);
        assert_eq!(after[0], after[1]);
    }
    let same = results.chunk_by(|a, b| a.0 == b.0);
    same.map(|same| {
        assert!(same.iter().all(|(_, values)| *values == same[0].1));
        same[0].1.clone()
    })
    .collect()
}

#[test]
fn denormals_are_disabled_only_during_runs() {
    let denormal = std::hint::black_box(f32::MIN_POSITIVE / 4.0);
    for threads in [1, 2] {
        let threadpool = Some(Arc::new(ThreadPool::new(threads).unwrap()));
        for threadpool in [None, threadpool] {
            let options = RuntimeOptions { threadpool, ..RuntimeOptions::default() };
            let mut runtime = one_node(&[100, 100], &options, |graph, input, output| {
                let output_range = OutputRange::default();
                let op = BinaryOp::Add;
                graph.define(Binary { op, output_range, a: input, b: input, output }).unwrap();
            });
            runtime.reshape().unwrap();
            assert_eq!(run(&mut runtime, &[denormal; 10_000]), [0.0; 10_000]);
            assert!(denormal + denormal > 0.0);
        }
    }
}

/// Logarithms of denormals, between operators that compute without denormals, in runs of all
/// operators and in runs of single ones.
#[test]
fn denormals_are_enabled_for_operators_that_distinguish_them_from_zero() {
    for threads in [1, 2] {
        let threadpool = Some(Arc::new(ThreadPool::new(threads).unwrap()));
        let options =
            RuntimeOptions { threadpool, fewest_threads: Some(1), ..RuntimeOptions::default() };
        let mut runtime = one_node(&[100, 100], &options, |graph, input, output| {
            let mut internal = || graph.define_tensor(any_f32()).unwrap();
            let [squares, logs, powers, cosines, more_squares, more_logs] =
                [(); 6].map(|()| internal());
            let mut unary = |op, input, output| {
                graph.define(Unary { op, input, output }).unwrap();
            };
            unary(UnaryOp::Square, input, squares);
            unary(UnaryOp::Log, squares, logs);
            unary(UnaryOp::Exp, logs, powers);
            unary(UnaryOp::Cosine, powers, cosines);
            unary(UnaryOp::Square, input, more_squares);
            unary(UnaryOp::Log, more_squares, more_logs);
            let (op, output_range) = (BinaryOp::Add, OutputRange::default());
            graph.define(Binary { op, output_range, a: cosines, b: more_logs, output }).unwrap();
        });
        runtime.reshape().unwrap();
        let expected = 1.0 + 1e-40f64.ln() as f32;
        for _ in 0..25 {
            for y in run(&mut runtime, &[1e-20; 10_000]) {
                assert!((y - expected).abs() < 1e-3, "{y}, not {expected}");
            }
            let denormal = std::hint::black_box(f32::MIN_POSITIVE / 4.0);
            assert!(denormal + denormal > 0.0);
        }
    }
}
