//! Lowers plans to an XN01 graph, one file for each operator family, named as in `rules`.
//!
//! Rules have checked the operators and chosen their forms. Lowering cannot fail.

mod activation;
mod attention;
mod blocks;
mod builder;
mod conv;
mod elementwise;
mod fully_connected;
mod gather;
mod matmul;
mod normalization;
mod pool;
mod reduce;
mod resize;
mod select;
mod shape;
mod slice;
mod softmax;
mod tile;
mod weights;

use xnn_format::Graph;
use xnn_model::{Subgraph, TensorId};

use self::builder::Builder;
pub(crate) use self::builder::natural_type;
use crate::rules::Plan;

/// Lowers the operators of one partition.
pub(crate) fn lower_group<'p>(
    graph: &Subgraph,
    steps: impl Iterator<Item = (usize, &'p Plan)>,
    inputs: &[TensorId],
    outputs: &[TensorId],
) -> Graph {
    let mut builder = Builder::new(graph);
    // Inputs come first, so that they have the lowest ids.
    for &input in inputs {
        builder.value(input);
    }
    for (index, plan) in steps {
        builder.start_operator(index);
        lower(&mut builder, plan);
    }
    builder.finish(inputs, outputs)
}

fn lower(b: &mut Builder<'_>, plan: &Plan) {
    match plan {
        Plan::AddN(plan) => elementwise::add_n(b, plan),
        Plan::ArgMaxPool(plan) => pool::argmax_pool(b, plan),
        Plan::ArgReduce(plan) => reduce::arg_reduce(b, plan),
        Plan::Attention(plan) => attention::attention(b, plan),
        Plan::BatchBlocks(plan) => blocks::batch_blocks(b, plan),
        Plan::Binary(plan) => elementwise::binary(b, plan),
        Plan::Blocks(plan) => blocks::blocks(b, plan),
        Plan::Concatenation(plan) => shape::concatenation(b, plan),
        Plan::Conv(plan) => conv::conv(b, plan),
        Plan::Cumsum(plan) => reduce::cumsum(b, plan),
        Plan::FakeQuant(plan) => elementwise::fake_quant(b, plan),
        Plan::FloorMod(plan) => elementwise::floor_mod(b, plan),
        Plan::Folded => {}
        Plan::FullyConnected(plan) => fully_connected::fully_connected(b, plan),
        Plan::Gelu(plan) => elementwise::gelu(b, plan),
        Plan::LocalResponse(plan) => normalization::local_response(b, plan),
        Plan::MatMul(plan) => matmul::matmul(b, plan),
        Plan::MeanSquareNorm(plan) => normalization::mean_square_norm(b, plan),
        Plan::Normalization(plan) => normalization::normalization(b, plan),
        Plan::Pad(plan) => shape::pad(b, plan),
        Plan::Gather(plan) => gather::gather(b, plan),
        Plan::Pool(plan) => pool::pool(b, plan),
        Plan::Reduce(plan) => reduce::reduce(b, plan),
        Plan::Reshape(plan) => shape::reshape(b, plan),
        Plan::Resize(plan) => resize::resize(b, plan),
        Plan::Rope(plan) => attention::rope(b, plan),
        Plan::Select(plan) => select::select(b, plan),
        Plan::Slice(plan) => slice::slice(b, plan),
        Plan::Softmax(plan) => softmax::softmax(b, plan),
        Plan::Tile(plan) => tile::tile(b, plan),
        Plan::Transpose(plan) => shape::transpose(b, plan),
        Plan::TransposeConv(plan) => conv::transpose_conv(b, plan),
        Plan::Unary(plan) => elementwise::unary(b, plan),
        Plan::Update(plan) => slice::update(b, plan),
    }
}
