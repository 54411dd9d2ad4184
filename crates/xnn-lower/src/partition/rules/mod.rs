//! May a node go, and if not, why not. One file for each operator family; what
//! a rule returns is everything that lowering needs to know.

pub(crate) mod checks;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod fully_connected;
pub(crate) mod pool;
pub(crate) mod quantize;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod shape;
pub(crate) mod softmax;

use xnn_format::{BinaryOp, ReduceOp, UnaryOp};
use xnn_model::Op;
use xnn_model::op::Activation;

use crate::view::OpView;
use crate::why_not::WhyNot;

/// What a rule found out about a node that may go.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Binary(elementwise::Binary),
    Concatenation(shape::Concatenation),
    Conv(conv::Conv),
    /// The result is constant: nothing to do at run time.
    Folded,
    FullyConnected(fully_connected::FullyConnected),
    Pad(shape::Pad),
    Pool(pool::Pool),
    Reduce(reduce::Reduce),
    Reshape(shape::Reshape),
    Resize(resize::Resize),
    Slice(shape::Slice),
    Softmax(softmax::Softmax),
    Transpose(shape::Transpose),
    Unary(elementwise::Unary),
}

/// Whether XNNPACK takes a node, and how.
pub(crate) fn plan(view: OpView<'_>) -> Result<Plan, WhyNot> {
    use elementwise::{binary, clamp, prelu, unary};

    let none = Activation::None;
    Ok(match view.op() {
        Op::Abs => Plan::Unary(unary(view, UnaryOp::Abs)?),
        Op::Add(o) => Plan::Binary(binary(view, BinaryOp::Add, o.activation)?),
        Op::AveragePool2d(o) => Plan::Pool(pool::pool_2d(view, o, pool::PoolKind::Average)?),
        Op::Ceil => Plan::Unary(unary(view, UnaryOp::Ceiling)?),
        Op::Concatenation(o) => Plan::Concatenation(shape::concatenation(view, o)?),
        Op::Conv2d(o) => Plan::Conv(conv::conv_2d(view, o)?),
        Op::DepthwiseConv2d(o) => Plan::Conv(conv::depthwise_conv_2d(view, o)?),
        Op::Dequantize | Op::Quantize => Plan::Unary(quantize::convert(view)?),
        Op::Div(o) => Plan::Binary(binary(view, BinaryOp::Divide, o.activation)?),
        Op::Elu => Plan::Unary(unary(view, UnaryOp::Elu { alpha: 1.0 })?),
        Op::Exp => Plan::Unary(unary(view, UnaryOp::Exp)?),
        Op::ExpandDims | Op::Reshape(_) | Op::Squeeze(_) => Plan::Reshape(shape::reshape(view)?),
        Op::Floor => Plan::Unary(unary(view, UnaryOp::Floor)?),
        Op::FullyConnected(o) => Plan::FullyConnected(fully_connected::fully_connected(view, o)?),
        Op::HardSwish => Plan::Unary(unary(view, UnaryOp::HardSwish)?),
        Op::LeakyRelu(o) => {
            Plan::Unary(unary(view, UnaryOp::LeakyRelu { negative_slope: o.alpha })?)
        }
        Op::Log => Plan::Unary(unary(view, UnaryOp::Log)?),
        Op::Logistic => Plan::Unary(unary(view, UnaryOp::Sigmoid)?),
        Op::MaxPool2d(o) => Plan::Pool(pool::pool_2d(view, o, pool::PoolKind::Max)?),
        Op::Maximum => Plan::Binary(binary(view, BinaryOp::Maximum, none)?),
        Op::Mean(o) => Plan::Reduce(reduce::reduce(view, o, ReduceOp::Mean)?),
        Op::Minimum => Plan::Binary(binary(view, BinaryOp::Minimum, none)?),
        Op::Mul(o) => Plan::Binary(binary(view, BinaryOp::Multiply, o.activation)?),
        Op::Neg => Plan::Unary(unary(view, UnaryOp::Negate)?),
        Op::Pad | Op::PadV2 => Plan::Pad(shape::pad(view)?),
        Op::Prelu => Plan::Binary(prelu(view)?),
        Op::Relu => Plan::Unary(clamp(view, checks::RELU)?),
        Op::Relu0To1 => Plan::Unary(clamp(view, checks::RELU_0_TO_1)?),
        Op::Relu6 => Plan::Unary(clamp(view, checks::RELU6)?),
        Op::ReluN1To1 => Plan::Unary(clamp(view, checks::RELU_N1_TO_1)?),
        Op::ResizeBilinear(o) => Plan::Resize(resize::resize_bilinear(view, o)?),
        Op::Round => Plan::Unary(unary(view, UnaryOp::BankersRounding)?),
        Op::Rsqrt => Plan::Unary(unary(view, UnaryOp::ReciprocalSquareRoot)?),
        Op::Slice => Plan::Slice(shape::slice(view)?),
        Op::Softmax(o) => Plan::Softmax(softmax::softmax(view, o)?),
        Op::Sqrt => Plan::Unary(unary(view, UnaryOp::SquareRoot)?),
        Op::Square => Plan::Unary(unary(view, UnaryOp::Square)?),
        Op::SquaredDifference => Plan::Binary(binary(view, BinaryOp::SquaredDifference, none)?),
        Op::Sub(o) => Plan::Binary(binary(view, BinaryOp::Subtract, o.activation)?),
        Op::Sum(o) => Plan::Reduce(reduce::reduce(view, o, ReduceOp::Sum)?),
        Op::Tanh => Plan::Unary(unary(view, UnaryOp::Tanh)?),
        Op::Transpose => Plan::Transpose(shape::transpose(view)?),
        op => return Err(WhyNot::UnsupportedOperator { op: op.to_string() }),
    })
}
