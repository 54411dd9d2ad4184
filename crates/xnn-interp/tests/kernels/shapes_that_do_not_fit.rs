//! Operands that satisfy the shape rules of their operator but do not match each other, and unusual
//! sizes and values that are valid.

use xnn_interp::{Error, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{
    Builder, Value, bools, expect, floats, load, plain, quantized, run_op, run_op_with,
};

/// Zeros.
fn blank(shape: &[usize]) -> Value {
    floats(shape, &vec![0.; shape.iter().product()])
}

#[track_caller]
fn refused(result: Result<TensorBuf, Error>, reason: &str) {
    match result {
        Err(error) => assert!(error.to_string().contains(reason), "{error}"),
        Ok(buf) => panic!("a result of shape {:?}", buf.shape()),
    }
}

/// Runs an operator with several outputs whose shapes it determines.
fn run_outputs(op: Op, inputs: &[Value], types: &[DType]) -> Result<Vec<TensorBuf>, Error> {
    let mut b = Builder::new();
    let ids: Vec<_> = inputs.iter().map(|v| b.input(v.buf.dtype(), v.buf.shape())).collect();
    let outputs: Vec<_> = types.iter().map(|&dtype| b.tensor(dtype, &[])).collect();
    outputs.iter().for_each(|&id| b.graph.tensors[id].shape = None);
    b.graph.outputs.clone_from(&outputs);
    b.op(op, &ids, &outputs);
    let mut interpreter = load(&b.model())?;
    for (position, value) in inputs.iter().enumerate() {
        interpreter.set_input(position, value.buf.clone())?;
    }
    interpreter.run()?;
    (0..outputs.len()).map(|position| Ok(interpreter.output(position)?.to_buf())).collect()
}

#[test]
fn select_needs_equal_shapes_and_a_condition_per_element_row_or_tensor() {
    let select = |condition: &[usize], x: &[usize], y: &[usize]| {
        let condition = bools(condition, &vec![1; condition.iter().product()]);
        run_op(Op::Select, &[condition, blank(x), blank(y)], F32)
    };
    let misfits: [[&[usize]; 3]; 8] = [
        [&[2], &[3], &[3]],
        [&[2], &[3], &[2]],
        [&[2], &[3, 4], &[3, 4]],
        [&[2], &[2, 3], &[3]],
        [&[1, 3], &[2, 3], &[2, 3]],
        [&[1], &[2, 3], &[2, 3]],
        [&[], &[2, 3], &[3, 2]],
        [&[1], &[], &[]],
    ];
    for [condition, x, y] in misfits {
        refused(select(condition, x, y), "have different shapes");
    }
    let fits: [[&[usize]; 2]; 6] =
        [[&[], &[]], [&[], &[2, 3]], [&[2], &[2]], [&[2], &[2, 3]], [&[2, 3]; 2], [&[0], &[0, 3]]];
    for [condition, x] in fits {
        assert_eq!(select(condition, x, x).unwrap().shape(), x);
    }
    let rows = [bools(&[2], &[0, 1]), floats(&[2, 2], &[1., 2., 3., 4.]), blank(&[2, 2])];
    expect(run_op(Op::Select, &rows, F32), &[2, 2], &[0.0f32, 0., 3., 4.]);
    // SELECT_V2 broadcasts a vector along rows.
    let columns = [bools(&[2], &[0, 1]), floats(&[2, 2], &[1., 2., 3., 4.]), blank(&[1])];
    expect(run_op(Op::SelectV2, &columns, F32), &[2, 2], &[0.0f32, 2., 0., 4.]);
}

#[test]
fn on_and_off_values_have_one_element() {
    let hot = |on: &[usize], off: &[usize]| {
        let inputs = [plain(&[1], &[0i32])];
        let constants = [plain(&[], &[3i32]), blank(on), blank(off)];
        run_op_with(Op::OneHot(OneHotOptions { axis: -1 }), &inputs, &constants, F32)
    };
    let reason = "on and off value must have one element each";
    refused(hot(&[2], &[]), reason);
    refused(hot(&[], &[2]), reason);
    refused(hot(&[0], &[]), reason);
    expect(hot(&[1], &[]), &[1, 3], &[0.0f32; 3]);
}

#[test]
fn default_values_of_sparse_tensors_have_one_element() {
    let dense = |default: &[usize]| {
        let inputs = [plain(&[1], &[1i32])];
        let constants = [plain(&[1], &[3i32]), floats(&[1], &[5.]), blank(default)];
        run_op_with(Op::SparseToDense(Default::default()), &inputs, &constants, F32)
    };
    let reason = "the default value must have one element";
    refused(dense(&[2]), reason);
    refused(dense(&[0]), reason);
    expect(dense(&[]), &[3], &[0.0f32, 5., 0.]);
}

#[test]
fn products_of_empty_rows_are_zero() {
    for asymmetric_quantize_inputs in [false, true] {
        let options = BatchMatMulOptions { asymmetric_quantize_inputs, ..Default::default() };
        let inputs = [floats(&[2, 0], &[]), quantized::<i8>(&[0, 3], &[], 0.5, 0)];
        expect(run_op(Op::BatchMatMul(options), &inputs, F32), &[2, 3], &[0.0f32; 6]);
    }
}

#[test]
fn a_transposed_convolution_keeps_the_number_of_images() {
    let convolve = |images: i32| {
        let options = Conv3dOptions {
            stride_d: 1,
            stride_h: 1,
            stride_w: 1,
            dilation_d: 1,
            dilation_h: 1,
            dilation_w: 1,
            ..Default::default()
        };
        let inputs = [floats(&[1, 1, 1, 1, 1], &[2.]), floats(&[2, 1, 1, 1, 1], &[3., 4.])];
        let mut b = Builder::new();
        let shape = b.constant(&[5], &[images, 1, 1, 1, 1]);
        let weights = b.input(DType::F32, inputs[0].buf.shape());
        let data = b.input(DType::F32, inputs[1].buf.shape());
        let output = b.tensor(DType::F32, &[]);
        b.graph.outputs.push(output);
        b.op(Op::Conv3dTranspose(options), &[shape, weights, data], &[output]);
        let mut interpreter = load(&b.model())?;
        for (position, value) in inputs.into_iter().enumerate() {
            interpreter.set_input(position, value.buf)?;
        }
        interpreter.run()?;
        Ok(interpreter.output(0)?.to_buf())
    };
    refused(convolve(1), "2 images in the input, 1 in the output");
    refused(convolve(3), "2 images in the input, 3 in the output");
    expect(convolve(2), &[2, 1, 1, 1, 1], &[6.0f32, 8.]);
}

#[test]
fn outputs_of_a_basic_lstm_have_the_width_of_its_weights() {
    let step = |previous: &[usize]| {
        let options = LstmOptions { basic: true, ..Default::default() };
        let inputs =
            [blank(&[2, 3]), blank(previous), blank(&[8, 5]), blank(&[8]), blank(previous)];
        let outputs = run_outputs(Op::Lstm(options), &inputs, &[DType::F32; 4])?;
        Ok(outputs[0].clone())
    };
    refused(step(&[1, 4]), "do not match the width of the outputs");
    expect(step(&[2, 2]), &[2, 2], &[0.0f32; 4]);
}

/// `TfLitePoolParams` of pooling without gaps.
fn pool(code: &str, padding: i32, stride: i32, [height, width]: [i32; 2]) -> Op {
    let options = [padding, stride, stride, width, height, 0];
    let options: Vec<u8> = options.into_iter().flat_map(i32::to_le_bytes).collect();
    Op::Custom(CustomOptions { code: code.into(), options: options.into() })
}

#[test]
fn pooling_with_indices_reads_only_the_image() {
    const SAME: i32 = 1;
    let max = |stride, filter, image: Value| {
        let op = pool("MaxPoolingWithArgmax2D", SAME, stride, filter);
        let outputs = run_outputs(op, &[image], &[DType::F32; 2]).unwrap();
        [0, 1].map(|at| outputs[at].view().as_slice::<f32>().unwrap().to_vec())
    };
    // The image is in the middle of the window.
    let [value, index] = max(1, [i32::MAX; 2], floats(&[1, 1, 1, 1], &[7.]));
    let (middle, size) = ((1usize << 30) - 1, i32::MAX as usize);
    assert_eq!((value, index), (vec![7.], vec![(middle * size + middle) as f32]));
    // The window has one row before and one behind the image, and a column behind it.
    let image = floats(&[1, 2, 3, 1], &[1., 5., 2., 4., 3., 6.]);
    let [values, indices] = max(1, [3, 2], image);
    assert_eq!(values, [5., 6., 6., 5., 6., 6.]);
    assert_eq!(indices, [3., 5., 4., 1., 3., 2.].map(|tap: f32| tap + 0.1));
}

#[test]
fn values_from_outside_of_their_window_are_dropped() {
    let unpool = |filter, indices: &[f32]| {
        let shape = [1, 2, 1, 1];
        let inputs = [floats(&shape, &[3., 4.]), floats(&shape, indices)];
        let outputs = run_outputs(pool("MaxUnpooling2D", 2, 2, filter), &inputs, &[DType::F32])?;
        Ok(outputs[0].clone())
    };
    expect(unpool([2, 1], &[1.1, 0.1]), &[1, 4, 1, 1], &[0.0f32, 3., 4., 0.]);
    for far in [f32::INFINITY, f32::MAX, f32::NAN, -1.0] {
        let result = unpool([2, 1], &[1.1, far]).unwrap();
        assert_eq!(result.view().as_slice::<f32>().unwrap()[1], 3., "{far}");
    }
}

#[test]
fn all_nans_are_one_value() {
    let unique = |values: &[f32]| {
        let op = Op::Unique(UniqueOptions { idx_out_type: DType::I32 });
        let found =
            run_outputs(op, &[floats(&[values.len()], values)], &[DType::F32, DType::I32]).unwrap();
        let values = found[0].view().as_slice::<f32>().unwrap().to_vec();
        (format!("{values:?}"), found[1].view().as_slice::<i32>().unwrap().to_vec())
    };
    let expected = ("[1.0, NaN]".to_owned(), vec![0, 1, 0]);
    assert_eq!(unique(&[1., f32::NAN, 1.]), expected);
    let expected = ("[NaN, 1.0]".to_owned(), vec![0, 1, 0]);
    assert_eq!(unique(&[f32::NAN, 1., -f32::NAN]), expected);
    let many = [&[3.0][..], &[1.0; 10], &[f32::NAN], &[0.0; 12]].concat();
    let numbers = [&[0][..], &[1; 10], &[2], &[3; 12]].concat();
    assert_eq!(unique(&many), ("[3.0, 1.0, NaN, 0.0]".to_owned(), numbers));
}
