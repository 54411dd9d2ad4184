//! Partitioning rules, one file for each operator family.
//!
//! A rule returns a plan with everything that lowering needs, or the reason why the operator is not
//! delegated. All choices between several forms of an operator are made here.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod blocks;
pub(crate) mod checks;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod fully_connected;
pub(crate) mod gather;
pub(crate) mod matmul;
pub(crate) mod mediapipe;
pub(crate) mod normalization;
mod options;
pub(crate) mod pool;
pub(crate) mod quantize;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod select;
pub(crate) mod shape;
pub(crate) mod slice;
pub(crate) mod softmax;
pub(crate) mod tile;
pub(crate) mod transpose_conv;
pub(crate) mod weights;

use xnn_format::{BinaryOp, UnaryOp};
use xnn_model::Op;
use xnn_model::op::Activation;

pub(crate) use self::options::RuleOptions;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// The plan for an operator that can be delegated.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    AddN(elementwise::AddN),
    ArgMaxPool(mediapipe::ArgMaxPool),
    ArgReduce(reduce::ArgReduce),
    Attention(attention::Attention),
    BatchBlocks(blocks::BatchBlocks),
    Binary(elementwise::Binary),
    Blocks(blocks::Blocks),
    Concatenation(shape::Concatenation),
    Conv(conv::Conv),
    Cumsum(reduce::Cumsum),
    FakeQuant(elementwise::FakeQuant),
    FloorMod(elementwise::FloorMod),
    /// The result is constant, so the operator needs no node.
    Folded,
    FullyConnected(fully_connected::FullyConnected),
    Gelu(elementwise::Gelu),
    LocalResponse(normalization::LocalResponse),
    MatMul(matmul::MatMul),
    MeanSquareNorm(normalization::MeanSquareNorm),
    Normalization(normalization::Normalization),
    Pad(shape::Pad),
    Gather(gather::Gather),
    Pool(pool::Pool),
    Reduce(reduce::Reduce),
    Reshape(shape::Reshape),
    Resize(resize::Resize),
    Rope(attention::Rope),
    Select(select::Select),
    Slice(slice::Slice),
    Softmax(softmax::Softmax),
    Tile(tile::Tile),
    Transpose(shape::Transpose),
    TransposeConv(transpose_conv::TransposeConv),
    Unary(elementwise::Unary),
    Update(slice::Update),
}

/// Rule for operators whose result is known. Tensors of which only the shape is needed are still
/// inputs of the graph, because a fully delegated model keeps its inputs.
pub(crate) fn folded(view: OpView<'_>) -> Result<Plan, WhyNot> {
    for position in 0..view.operator.inputs.len() {
        let operand = view.optional_input(position)?;
        if let Some(operand) = operand.filter(|operand| !operand.tensor.is_constant()) {
            checks::graph_input(operand)?;
        }
    }
    Ok(Plan::Folded)
}

/// Applies the rule for an operator.
pub(crate) fn plan(view: OpView<'_>, rule_options: RuleOptions) -> Result<Plan, WhyNot> {
    use blocks::BatchBlocksDirection;
    use elementwise::{binary, clamp, float_binary, prelu, unary};
    use reduce::{Reduction, reduce};

    let none = Activation::None;
    Ok(match view.op() {
        Op::Abs => Plan::Unary(unary(view, UnaryOp::Abs)?),
        Op::Add(o) => Plan::Binary(binary(view, BinaryOp::Add, o.activation)?),
        Op::AddN => Plan::AddN(elementwise::add_n(view)?),
        Op::ArgMax(_) => Plan::ArgReduce(reduce::arg_reduce(view, false)?),
        Op::ArgMin(_) => Plan::ArgReduce(reduce::arg_reduce(view, true)?),
        Op::Atan2 => Plan::Binary(elementwise::atan2(view)?),
        Op::AveragePool2d(o) => Plan::Pool(pool::pool_2d(view, o, pool::PoolKind::Average)?),
        Op::BatchMatMul(o) => Plan::MatMul(matmul::batch_matmul(view, o)?),
        Op::BatchToSpaceNd => {
            Plan::BatchBlocks(blocks::batch_blocks(view, BatchBlocksDirection::ToSpace)?)
        }
        Op::BroadcastTo => Plan::Tile(tile::broadcast_to(view)?),
        Op::Cast(_) => Plan::Unary(quantize::cast(view)?),
        Op::Ceil => Plan::Unary(unary(view, UnaryOp::Ceiling)?),
        Op::Concatenation(o) => Plan::Concatenation(shape::concatenation(view, o)?),
        Op::Conv2d(o) => Plan::Conv(conv::conv_2d(view, o, rule_options)?),
        Op::Cos => Plan::Unary(unary(view, UnaryOp::Cosine)?),
        Op::Cumsum(o) => Plan::Cumsum(reduce::cumsum(view, o)?),
        Op::DepthToSpace(o) => Plan::Blocks(blocks::blocks(view, o, false)?),
        Op::Custom(o) => match mediapipe::custom(view, o)? {
            mediapipe::CustomPlan::ArgMaxPool(pool) => Plan::ArgMaxPool(pool),
            mediapipe::CustomPlan::TransposeConv(conv) => Plan::TransposeConv(conv),
        },
        Op::DepthwiseConv2d(o) => Plan::Conv(conv::depthwise_conv_2d(view, o, rule_options)?),
        Op::Dequantize | Op::Quantize => Plan::Unary(quantize::convert(view)?),
        Op::Div(o) => Plan::Binary(binary(view, BinaryOp::Divide, o.activation)?),
        Op::DynamicUpdateSlice => Plan::Update(slice::dynamic_update_slice(view)?),
        Op::Elu => Plan::Unary(unary(view, UnaryOp::Elu { alpha: 1.0 })?),
        Op::Exp => Plan::Unary(unary(view, UnaryOp::Exp)?),
        Op::ExpandDims | Op::Reshape(_) | Op::Squeeze(_) => Plan::Reshape(shape::reshape(view)?),
        Op::FakeQuant(o) => Plan::FakeQuant(elementwise::fake_quant(view, o)?),
        Op::Fill => Plan::Tile(tile::fill(view)?),
        Op::Floor => Plan::Unary(unary(view, UnaryOp::Floor)?),
        Op::FloorDiv => Plan::Binary(elementwise::floor_div(view)?),
        Op::FloorMod => Plan::FloorMod(elementwise::floor_mod(view)?),
        Op::FullyConnected(o) => Plan::FullyConnected(fully_connected::fully_connected(view, o)?),
        Op::Gather(o) => Plan::Gather(gather::gather(view, o)?),
        Op::Gelu(o) => Plan::Gelu(elementwise::gelu(view, o)?),
        Op::HardSwish => Plan::Unary(unary(view, UnaryOp::HardSwish)?),
        Op::InstanceNorm(o) => Plan::MeanSquareNorm(normalization::instance_norm(view, o)?),
        Op::L2Normalization(o) => Plan::Normalization(normalization::l2_normalization(view, o)?),
        Op::L2Pool2d(o) => Plan::Pool(pool::pool_2d(view, o, pool::PoolKind::L2)?),
        Op::LeakyRelu(o) => {
            Plan::Unary(unary(view, UnaryOp::LeakyRelu { negative_slope: o.alpha })?)
        }
        Op::LocalResponseNormalization(o) => {
            Plan::LocalResponse(normalization::local_response(view, o)?)
        }
        Op::Log => Plan::Unary(unary(view, UnaryOp::Log)?),
        Op::LogSoftmax => Plan::Normalization(normalization::log_softmax(view)?),
        Op::Logistic => Plan::Unary(unary(view, UnaryOp::Sigmoid)?),
        Op::MaxPool2d(o) => Plan::Pool(pool::pool_2d(view, o, pool::PoolKind::Max)?),
        Op::Maximum => Plan::Binary(elementwise::choice(view, BinaryOp::Maximum, rule_options)?),
        Op::Mean(o) => Plan::Reduce(reduce(view, o, Reduction::Mean)?),
        Op::Minimum => Plan::Binary(elementwise::choice(view, BinaryOp::Minimum, rule_options)?),
        Op::MirrorPad(o) => Plan::Gather(gather::mirror_pad(view, o)?),
        Op::Mul(o) => Plan::Binary(binary(view, BinaryOp::Multiply, o.activation)?),
        Op::Neg => Plan::Unary(elementwise::float_unary(view, UnaryOp::Negate)?),
        Op::Pack(o) => Plan::Concatenation(shape::pack(view, o)?),
        Op::Pad | Op::PadV2 => Plan::Pad(shape::pad(view)?),
        Op::Pow => Plan::Binary(float_binary(view, BinaryOp::Pow)?),
        Op::Prelu => Plan::Binary(prelu(view)?),
        Op::ReduceMax(o) => Plan::Reduce(reduce(view, o, Reduction::Max)?),
        Op::ReduceMin(o) => Plan::Reduce(reduce(view, o, Reduction::Min)?),
        Op::ReduceProd(o) => Plan::Reduce(reduce(view, o, Reduction::Product)?),
        Op::Relu => Plan::Unary(clamp(view, activation::RELU)?),
        Op::Relu0To1 => Plan::Unary(clamp(view, activation::RELU_0_TO_1)?),
        Op::Relu6 => Plan::Unary(clamp(view, activation::RELU6)?),
        Op::ReluN1To1 => Plan::Unary(clamp(view, activation::RELU_N1_TO_1)?),
        Op::ResizeBilinear(o) => Plan::Resize(resize::resize_bilinear(view, o)?),
        Op::ResizeNearestNeighbor(o) => match gather::resize_nearest(view, o)? {
            gather::NearestResize::Repeat(tile) => Plan::Tile(tile),
            gather::NearestResize::Gather(gather) => Plan::Gather(gather),
        },
        Op::ReverseV2 => Plan::Gather(gather::reverse(view)?),
        Op::RmsNorm(o) => Plan::MeanSquareNorm(normalization::rms_norm(view, o)?),
        Op::Rope(o) => Plan::Rope(attention::rope(view, o)?),
        Op::Round => Plan::Unary(unary(view, UnaryOp::BankersRounding)?),
        Op::Rsqrt => Plan::Unary(unary(view, UnaryOp::ReciprocalSquareRoot)?),
        Op::Select | Op::SelectV2 => Plan::Select(select::select(view)?),
        Op::Sign => Plan::Unary(unary(view, UnaryOp::Sign)?),
        Op::Sin => Plan::Unary(unary(view, UnaryOp::Sine)?),
        Op::Slice => Plan::Slice(slice::slice(view)?),
        Op::Softmax(o) => Plan::Softmax(softmax::softmax(view, o, rule_options)?),
        Op::SpaceToBatchNd => {
            Plan::BatchBlocks(blocks::batch_blocks(view, BatchBlocksDirection::ToBatch)?)
        }
        Op::SpaceToDepth(o) => Plan::Blocks(blocks::blocks(view, o, true)?),
        Op::Split(_) => Plan::Slice(slice::split(view)?),
        Op::SplitV(_) => Plan::Slice(slice::split_v(view)?),
        Op::Sqrt => Plan::Unary(unary(view, UnaryOp::SquareRoot)?),
        Op::Square => Plan::Unary(unary(view, UnaryOp::Square)?),
        Op::SquaredDifference => Plan::Binary(binary(view, BinaryOp::SquaredDifference, none)?),
        Op::StablehloComposite(o) => Plan::Attention(attention::composite(view, o)?),
        Op::StridedSlice(o) => match slice::strided_slice(view, o)? {
            slice::StridedSlicePlan::Slice(slice) => Plan::Slice(slice),
            slice::StridedSlicePlan::Gather(gather) => Plan::Gather(gather),
        },
        Op::Sub(o) => Plan::Binary(binary(view, BinaryOp::Subtract, o.activation)?),
        Op::Sum(o) => Plan::Reduce(reduce(view, o, Reduction::Sum)?),
        Op::Tanh => Plan::Unary(unary(view, UnaryOp::Tanh)?),
        Op::Tile => Plan::Tile(tile::tile(view)?),
        Op::Transpose => Plan::Transpose(shape::transpose(view)?),
        Op::TransposeConv(o) => Plan::TransposeConv(transpose_conv::transpose_conv(view, o)?),
        Op::Unpack(o) => Plan::Slice(slice::unpack(view, o)?),
        op => return Err(WhyNot::UnsupportedOperator { op: op.to_string() }),
    })
}
