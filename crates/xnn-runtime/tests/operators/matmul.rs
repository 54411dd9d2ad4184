//! Matrix products of two operands.

use xnn_format::{NodeOp, flags};
use xnn_runtime::Result;

use crate::support::{Builder, assert_close, random};

fn product(a: &[usize], b: &[usize], flags: u32) -> Result<Vec<f32>> {
    let mut builder = Builder::new();
    let inputs = [builder.input_f32(a), builder.input_f32(b)];
    let output = builder.output_f32(&[]);
    builder.node(NodeOp::BatchMatrixMultiply { inputs, output }).flags = flags;
    builder.run_f32(&[&random(1, a.iter().product()), &random(2, b.iter().product())])
}

#[test]
fn batches_of_products() {
    let (batch, m, k, n) = (3, 2, 4, 5);
    let (a, b) = (random(1, batch * m * k), random(2, batch * k * n));
    let mut plain = Vec::new();
    let mut transposed = Vec::new();
    for (g, i, j) in
        (0..batch).flat_map(|g| (0..m).flat_map(move |i| (0..n).map(move |j| (g, i, j))))
    {
        let row = &a[(g * m + i) * k..][..k];
        let of = &b[g * k * n..][..k * n];
        plain.push(row.iter().enumerate().map(|(t, x)| x * of[t * n + j]).sum::<f32>());
        transposed.push(row.iter().enumerate().map(|(t, x)| x * of[j * k + t]).sum::<f32>());
    }
    assert_close(&product(&[3, 2, 4], &[3, 4, 5], 0).unwrap(), &plain, 1e-6);
    let got = product(&[3, 2, 4], &[3, 5, 4], flags::TRANSPOSE_WEIGHTS).unwrap();
    assert_close(&got, &transposed, 1e-6);
}

#[test]
fn inner_dimensions_must_agree() {
    assert!(product(&[2, 4], &[4, 3], 0).is_ok());
    assert!(product(&[2, 4], &[3, 4], 0).is_err());
}
