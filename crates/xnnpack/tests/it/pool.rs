use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, f32, qint8, ramp};
use xnnpack::{
    ArgMaxPool2d, AveragePool2d, Datatype, Flags, MaxPool2d, OutputRange, Padding2d, TensorSpec,
    Unpool2d, ValueId,
};

fn average(input: ValueId, output: ValueId) -> AveragePool2d {
    AveragePool2d {
        padding: Padding2d::default(),
        pooling: [2, 2],
        stride: [1, 1],
        output_range: OutputRange::default(),
        input,
        output,
        flags: Flags::NONE,
    }
}

fn max(input: ValueId, output: ValueId) -> MaxPool2d {
    MaxPool2d {
        padding: Padding2d::default(),
        pooling: [2, 2],
        stride: [1, 1],
        dilation: [1, 1],
        output_range: OutputRange::default(),
        input,
        output,
        flags: Flags::NONE,
    }
}

#[test]
fn average_pooling() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let output = fixture.output(any_f32());
    let result = fixture.node(average(input, output)).run::<f32>();
    assert_close(&result, &[2.0, 3.0, 5.0, 6.0], 1e-6);
}

#[test]
fn average_pooling_ignores_padding() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let output = fixture.output(f32(&[1, 2, 2, 1]));
    let node =
        AveragePool2d { stride: [2, 2], flags: Flags::SAME_PADDING, ..average(input, output) };
    assert_close(&fixture.node(node).run::<f32>(), &[2.0, 3.5, 6.5, 8.0], 1e-6);
}

#[test]
fn average_pooling_of_single_elements_copies_them() {
    for flags in [Flags::NONE, Flags::SAME_PADDING] {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, 4, 3, 1]), &ramp(12));
        let output = fixture.output(f32(&[1, 2, 2, 1]));
        let (pooling, stride) = ([1, 1], [2, 2]);
        let node = AveragePool2d { pooling, stride, flags, ..average(input, output) };
        assert_close(&fixture.node(node).run::<f32>(), &[0.0, 2.0, 6.0, 8.0], 0.0);
    }
}

#[test]
fn max_pooling() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let output = fixture.output(any_f32());
    let result = fixture.node(MaxPool2d { dilation: [2, 2], ..max(input, output) }).run::<f32>();
    assert_close(&result, &[8.0], 0.0);

    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 2, 2, 1], 3, 0.5), &[-5i8, 7, 2, -100]);
    let output = fixture.output(any_qint8(3, 0.5));
    assert_eq!(fixture.node(max(input, output)).run::<i8>(), [7]);
}

#[test]
fn argmax_pooling_and_unpooling() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 2, 4, 1]), &[1.0f32, 2.0, 5.0, 1.0, 4.0, 3.0, 2.0, 1.0]);
    let values = fixture.internal(any_f32());
    let indices = fixture.internal(TensorSpec::inferred(Datatype::I32));
    let output = fixture.output(any_f32());
    let pooling = [2, 2];
    let padding = Padding2d::default();
    let argmax = ArgMaxPool2d {
        padding,
        pooling,
        input,
        value_output: values,
        index_output: indices,
        flags: Flags::NONE,
    };
    let unpool = Unpool2d { padding, pooling, value_input: values, index_input: indices, output };
    let result = fixture.node(argmax).node(unpool).run::<f32>();
    assert_close(&result, &[0.0, 0.0, 5.0, 0.0, 4.0, 0.0, 0.0, 0.0], 0.0);
}

#[test]
fn indices_of_other_nodes_are_refused() {
    let mut fixture = Fixture::new();
    let value_input = fixture.input(f32(&[1, 1, 1, 1]), &[1.0f32]);
    let index_input = fixture.input(TensorSpec::new(Datatype::I32, &[1, 1, 1, 1]), &[1 << 20]);
    let output = fixture.internal(any_f32());
    let padding = Padding2d::default();
    let error =
        fixture.refusal(Unpool2d { padding, pooling: [2, 2], value_input, index_input, output });
    assert!(error.reason().contains("not the index output"), "{error}");
}

#[test]
fn indices_of_another_window_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 4, 4, 1]), &ramp(16));
    let value_output = fixture.internal(any_f32());
    let index_output = fixture.internal(TensorSpec::inferred(Datatype::I32));
    let output = fixture.internal(any_f32());
    let padding = Padding2d::default();
    let flags = Flags::NONE;
    let argmax =
        ArgMaxPool2d { padding, pooling: [4, 4], input, value_output, index_output, flags };
    fixture.graph.define(argmax).unwrap();
    fixture.refusal(Unpool2d {
        padding,
        pooling: [2, 2],
        value_input: value_output,
        index_input: index_output,
        output,
    });
}

#[test]
fn wrong_pooling_is_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let bytes = fixture.input(qint8(&[1, 3, 3, 1], 0, 1.0), &[0i8; 9]);
    let output = fixture.internal(any_f32());
    let byte_output = fixture.internal(any_qint8(0, 1.0));
    let other_scale = fixture.internal(any_qint8(0, 2.0));
    let good = average(input, output);
    fixture.refusal(MaxPool2d { pooling: [1, 1], ..max(input, output) });
    fixture.refusal(AveragePool2d { pooling: [0, 2], ..good.clone() });
    fixture.refusal(AveragePool2d { pooling: [65536, 65536], ..good.clone() });
    fixture.refusal(AveragePool2d { pooling: [4, 2], ..good.clone() });
    fixture.refusal(AveragePool2d { stride: [1, 0], ..good.clone() });
    fixture.refusal(average(bytes, byte_output));
    fixture.refusal(max(bytes, other_scale));
    fixture.refusal(MaxPool2d { dilation: [0, 1], ..max(input, output) });
    fixture.graph.define(good).unwrap();
}
