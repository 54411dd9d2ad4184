//! Fully connected layers.

use xnn_format::{Datatype, ValueId, flags};
use xnnpack::{Flags, FullyConnected, FullyConnectedSparse, TensorSpec, Unary, UnaryOp};

use super::definer::NodeDefiner;
use super::fp16_weights;
use super::probe;
use super::sparse_weights;
use super::value::Form;
use crate::error::{Result, RuntimeError};

const FLAGS: &[(u32, Flags)] = &[
    (flags::TRANSPOSE_WEIGHTS, Flags::TRANSPOSE_WEIGHTS),
    (flags::TENSORFLOW_RESHAPE_2D, Flags::RESHAPE_2D),
];

pub(super) fn fully_connected(
    cx: &mut NodeDefiner<'_, '_>,
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    output: ValueId,
    sparse: bool,
) -> Result<()> {
    if cx.value(filter)?.datatype == Datatype::QbInt4 && !probe::blockwise_products_are_right() {
        return Err(RuntimeError::unsupported(
            "the installed XNNPACK computes wrong products with blockwise int4 weights on this \
             processor; build it from the vendored sources",
        ));
    }
    // XNNPACK at this revision has no bf16 products. Products of bf16 values are exact in fp32, so
    // results equal those of ExecuTorch's bf16 x bf16 -> fp32 kernel except for the order of
    // additions. Conversion to bf16 truncates at this revision; newer ones round.
    let flags = cx.flags(FLAGS);
    let is_transposed = flags.contains(Flags::TRANSPOSE_WEIGHTS);
    if !sparse && !is_transposed && keeps_fp16(cx, input, filter, output)? {
        let flags = flags | Flags::FP16_WEIGHTS;
        return product_with_matrix(cx, [input, filter, output], bias, flags);
    }
    let flags = flags | many_rows(cx, [input, filter, output])?;
    let flags = match !sparse && sparse_weights::are_sparse(cx, [input, filter, output])? {
        true => flags | Flags::SPARSE_WEIGHTS,
        false => flags,
    };
    let form = if sparse { Form::Fp32 } else { Form::Fp16 };
    let operands = Operands {
        input: fp16_weights::bf16(cx, input)?,
        filter: match cx.value(filter)?.datatype {
            Datatype::F16 => fp16_weights::filter(cx, filter, input, form)?,
            _ => fp16_weights::bf16(cx, filter)?,
        },
        bias: bias.map(|bias| fp16_weights::bf16(cx, bias)).transpose()?,
    };
    if cx.value(output)?.datatype != Datatype::Bf16 {
        let output = cx.id(output)?;
        return product(cx, operands, output, sparse, flags);
    }
    let unrounded = cx.temporary(TensorSpec::inferred(xnnpack::Datatype::F32))?;
    product(cx, operands, unrounded, sparse, flags)?;
    let rounding = Unary { op: UnaryOp::Convert, input: unrounded, output: cx.id(output)? };
    cx.define(rounding)
}

/// Number of input rows up to which weights are read once per run.
const FEW_ROWS: usize = 8;

/// Channels of a tile. For fewer channels XNNPACK uses narrower tiles of fp32.
const TILE: usize = 32;

/// Whether weights stay in fp16 when they are packed. With few rows, converting them in each run is
/// not slower than reading twice as many bytes.
pub(super) fn keeps_fp16(
    cx: &NodeDefiner<'_, '_>,
    input: ValueId,
    filter: ValueId,
    output: ValueId,
) -> Result<bool> {
    let dims = &cx.value(output)?.dims;
    Ok(xnnpack::packs_fp16_weights()
        && has_few_rows(dims)
        && dims.last().is_some_and(|&channels| channels >= TILE)
        && fp16_weights::fp16_data(cx, filter, input)?.is_some())
}

/// Defines the product of the input's rows with a filter of any number of dimensions, of which the
/// first are the channels of the output.
pub(super) fn product_with_matrix(
    cx: &mut NodeDefiner<'_, '_>,
    [input, filter, output]: [ValueId; 3],
    bias: Option<ValueId>,
    flags: Flags,
) -> Result<()> {
    let node = FullyConnected {
        output_range: cx.output_range(),
        input: cx.id(input)?,
        filter: fp16_weights::matrix(cx, filter, input)?,
        bias: cx.optional_id(bias)?,
        output: cx.id(output)?,
        flags,
    };
    cx.define(node)
}

/// [`Flags::MANY_ROWS`] if it makes a difference.
fn many_rows(cx: &NodeDefiner<'_, '_>, [input, filter, output]: [ValueId; 3]) -> Result<Flags> {
    let are_integers = matches!(
        (cx.value(input)?.datatype, cx.value(filter)?.datatype),
        (Datatype::QdInt8 | Datatype::QInt8, Datatype::QInt8 | Datatype::QcInt8)
            | (Datatype::QdInt8, Datatype::QcInt4)
            | (Datatype::QUint8, Datatype::QUint8)
    );
    let has_many = are_integers && !has_few_rows(&cx.value(output)?.dims);
    Ok(if has_many && xnnpack::packs_for_many_rows() { Flags::MANY_ROWS } else { Flags::NONE })
}

/// Whether each weight of a layer is read once per run.
pub(crate) fn has_few_rows(dims: &[usize]) -> bool {
    rows(dims) <= FEW_ROWS
}

/// Number of rows of the last dimension, at most the largest number.
pub(super) fn rows(dims: &[usize]) -> usize {
    dims.iter().rev().skip(1).fold(1, |rows, &dim| rows.saturating_mul(dim))
}

struct Operands {
    input: xnnpack::ValueId,
    filter: xnnpack::ValueId,
    bias: Option<xnnpack::ValueId>,
}

fn product(
    cx: &mut NodeDefiner<'_, '_>,
    Operands { input, filter, bias }: Operands,
    output: xnnpack::ValueId,
    sparse: bool,
    flags: Flags,
) -> Result<()> {
    let output_range = cx.output_range();
    if sparse && probe::has_sparse_kernels() {
        cx.definer.sparse = true;
        cx.define(FullyConnectedSparse { output_range, input, filter, bias, output })
    } else {
        cx.define(FullyConnected { output_range, input, filter, bias, output, flags })
    }
}
