//! Fully connected layers.

use xnn_format::{Datatype, ValueId, flags};
use xnnpack::{Flags, FullyConnected, FullyConnectedSparse, TensorSpec, Unary, UnaryOp};

use super::{NodeDefiner, probe, widen};
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
            "the installed XNNPACK computes products with blockwise int4 weights wrong on this \
             processor; build it from the vendored sources",
        ));
    }
    // XNNPACK at this revision has no bf16 products. Products of bf16 numbers are exact in fp32,
    // so that computing there gives what ExecuTorch's bf16 x bf16 -> fp32 kernel gives, but for
    // the order of additions. Its conversion to bf16 truncates, where newer revisions round.
    let operands = Operands {
        input: widen::bf16(cx, input)?,
        filter: match cx.value(filter)?.datatype {
            Datatype::F16 => widen::filter(cx, filter, input, !sparse)?,
            _ => widen::bf16(cx, filter)?,
        },
        bias: bias.map(|bias| widen::bf16(cx, bias)).transpose()?,
    };
    if cx.value(output)?.datatype != Datatype::Bf16 {
        let output = cx.id(output)?;
        return product(cx, operands, output, sparse);
    }
    let unrounded = cx.temporary(TensorSpec::inferred(xnnpack::Datatype::F32))?;
    product(cx, operands, unrounded, sparse)?;
    let rounding = Unary { op: UnaryOp::Convert, input: unrounded, output: cx.id(output)? };
    cx.define(rounding)
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
) -> Result<()> {
    let output_range = cx.output_range();
    if sparse && probe::has_sparse_kernels() {
        cx.definer.sparse = true;
        cx.define(FullyConnectedSparse { output_range, input, filter, bias, output })
    } else {
        let flags = cx.flags(FLAGS);
        cx.define(FullyConnected { output_range, input, filter, bias, output, flags })
    }
}
