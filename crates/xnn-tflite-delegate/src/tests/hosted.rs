//! Operators that kernels compute without XNNPACK, which does not support them or their shapes.

use std::ffi::c_int;

use super::{
    ABS, FULLY_CONNECTED, FULLY_CONNECTED_PARAMS, Owned, RESHAPE, SLICE, STRIDED_SLICE, TRANSPOSE,
    TRANSPOSE_CONV, packed_addresses,
};
use crate::abi::{ERROR, OK};
use crate::builtin_data::{DimsParams, IntParams, StridedSliceParams, TransposeConvParams};
use crate::fake::{FLOAT32, Fake};

/// `kTfLiteInt32`.
const INT32: c_int = 2;
const PAD: i32 = 34;
const SPLIT: i32 = 49;
const TILE: i32 = 69;

/// A SPLIT of a tensor with this shape into two parts along the last dimension; the second one is
/// an output.
fn split(dims: &[c_int]) -> (Fake, c_int, c_int) {
    let fake = Fake::new();
    let input = fake.tensor(FLOAT32, dims);
    let axis = fake.constant(INT32, &[], &[-1i32]);
    let [unread, output] = [(); 2].map(|()| fake.tensor(FLOAT32, dims));
    fake.node(SPLIT, Some(IntParams { value: 2 }), &[axis, input], &[unread, output]);
    fake.set_outputs(&[output]);
    (fake, input, output)
}

/// Runs a graph with the input 0, 1, 2, ... of this shape.
fn run(fake: &Fake, input: c_int, output: c_int, dims: &[c_int]) -> Vec<f32> {
    fake.resize(input, dims);
    assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
    let values: Vec<f32> = (0..dims.iter().product()).map(|i| i as f32).collect();
    fake.write(input, &values);
    assert_eq!(fake.invoke(), OK, "{}", fake.messages());
    fake.read(output)
}

#[test]
fn operators_that_break_the_builtin_delegate_are_hosted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let (fake, input, output) = split(&[1, 1, 1, 1, 1, 2, 4]);
    let delegate = Owned::with(&[("explain", path.to_str().unwrap())]);
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!((fake.replacements(), fake.left()), (1, vec![]));
    assert_eq!(run(&fake, input, output, &[1, 1, 1, 1, 1, 2, 4]), [2.0, 3.0, 6.0, 7.0]);
    assert!(!fake.is_on_xnnpack());
    let text = std::fs::read_to_string(&path).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let node = &report["nodes"][0];
    assert_eq!((&node["hosted"], &node["reason"]["code"]), (&true.into(), &"rank".into()));
    assert_eq!(report["summary"], "delegated 0 of 1 nodes in 0 partitions");
    // XNNPACK computes it for supported shapes.
    assert_eq!(run(&fake, input, output, &[2, 4]), [2.0, 3.0, 6.0, 7.0]);
    assert!(fake.is_on_xnnpack());
}

#[test]
fn operators_that_the_interpreter_can_compute_are_not_delegated() {
    // The built-in delegate checks the rank of ABS, and users can disable operators.
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 1, 1, 1, 1, 2, 4]));
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!(fake.left(), [ABS]);
    let (fake, ..) = split(&[1, 1, 1, 1, 1, 2, 4]);
    let delegate = Owned::with(&[("disable", "SPLIT")]);
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!(fake.left(), [SPLIT]);
}

/// Adds the operator between these tensors.
type Add = fn(&Fake, c_int, c_int);

/// Operators with constant sizes or positions, with their input and output shapes for one row. The
/// batch is the first dimension.
const SIZED: &[(&str, &[c_int], &[c_int], Add)] = &[
    ("FULLY_CONNECTED", &[1, 2], &[1, 3], |fake, input, output| {
        let weights = fake.constant(FLOAT32, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        fake.node(FULLY_CONNECTED, Some(FULLY_CONNECTED_PARAMS), &[input, weights], &[output]);
    }),
    ("PAD", &[1, 2], &[1, 4], |fake, input, output| {
        let paddings = fake.constant(INT32, &[2, 2], &[0i32, 0, 1, 1]);
        fake.node::<()>(PAD, None, &[input, paddings], &[output]);
    }),
    ("RESHAPE", &[1, 4], &[1, 2, 2], |fake, input, output| {
        let shape = fake.constant(INT32, &[3], &[-1i32, 2, 2]);
        let dims = DimsParams { dims: [0; 8], count: 0 };
        fake.node(RESHAPE, Some(dims), &[input, shape], &[output]);
    }),
    ("SLICE", &[1, 4], &[1, 2], |fake, input, output| {
        let [begin, size] = [[0i32, 1], [-1, 2]].map(|it| fake.constant(INT32, &[2], &it));
        fake.node::<()>(SLICE, None, &[input, begin, size], &[output]);
    }),
    ("STRIDED_SLICE", &[1, 4], &[1, 2], |fake, input, output| {
        let bounds = [[0i32, 0], [1, 4], [1, 2]].map(|it| fake.constant(INT32, &[2], &it));
        let params = StridedSliceParams {
            begin_mask: 1,
            end_mask: 1,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
            offset: 0,
        };
        let [begin, end, strides] = bounds;
        fake.node(STRIDED_SLICE, Some(params), &[input, begin, end, strides], &[output]);
    }),
    ("TILE", &[1, 4], &[1, 8], |fake, input, output| {
        let times = fake.constant(INT32, &[2], &[1i32, 2]);
        fake.node::<()>(TILE, None, &[input, times], &[output]);
    }),
    ("TRANSPOSE", &[1, 2, 3], &[1, 3, 2], |fake, input, output| {
        let order = fake.constant(INT32, &[3], &[0i32, 2, 1]);
        fake.node::<()>(TRANSPOSE, None, &[input, order], &[output]);
    }),
    ("TRANSPOSE_CONV", &[1, 2, 2, 1], &[1, 4, 4, 1], transpose_conv),
];

fn transpose_conv(fake: &Fake, input: c_int, output: c_int) {
    let shape = fake.constant(INT32, &[4], &[1i32, 4, 4, 1]);
    let weights = fake.constant(FLOAT32, &[1, 2, 2, 1], &[1.0f32, 2.0, 3.0, 4.0]);
    let params =
        TransposeConvParams { padding: 1, stride_width: 2, stride_height: 2, activation: 0 };
    fake.node(TRANSPOSE_CONV, Some(params), &[shape, weights, input], &[output]);
}

/// A graph of ABS and another operator, which form one kernel.
fn with_abs(input: &[c_int], output: &[c_int], add: Add) -> (Fake, c_int, c_int) {
    let fake = Fake::new();
    let [first, between] = [(); 2].map(|()| fake.tensor(FLOAT32, input));
    let last = fake.tensor(FLOAT32, output);
    fake.node::<()>(ABS, None, &[first], &[between]);
    add(&fake, between, last);
    fake.set_outputs(&[last]);
    (fake, first, last)
}

#[test]
fn batches_can_become_empty_and_grow_again() {
    for &(name, input_dims, output_dims, add) in SIZED {
        let (fake, input, output) = with_abs(input_dims, output_dims, add);
        let delegate = Owned::new();
        assert_eq!(fake.apply(delegate.0), OK, "{name}: {}", fake.messages());
        assert_eq!((fake.replacements(), fake.left()), (1, vec![]), "{name}");
        let batch = |dims: &[c_int], batch: c_int| [&[batch], &dims[1..]].concat();
        let row: c_int = output_dims.iter().product();
        let all = run(&fake, input, output, &batch(input_dims, 3));
        for rows in [1, 0, 2, 0, 3] {
            let found = run(&fake, input, output, &batch(input_dims, rows));
            assert_eq!(fake.dims(output), batch(output_dims, rows), "{name}");
            assert_eq!(found, all[..(rows * row) as usize], "{name}, {rows} rows");
            assert_eq!(fake.is_on_xnnpack(), rows > 0, "{name}, {rows} rows");
        }
    }
}

#[test]
fn weights_stay_packed_while_the_batch_is_empty() {
    let (fake, input, output) = with_abs(SIZED[0].1, SIZED[0].2, SIZED[0].3);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let first = packed_addresses(&fake);
    assert!(run(&fake, input, output, &[0, 2]).is_empty());
    run(&fake, input, output, &[2, 2]);
    assert_eq!(packed_addresses(&fake), first);
}

#[test]
fn sizes_that_do_not_match_are_refused() {
    let (fake, input, output) = with_abs(&[1, 2, 2, 1], &[1, 4, 4, 1], transpose_conv);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let expected = run(&fake, input, output, &[1, 2, 2, 1]);
    for dims in [[1, 3, 2, 1], [1, 2, 1, 1]] {
        fake.resize(input, &dims);
        assert_eq!(fake.allocate(0), ERROR, "{dims:?}");
        assert!(fake.messages().contains("operator 1 (TRANSPOSE_CONV)"), "{}", fake.messages());
        // Reporters append messages to each other.
        assert!(fake.messages().ends_with('\n'), "{:?}", fake.messages());
        assert_eq!(run(&fake, input, output, &[1, 2, 2, 1]), expected);
    }
}
