//! Changes of shapes.

use std::ffi::c_int;

use super::{
    ABS, ADD, DEQUANTIZE, FLOAT16, FULLY_CONNECTED, FULLY_CONNECTED_PARAMS, NEG, Owned, RESHAPE,
    SHAPE, TRANSPOSE, add_params, packed_addresses,
};
use crate::abi::{ERROR, OK};
use crate::builtin_data::{DimsParams, IntParams, PoolParams};
use crate::fake::{FLOAT32, Fake};

/// `kTfLiteInt32`.
const INT32: c_int = 2;

#[test]
fn kernels_follow_their_inputs() {
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 4]));
    let shape = fake.constant(2, &[1], &[-1i32]);
    let flat = fake.tensor(FLOAT32, &[4]);
    let dims = DimsParams { dims: [0; 8], count: 0 };
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.node(RESHAPE, Some(dims), &[output, shape], &[flat]);
    fake.set_outputs(&[flat]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!(fake.replacements(), 1);
    for rows in [1, 3, 2] {
        fake.resize(input, &[rows, 4]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(fake.dims(flat), [rows * 4]);
        let values: Vec<f32> = (0..rows * 4).map(|i| 1.0 - i as f32).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(flat), values.iter().map(|value| value.abs()).collect::<Vec<_>>());
    }
}

/// A layer with 2 inputs and 3 outputs; returns the ids of its input and output.
fn layer(rows: c_int) -> (Fake, c_int, c_int) {
    let fake = Fake::new();
    let [input, output] = [[rows, 2], [rows, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
    let weights = fake.constant(FLOAT32, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    fake.node(FULLY_CONNECTED, Some(FULLY_CONNECTED_PARAMS), &[input, weights], &[output]);
    fake.set_outputs(&[output]);
    (fake, input, output)
}

/// Runs a [`layer`] with this number of rows.
fn check_layer((fake, input, output): &(Fake, c_int, c_int), rows: c_int) {
    fake.resize(*input, &[rows, 2]);
    assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
    fake.write(*input, &[1.0, 10.0].repeat(rows as usize));
    assert_eq!(fake.invoke(), OK, "{}", fake.messages());
    assert_eq!(fake.read(*output), [21.0, 43.0, 65.0].repeat(rows as usize));
}

#[test]
fn other_shapes_reuse_packed_weights() {
    let layer = layer(1);
    let fake = &layer.0;
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let first = packed_addresses(fake);
    assert_eq!(first.len(), 1);
    for rows in [3, 1, 2] {
        check_layer(&layer, rows);
        assert_eq!(packed_addresses(fake), first);
    }
}

#[test]
fn other_shapes_reuse_folded_constants() {
    let fake = Fake::new();
    let [input, sum] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    let half = fake.constant(FLOAT16, &[2], &[0x3c00u16, 0x4000]);
    let bias = fake.tensor(FLOAT32, &[2]);
    fake.node::<()>(DEQUANTIZE, None, &[half], &[bias]);
    fake.node(ADD, add_params(), &[input, bias], &[sum]);
    fake.set_outputs(&[sum]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let constant = || {
        let program = fake.program();
        let mut constants = program.graph().values.iter().filter_map(|value| value.data.as_ref());
        constants.find(|data| data.len() == 8).unwrap().as_ptr()
    };
    let first = constant();
    for rows in [3, 1, 2] {
        fake.resize(input, &[rows, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        fake.write(input, &[10.0, 20.0].repeat(rows as usize));
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(sum), [11.0, 22.0].repeat(rows as usize));
        assert_eq!(constant(), first);
    }
}

/// Shapes of one interpreter, and of others that begin with another shape.
#[test]
fn all_shapes_share_one_file_of_packed_weights() {
    let folder = tempfile::tempdir().unwrap();
    for first in [1, 4] {
        let layer = layer(first);
        let delegate = Owned::with(&[("cache_dir", folder.path().to_str().unwrap())]);
        assert_eq!(layer.0.apply(delegate.0), OK, "{}", layer.0.messages());
        for rows in [3, 1, 2] {
            check_layer(&layer, rows);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn other_shapes_are_optimized_like_the_first() {
    for (option, nodes) in [(None, 1), (Some(("no_optimize", "true")), 3)] {
        let fake = Fake::new();
        let [a, b, c] = [[2, 3], [3, 2], [2, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
        let d = fake.tensor(FLOAT32, &[2, 3]);
        let order = fake.constant(2, &[2], &[1i32, 0]);
        fake.node::<()>(TRANSPOSE, None, &[a, order], &[b]);
        fake.node::<()>(TRANSPOSE, None, &[b, order], &[c]);
        fake.node::<()>(ABS, None, &[c], &[d]);
        fake.set_outputs(&[d]);
        let delegate = Owned::with(option.as_slice());
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        for rows in [2, 4] {
            fake.resize(a, &[rows, 3]);
            assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
            assert_eq!(fake.program().graph().nodes.len(), nodes, "{option:?}, {rows} rows");
        }
    }
}

#[test]
fn shapes_that_cannot_be_computed_are_an_error() {
    let fake = Fake::new();
    let [a, b, sum] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 4]));
    fake.node(ADD, add_params(), &[a, b], &[sum]);
    fake.set_outputs(&[sum]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    fake.resize(a, &[1, 3]);
    assert_eq!(fake.allocate(0), ERROR);
    assert!(fake.messages().contains("inputs of these shapes"), "{}", fake.messages());
    fake.resize(a, &[1, 4]);
    assert_eq!(fake.allocate(0), OK);
}

/// Shapes that partitioning rules refuse, but shape inference accepts.
#[test]
fn shapes_that_xnnpack_does_not_support_are_computed_without_it() {
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 4]));
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    for dims in [&[0, 4][..], &[1, 1, 1, 1, 1, 1, 4], &[1, 4], &[2, 4, 0], &[2, 4]] {
        fake.resize(input, dims);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        let values: Vec<f32> = (0..dims.iter().product()).map(|i| 1.0 - i as f32).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.dims(output), dims);
        assert_eq!(fake.read(output), values.iter().map(|value| value.abs()).collect::<Vec<_>>());
    }
}

/// Max pooling over 8 columns of an image of one row. The model has one column; `signature` tells
/// whether it is open.
fn window(signature: &[c_int]) -> (Fake, c_int, c_int) {
    const MAX_POOL_2D: i32 = 17;
    let fake = Fake::new();
    let input = fake.tensor(FLOAT32, &[1, 1, 1, 2]);
    fake.set_signature(input, signature);
    let output = fake.tensor(FLOAT32, &[1, 1, 0, 2]);
    let params = PoolParams {
        padding: 2,
        stride_width: 8,
        stride_height: 1,
        filter_width: 8,
        filter_height: 1,
        activation: 0,
    };
    fake.node(MAX_POOL_2D, Some(params), &[input], &[output]);
    fake.set_outputs(&[output]);
    (fake, input, output)
}

#[test]
fn open_sizes_are_replaced_by_placeholders() {
    let (fake, input, output) = window(&[1, 1, -1, 2]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!(fake.replacements(), 1);
    // Like the operator's own kernel.
    assert_eq!(fake.allocate(0), ERROR);
    for columns in [16, 24, 8] {
        fake.resize(input, &[1, 1, columns, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(fake.dims(output), [1, 1, columns / 8, 2]);
        let values: Vec<f32> = (0..columns * 2).map(|i| i as f32).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        let last = |block: c_int| [block * 16 + 14, block * 16 + 15];
        let expected = (0..columns / 8).flat_map(last).map(|value| value as f32);
        assert_eq!(fake.read(output), expected.collect::<Vec<_>>());
    }
}

#[test]
fn fixed_sizes_are_not_replaced() {
    // The batch is open, the columns are not.
    for signature in [&[-1, 1, 1, 2][..], &[]] {
        let (fake, ..) = window(signature);
        let delegate = Owned::new();
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.replacements(), 0);
    }
}

/// The partition reads the shape of a tensor, but not the tensor.
#[test]
fn kernels_follow_shapes_of_tensors_that_they_do_not_read() {
    let fake = Fake::new();
    let [a, values, left] = [&[2, 6][..], &[12], &[12]].map(|dims| fake.tensor(FLOAT32, dims));
    let shape = fake.tensor(INT32, &[2]);
    let [rows, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[2, 6]));
    let dims = DimsParams { dims: [0; 8], count: 0 };
    fake.node::<()>(NEG, None, &[values], &[left]);
    fake.node(SHAPE, Some(IntParams { value: INT32 }), &[a], &[shape]);
    fake.node(RESHAPE, Some(dims), &[left, shape], &[rows]);
    fake.node::<()>(ABS, None, &[rows], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::with(&[("disable", "NEG"), ("keep_small", "true")]);
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!((fake.replacements(), fake.left()), (1, vec![NEG]));
    for dims in [[2, 6], [3, 4], [12, 1]] {
        fake.resize(a, &dims);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(fake.dims(output), dims);
    }
}
