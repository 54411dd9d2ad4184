//! Conditions under which XNNPACK may rewrite a subgraph.

use super::context::{Value, index};
use super::operator::Fusion;
use super::{NodeEntry, Subgraph};
use crate::value::{Datatype, Role};

impl Subgraph {
    /// Whether XNNPACK's fusion of nodes preserves results.
    ///
    /// XNNPACK intersects the bounds of two clamps, which is wrong for disjoint ranges. It applies
    /// the bounds of a clamp to the padding of the previous node, so they must not change it when
    /// compared as floats. It adds paddings in 32 bits, and it omits writes to persistent tensors.
    pub(crate) fn can_fuse(&self) -> bool {
        let context = self.context(&[], true);
        let safe = |node: &NodeEntry| {
            let links = node.operator.links();
            let (&[input, ..], &[output, ..]) = (&*links.inputs, &*links.outputs) else {
                return true;
            };
            let producer = index(input)
                .and_then(|index| self.values().get(index)?.producer)
                .and_then(|producer| self.nodes().get(producer))
                .map_or(Fusion::None, |producer| producer.operator.fusion());
            let same = || match [input, output].map(|id| context.quantization(id)) {
                [Ok(input), Ok(output)] => input == output,
                _ => false,
            };
            match (producer, node.operator.fusion()) {
                (
                    Fusion::Bounds(first) | Fusion::BoundsAndPads(first) | Fusion::Clamp(first),
                    Fusion::Clamp(then),
                ) => {
                    let padded = matches!(producer, Fusion::BoundsAndPads(_));
                    let keeps_padding = (then.min < 0.0 || then.min.to_bits() == 0)
                        && then.max >= f32::MIN_POSITIVE;
                    let meet = first.min.max(then.min) < first.max.min(then.max);
                    same() && meet && (keeps_padding || !padded)
                }
                (Fusion::Pad, Fusion::Pad) => false,
                _ => true,
            }
        };
        !self.has_persistent() && self.nodes().iter().all(safe)
    }

    /// Whether all tensors are fp32 and none is persistent, which XNNPACK's rewrites for other
    /// arithmetic and layouts require.
    pub(crate) fn is_plain_f32(&self) -> bool {
        let plain = |value: &Value| {
            value.datatype == Datatype::F32 && !matches!(value.role, Role::Persistent)
        };
        self.values().iter().all(plain)
    }

    /// Whether all nodes can run in channels-first layout.
    pub(crate) fn runs_channels_first(&self) -> bool {
        self.is_plain_f32() && self.nodes().iter().all(|node| node.operator.runs_channels_first())
    }

    /// Whether there are persistent tensors.
    pub(crate) fn has_persistent(&self) -> bool {
        self.values.iter().any(|value| matches!(value.role, Role::Persistent))
    }

    /// Whether nodes use sparse kernels, regardless of the runtime's options.
    pub(crate) fn is_sparse(&self) -> bool {
        self.nodes.iter().any(|node| node.operator.is_sparse())
    }
}
