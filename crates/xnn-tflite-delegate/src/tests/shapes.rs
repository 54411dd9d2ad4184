//! Shapes that change.

use super::fake::{FLOAT32, Fake};
use super::{ABS, ADD, FULLY_CONNECTED, Owned, RESHAPE, TRANSPOSE, add_params};
use crate::abi::{ERROR, OK};
use crate::builtin_data::{DimsParams, FullyConnectedParams};

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

#[test]
fn other_shapes_find_the_weights_packed() {
    let fake = Fake::new();
    let [input, output] = [[1, 2], [1, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
    let weights = fake.constant(FLOAT32, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let params = FullyConnectedParams {
        activation: 0,
        weights_format: 0,
        keep_num_dims: 0,
        asymmetric_quantize_inputs: 0,
    };
    fake.node(FULLY_CONNECTED, Some(params), &[input, weights], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let packed = || {
        let entries = fake.program().packed().unwrap().entries;
        entries.iter().map(|entry| entry.data.as_ptr()).collect::<Vec<_>>()
    };
    let first = packed();
    assert_eq!(first.len(), 1);
    for rows in [3, 1, 2] {
        fake.resize(input, &[rows, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(packed(), first);
        fake.write(input, &[1.0, 10.0].repeat(rows as usize));
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(output), [21.0, 43.0, 65.0].repeat(rows as usize));
    }
}

#[test]
fn other_shapes_are_optimized_no_more_than_the_first() {
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
