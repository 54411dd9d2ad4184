//! Pooling operators, compared with results calculated by hand.

use xnn_format::{
    Datatype, NodeOp, Padding2d, Pooling2d, Quantization, Size2d, Value, ValueId, flags,
};

use crate::support::{Builder, range, run_one};

fn window(kernel: [u32; 2], stride: [u32; 2], input: ValueId, output: ValueId) -> Pooling2d {
    Pooling2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: kernel[0], width: kernel[1] },
        stride: Size2d { height: stride[0], width: stride[1] },
        dilation: Size2d::ONE,
        input,
        output,
    }
}

#[test]
fn mean_ignores_padding() {
    let got = run_one(
        (&[1, 1, 3, 1], &[3.0, 6.0, 9.0]),
        &[1, 1, 3, 1],
        |x, y| NodeOp::AveragePooling2d(window([1, 3], [1, 1], x, y)),
        flags::TENSORFLOW_SAME_PADDING,
    );
    assert_eq!(got.unwrap(), [4.5, 6.0, 7.5]);
}

#[test]
fn mean_is_clamped() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 2, 2, 1]);
    let y = builder.output_f32(&[1, 1, 1, 1]);
    builder.node(NodeOp::AveragePooling2d(window([2, 2], [2, 2], x, y))).output_range =
        range(0.0, 2.0);
    assert_eq!(builder.run_f32(&[&[1.0, 2.0, 3.0, 4.0]]).unwrap(), [2.0]);
}

#[test]
fn maximum_with_stride_and_dilation() {
    let image: Vec<f32> = (0..16u8).map(f32::from).collect();
    let got = run_one(
        (&[1, 4, 4, 1], &image),
        &[1, 2, 2, 1],
        |x, y| NodeOp::MaxPooling2d(window([2, 2], [2, 2], x, y)),
        0,
    );
    assert_eq!(got.unwrap(), [5.0, 7.0, 13.0, 15.0]);
    let got = run_one(
        (&[1, 4, 4, 1], &image),
        &[1, 2, 2, 1],
        |x, y| {
            let dilation = Size2d { height: 2, width: 2 };
            NodeOp::MaxPooling2d(Pooling2d { dilation, ..window([2, 2], [1, 1], x, y) })
        },
        0,
    );
    assert_eq!(got.unwrap(), [10.0, 11.0, 14.0, 15.0]);
}

#[test]
fn padding_is_never_the_maximum() {
    let got = run_one(
        (&[1, 1, 2, 1], &[-5.0, -7.0]),
        &[1, 1, 2, 1],
        |x, y| {
            let padding = Padding2d { left: 1, ..Padding2d::default() };
            NodeOp::MaxPooling2d(Pooling2d { padding, ..window([1, 2], [1, 1], x, y) })
        },
        0,
    );
    assert_eq!(got.unwrap(), [-5.0, -5.0]);
}

#[test]
fn explicit_padding_and_same_padding_are_mutually_exclusive() {
    let run = |flags| {
        run_one(
            (&[1, 1, 2, 1], &[-5.0, -7.0]),
            &[1, 1, 2, 1],
            |x, y| {
                let padding = Padding2d { left: 1, ..Padding2d::default() };
                NodeOp::MaxPooling2d(Pooling2d { padding, ..window([1, 2], [1, 1], x, y) })
            },
            flags,
        )
    };
    assert!(run(0).is_ok());
    assert!(run(flags::TENSORFLOW_SAME_PADDING).is_err());
}

/// ExecuTorch writes the flag 0x40.
#[test]
fn flags_that_xnnpack_ignores_change_nothing() {
    for bit in (0..32).map(|bit| 1 << bit).filter(|&bit| bit != flags::TENSORFLOW_SAME_PADDING) {
        for node in [NodeOp::MaxPooling2d, NodeOp::AveragePooling2d] {
            let image = (&[1, 1, 2, 1][..], &[-5.0, -5.0][..]);
            let run = run_one(image, &[1, 1, 1, 1], |x, y| node(window([1, 2], [1, 1], x, y)), bit);
            assert_eq!(run.unwrap(), [-5.0], "{bit:#x}");
        }
    }
}

#[test]
fn argmax_pooling_and_unpooling() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 2, 4, 1]);
    let maximum = builder.output_f32(&[1, 1, 2, 1]);
    let index = builder.output(Value::new(Datatype::Int32, Quantization::None, &[1, 1, 2, 1]));
    let back = builder.output_f32(&[1, 2, 4, 1]);
    builder.node(NodeOp::ArgMaxPooling2d { window: window([2, 2], [2, 2], x, maximum), index });
    builder.node(NodeOp::Unpooling2d { window: window([2, 2], [2, 2], maximum, back), index });
    let mut session = builder.session().unwrap();
    let image = [1.0, 9.0, 0.0, 0.0, 2.0, 3.0, 8.0, 0.0];
    session.input_as_mut::<f32>(0).unwrap().copy_from_slice(&image);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(0).unwrap(), [9.0, 8.0]);
    let expected = [0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0];
    assert_eq!(session.output_as::<f32>(2).unwrap(), expected);
}

#[test]
fn argmax_windows_must_touch() {
    let run = |stride| {
        let mut builder = Builder::new();
        let x = builder.input_f32(&[1, 4, 4, 1]);
        let maximum = builder.output_f32(&[1, 2, 2, 1]);
        let index = builder.output(Value::new(Datatype::Int32, Quantization::None, &[1, 2, 2, 1]));
        let window = window([2, 2], stride, x, maximum);
        builder.node(NodeOp::ArgMaxPooling2d { window, index });
        builder.session().map(drop)
    };
    assert!(run([2, 2]).is_ok());
    assert_eq!(run([1, 2]).unwrap_err().failing_node(), Some(0));
}
