//! fp16 filters of fp32 layers give the same results as fp32 filters.

use bytes::Bytes;
use half::f16;
use xnn_format::{
    Conv2d, Datatype, NodeOp, Padding2d, Quantization, Size2d, Value, ValueId, flags,
};

use crate::support::{Builder, f32s, le_bytes, random};

/// Values that are exact in fp16.
fn numbers(count: usize) -> Vec<f16> {
    random(4, count).into_iter().map(f16::from_f32).collect()
}

fn filter(builder: &mut Builder, dims: &[usize], datatype: Datatype) -> ValueId {
    let numbers = numbers(dims.iter().product());
    builder.value(match datatype {
        Datatype::F16 => {
            let bytes: Bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            Value::new(Datatype::F16, Quantization::None, dims).with_data(bytes)
        }
        _ => {
            let floats: Vec<f32> = numbers.iter().map(|number| number.to_f32()).collect();
            f32s(dims).with_data(le_bytes(&floats))
        }
    })
}

/// A convolution of 4 x 4 pixels with these channels per group.
fn convolution(
    [groups, inputs, outputs]: [u32; 3],
    [input, filter, output]: [ValueId; 3],
) -> Conv2d {
    Conv2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: 2, width: 3 },
        stride: Size2d::ONE,
        dilation: Size2d::ONE,
        adjustment: Size2d { height: 0, width: 0 },
        groups,
        group_input_channels: inputs,
        group_output_channels: outputs,
        input,
        filter,
        bias: None,
        output,
    }
}

type Define = fn(&mut Builder, Datatype);

const LAYERS: [(&str, Define); 10] = [
    ("convolution", |builder, datatype| {
        let x = builder.input_f32(&[1, 4, 4, 6]);
        let w = filter(builder, &[8, 2, 3, 6], datatype);
        let y = builder.output_f32(&[1, 3, 2, 8]);
        builder.node(NodeOp::Conv2d(convolution([1, 6, 8], [x, w, y])));
    }),
    ("convolution of groups", |builder, datatype| {
        let x = builder.input_f32(&[1, 4, 4, 6]);
        let w = filter(builder, &[8, 2, 3, 3], datatype);
        let y = builder.output_f32(&[1, 3, 2, 8]);
        builder.node(NodeOp::Conv2d(convolution([2, 3, 4], [x, w, y])));
    }),
    ("convolution of one channel", |builder, datatype| {
        let x = builder.input_f32(&[1, 4, 4, 1]);
        let w = filter(builder, &[1, 2, 3, 1], datatype);
        let y = builder.output_f32(&[1, 3, 2, 1]);
        builder.node(NodeOp::Conv2d(convolution([1, 1, 1], [x, w, y])));
    }),
    ("depthwise convolution", |builder, datatype| {
        let x = builder.input_f32(&[1, 4, 4, 6]);
        let w = filter(builder, &[1, 2, 3, 6], datatype);
        let y = builder.output_f32(&[1, 3, 2, 6]);
        builder.node(NodeOp::DepthwiseConv2d(convolution([6, 1, 1], [x, w, y])));
    }),
    ("transposed convolution", |builder, datatype| {
        let x = builder.input_f32(&[1, 4, 4, 6]);
        let w = filter(builder, &[5, 2, 3, 6], datatype);
        let y = builder.output_f32(&[1, 5, 6, 5]);
        builder.node(NodeOp::ConvTranspose2d(convolution([1, 6, 5], [x, w, y])));
    }),
    ("matrix", |builder, datatype| {
        let x = builder.input_f32(&[3, 7]);
        let w = filter(builder, &[5, 7], datatype);
        let y = builder.output_f32(&[3, 5]);
        builder.node(matrix([x, w, y]));
    }),
    ("matrix of as many columns as a tile has", |builder, datatype| {
        let x = builder.input_f32(&[3, 7]);
        let w = filter(builder, &[40, 7], datatype);
        let y = builder.output_f32(&[3, 40]);
        builder.node(matrix([x, w, y]));
    }),
    ("convolution of a pixel, and of several with the same filter", |builder, datatype| {
        let x = builder.input_f32(&[2, 1, 1, 40]);
        let w = filter(builder, &[40, 1, 1, 40], datatype);
        let bias = Some(builder.constant_f32(&[40], &[2.0; 40]));
        let [h, y] = [builder.value(f32s(&[2, 1, 1, 40])), builder.output_f32(&[2, 3, 3, 40])];
        let kernel = Size2d::ONE;
        let of_pixel = Conv2d { kernel, bias, ..convolution([1, 40, 40], [x, w, h]) };
        builder.node(NodeOp::Conv2d(of_pixel)).flags = flags::TENSORFLOW_SAME_PADDING;
        let padding = Padding2d { top: 1, right: 1, bottom: 1, left: 1 };
        let of_several = convolution([1, 40, 40], [h, w, y]);
        builder.node(NodeOp::Conv2d(Conv2d { kernel, padding, bias, ..of_several }));
    }),
    ("convolution of a pixel of padding", |builder, datatype| {
        let x = builder.input_f32(&[1, 1, 1, 40]);
        let w = filter(builder, &[40, 1, 1, 40], datatype);
        let bias = Some(builder.constant_f32(&[40], &[2.0; 40]));
        let y = builder.output_f32(&[1, 1, 1, 40]);
        let padding = Padding2d { top: 1, right: 1, bottom: 1, left: 1 };
        let (kernel, stride) = (Size2d::ONE, Size2d { height: 3, width: 3 });
        let conv = convolution([1, 40, 40], [x, w, y]);
        builder.node(NodeOp::Conv2d(Conv2d { kernel, stride, padding, bias, ..conv }));
    }),
    ("matrix for two layers", |builder, datatype| {
        let x = builder.input_f32(&[3, 7]);
        let w = filter(builder, &[7, 7], datatype);
        let [h, y] = [builder.value(f32s(&[3, 7])), builder.output_f32(&[3, 7])];
        builder.node(matrix([x, w, h]));
        builder.node(matrix([h, w, y])).flags = flags::TRANSPOSE_WEIGHTS;
    }),
];

fn matrix([input, filter, output]: [ValueId; 3]) -> NodeOp {
    NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false }
}

#[test]
fn fp16_filters_are_converted_to_fp32() {
    for (name, define) in LAYERS {
        let run = |datatype| {
            let mut builder = Builder::new();
            define(&mut builder, datatype);
            let count = builder.graph.values[0].dims.iter().product();
            builder.run_f32(&[&random(1, count)]).unwrap()
        };
        let expected = run(Datatype::F32);
        assert!(expected.iter().all(|&y| y != 0.0), "{name}");
        assert_eq!(run(Datatype::F16), expected, "{name}");
    }
}
