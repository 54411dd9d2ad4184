//! Operands of 16 bits for nodes that XNNPACK computes in fp32.

use bytes::Bytes;
use half::{bf16, f16};
use xnn_format::{Datatype, ValueId};
use xnnpack::{Halves, Role, StaticData, TensorSpec, Unary, UnaryOp};

use super::NodeDefiner;
use crate::error::Result;

/// What becomes of fp16 weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Fp32.
    Floats,
    /// Fp32, but no longer than it takes to pack them for a product.
    Halves,
    /// The same as a matrix: all dimensions but the first are one.
    HalfMatrix,
}

/// The filter itself, or a constant of fp16 in fp32 if that is what `input` has.
pub(super) fn filter(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    input: ValueId,
    form: Form,
) -> Result<xnnpack::ValueId> {
    let Some(data) = halves(cx, id, input)? else { return cx.id(id) };
    constant(cx, id, form, || {
        Ok(match form {
            Form::Floats => floats(data, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Form::Halves | Form::HalfMatrix => {
                Role::Halves(Halves::new(StaticData::new(data.clone()))?)
            }
        })
    })
}

/// The elements of a constant of fp16 that is to be multiplied in fp32, as `input` is.
pub(super) fn halves<'g>(
    cx: &NodeDefiner<'_, 'g>,
    id: ValueId,
    input: ValueId,
) -> Result<Option<&'g Bytes>> {
    let filter = cx.value(id)?;
    let is_wanted = filter.datatype == Datatype::F16 && cx.value(input)?.datatype == Datatype::F32;
    Ok(filter.data.as_ref().filter(|_| is_wanted))
}

/// The value itself, or a bf16 value in fp32: at once if it is constant, at run time otherwise.
pub(super) fn bf16(cx: &mut NodeDefiner<'_, '_>, id: ValueId) -> Result<xnnpack::ValueId> {
    let value = cx.value(id)?;
    let original = cx.id(id)?;
    if value.datatype != Datatype::Bf16 {
        return Ok(original);
    }
    if let Some(data) = &value.data {
        let role = || Ok(floats(data, |bytes| bf16::from_le_bytes(bytes).to_f32()));
        return constant(cx, id, Form::Floats, role);
    }
    let converted = cx.temporary(TensorSpec::inferred(xnnpack::Datatype::F32))?;
    cx.define(Unary { op: UnaryOp::Convert, input: original, output: converted })?;
    Ok(converted)
}

/// The constant in fp32, made once for all nodes that read it.
fn constant(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    form: Form,
    role: impl FnOnce() -> Result<Role>,
) -> Result<xnnpack::ValueId> {
    if let Some(&widened) = cx.definer.widened.get(&(id, form)) {
        return Ok(widened);
    }
    let dims = match (form, cx.value(id)?.dims.as_slice()) {
        (Form::HalfMatrix, [rows, rest @ ..]) => vec![*rows, rest.iter().product()],
        (_, dims) => dims.to_vec(),
    };
    let widened = cx.temporary(TensorSpec::new(xnnpack::Datatype::F32, &dims).role(role()?))?;
    cx.definer.widened.insert((id, form), widened);
    Ok(widened)
}

fn floats(data: &[u8], number: impl Fn([u8; 2]) -> f32) -> Role {
    let floats: Vec<f32> = data.as_chunks().0.iter().map(|&bytes| number(bytes)).collect();
    Role::Static(StaticData::of(&floats))
}
