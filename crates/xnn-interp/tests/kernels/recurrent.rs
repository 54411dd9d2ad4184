//! Recurrent layers.

use xnn_model::Op;
use xnn_model::op::*;

use super::F32;
use super::common::{expect_close, floats, run_op_with};

#[test]
fn gated_recurrent_unit() {
    let op = Op::Gru(GruOptions::default());
    let input = floats(&[1, 1, 1], &[1.]);
    // The gates are in the order update, reset, candidate.
    let constants = [
        floats(&[3, 1], &[0.5, -0.5, 2.]),
        floats(&[3], &[0., 0., 0.25]),
        floats(&[3, 1], &[1., 1., 1.]),
        floats(&[3], &[0., 0., 0.5]),
        floats(&[1, 1], &[0.5]),
    ];
    let logistic = |x: f32| 1. / (1. + (-x).exp());
    let (update, reset) = (logistic(1.0), logistic(0.0));
    let candidate = (2.25 + reset * 1.0f32).tanh();
    let expected = 0.5 * update + candidate * (1. - update);
    expect_close(run_op_with(op, &[input], &constants, F32), &[1, 1], &[expected]);
}
