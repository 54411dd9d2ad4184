//! Runtimes whose inputs change their shapes.

use std::sync::Arc;

use crate::fixture::{any_f32, any_qint8, assert_close, conv, f32, qint8, ramp};
use crate::runtime::{X, Y, one_node, run};
use xnnpack::{
    AlignedBuffer, ArgMaxPool2d, Binary, BinaryOp, Binding, Conv2d, Copy, Datatype, ExternalId,
    Flags, FullyConnected, OutputRange, Padding2d, Quantization, ReduceOp, ResizeBilinear2d, Role,
    Runtime, RuntimeOptions, StaticReduce, Subgraph, TensorSpec, Unary, UnaryOp, Unpool2d,
};

#[test]
fn batches_grow_and_shrink() {
    let options = RuntimeOptions::default();
    let mut runtime = one_node(&[1, 2], &options, |graph, input, output| {
        let hidden = graph.define_tensor(any_f32()).unwrap();
        let data = AlignedBuffer::of(&[1.0f32, 1.0, 1.0, -1.0]);
        let filter = graph.define_tensor(f32(&[2, 2]).role(Role::Static(data.into()))).unwrap();
        let (output_range, flags) = (OutputRange::default(), Flags::NONE);
        graph
            .define(FullyConnected {
                output_range,
                input,
                filter,
                bias: None,
                output: hidden,
                flags,
            })
            .unwrap();
        graph.define(Unary { op: UnaryOp::Negate, input: hidden, output }).unwrap();
    });
    for batch in [1, 5, 2, 64, 3, 64, 1] {
        runtime.reshape_external(X, &[batch, 2]).unwrap();
        runtime.reshape().unwrap();
        assert_eq!(runtime.external_shape(Y), Some(&[batch, 2][..]));
        let input = ramp(2 * batch);
        let expected: Vec<f32> =
            input.chunks(2).flat_map(|row| [-(row[0] + row[1]), -(row[0] - row[1])]).collect();
        assert_close(&run(&mut runtime, &input), &expected, 0.0);
    }
}

/// Nodes that XNNPACK would compute out of bounds or incorrectly after a reshape in place.
#[test]
fn reshapes_that_xnnpack_cannot_do_in_place() {
    let options = RuntimeOptions::default();

    // XNNPACK never changes the size of the indices.
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 2, 2, 1]).role(Role::Input(X))).unwrap();
    let value_output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    let index_output = graph.define_tensor(TensorSpec::inferred(Datatype::I32)).unwrap();
    let (padding, pooling, flags) = (Padding2d::default(), [2, 2], Flags::NONE);
    graph
        .define(ArgMaxPool2d { padding, pooling, input, value_output, index_output, flags })
        .unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(ExternalId(5)))).unwrap();
    graph
        .define(Unpool2d {
            padding,
            pooling,
            value_input: value_output,
            index_input: index_output,
            output,
        })
        .unwrap();
    let mut runtime = Runtime::new(graph, &options).unwrap();
    for (height, channels) in [(2, 1), (32, 3), (8, 40)] {
        runtime.reshape_external(X, &[1, height, 2, channels]).unwrap();
        runtime.reshape().unwrap();
        let input = AlignedBuffer::of(&ramp(height * 2 * channels));
        let mut values = AlignedBuffer::new(height * 2 * channels);
        let mut unpooled = AlignedBuffer::new(height * 8 * channels);
        runtime
            .run(&mut [
                Binding::Input(X, input.input()),
                Binding::Output(Y, values.output()),
                Binding::Output(ExternalId(5), unpooled.output()),
            ])
            .unwrap();
        let result = values.elements::<f32>().unwrap();
        let total: f32 = unpooled.elements::<f32>().unwrap().iter().sum();
        assert_close(&[total], &[result.iter().sum()], 0.0);
        assert_close(&result[..1], &[f32::from(u8::try_from(3 * channels).unwrap())], 0.0);
    }

    // XNNPACK never changes the distance of pointers to pixels.
    let mut runtime = one_node(&[1, 2, 2, 1], &options, |graph, input, output| {
        let flags = Flags::ALIGN_CORNERS;
        graph.define(ResizeBilinear2d { size: [2, 3], input, output, flags }).unwrap();
    });
    for channels in [1, 4, 2] {
        runtime.reshape_external(X, &[1, 2, 2, channels]).unwrap();
        runtime.reshape().unwrap();
        let result = run(&mut runtime, &vec![2.5; 4 * channels]);
        assert_close(&result, &vec![2.5; 6 * channels], 0.0);
    }

    // The sum may use the memory of an operand that becomes one that is broadcast.
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[3, 2]).role(Role::Input(X))).unwrap();
    let other = graph.define_tensor(f32(&[3, 2]).role(Role::Input(ExternalId(8)))).unwrap();
    let [a, b, sum] = [(); 3].map(|()| graph.define_tensor(any_f32()).unwrap());
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input, output: a }).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: other, output: b }).unwrap();
    let output_range = OutputRange::default();
    graph.define(Binary { op: BinaryOp::Add, output_range, a, b, output: sum }).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: sum, output }).unwrap();
    let mut runtime = Runtime::new(graph, &options).unwrap();
    runtime.reshape().unwrap();
    runtime.reshape_external(X, &[1, 2]).unwrap();
    runtime.reshape().unwrap();
    let (x, other) = (AlignedBuffer::of(&[10.0f32, 20.0]), AlignedBuffer::of(&ramp(6)));
    let mut result = AlignedBuffer::new(24);
    runtime
        .run(&mut [
            Binding::Input(X, x.input()),
            Binding::Input(ExternalId(8), other.input()),
            Binding::Output(Y, result.output()),
        ])
        .unwrap();
    let expected = [10.0, 21.0, 12.0, 23.0, 14.0, 25.0];
    assert_close(result.elements().unwrap(), &expected, 0.0);
}

/// XNNPACK does not allocate more accumulators when a tensor grows back.
#[test]
fn quantized_mean_at_changing_shapes() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(qint8(&[1, 2, 2, 8], 0, 0.5).role(Role::Input(X))).unwrap();
    let mean = graph.define_tensor(any_qint8(0, 0.5)).unwrap();
    let output = graph.define_tensor(any_qint8(0, 0.5).role(Role::Output(Y))).unwrap();
    let flags = Flags::NONE;
    graph
        .define(StaticReduce { op: ReduceOp::Mean, axes: vec![1, 2], input, output: mean, flags })
        .unwrap();
    graph.define(Copy { input: mean, output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    for batch in [1, 50, 2, 40, 1, 50] {
        runtime.reshape_external(X, &[batch, 2, 2, 8]).unwrap();
        runtime.reshape().unwrap();
        let input = AlignedBuffer::of(&vec![6i8; batch * 32]);
        let mut output = AlignedBuffer::new(batch * 8);
        runtime
            .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
            .unwrap();
        assert_eq!(output.elements::<i8>().unwrap(), vec![6; batch * 8]);
    }
}

/// More but shorter rows require more parameters for a smaller tensor.
#[test]
fn dynamic_quantization_at_changing_shapes() {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[1, 16, 16, 1]).role(Role::Input(X))).unwrap();
    let rows = Quantization::Dynamic { nonbatch_dims: 3 };
    let spec = TensorSpec::inferred(Datatype::Qdint8).quantized(rows);
    let quantized = graph.define_tensor(spec).unwrap();
    let scales = Quantization::PerChannel { zero_point: 0, axis: 0, scales: Arc::new([1.0]) };
    let filter = TensorSpec::new(Datatype::Qcint8, &[1, 2, 2, 1]).quantized(scales);
    let filter = filter.role(Role::Static(AlignedBuffer::of(&[1i8; 4]).into()));
    let filter = graph.define_tensor(filter).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(Unary { op: UnaryOp::Convert, input, output: quantized }).unwrap();
    let node = Conv2d { stride: [2, 2], ..conv(quantized, filter, None, output) };
    graph.define(node).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    for [batch, side] in [[1, 16], [60, 2], [3, 16], [200, 2]] {
        runtime.reshape_external(X, &[batch, side, side, 1]).unwrap();
        runtime.reshape().unwrap();
        let result = run(&mut runtime, &vec![1.0; batch * side * side]);
        assert_close(&result, &vec![4.0; batch * side * side / 4], 0.05);
    }
}
