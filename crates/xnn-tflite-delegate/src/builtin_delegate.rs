//! Operators that an interpreter's built-in XNNPACK delegate claims and then fails to build.
//!
//! An interpreter applies its built-in delegate to the nodes that are not delegated here. That
//! delegate claims nodes by operator, types and options, and does not check all conditions of
//! XNNPACK. If XNNPACK then rejects a node, the whole interpreter fails to allocate its tensors.

use xnn_lower::WhyNot;
use xnn_model::{DType, Operator, Subgraph};

/// A condition that the built-in delegate does not check.
struct Unseen {
    /// Reason why XNNPACK rejects the node, as returned by [`WhyNot::code`].
    reason: &'static str,
    /// Types of the first output.
    types: &'static [DType],
    operators: &'static [&'static str],
}

const ALL: &[DType] = &[DType::F32, DType::I8, DType::U8];
const FLOATS: &[DType] = &[DType::F32];
const INTEGERS: &[DType] = &[DType::I8, DType::U8];

const MOVES: &[&str] = &[
    "DEPTH_TO_SPACE",
    "MAX_POOL_2D",
    "PAD",
    "RESIZE_BILINEAR",
    "SLICE",
    "SPACE_TO_DEPTH",
    "SPLIT",
    "STRIDED_SLICE",
    "TRANSPOSE",
];
const OF_MANY_DIMENSIONS: &[&str] =
    &["CONCATENATION", "FULLY_CONNECTED", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "SPLIT", "SUM"];
const LAYERS: &[&str] = &["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"];
const OF_NOTHING: &[&str] =
    &["AVERAGE_POOL_2D", "BATCH_MATMUL", "DEPTH_TO_SPACE", "MAX_POOL_2D", "SPACE_TO_DEPTH"];
/// The built-in delegate accepts these and computes other results: reductions over empty tensors
/// differ, and an end of 0 is treated as the end of the dimension.
const OTHERWISE_OF_NOTHING: &[&str] = &["REDUCE_MAX", "REDUCE_MIN", "STRIDED_SLICE", "SUM"];

const UNSEEN: &[Unseen] = &[
    Unseen { reason: "empty", types: ALL, operators: OF_NOTHING },
    Unseen { reason: "empty", types: ALL, operators: OTHERWISE_OF_NOTHING },
    Unseen { reason: "quantization-differs", types: INTEGERS, operators: MOVES },
    Unseen { reason: "rank", types: ALL, operators: OF_MANY_DIMENSIONS },
    Unseen { reason: "rank", types: FLOATS, operators: &["SOFTMAX"] },
    Unseen { reason: "scale", types: ALL, operators: LAYERS },
    Unseen { reason: "scale-ratio", types: INTEGERS, operators: LAYERS },
    Unseen { reason: "zero-point", types: ALL, operators: LAYERS },
];

/// Whether the built-in delegate would claim an operator that XNNPACK rejects for the reason `why`,
/// and then fail or compute other results.
pub(crate) fn breaks(graph: &Subgraph, operator: &Operator, why: &WhyNot) -> bool {
    let Some(&result) = operator.outputs.first() else { return false };
    let (name, dtype) = (operator.op.name(), graph.tensor(result).dtype);
    UNSEEN.iter().any(|unseen| {
        unseen.reason == why.code()
            && unseen.types.contains(&dtype)
            && unseen.operators.contains(&name)
    })
}
