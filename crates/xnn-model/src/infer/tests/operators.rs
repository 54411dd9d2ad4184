//! Shapes of single operators.

use std::borrow::Cow;

use crate::infer::inputs::{Fact, OutputShape};
use crate::infer::{Window, infer_op_shapes};
use crate::op::*;
use crate::types::DType;

fn shape_fact(shape: &[usize]) -> Option<Fact<'static>> {
    Some(Fact { dtype: DType::F32, shape: Some(Cow::Owned(shape.to_vec())), data: None })
}

fn ints_fact(values: &[i32]) -> Option<Fact<'static>> {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Some(Fact {
        dtype: DType::I32,
        shape: Some(Cow::Owned(vec![values.len()])),
        data: Some(Cow::Owned(data)),
    })
}

fn infer(op: &Op, inputs: &[Option<Fact<'_>>], outputs: usize) -> Vec<Vec<usize>> {
    let shapes = infer_op_shapes(op, inputs, outputs).unwrap();
    shapes
        .into_iter()
        .map(|shape| match shape {
            OutputShape::Known(shape) => shape,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn refused(op: &Op, inputs: &[Option<Fact<'_>>]) -> String {
    infer_op_shapes(op, inputs, 1).unwrap_err().to_string()
}

#[test]
fn windows() {
    let conv = |padding, stride, dilation| {
        Op::Conv2d(Conv2dOptions {
            padding,
            stride_w: stride,
            stride_h: stride,
            dilation_w: dilation,
            dilation_h: dilation,
            ..Default::default()
        })
    };
    let inputs = [shape_fact(&[1, 224, 224, 3]), shape_fact(&[8, 3, 3, 3]), shape_fact(&[8])];
    assert_eq!(infer(&conv(Padding::Same, 2, 1), &inputs, 1), [[1, 112, 112, 8]]);
    assert_eq!(infer(&conv(Padding::Valid, 2, 1), &inputs, 1), [[1, 111, 111, 8]]);
    assert_eq!(infer(&conv(Padding::Valid, 1, 2), &inputs, 1), [[1, 220, 220, 8]]);
    assert!(refused(&conv(Padding::Same, 0, 1), &inputs).contains("stride"));
    let misfit = [shape_fact(&[1, 8, 8, 3]), shape_fact(&[8, 3, 3, 2])];
    assert!(refused(&conv(Padding::Same, 1, 1), &misfit).contains("input channels"));
}

/// Sizes that TFLite's kernels accept and refuse.
#[test]
fn transposed_convolutions() {
    let (same, valid) = (Padding::Same, Padding::Valid);
    for (padding, from, to, kernel, stride, fits) in [
        (same, 2, 4, 2, 2, true),
        (same, 2, 3, 2, 2, true),
        (same, 2, 5, 2, 2, false),
        (same, 3, 4, 2, 2, false),
        (same, 4, 2, 3, 2, false),
        (same, 2, 4, 3, 2, true),
        (same, 1, 5, 1, 2, false),
        (valid, 2, 4, 2, 2, true),
        (valid, 2, 3, 2, 2, false),
        (valid, 2, 5, 2, 2, true),
        (valid, 2, 6, 2, 2, false),
        (valid, 2, 4, 3, 2, false),
        (valid, 2, 6, 3, 2, true),
        (valid, 2, 9, 3, 4, true),
    ] {
        let op = Op::TransposeConv(TransposeConvOptions {
            padding,
            stride_w: stride,
            stride_h: stride,
            ..Default::default()
        });
        let asked = [1, to, to, 2];
        for batch in [0, 1, 3] {
            let image = [batch, from, from, 3];
            let inputs =
                [ints_fact(&asked), shape_fact(&[2, kernel, kernel, 3]), shape_fact(&image)];
            let to = usize::try_from(to).unwrap();
            match fits {
                true => assert_eq!(infer(&op, &inputs, 1), [[batch, to, to, 2]]),
                false => {
                    assert!(refused(&op, &inputs).contains("cannot be upsampled"), "{asked:?}")
                }
            }
        }
    }
}

#[test]
fn empty_rows() {
    for (keep_num_dims, input, weights, output) in [
        (false, &[2, 0][..], [3, 0], &[2, 3][..]),
        (false, &[2, 5, 0], [3, 0], &[10, 3]),
        (true, &[2, 5, 0], [3, 0], &[2, 5, 3]),
        (false, &[0], [3, 0], &[1, 3]),
        (false, &[2, 0, 4], [3, 4], &[0, 3]),
        (false, &[0, 2], [3, 2], &[0, 3]),
    ] {
        let op = Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() });
        assert_eq!(infer(&op, &[shape_fact(input), shape_fact(&weights)], 1), [output]);
    }
}

#[test]
fn empty_reshapes() {
    for (input, target, output) in [
        ([0, 3], &[-1, 3][..], &[0, 3][..]),
        ([0, 3], &[3, -1], &[3, 0]),
        ([0, 3], &[0, -1], &[0, 3]),
        ([2, 0], &[0, -1], &[0, 2]),
        ([0, 3], &[-1, 0], &[3, 0]),
        ([2, 0], &[1, -1, 3], &[1, 0, 3]),
    ] {
        let inputs = [shape_fact(&input), ints_fact(target)];
        assert_eq!(infer(&Op::Reshape(ReshapeOptions::default()), &inputs, 1), [output]);
    }
}

#[test]
fn same_padding_has_the_odd_pixel_at_the_end() {
    let window = Window { size: 3, stride: 2, dilation: 1 };
    assert_eq!(window.output(224, Padding::Same), 112);
    assert_eq!(window.padding(224, 112), (0, 1));
    assert_eq!(window.padding(225, 113), (1, 1));
}

#[test]
fn reshape_infers_a_dimension() {
    let op = Op::Reshape(ReshapeOptions::default());
    let reshape = |input: &[usize], to: &[i32]| [shape_fact(input), ints_fact(to)];
    assert_eq!(infer(&op, &reshape(&[2, 6], &[3, -1]), 1), [[3, 4]]);
    assert_eq!(infer(&op, &reshape(&[2, 6], &[12]), 1), [[12]]);
    assert!(refused(&op, &reshape(&[2, 6], &[-1, -1])).contains("more than one dimension"));
    assert!(refused(&op, &reshape(&[2, 6], &[5, -1])).contains("cannot become"));
    assert!(refused(&op, &reshape(&[2, 6], &[-2, -6])).contains("not a size"));
    let by_option = Op::Reshape(ReshapeOptions { new_shape: Some(vec![4, 3]) });
    assert_eq!(infer(&by_option, &[shape_fact(&[2, 6])], 1), [[4, 3]]);
    let scalar = Op::Reshape(ReshapeOptions { new_shape: Some(vec![0]) });
    assert_eq!(infer(&scalar, &[shape_fact(&[1])], 1), [Vec::<usize>::new()]);
}

#[test]
fn strided_slices() {
    let slice = |begin: &[i32], end: &[i32], strides: &[i32]| {
        [shape_fact(&[4, 5, 6]), ints_fact(begin), ints_fact(end), ints_fact(strides)]
    };
    let plain = Op::StridedSlice(StridedSliceOptions::default());
    assert_eq!(infer(&plain, &slice(&[1, 0, -2], &[3, 5, 6], &[1, 2, 1]), 1), [[2, 3, 2]]);
    assert_eq!(infer(&plain, &slice(&[3, 4, 5], &[0, -6, 2], &[-1, -2, -1]), 1), [[3, 3, 3]]);
    assert_eq!(infer(&plain, &slice(&[2, 0, 0], &[1, 5, 6], &[1, 1, 1]), 1), [[0, 5, 6]]);
    assert!(refused(&plain, &slice(&[0], &[1], &[0])).contains("stride"));
    let shrink = |mask| {
        Op::StridedSlice(StridedSliceOptions { shrink_axis_mask: mask, ..Default::default() })
    };
    assert_eq!(infer(&shrink(1), &slice(&[-1], &[0], &[1]), 1), [[5, 6]]);
    assert!(refused(&shrink(1), &slice(&[4], &[5], &[1])).contains("does not exist"));
    let around = Op::StridedSlice(StridedSliceOptions {
        ellipsis_mask: 0b010,
        new_axis_mask: 0b001,
        ..Default::default()
    });
    assert_eq!(infer(&around, &slice(&[0, 0, 1], &[0, 0, 3], &[1, 1, 1]), 1), [[1, 4, 5, 2]]);
}

#[test]
fn broadcasting() {
    let add = Op::Add(ArithmeticOptions::default());
    let pair = |a: &[usize], b: &[usize]| [shape_fact(a), shape_fact(b)];
    assert_eq!(infer(&add, &pair(&[2, 1, 3], &[4, 1]), 1), [[2, 4, 3]]);
    assert_eq!(infer(&add, &pair(&[], &[4, 1]), 1), [[4, 1]]);
    assert!(refused(&add, &pair(&[2], &[3])).contains("do not broadcast"));
}

#[test]
fn splits() {
    let split = Op::Split(SplitOptions { num_splits: 3 });
    let inputs = [ints_fact(&[-1]), shape_fact(&[2, 6])];
    assert_eq!(infer(&split, &inputs, 3), [[2, 2], [2, 2], [2, 2]]);
    // An empty dimension divides into any number of parts, which must not allocate memory.
    let most = Op::Split(SplitOptions { num_splits: i32::MAX });
    let nothing = [ints_fact(&[0]), shape_fact(&[0])];
    assert!(infer_op_shapes(&most, &nothing, 1).unwrap_err().to_string().contains("1 outputs"));
    let split_v = Op::SplitV(SplitOptions { num_splits: 2 });
    let inputs = |sizes: &[i32]| [shape_fact(&[7]), ints_fact(sizes), ints_fact(&[0])];
    assert_eq!(infer(&split_v, &inputs(&[3, -1]), 2), [[3], [4]]);
    assert!(infer_op_shapes(&split_v, &inputs(&[3, 3]), 2).is_err());
    assert!(infer_op_shapes(&split_v, &inputs(&[8, -1]), 2).is_err());
}

#[test]
fn products() {
    let fc = |keep_num_dims| {
        Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() })
    };
    let inputs = [shape_fact(&[2, 3, 8]), shape_fact(&[5, 8]), None];
    assert_eq!(infer(&fc(true), &inputs, 1), [vec![2, 3, 5]]);
    assert_eq!(infer(&fc(false), &inputs, 1), [vec![6, 5]]);
    let matmul = Op::BatchMatMul(BatchMatMulOptions { adj_y: true, ..Default::default() });
    let inputs = [shape_fact(&[7, 1, 2, 3]), shape_fact(&[4, 5, 3])];
    assert_eq!(infer(&matmul, &inputs, 1), [[7, 4, 2, 5]]);
    assert!(
        refused(&matmul, &[shape_fact(&[2, 3]), shape_fact(&[3, 5])])
            .contains("cannot be multiplied")
    );
}

#[test]
fn unknown_inputs_make_dynamic_outputs() {
    let fill = Op::Fill;
    let unknown = Some(Fact { dtype: DType::I32, shape: Some(Cow::Owned(vec![2])), data: None });
    assert_eq!(infer_op_shapes(&fill, &[unknown], 1).unwrap(), [OutputShape::Dynamic]);
    assert_eq!(infer(&fill, &[ints_fact(&[2, 3])], 1), [[2, 3]]);
    let custom = Op::Custom(CustomOptions::default());
    assert_eq!(infer_op_shapes(&custom, &[], 1).unwrap(), [OutputShape::Stated]);
}
