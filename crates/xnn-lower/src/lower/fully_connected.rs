//! Lowers FULLY_CONNECTED.

use xnn_format::{NodeOp, OutputRange};

use super::activation::{finish_fused, start_fused};
use super::builder::Builder;
use super::weights::{LayerValues, weights};
use crate::rules::activation::FusedActivation;
use crate::rules::fully_connected::FullyConnected;
use crate::rules::weights::{Arithmetic, Layer};

pub(super) fn fully_connected(b: &mut Builder<'_>, plan: &FullyConnected) {
    let flat = plan.flatten.map(|shape| {
        let input = b.value(plan.layer.input);
        let output = b.temporary_like(input, &shape);
        // The number of rows is inferred, so that the batch may change.
        let new_shape = vec![0, shape[1]];
        b.push(NodeOp::StaticReshape { new_shape, input, output });
        output
    });
    let values = weights(b, &plan.layer, flat);
    let range = match plan.layer.arithmetic {
        Arithmetic::Dynamic(_) => plan.fused.range(),
        _ => plan.fused.finite_range(b.tensor(plan.layer.output).dtype),
    };
    product(b, &plan.layer, values, plan.fused, range);
}

/// Adds the node of a fully connected layer, and that of its activation.
pub(super) fn product(
    b: &mut Builder<'_>,
    layer: &Layer,
    values: LayerValues,
    fused: FusedActivation,
    range: Option<OutputRange>,
) {
    let (output, activation) = start_fused(b, fused, layer.output);
    let node = b.push(NodeOp::FullyConnected {
        input: values.input,
        filter: values.filter,
        bias: values.bias,
        output,
        sparse: false,
    });
    node.output_range = range;
    finish_fused(b, activation);
}
