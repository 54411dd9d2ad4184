//! The values that nodes read and write.

use crate::graph::ValueId;
use crate::node::{Conv2d, Node, NodeOp, Pooling2d};

/// References to the values that an operation reads: shared ones for `&NodeOp`, mutable ones for
/// `&mut NodeOp`.
macro_rules! reads {
    ($op:expr) => {
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
            | NodeOp::ArgMaxPooling2d { window: Pooling2d { input, .. }, .. } => vec![input],
            NodeOp::Binary { inputs, .. } | NodeOp::BatchMatrixMultiply { inputs, .. } => {
                inputs.into_iter().collect()
            }
            NodeOp::Conv2d(Conv2d { input, filter, bias, .. })
            | NodeOp::DepthwiseConv2d(Conv2d { input, filter, bias, .. })
            | NodeOp::ConvTranspose2d(Conv2d { input, filter, bias, .. })
            | NodeOp::FullyConnected { input, filter, bias, .. } => {
                [input, filter].into_iter().chain(bias).collect()
            }
            NodeOp::Unpooling2d { window: Pooling2d { input, .. }, index } => vec![input, index],
            NodeOp::Concatenate { inputs, .. } => inputs.into_iter().collect(),
            NodeOp::Rope { input, weights, .. } => vec![input, weights],
            NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, .. } => {
                vec![query, key, value, scale, mask]
            }
        }
    };
}

/// As `reads`, for the values that an operation writes.
macro_rules! writes {
    ($op:expr) => {
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
            | NodeOp::Unpooling2d { window: Pooling2d { output, .. }, .. } => vec![output],
            NodeOp::ArgMaxPooling2d { window: Pooling2d { output, .. }, index } => {
                vec![output, index]
            }
            NodeOp::EvenSplit { outputs, .. } => outputs.into_iter().collect(),
        }
    };
}

impl Node {
    /// The values that the node reads, weights included.
    #[must_use]
    pub fn inputs(&self) -> Vec<ValueId> {
        reads!(&self.op).into_iter().copied().collect()
    }

    /// The values that the node writes.
    #[must_use]
    pub fn outputs(&self) -> Vec<ValueId> {
        writes!(&self.op).into_iter().copied().collect()
    }

    /// [`Node::inputs`], to be changed.
    pub fn inputs_mut(&mut self) -> Vec<&mut ValueId> {
        reads!(&mut self.op)
    }

    /// [`Node::outputs`], to be changed.
    pub fn outputs_mut(&mut self) -> Vec<&mut ValueId> {
        writes!(&mut self.op)
    }
}
