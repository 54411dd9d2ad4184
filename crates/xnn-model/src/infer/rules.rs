//! Maps operators to rules of shape inference.

use super::inputs::{Inputs, Rule, Stop, one};
use super::{arrange, custom, index, math, recurrent, window};
use crate::op::Op;

/// Applies the rule of an operator. Operators are in alphabetical order within a family.
pub(super) fn apply(op: &Op, inputs: &Inputs<'_>, outputs: usize) -> Rule {
    match op {
        // The shape of the first input.
        Op::Abs
        | Op::AddN
        | Op::Bucketize(_)
        | Op::Cast(_)
        | Op::Ceil
        | Op::ComplexAbs
        | Op::Cos
        | Op::Cumsum(_)
        | Op::Densify
        | Op::Dequantize
        | Op::DynamicUpdateSlice
        | Op::Elu
        | Op::Exp
        | Op::FakeQuant(_)
        | Op::Floor
        | Op::Gelu(_)
        | Op::HardSwish
        | Op::Imag
        | Op::InstanceNorm(_)
        | Op::L2Normalization(_)
        | Op::LeakyRelu(_)
        | Op::LocalResponseNormalization(_)
        | Op::Log
        | Op::LogSoftmax
        | Op::LogicalNot
        | Op::Logistic
        | Op::MatrixSetDiag
        | Op::Neg
        | Op::Prelu
        | Op::Quantize
        | Op::Real
        | Op::Relu
        | Op::Relu0To1
        | Op::Relu6
        | Op::ReluN1To1
        | Op::ReverseSequence(_)
        | Op::ReverseV2
        | Op::RmsNorm(_)
        | Op::Rope(_)
        | Op::Round
        | Op::Rsqrt
        | Op::Sign
        | Op::Sin
        | Op::Softmax(_)
        | Op::Sqrt
        | Op::Square
        | Op::Tanh
        | Op::ZerosLike => one(inputs.shape(0)?.to_vec()),
        // Broadcasting.
        Op::Add(_)
        | Op::Atan2
        | Op::BitwiseXor
        | Op::Div(_)
        | Op::Equal
        | Op::FloorDiv
        | Op::FloorMod
        | Op::Greater
        | Op::GreaterEqual
        | Op::Less
        | Op::LessEqual
        | Op::LogicalAnd
        | Op::LogicalOr
        | Op::Maximum
        | Op::Minimum
        | Op::Mul(_)
        | Op::NotEqual
        | Op::Pow
        | Op::RightShift
        | Op::SquaredDifference
        | Op::Sub(_) => math::broadcast(inputs, &[0, 1]),
        Op::Select => one(inputs.shape(1)?.to_vec()),
        Op::SelectV2 => math::broadcast(inputs, &[0, 1, 2]),
        // Windows.
        Op::AveragePool2d(options) | Op::L2Pool2d(options) | Op::MaxPool2d(options) => {
            window::pool(inputs, options)
        }
        Op::Conv2d(options) => window::conv(inputs, options),
        Op::Conv3d(options) => window::conv_3d(inputs, options),
        Op::Conv3dTranspose(_) => window::transpose_conv_3d(inputs),
        Op::DepthwiseConv2d(options) => window::depthwise_conv(inputs, options),
        Op::ResizeBilinear(_) | Op::ResizeNearestNeighbor(_) => window::resize(inputs),
        Op::TransposeConv(options) => window::transpose_conv(inputs, options),
        // Products and reductions.
        Op::ArgMax(_) | Op::ArgMin(_) => math::arg_min_max(inputs),
        Op::BatchMatMul(options) => math::batch_matmul(inputs, options),
        Op::FullyConnected(options) => math::fully_connected(inputs, options),
        Op::Mean(options)
        | Op::ReduceAll(options)
        | Op::ReduceAny(options)
        | Op::ReduceMax(options)
        | Op::ReduceMin(options)
        | Op::ReduceProd(options)
        | Op::Sum(options) => math::reduce(inputs, options.keep_dims),
        Op::NonMaxSuppressionV4 | Op::NonMaxSuppressionV5 => math::non_max_suppression(op, inputs),
        Op::Rfft2d => math::rfft2d(inputs),
        Op::TopkV2 => math::top_k(inputs),
        Op::Multinomial(_) => math::multinomial(inputs),
        Op::SegmentSum => Err(Stop::Dynamic),
        Op::UnsortedSegmentMax
        | Op::UnsortedSegmentMin
        | Op::UnsortedSegmentProd
        | Op::UnsortedSegmentSum => math::unsorted_segment(inputs),
        // Shapes from values.
        Op::BroadcastArgs => math::broadcast_args(inputs),
        Op::Fill | Op::RandomStandardNormal(_) | Op::RandomUniform(_) => one(inputs.as_shape(0)?),
        Op::Range => math::range(inputs),
        Op::Rank => one(vec![]),
        Op::Hashtable(_) | Op::HashtableSize | Op::VarHandle(_) => one(vec![1]),
        Op::ScatterNd => one(inputs.as_shape(2)?),
        Op::Shape(_) => one(vec![inputs.shape(0)?.len()]),
        Op::SparseToDense(_) => one(inputs.as_shape(1)?),
        // Rearrangement.
        Op::BatchToSpaceNd => arrange::batch_to_space(inputs),
        Op::Bitcast => Err(Stop::Stated),
        Op::BroadcastTo => arrange::broadcast_to(inputs),
        Op::Concatenation(options) => arrange::concatenation(inputs, options.axis),
        Op::DepthToSpace(options) => arrange::depth_to_space(inputs, options.block_size),
        Op::ExpandDims => arrange::expand_dims(inputs),
        Op::MatrixDiag => arrange::matrix_diag(inputs),
        Op::MirrorPad(_) | Op::Pad | Op::PadV2 => arrange::pad(inputs),
        Op::Pack(options) => arrange::pack(inputs, options.axis),
        Op::Reshape(options) => arrange::reshape(inputs, options),
        Op::SpaceToBatchNd => arrange::space_to_batch(inputs),
        Op::SpaceToDepth(options) => arrange::space_to_depth(inputs, options.block_size),
        Op::Squeeze(options) => arrange::squeeze(inputs, &options.squeeze_dims),
        Op::Tile => arrange::tile(inputs),
        Op::Transpose => arrange::transpose(inputs),
        // Selection by index.
        Op::EmbeddingLookup | Op::HashtableLookup => index::lookup(op, inputs),
        Op::Gather(options) => index::gather(inputs, options),
        Op::GatherNd => index::gather_nd(inputs),
        Op::HashtableFind => one(inputs.shape(1)?.to_vec()),
        Op::OneHot(options) => index::one_hot(inputs, options.axis),
        Op::Slice => index::slice(inputs),
        Op::Split(options) => index::split(inputs, options.num_splits, outputs),
        Op::SplitV(_) => index::split_v(inputs),
        Op::StridedSlice(options) => index::strided_slice(inputs, options),
        Op::Unpack(options) => index::unpack(inputs, options.axis, outputs),
        Op::Unique(_) | Op::Where => Err(Stop::Dynamic),
        // Recurrent operators.
        Op::BidirectionalSequenceLstm(options) => recurrent::bidirectional_lstm(inputs, options),
        Op::BidirectionalSequenceRnn(options) => recurrent::bidirectional_rnn(inputs, options),
        Op::Lstm(options) => recurrent::lstm(inputs, options, outputs),
        Op::Rnn(_) => recurrent::rnn(inputs),
        Op::Svdf(options) => recurrent::svdf(inputs, options.rank),
        Op::UnidirectionalSequenceLstm(_) => recurrent::sequence_lstm(inputs),
        Op::UnidirectionalSequenceRnn(_) => recurrent::sequence_rnn(inputs),
        Op::Custom(options) => custom::shapes(inputs, options),
        _ => Err(Stop::Stated),
    }
}
