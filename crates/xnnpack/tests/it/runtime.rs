use std::sync::Arc;

use crate::fixture::{Fixture, any_f32, assert_close, conv, f32, qint8, ramp};
use xnnpack::{
    AlignedBuffer, ArgMaxPool2d, AveragePool2d, Binary, BinaryOp, Binding, Conv2d, Copy, Datatype,
    EXTRA_BYTES, ExternalId, Flags, Fp16, MaxPool2d, OutputRange, OutputSlice, PaddedSlice,
    Padding2d, Role, Runtime, RuntimeOptions, Softmax, Status, Subgraph, TensorSpec, Unary,
    UnaryOp, ValueId, has_half_precision,
};

pub const X: ExternalId = ExternalId(7);
pub const Y: ExternalId = ExternalId(3);

/// A runtime of one node with input X and output Y.
pub fn one_node(
    dims: &[usize],
    options: &RuntimeOptions,
    define: impl FnOnce(&mut Subgraph, ValueId, ValueId),
) -> Runtime {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(dims).role(Role::Input(X))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    define(&mut graph, input, output);
    Runtime::new(graph, options).unwrap()
}

fn negation(dims: &[usize]) -> Runtime {
    one_node(dims, &RuntimeOptions::default(), |graph, input, output| {
        graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
    })
}

pub fn run(runtime: &mut Runtime, data: &[f32]) -> Vec<f32> {
    let input = AlignedBuffer::of(data);
    let mut output = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    output.elements::<f32>().unwrap().to_vec()
}

#[test]
fn externals_are_described() {
    let mut runtime = negation(&[2, 3]);
    let ids: Vec<_> =
        runtime.externals().map(|external| (external.id, external.is_input)).collect();
    assert_eq!(ids, [(Y, false), (X, true)]);
    assert_eq!(runtime.external(X).unwrap().bytes, 24);
    assert_eq!(runtime.external_shape(Y), Some(&[2, 3][..]));
    assert_eq!(runtime.external_shape(ExternalId(0)), None);
    assert!(runtime.reshape_external(Y, &[1]).is_err());
    assert!(runtime.reshape_external(X, &[0]).is_err());
    assert!(runtime.reshape_external(X, &[usize::MAX]).is_err());
}

#[test]
fn runs_require_a_reshape() {
    let mut runtime = negation(&[2]);
    let input = AlignedBuffer::of(&[1.0f32, 2.0]);
    let mut output = AlignedBuffer::new(8);
    let mut bindings = [Binding::Input(X, input.input()), Binding::Output(Y, output.output())];
    let error = runtime.run(&mut bindings).unwrap_err();
    assert_eq!(error.status(), Status::InvalidState);
    runtime.reshape().unwrap();
    runtime.run(&mut bindings).unwrap();
    runtime.reshape_external(X, &[3]).unwrap();
    assert_eq!(runtime.run(&mut bindings).unwrap_err().status(), Status::InvalidState);
    runtime.reshape().unwrap();
    assert_eq!(runtime.external_shape(Y), Some(&[3][..]));
    assert!(
        runtime.run(&mut bindings).unwrap_err().to_string().contains("expected 12 bytes, found 8")
    );
    assert_close(&run(&mut runtime, &[1.0, 2.0, 3.0]), &[-1.0, -2.0, -3.0], 0.0);
}

#[test]
fn a_refused_reshape_changes_nothing_and_can_be_repaired() {
    let options = RuntimeOptions::default();
    let mut runtime = one_node(&[1, 3, 3, 1], &options, |graph, input, output| {
        let pooling = [2, 2];
        let node = AveragePool2d {
            padding: Padding2d::default(),
            pooling,
            stride: pooling,
            output_range: OutputRange::default(),
            input,
            output,
            flags: Flags::NONE,
        };
        graph.define(node).unwrap();
    });
    runtime.reshape().unwrap();
    for dims in [&[1, 1, 3, 1][..], &[3, 3, 1]] {
        runtime.reshape_external(X, dims).unwrap();
        let error = runtime.reshape().unwrap_err();
        assert_eq!(error.node().unwrap().kind, "average_pooling_2d");
        assert_eq!(runtime.external_shape(X), Some(&[1, 3, 3, 1][..]));
    }
    runtime.reshape_external(X, &[2, 2, 2, 1]).unwrap();
    runtime.reshape().unwrap();
    assert_close(&run(&mut runtime, &ramp(8)), &[1.5, 5.5], 1e-6);
}

#[test]
fn wrong_bindings_are_refused() {
    let mut runtime = negation(&[4]);
    runtime.reshape().unwrap();
    let input = AlignedBuffer::of(&ramp(4));
    let long = AlignedBuffer::new(64);
    let mut output = AlignedBuffer::new(16);
    let mut plain = [0u32; 8];
    let mut fails = |bindings: &mut [Binding<'_>], text: &str| {
        let error = runtime.run(bindings).unwrap_err();
        assert!(error.reason().contains(text), "{error}");
    };
    fails(&mut [], "not bound");
    fails(&mut [Binding::Input(X, input.input())], "3 is not bound");
    let both = || Binding::Input(X, input.input());
    fails(&mut [both(), both()], "bound twice");
    fails(&mut [Binding::Input(Y, input.input())], "an output");
    fails(&mut [Binding::Output(X, output.output())], "an input");
    fails(&mut [Binding::Input(ExternalId(1), input.input())], "not an input or output");
    fails(&mut [Binding::Input(X, long.input())], "expected 16 bytes, found 64");
    let part = |range| PaddedSlice::within(long.as_slice(), range).unwrap();
    fails(&mut [Binding::Input(X, part(1..17))], "not aligned");
    fails(
        &mut [Binding::Input(X, part(40..56))],
        "expected 16 readable bytes after the buffer, found 8",
    );
    assert!(PaddedSlice::within(long.as_slice(), 50..66).is_none());

    let bytes: &mut [u8] = bytes_of(&mut plain);
    let mut bindings =
        [Binding::Input(X, part(32..48)), Binding::Output(Y, OutputSlice::from(&mut bytes[4..20]))];
    runtime.run(&mut bindings).unwrap();
}

/// The bytes of the words.
fn bytes_of(words: &mut [u32; 8]) -> &mut [u8] {
    // SAFETY: 8 words without padding have 32 bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 32) }
}

#[test]
fn an_output_that_is_read_needs_padding() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[4]).role(Role::Input(X))).unwrap();
    let first = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let second = graph.define_tensor(any_f32().role(Role::Output(ExternalId(9)))).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input, output: first }).unwrap();
    graph.define(Unary { op: UnaryOp::Square, input: first, output: second }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    runtime.reshape().unwrap();

    let input = AlignedBuffer::of(&ramp(4));
    let mut memory = AlignedBuffer::new(16 + EXTRA_BYTES);
    let mut last = AlignedBuffer::new(16);
    let mut bindings = [
        Binding::Input(X, input.input()),
        Binding::Output(Y, OutputSlice::from(&mut memory.as_mut_slice()[..16])),
        Binding::Output(ExternalId(9), last.output()),
    ];
    let error = runtime.run(&mut bindings).unwrap_err();
    assert!(error.reason().contains("readable bytes"), "{error}");
    let mut bindings = [
        Binding::Input(X, input.input()),
        Binding::Output(Y, OutputSlice::within(memory.as_mut_slice(), 0..16).unwrap()),
        Binding::Output(ExternalId(9), OutputSlice::from(last.as_mut_slice())),
    ];
    runtime.run(&mut bindings).unwrap();
    assert_close(last.elements().unwrap(), &[0.0, 1.0, 4.0, 9.0], 0.0);
}

#[test]
fn profile_names_operators() {
    let options = RuntimeOptions { profiling: true, ..RuntimeOptions::default() };
    let mut runtime = one_node(&[4], &options, |graph, input, output| {
        let middle = graph.define_tensor(any_f32()).unwrap();
        graph.define(Unary { op: UnaryOp::Negate, input, output: middle }).unwrap();
        graph.define(Softmax { input: middle, output }).unwrap();
    });
    runtime.reshape().unwrap();
    assert_eq!(runtime.profile().unwrap_err().status(), Status::InvalidState);
    run(&mut runtime, &ramp(4));
    let names: Vec<_> = runtime.profile().unwrap().into_iter().map(|timing| timing.name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[1].contains("Softmax"), "{names:?}");

    let mut runtime = negation(&[1]);
    runtime.reshape().unwrap();
    run(&mut runtime, &[1.0]);
    assert!(runtime.profile().unwrap_err().reason().contains("off"));
}

#[test]
fn options_are_accepted() {
    let base = RuntimeOptions::default();
    let variants = [
        RuntimeOptions { sparse: true, ..base.clone() },
        RuntimeOptions { fp16: Fp16::Hint, ..base.clone() },
        RuntimeOptions { fp16: Fp16::Force, ..base },
    ];
    let is_possible =
        |options: &RuntimeOptions| options.fp16 != Fp16::Force || has_half_precision();
    for options in variants.into_iter().filter(is_possible) {
        let mut runtime = one_node(&[1, 4, 4, 1], &options, |graph, input, output| {
            let data = AlignedBuffer::of(&[1.0f32; 9]);
            let filter = f32(&[1, 3, 3, 1]).role(Role::Static(data.into()));
            let filter = graph.define_tensor(filter).unwrap();
            let node = Conv2d {
                kernel: [3, 3],
                flags: Flags::SAME_PADDING,
                ..conv(input, filter, None, output)
            };
            graph.define(node).unwrap();
        });
        runtime.reshape().unwrap();
        let result = run(&mut runtime, &ramp(16));
        assert_close(&result[5..7], &[45.0, 54.0], 0.1);
    }
}

#[test]
fn persistent_tensors_keep_their_values_between_runs() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[2]).role(Role::Input(X))).unwrap();
    let state = graph.define_tensor(f32(&[2]).role(Role::Persistent)).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let output_range = OutputRange::default();
    graph.define(Binary { op: BinaryOp::Add, output_range, a: input, b: state, output }).unwrap();
    graph.define(Copy { input: output, output: state }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    runtime.reshape().unwrap();
    assert_close(&run(&mut runtime, &[1.0, 2.0]), &[1.0, 2.0], 0.0);
    assert_close(&run(&mut runtime, &[1.0, 2.0]), &[2.0, 4.0], 0.0);
    assert_close(&run(&mut runtime, &[0.0, 1.0]), &[2.0, 5.0], 0.0);
}

#[test]
fn one_subgraph_serves_many_runtimes() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2]), &[0.0f32; 2]);
    let output = fixture.output(any_f32());
    let graph = Arc::new(fixture.node(Unary { op: UnaryOp::Negate, input, output }).graph);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut runtime =
                    Runtime::new(Arc::clone(&graph), &RuntimeOptions::default()).unwrap();
                runtime.reshape().unwrap();
            });
        }
    });
}

#[test]
fn nodes_without_effect_are_omitted() {
    let mut runtime = one_node(&[4], &RuntimeOptions::default(), |graph, input, output| {
        let [dead, deader] = [(); 2].map(|()| graph.define_tensor(any_f32()).unwrap());
        graph.define(Unary { op: UnaryOp::Square, input, output: dead }).unwrap();
        graph.define(Unary { op: UnaryOp::Square, input: dead, output: deader }).unwrap();
        graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
    });
    runtime.reshape().unwrap();
    assert_close(&run(&mut runtime, &ramp(4)), &[0.0, -1.0, -2.0, -3.0], 0.0);
}

#[test]
fn both_outputs_of_argmax_pooling_must_be_used() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 2, 2, 1]).role(Role::Input(X))).unwrap();
    let value_output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let index_output = graph.define_tensor(TensorSpec::inferred(Datatype::I32)).unwrap();
    let (padding, pooling, flags) = (Padding2d::default(), [2, 2], Flags::NONE);
    graph
        .define(ArgMaxPool2d { padding, pooling, input, value_output, index_output, flags })
        .unwrap();
    let error = Runtime::new(graph, &RuntimeOptions::default()).unwrap_err();
    assert_eq!(error.node().unwrap().kind, "argmax_pooling_2d");
}

/// XNNPACK applies the bounds of a clamp to the padding of the previous pooling.
#[test]
fn clamps_are_not_fused_if_results_would_change() {
    for (min, max, expected) in
        [(1.0, 2.0, 2.0), (-1.0, 0.0, 0.0), (-8.0, -2.0, -2.0), (0.0, 6.0, 5.0)]
    {
        let mut runtime =
            one_node(&[1, 2, 2, 1], &RuntimeOptions::default(), |graph, input, output| {
                let pooled = graph.define_tensor(any_f32()).unwrap();
                let node = MaxPool2d {
                    padding: Padding2d { top: 1, right: 1, bottom: 1, left: 1 },
                    pooling: [2, 2],
                    stride: [2, 2],
                    dilation: [1, 1],
                    output_range: OutputRange::default(),
                    input,
                    output: pooled,
                    flags: Flags::NONE,
                };
                graph.define(node).unwrap();
                graph
                    .define(Unary { op: UnaryOp::Clamp { min, max }, input: pooled, output })
                    .unwrap();
            });
        runtime.reshape().unwrap();
        assert_eq!(runtime.external_shape(Y), Some(&[1, 2, 2, 1][..]));
        assert_close(&run(&mut runtime, &[5.0; 4]), &[expected; 4], 0.0);
    }
}

/// XNNPACK intersects the bounds of two clamps.
#[test]
fn disjoint_clamps_are_not_fused() {
    let infinity = f32::INFINITY;
    for (first, then, expected) in
        [([-1.0, 1.0], [2.0, 6.0], 2.0), ([0.0, infinity], [-infinity, 0.0], 0.0)]
    {
        let mut runtime = one_node(&[1, 4], &RuntimeOptions::default(), |graph, input, output| {
            let clamp = |[min, max]: [f32; 2]| UnaryOp::Clamp { min, max };
            let between = graph.define_tensor(any_f32()).unwrap();
            graph.define(Unary { op: clamp(first), input, output: between }).unwrap();
            graph.define(Unary { op: clamp(then), input: between, output }).unwrap();
        });
        runtime.reshape().unwrap();
        assert_close(&run(&mut runtime, &[-5.0, 0.5, 1.0, 5.0]), &[expected; 4], 0.0);

        let mut runtime = one_node(&[1, 4], &RuntimeOptions::default(), |graph, input, output| {
            let [min, max] = first;
            let between = graph.define_tensor(any_f32()).unwrap();
            let output_range = OutputRange { min, max };
            let sum =
                Binary { op: BinaryOp::Add, output_range, a: input, b: input, output: between };
            graph.define(sum).unwrap();
            let [min, max] = then;
            let op = UnaryOp::Clamp { min, max };
            graph.define(Unary { op, input: between, output }).unwrap();
        });
        runtime.reshape().unwrap();
        assert_close(&run(&mut runtime, &[-5.0, 0.5, 1.0, 5.0]), &[expected; 4], 0.0);
    }
}

#[test]
fn computation_in_fp16_requires_fp32_tensors() {
    let options = RuntimeOptions { fp16: Fp16::Force, ..RuntimeOptions::default() };
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[4], 0, 0.5), &[1i8, 2, 3, 4]);
    let output = fixture.output(any_f32());
    let error = fixture
        .node(Unary { op: UnaryOp::Convert, input, output })
        .run_with::<f32>(&options)
        .unwrap_err();
    assert_eq!(error.status(), Status::UnsupportedParameter);
}
