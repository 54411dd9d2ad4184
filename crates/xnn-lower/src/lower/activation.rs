//! Lowers fused activations that need a node of their own.

use xnn_format::{UnaryOp, ValueId};
use xnn_model::TensorId;

use super::builder::Builder;
use crate::rules::activation::FusedActivation;

/// An activation that follows a node.
pub(super) struct Following {
    op: UnaryOp,
    input: ValueId,
    output: ValueId,
}

/// Returns the output of the node, and the activation that follows it.
pub(super) fn start_fused(
    b: &mut Builder<'_>,
    fused: FusedActivation,
    output: TensorId,
) -> (ValueId, Option<Following>) {
    let value = b.value(output);
    match fused {
        FusedActivation::None | FusedActivation::Range(_) => (value, None),
        FusedActivation::Tanh => {
            let input = b.temporary_like(value, b.dims(output));
            (input, Some(Following { op: UnaryOp::Tanh, input, output: value }))
        }
    }
}

/// Appends the activation that follows a node.
pub(super) fn finish_fused(b: &mut Builder<'_>, activation: Option<Following>) {
    if let Some(Following { op, input, output }) = activation {
        b.unary(op, input, output);
    }
}
