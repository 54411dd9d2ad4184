//! A runtime that had other shapes before must compute the same as a new one.

use std::sync::Arc;

use crate::fixture::{self, any_f32, any_qint8, depthwise, f32, qint8};
use xnnpack::{
    AlignedBuffer, AveragePool2d, BatchMatMul, Binary, BinaryOp, Binding, Concatenate, ConstantPad,
    Conv2d, Datatype, Deconv2d, DepthwiseConv2d, EvenSplit, ExternalId, Flags, FullyConnected,
    GlobalPool, MaxPool2d, OutputRange, Padding2d, PooledDims, Quantization, ReduceOp,
    ResizeBilinear2d, Role, Runtime, RuntimeOptions, Softmax, StaticData, StaticReduce, Subgraph,
    TensorSpec, Transpose, Unary, UnaryOp, ValueId,
};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);

/// Seeded pseudo-random numbers (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn bytes(&mut self, count: usize) -> Vec<i8> {
        (0..count).map(|_| i8::try_from(self.below(17)).unwrap() - 8).collect()
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        self.bytes(count).into_iter().map(f32::from).collect()
    }
}

/// A subgraph with input X of four dimensions and output Y.
struct Case {
    graph: Arc<Subgraph>,
    /// Numbers of channels that the nodes support.
    channels: &'static [usize],
    quantized: bool,
}

fn case(
    channels: &'static [usize],
    quantized: bool,
    define: impl FnOnce(&mut Subgraph, ValueId, ValueId),
) -> Case {
    let mut graph = Subgraph::new().unwrap();
    let dims = [1, 4, 4, channels[0]];
    let spec = || if quantized { any_qint8(1, 0.5) } else { any_f32() };
    let input = if quantized { qint8(&dims, 1, 0.5) } else { f32(&dims) };
    let input = graph.define_tensor(input.role(Role::Input(X))).unwrap();
    let [first, last] = [(); 2].map(|()| graph.define_tensor(spec()).unwrap());
    let output = graph.define_tensor(spec().role(Role::Output(Y))).unwrap();
    graph.define(Unary { op: UnaryOp::Abs, input, output: first }).unwrap();
    define(&mut graph, first, last);
    graph.define(Unary { op: UnaryOp::Negate, input: last, output }).unwrap();
    Case { graph: Arc::new(graph), channels, quantized }
}

fn constant(graph: &mut Subgraph, spec: TensorSpec, data: StaticData) -> ValueId {
    graph.define_tensor(spec.role(Role::Static(data))).unwrap()
}

fn conv(input: ValueId, filter: ValueId, output: ValueId, flags: Flags) -> Conv2d {
    Conv2d {
        kernel: [2, 3],
        group_input_channels: 3,
        group_output_channels: 5,
        flags,
        ..fixture::conv(input, filter, None, output)
    }
}

fn cases() -> Vec<Case> {
    let any: &[usize] = &[3, 1, 8, 17, 4];
    let range = OutputRange::default();
    let padding = Padding2d { top: 1, right: 0, bottom: 1, left: 1 };
    let pool = |input, output| MaxPool2d {
        padding,
        pooling: [2, 2],
        stride: [2, 1],
        dilation: [1, 1],
        output_range: range,
        input,
        output,
        flags: Flags::NONE,
    };
    let mean = |input, output| GlobalPool {
        op: ReduceOp::Mean,
        dims: PooledDims::Two,
        is_fixed: false,
        output_range: range,
        input,
        output,
        flags: Flags::KEEP_DIMS,
    };
    vec![
        case(&[3], false, |graph, input, output| {
            let data = StaticData::of(&Numbers(1).floats(90));
            let filter = constant(graph, f32(&[5, 2, 3, 3]), data);
            graph.define(conv(input, filter, output, Flags::SAME_PADDING)).unwrap();
        }),
        case(&[3], true, |graph, input, output| {
            let data = StaticData::of(&Numbers(2).bytes(90));
            let filter = constant(graph, qint8(&[5, 2, 3, 3], 0, 0.1), data);
            let node = Conv2d { stride: [2, 2], ..conv(input, filter, output, Flags::NONE) };
            graph.define(Conv2d { padding, ..node }).unwrap();
        }),
        case(&[6], false, |graph, input, output| {
            let data = StaticData::of(&Numbers(3).floats(54));
            let filter = constant(graph, f32(&[1, 3, 3, 6]), data);
            let node = depthwise(6, input, filter, None, output);
            graph.define(DepthwiseConv2d { padding, ..node }).unwrap();
        }),
        case(&[3], false, |graph, input, output| {
            let data = StaticData::of(&Numbers(4).floats(54));
            let filter = constant(graph, f32(&[2, 3, 3, 3]), data);
            let node = Deconv2d {
                padding,
                adjustment: [1, 0],
                kernel: [3, 3],
                group_input_channels: 3,
                group_output_channels: 2,
                output_range: range,
                ..fixture::deconv(input, filter, None, output)
            };
            graph.define(node).unwrap();
        }),
        case(&[7], false, |graph, input, output| {
            let data = StaticData::of(&Numbers(5).floats(28));
            let filter = constant(graph, f32(&[4, 7]), data);
            let flags = Flags::NONE;
            let node =
                FullyConnected { output_range: range, input, filter, bias: None, output, flags };
            graph.define(node).unwrap();
        }),
        case(any, false, move |graph, input, output| graph.define(pool(input, output)).unwrap()),
        case(any, true, move |graph, input, output| graph.define(pool(input, output)).unwrap()),
        case(any, false, |graph, input, output| {
            let (pooling, stride, flags) = ([3, 2], [2, 2], Flags::SAME_PADDING);
            let padding = Padding2d::default();
            let output_range = range;
            let node =
                AveragePool2d { padding, pooling, stride, output_range, input, output, flags };
            graph.define(node).unwrap();
        }),
        case(any, false, move |graph, input, output| graph.define(mean(input, output)).unwrap()),
        case(any, true, move |graph, input, output| graph.define(mean(input, output)).unwrap()),
        case(any, true, |graph, input, output| {
            let (size, flags) = ([5, 3], Flags::NONE);
            graph.define(ResizeBilinear2d { size, input, output, flags }).unwrap();
        }),
        case(any, false, |graph, input, output| {
            graph.define(Softmax { input, output }).unwrap();
        }),
        case(any, false, |graph, input, output| {
            let transposed = graph.define_tensor(any_f32()).unwrap();
            let node = Transpose { perm: vec![0, 1, 3, 2], input, output: transposed };
            graph.define(node).unwrap();
            let node = BatchMatMul { a: input, b: transposed, output, flags: Flags::NONE };
            graph.define(node).unwrap();
        }),
        case(any, false, move |graph, input, output| {
            let pooled = graph.define_tensor(any_f32()).unwrap();
            graph.define(mean(input, pooled)).unwrap();
            let (op, output_range) = (BinaryOp::Multiply, range);
            graph.define(Binary { op, output_range, a: input, b: pooled, output }).unwrap();
        }),
        case(any, true, |graph, input, output| {
            let padded = graph.define_tensor(any_qint8(1, 0.5)).unwrap();
            let (before, after) = (vec![0, 1, 0, 0], vec![1, 2, 0, 3]);
            graph.define(ConstantPad { before, after, value: 2.0, input, output: padded }).unwrap();
            let inputs = vec![padded, padded, padded];
            graph.define(Concatenate { axis: 2, inputs, output }).unwrap();
        }),
        case(&[4, 8, 2], false, |graph, input, output| {
            let [a, b] = [(); 2].map(|()| graph.define_tensor(any_f32()).unwrap());
            graph.define(EvenSplit { axis: 3, input, outputs: vec![a, b] }).unwrap();
            let (op, output_range) = (BinaryOp::Subtract, range);
            graph.define(Binary { op, output_range, a, b, output }).unwrap();
        }),
    ]
}

/// Returns the output for an input of shape `dims` and these bytes.
fn run(runtime: &mut Runtime, dims: &[usize], input: &AlignedBuffer) -> Vec<u8> {
    runtime.reshape_external(X, dims).unwrap();
    runtime.reshape().unwrap();
    let mut output = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    output.as_slice().to_vec()
}

#[test]
fn earlier_shapes_do_not_affect_results() {
    for (number, case) in cases().into_iter().enumerate() {
        let options = RuntimeOptions::default();
        let mut numbers = Numbers(u64::try_from(number).unwrap());
        let mut old = Runtime::new(Arc::clone(&case.graph), &options).unwrap();
        for _ in 0..25 {
            let channels = case.channels[numbers.below(case.channels.len())];
            let (batch, height) = (1 + numbers.below(6), 3 + numbers.below(7));
            let dims = [batch, height, 3 + numbers.below(7), channels];
            let elements = dims.iter().product();
            let input = if case.quantized {
                AlignedBuffer::of(&numbers.bytes(elements))
            } else {
                AlignedBuffer::of(&numbers.floats(elements))
            };
            let mut fresh = Runtime::new(Arc::clone(&case.graph), &options).unwrap();
            assert_eq!(
                run(&mut old, &dims, &input),
                run(&mut fresh, &dims, &input),
                "case {number} at {dims:?}"
            );
        }
    }
}

/// XNNPACK would read one scale per channel, beyond the end of the list.
#[test]
fn the_number_of_channels_with_scales_cannot_change() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[4]).role(Role::Input(X))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let scales = vec![1.0; 4].into();
    let quantization = Quantization::PerChannel { zero_point: 0, axis: 0, scales };
    let unread = TensorSpec::new(Datatype::Qcint8, &[4, 1]).quantized(quantization);
    graph.define_tensor(unread.role(Role::Input(ExternalId(9)))).unwrap();
    graph.define(Unary { op: UnaryOp::Abs, input, output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    runtime.reshape_external(ExternalId(9), &[4, 2]).unwrap();
    runtime.reshape_external(ExternalId(9), &[5, 1]).unwrap_err();
    runtime.reshape().unwrap();
}

/// Reshapes in place are decided by the shapes that XNNPACK has.
#[test]
fn shapes_of_a_failed_reshape_are_not_kept() {
    const ROWS: usize = 10_000;
    let ids = [0, 5, 6, 7].map(ExternalId);
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(qint8(&[ROWS, 4], 0, 0.5).role(Role::Input(ids[0]))).unwrap();
    let other = graph.define_tensor(f32(&[1]).role(Role::Input(ids[1]))).unwrap();
    graph.define_tensor(f32(&[1]).role(Role::Input(ids[2]))).unwrap();
    let negative = graph.define_tensor(any_f32()).unwrap();
    let means = graph.define_tensor(any_qint8(0, 0.5).role(Role::Output(Y))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(ids[3]))).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: other, output: negative }).unwrap();
    let (op, axes, flags) = (ReduceOp::Mean, vec![1], Flags::NONE);
    graph.define(StaticReduce { op, axes, input, output: means, flags }).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: negative, output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    runtime.reshape().unwrap();
    runtime.reshape_external(ids[0], &[1, 4]).unwrap();
    runtime.reshape_external(ids[1], &[ROWS]).unwrap();
    runtime.reshape().unwrap();
    runtime.reshape_external(ids[0], &[2 * ROWS, 4]).unwrap();
    // More bytes than an input may have.
    runtime.reshape_external(ids[2], &[usize::MAX / 4]).unwrap_err();
    runtime.reshape_external(ids[0], &[ROWS, 4]).unwrap();
    runtime.reshape().unwrap();
}
