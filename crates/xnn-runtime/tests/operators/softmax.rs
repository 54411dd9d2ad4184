//! Softmax over the last dimension.

use xnn_format::NodeOp;

use crate::support::{assert_close, random, run_one};

#[test]
fn rows_sum_to_one() {
    let input = random(1, 15);
    let softmax = |input, output| NodeOp::Softmax { input, output };
    let got = run_one((&[3, 5], &input), &[3, 5], softmax, 0).unwrap();
    let expected: Vec<f32> = input
        .chunks(5)
        .flat_map(|row| {
            let sum: f32 = row.iter().map(|x| x.exp()).sum();
            row.iter().map(move |x| x.exp() / sum)
        })
        .collect();
    assert_close(&got, &expected, 1e-6);
}
