//! Maps the typed graph to the schema's types and codes.
//!
//! Reader, writer and compatibility check use these tables.

use crate::generated::graph::{
    _XNNNode1x1, _XNNNode2x1, XNNBinaryOp, XNNDatatype, XNNReduceOp, XNNUnaryOp, XNode, XNodeUnion,
};
use crate::node::NodeOp;
use crate::parameters::{BinaryOp, ReduceOp, UnaryOp};
use crate::value::Datatype;

/// `XNN_INVALID_VALUE_ID`: no value, no external id. It is always stored, since the schema's
/// default is 0.
pub(crate) const NO_VALUE: u32 = u32::MAX;

/// The `debug_handle` of a node without a model operator.
pub(crate) const NO_DEBUG_HANDLE: u32 = 65535;

/// The `offset` of a constant that is not in the file.
pub(crate) const NO_OFFSET: u64 = u64::MAX;

/// Bits of `XNNTensorValue.flags`.
pub(crate) mod value_flags {
    pub(crate) const EXTERNAL_INPUT: u32 = 1;
    pub(crate) const EXTERNAL_OUTPUT: u32 = 2;
}

/// Converts a size; `usize` has at least 32 bits on all platforms of XNNPACK.
pub(crate) const fn size(n: u32) -> usize {
    n as usize
}

const DATATYPES: [(Datatype, XNNDatatype); 14] = [
    (Datatype::F32, XNNDatatype::xnn_datatype_fp32),
    (Datatype::F16, XNNDatatype::xnn_datatype_fp16),
    (Datatype::QInt8, XNNDatatype::xnn_datatype_qint8),
    (Datatype::QUint8, XNNDatatype::xnn_datatype_quint8),
    (Datatype::QInt32, XNNDatatype::xnn_datatype_qint32),
    (Datatype::QcInt8, XNNDatatype::xnn_datatype_qcint8),
    (Datatype::QcInt32, XNNDatatype::xnn_datatype_qcint32),
    (Datatype::QcInt4, XNNDatatype::xnn_datatype_qcint4),
    (Datatype::QdInt8, XNNDatatype::xnn_datatype_qdint8),
    (Datatype::QbInt4, XNNDatatype::xnn_datatype_qbint4),
    (Datatype::QpInt8, XNNDatatype::xnn_datatype_qpint8),
    (Datatype::Int32, XNNDatatype::xnn_datatype_int32),
    (Datatype::PackedF32, XNNDatatype::xnn_datatype_pfp32),
    (Datatype::Bf16, XNNDatatype::xnn_datatype_bf16),
];

pub(crate) fn datatype_to_wire(datatype: Datatype) -> XNNDatatype {
    wire(&DATATYPES, datatype).unwrap_or(XNNDatatype::xnn_datatype_invalid)
}

pub(crate) fn datatype_from_wire(datatype: XNNDatatype) -> Option<Datatype> {
    typed(&DATATYPES, datatype)
}

/// Nodes of one operand without parameters.
type Table1x1 = for<'a> fn(&XNode<'a>) -> Option<_XNNNode1x1<'a>>;

pub(crate) const UNARY: [(UnaryOp, XNodeUnion, Table1x1); 18] = [
    (UnaryOp::Abs, XNodeUnion::XNNAbs, |node| node.xnode_union_as_xnnabs()),
    (UnaryOp::Ceiling, XNodeUnion::XNNCeiling, |node| node.xnode_union_as_xnnceiling()),
    (UnaryOp::Clamp, XNodeUnion::XNNClamp, |node| node.xnode_union_as_xnnclamp()),
    (UnaryOp::Convert, XNodeUnion::XNNConvert, |node| node.xnode_union_as_xnnconvert()),
    (UnaryOp::Copy, XNodeUnion::XNNCopy, |node| node.xnode_union_as_xnncopy()),
    (UnaryOp::Cosine, XNodeUnion::XNNCos, |node| node.xnode_union_as_xnncos()),
    (UnaryOp::Exp, XNodeUnion::XNNExp, |node| node.xnode_union_as_xnnexp()),
    (UnaryOp::Floor, XNodeUnion::XNNFloor, |node| node.xnode_union_as_xnnfloor()),
    (UnaryOp::Gelu, XNodeUnion::XNNGelu, |node| node.xnode_union_as_xnngelu()),
    (UnaryOp::HardSwish, XNodeUnion::XNNHardswish, |node| node.xnode_union_as_xnnhardswish()),
    (UnaryOp::Log, XNodeUnion::XNNLog, |node| node.xnode_union_as_xnnlog()),
    (UnaryOp::Negate, XNodeUnion::XNNNegate, |node| node.xnode_union_as_xnnnegate()),
    (UnaryOp::ReciprocalSquareRoot, XNodeUnion::XNNReciprocalSquareRoot, |node| {
        node.xnode_union_as_xnnreciprocal_square_root()
    }),
    (UnaryOp::Sigmoid, XNodeUnion::XNNSigmoid, |node| node.xnode_union_as_xnnsigmoid()),
    (UnaryOp::Sine, XNodeUnion::XNNSin, |node| node.xnode_union_as_xnnsin()),
    (UnaryOp::Square, XNodeUnion::XNNSquare, |node| node.xnode_union_as_xnnsquare()),
    (UnaryOp::SquareRoot, XNodeUnion::XNNSquareRoot, |node| node.xnode_union_as_xnnsquare_root()),
    (UnaryOp::Tanh, XNodeUnion::XNNTanh, |node| node.xnode_union_as_xnntanh()),
];

/// Functions of one operand that only the extension node `XNNUnary` supports.
pub(crate) const UNARY_EXTENSION: [(UnaryOp, XNNUnaryOp); 6] = [
    (UnaryOp::BankersRounding, XNNUnaryOp::BankersRounding),
    (UnaryOp::CubeRoot, XNNUnaryOp::CubeRoot),
    (UnaryOp::Sign, XNNUnaryOp::Sign),
    (UnaryOp::CountLeadingZeros, XNNUnaryOp::CountLeadingZeros),
    (UnaryOp::BitwiseNot, XNNUnaryOp::BitwiseNot),
    (UnaryOp::Popcount, XNNUnaryOp::Popcount),
];

/// Nodes of two operands without parameters.
type Table2x1 = for<'a> fn(&XNode<'a>) -> Option<_XNNNode2x1<'a>>;

pub(crate) const BINARY: [(BinaryOp, XNodeUnion, Table2x1); 7] = [
    (BinaryOp::Add, XNodeUnion::XNNAdd, |node| node.xnode_union_as_xnnadd()),
    (BinaryOp::Subtract, XNodeUnion::XNNSubtract, |node| node.xnode_union_as_xnnsubtract()),
    (BinaryOp::Multiply, XNodeUnion::XNNMultiply, |node| node.xnode_union_as_xnnmultiply()),
    (BinaryOp::Divide, XNodeUnion::XNNDiv, |node| node.xnode_union_as_xnndiv()),
    (BinaryOp::Maximum, XNodeUnion::XNNMaximum, |node| node.xnode_union_as_xnnmaximum()),
    (BinaryOp::Minimum, XNodeUnion::XNNMinimum, |node| node.xnode_union_as_xnnminimum()),
    (BinaryOp::Prelu, XNodeUnion::XNNPReLU, |node| node.xnode_union_as_xnnpre_lu()),
];

/// Functions of two operands that only the extension node `XNNBinary` supports.
pub(crate) const BINARY_EXTENSION: [(BinaryOp, XNNBinaryOp); 11] = [
    (BinaryOp::SquaredDifference, XNNBinaryOp::SquaredDifference),
    (BinaryOp::CopySign, XNNBinaryOp::Copysign),
    (BinaryOp::Modulus, XNNBinaryOp::Modulus),
    (BinaryOp::Atan2, XNNBinaryOp::Atan2),
    (BinaryOp::Pow, XNNBinaryOp::Pow),
    (BinaryOp::BitwiseAnd, XNNBinaryOp::BitwiseAnd),
    (BinaryOp::BitwiseOr, XNNBinaryOp::BitwiseOr),
    (BinaryOp::BitwiseXor, XNNBinaryOp::BitwiseXor),
    (BinaryOp::ShiftLeft, XNNBinaryOp::ShiftLeft),
    (BinaryOp::ShiftRightLogical, XNNBinaryOp::ShiftRightLogical),
    (BinaryOp::ShiftRightArithmetic, XNNBinaryOp::ShiftRightArithmetic),
];

pub(crate) const REDUCE: [(ReduceOp, XNNReduceOp); 2] =
    [(ReduceOp::Sum, XNNReduceOp::Sum), (ReduceOp::Mean, XNNReduceOp::Mean)];

/// Concatenations by number of operands.
pub(crate) const CONCATENATE: [(usize, XNodeUnion); 4] = [
    (2, XNodeUnion::XNNConcatenate2),
    (3, XNodeUnion::XNNConcatenate3),
    (4, XNodeUnion::XNNConcatenate4),
    (5, XNodeUnion::XNNConcatenate5),
];

/// Looks up the wire type of a table row.
pub(crate) fn wire<T: PartialEq, W: Copy>(table: &[(T, W)], typed: T) -> Option<W> {
    table.iter().find(|row| row.0 == typed).map(|row| row.1)
}

/// Looks up the typed side of a table row.
pub(crate) fn typed<T: Copy, W: PartialEq>(table: &[(T, W)], wire: W) -> Option<T> {
    table.iter().find(|row| row.1 == wire).map(|row| row.0)
}

/// The union member that a node is stored as; `NONE` for a concatenation with an unsupported number
/// of operands.
pub(crate) fn tag(op: &NodeOp) -> XNodeUnion {
    match op {
        NodeOp::Unary { op: UnaryOp::Elu { .. }, .. } => XNodeUnion::XNNELU,
        NodeOp::Unary { op: UnaryOp::LeakyRelu { .. }, .. } => XNodeUnion::XNNLeakyReLU,
        NodeOp::Unary { op, .. } => UNARY
            .iter()
            .find(|(unary, ..)| unary == op)
            .map_or(XNodeUnion::XNNUnary, |&(_, tag, _)| tag),
        NodeOp::Binary { op, .. } => BINARY
            .iter()
            .find(|(binary, ..)| binary == op)
            .map_or(XNodeUnion::XNNBinary, |&(_, tag, _)| tag),
        NodeOp::Conv2d(_) => XNodeUnion::XNNConv2d,
        NodeOp::DepthwiseConv2d(_) => XNodeUnion::XNNDepthwiseConv2d,
        NodeOp::ConvTranspose2d(_) => XNodeUnion::XNNConvTranspose2d,
        NodeOp::FullyConnected { sparse: false, .. } => XNodeUnion::XNNFullyConnected,
        NodeOp::FullyConnected { sparse: true, .. } => XNodeUnion::XNNFullyConnectedSparse,
        NodeOp::BatchMatrixMultiply { .. } => XNodeUnion::XNNBatchMatrixMultiply,
        NodeOp::AveragePooling2d(_) => XNodeUnion::XNNAvgPooling2d,
        NodeOp::MaxPooling2d(_) => XNodeUnion::XNNMaxPooling2d,
        NodeOp::ArgMaxPooling2d { .. } => XNodeUnion::XNNArgMaxPooling2d,
        NodeOp::Unpooling2d { .. } => XNodeUnion::XNNUnpooling2D,
        NodeOp::GlobalAveragePooling2d { .. } => XNodeUnion::XNNGlobalAvgPooling2d,
        NodeOp::Softmax { .. } => XNodeUnion::XNNSoftmax,
        NodeOp::Concatenate { inputs, .. } => {
            wire(&CONCATENATE, inputs.len()).unwrap_or(XNodeUnion::NONE)
        }
        NodeOp::EvenSplit { .. } => XNodeUnion::XNNEvenSplit,
        NodeOp::StaticReshape { .. } => XNodeUnion::XNNStaticReshape,
        NodeOp::StaticExpandDims { .. } => XNodeUnion::XNNStaticExpandDims,
        NodeOp::StaticTranspose { .. } => XNodeUnion::XNNStaticTranspose,
        NodeOp::StaticSlice { .. } => XNodeUnion::XNNStaticSlice,
        NodeOp::StaticConstantPad { .. } => XNodeUnion::XNNStaticConstantPad,
        NodeOp::StaticResizeBilinear2d { .. } => XNodeUnion::XNNStaticResizeBilinear2D,
        NodeOp::StaticReduce { .. } => XNodeUnion::XNNStaticReduce,
        NodeOp::DepthToSpace2d { .. } => XNodeUnion::XNNDepthToSpace2D,
        NodeOp::SpaceToDepth2d { .. } => XNodeUnion::XNNSpaceToDepth2D,
        NodeOp::Rope { .. } => XNodeUnion::XNNRope,
        NodeOp::ScaledDotProductAttention { .. } => XNodeUnion::XNNScaledDotProductAttention,
    }
}

impl NodeOp {
    /// The name of the kind of node: the schema's without `XNN` (`Conv2d`), or the function's for
    /// nodes stored as `XNNUnary` and `XNNBinary`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let function = match self {
            Self::Unary { op, .. } => {
                wire(&UNARY_EXTENSION, *op).and_then(XNNUnaryOp::variant_name)
            }
            Self::Binary { op, .. } => {
                wire(&BINARY_EXTENSION, *op).and_then(XNNBinaryOp::variant_name)
            }
            Self::Concatenate { .. } => Some("Concatenate"),
            _ => None,
        };
        function.unwrap_or_else(|| tag_name(tag(self)))
    }
}

/// The name of a union member without `XNN`.
pub(crate) fn tag_name(tag: XNodeUnion) -> &'static str {
    tag.variant_name().map_or("unknown", |name| name.trim_start_matches("XNN"))
}
