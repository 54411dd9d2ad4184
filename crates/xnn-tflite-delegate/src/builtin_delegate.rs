//! What interpreters' own XNNPACK delegate claims and then fails to build.
//!
//! An interpreter applies it to the nodes that are left. It claims by operator, types and options, and does not look
//! at everything that XNNPACK refuses; where XNNPACK refuses a node, the whole interpreter fails to allocate its tensors.

use xnn_lower::WhyNot;
use xnn_model::{DType, Operator, Subgraph};

/// What the delegate does not see.
struct Unseen {
    /// A reason for which XNNPACK does not take a node, as [`WhyNot::code`].
    reason: &'static str,
    /// Types of the results.
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
/// It builds these, and computes something else: other results over nothing, or an end of 0 as the end of the dimension.
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

/// Whether the interpreter's own delegate would claim an operator, which XNNPACK does not take for this reason, and break or
/// compute something else.
pub(crate) fn breaks(graph: &Subgraph, operator: &Operator, why: &WhyNot) -> bool {
    let Some(&result) = operator.outputs.first() else { return false };
    let (name, dtype) = (operator.op.name(), graph.tensor(result).dtype);
    UNSEEN.iter().any(|unseen| {
        unseen.reason == why.code()
            && unseen.types.contains(&dtype)
            && unseen.operators.contains(&name)
    })
}
