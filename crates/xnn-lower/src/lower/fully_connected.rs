//! Fully connected layers.

use xnn_format::NodeOp;

use super::builder::Builder;
use super::conv::{Weights, finish_fused, start_fused, weights};
use crate::rules::checks::Arithmetic;
use crate::rules::fully_connected::FullyConnected;

pub(super) fn fully_connected(b: &mut Builder<'_>, plan: &FullyConnected) {
    let flat = plan.flatten.map(|shape| {
        let input = b.value(plan.input);
        let output = b.temporary_like(input, &shape);
        // Rows are inferred, so that the batch may change.
        let new_shape = vec![0, shape[1]];
        b.push(NodeOp::StaticReshape { new_shape, input, output });
        output
    });
    let layer = Weights {
        arithmetic: plan.arithmetic,
        input: plan.input,
        filter: plan.filter,
        bias: plan.bias,
        output: plan.output,
        channel_dim: 0,
        num_nonbatch_dims: 1,
    };
    let values = weights(b, &layer, flat);
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    let range = match plan.arithmetic {
        Arithmetic::Dynamic => plan.fused.range(),
        _ => plan.fused.finite_range(b.tensor(plan.output).dtype),
    };
    let node = b.push(NodeOp::FullyConnected {
        input: values.input,
        filter: values.filter,
        bias: values.bias,
        output,
        sparse: false,
    });
    node.output_range = range;
    finish_fused(b, tail);
}
