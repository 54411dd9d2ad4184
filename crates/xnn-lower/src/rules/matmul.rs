//! Partitioning rule for BATCH_MATMUL.

use xnn_model::op::BatchMatMulOptions;
use xnn_model::{DType, Quantization, TensorId};

use super::checks::{self, Elem, q8};
use super::weights::{quantized_weights, requantization};
use crate::view::{MAX_RANK, OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a batched matrix product.
#[derive(Clone, Debug)]
pub(crate) struct MatMul {
    pub form: MatMulForm,
    pub inputs: [TensorId; 2],
    pub output: TensorId,
    /// Whether the last two dimensions of each operand are transposed first.
    pub transpose: [bool; 2],
}

/// How the operands are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatMulForm {
    /// A product of floats. 8-bit operands are converted.
    Floats,
    /// A fully connected layer: the rows of floats on the left are quantized at run time, and
    /// multiplied by one matrix of constant 8-bit weights. Interpreters quantize them, too.
    DynamicRows,
    /// A fully connected layer of int8, whose weights have a scale for each output.
    PerChannel,
}

/// Rule for BATCH_MATMUL.
pub(crate) fn batch_matmul(
    view: OpView<'_>,
    options: &BatchMatMulOptions,
) -> Result<MatMul, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (a, b, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let (elem, _) = checks::same_type(a, output)?;
    let form = form(elem, a, b, output);
    match (form, elem) {
        (MatMulForm::PerChannel, Elem::Q8(q)) => {
            quantized_weights(b, output_dim(b, options))?;
            requantization(q, b, q8(output)?)?;
        }
        _ if is_weights(b) && elem.is_f32() => quantized_weights(b, output_dim(b, options))?,
        _ => checks::same_type(a, b).map(|_| ())?,
    }
    for t in [a, b, output] {
        checks::rank_at_most(t, MAX_RANK)?;
        if t.shape.len() < 2 {
            return Err(WhyNot::Rank {
                tensor: t.to_ref(),
                rank: t.shape.len(),
                expected: "2 to 6",
            });
        }
        checks::usable(t)?;
    }
    let depth = |t: Operand<'_>, from_end: usize| t.shape[t.shape.len() - from_end];
    let depth_a = depth(a, if options.adj_x { 2 } else { 1 });
    let depth_b = depth(b, if options.adj_y { 1 } else { 2 });
    if depth_a != depth_b {
        return Err(WhyNot::Shape {
            tensor: b.to_ref(),
            expected: format!("{:?} does not multiply {:?}", b.shape, a.shape),
        });
    }
    Ok(MatMul {
        form,
        inputs: [a.id, b.id],
        output: output.id,
        transpose: [options.adj_x, options.adj_y],
    })
}

/// Whether an operand is constant int8.
fn is_weights(b: Operand<'_>) -> bool {
    b.tensor.dtype == DType::I8 && b.tensor.is_constant()
}

/// The dimension of outputs of the right operand.
fn output_dim(b: Operand<'_>, options: &BatchMatMulOptions) -> usize {
    b.shape.len().saturating_sub(if options.adj_y { 2 } else { 1 })
}

fn form(elem: Elem, a: Operand<'_>, b: Operand<'_>, output: Operand<'_>) -> MatMulForm {
    let matrices = &b.shape[..b.shape.len().saturating_sub(2)];
    let is_layer = is_weights(b)
        && matrices.iter().all(|&dim| dim == 1)
        && a.shape.len() == output.shape.len();
    match (elem, &b.tensor.quantization) {
        (Elem::F32, _) if is_layer => MatMulForm::DynamicRows,
        (Elem::Q8(q), Some(Quantization::PerAxis { .. })) if is_layer && q.signed => {
            MatMulForm::PerChannel
        }
        _ => MatMulForm::Floats,
    }
}
