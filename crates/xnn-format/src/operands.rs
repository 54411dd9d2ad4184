//! The values that nodes read and write.

use std::convert::identity;

use smallvec::{SmallVec, smallvec};

use crate::node::{Node, NodeOp};
use crate::parameters::{Conv2d, Pooling2d};
use crate::value::ValueId;

/// Values that a node reads or writes, or references to them. Most nodes have few, which are stored
/// inline.
pub type Operands<T = ValueId> = SmallVec<[T; 3]>;

/// `$of` of each value that an operation reads, which is a reference: shared for `&NodeOp`, mutable
/// for `&mut NodeOp`.
macro_rules! reads {
    ($op:expr, $of:expr) => {
        match $op {
            NodeOp::Unary { input, .. }
            | NodeOp::GlobalAveragePooling2d { input, .. }
            | NodeOp::Softmax { input, .. }
            | NodeOp::EvenSplit { input, .. }
            | NodeOp::StaticReshape { input, .. }
            | NodeOp::StaticExpandDims { input, .. }
            | NodeOp::StaticTranspose { input, .. }
            | NodeOp::StaticSlice { input, .. }
            | NodeOp::StaticConstantPad { input, .. }
            | NodeOp::StaticResizeBilinear2d { input, .. }
            | NodeOp::StaticReduce { input, .. }
            | NodeOp::DepthToSpace2d { input, .. }
            | NodeOp::SpaceToDepth2d { input, .. }
            | NodeOp::AveragePooling2d(Pooling2d { input, .. })
            | NodeOp::MaxPooling2d(Pooling2d { input, .. })
            | NodeOp::ArgMaxPooling2d { window: Pooling2d { input, .. }, .. } => {
                smallvec![$of(input)]
            }
            NodeOp::Binary { inputs, .. } | NodeOp::BatchMatrixMultiply { inputs, .. } => {
                inputs.into_iter().map($of).collect()
            }
            NodeOp::Conv2d(Conv2d { input, filter, bias, .. })
            | NodeOp::DepthwiseConv2d(Conv2d { input, filter, bias, .. })
            | NodeOp::ConvTranspose2d(Conv2d { input, filter, bias, .. })
            | NodeOp::FullyConnected { input, filter, bias, .. } => {
                [input, filter].into_iter().chain(bias).map($of).collect()
            }
            NodeOp::Unpooling2d { window: Pooling2d { input, .. }, index } => {
                smallvec![$of(input), $of(index)]
            }
            NodeOp::Concatenate { inputs, .. } => inputs.into_iter().map($of).collect(),
            NodeOp::Rope { input, weights, .. } => smallvec![$of(input), $of(weights)],
            NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, .. } => {
                smallvec![$of(query), $of(key), $of(value), $of(scale), $of(mask)]
            }
        }
    };
}

/// `reads` for the values that an operation writes.
macro_rules! writes {
    ($op:expr, $of:expr) => {
        match $op {
            NodeOp::Unary { output, .. }
            | NodeOp::Binary { output, .. }
            | NodeOp::FullyConnected { output, .. }
            | NodeOp::BatchMatrixMultiply { output, .. }
            | NodeOp::GlobalAveragePooling2d { output, .. }
            | NodeOp::Softmax { output, .. }
            | NodeOp::Concatenate { output, .. }
            | NodeOp::StaticReshape { output, .. }
            | NodeOp::StaticExpandDims { output, .. }
            | NodeOp::StaticTranspose { output, .. }
            | NodeOp::StaticSlice { output, .. }
            | NodeOp::StaticConstantPad { output, .. }
            | NodeOp::StaticResizeBilinear2d { output, .. }
            | NodeOp::StaticReduce { output, .. }
            | NodeOp::DepthToSpace2d { output, .. }
            | NodeOp::SpaceToDepth2d { output, .. }
            | NodeOp::Rope { output, .. }
            | NodeOp::ScaledDotProductAttention { output, .. }
            | NodeOp::Conv2d(Conv2d { output, .. })
            | NodeOp::DepthwiseConv2d(Conv2d { output, .. })
            | NodeOp::ConvTranspose2d(Conv2d { output, .. })
            | NodeOp::AveragePooling2d(Pooling2d { output, .. })
            | NodeOp::MaxPooling2d(Pooling2d { output, .. })
            | NodeOp::Unpooling2d { window: Pooling2d { output, .. }, .. } => {
                smallvec![$of(output)]
            }
            NodeOp::ArgMaxPooling2d { window: Pooling2d { output, .. }, index } => {
                smallvec![$of(output), $of(index)]
            }
            NodeOp::EvenSplit { outputs, .. } => outputs.into_iter().map($of).collect(),
        }
    };
}

fn copied(id: &ValueId) -> ValueId {
    *id
}

impl Node {
    /// The values that the node reads, weights included.
    #[must_use]
    pub fn inputs(&self) -> Operands {
        reads!(&self.op, copied)
    }

    /// The values that the node writes.
    #[must_use]
    pub fn outputs(&self) -> Operands {
        writes!(&self.op, copied)
    }

    /// Mutable references to [`Node::inputs`].
    pub fn inputs_mut(&mut self) -> Operands<&mut ValueId> {
        reads!(&mut self.op, identity)
    }

    /// Mutable references to [`Node::outputs`].
    pub fn outputs_mut(&mut self) -> Operands<&mut ValueId> {
        writes!(&mut self.op, identity)
    }
}
