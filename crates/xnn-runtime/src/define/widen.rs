//! Operands of 16 bits for nodes that XNNPACK computes in fp32.

use half::{bf16, f16};
use xnn_format::{Datatype, ValueId};
use xnnpack::{Halves, Role, StaticData, TensorSpec, Unary, UnaryOp};

use super::NodeDefiner;
use crate::error::Result;

/// The filter itself, or a constant of fp16 in fp32 if that is what `input` has. What is only read to be packed `for_product`s
/// exists in fp32 no longer than that takes.
pub(super) fn filter(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    input: ValueId,
    for_product: bool,
) -> Result<xnnpack::ValueId> {
    let value = cx.value(id)?;
    let (Datatype::F16, Some(data)) = (value.datatype, &value.data) else { return cx.id(id) };
    if cx.value(input)?.datatype != Datatype::F32 {
        return cx.id(id);
    }
    constant(cx, id, for_product, || {
        Ok(if for_product {
            Role::Halves(Halves::new(StaticData::new(data.clone()))?)
        } else {
            floats(data, |bytes| f16::from_le_bytes(bytes).to_f32())
        })
    })
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
        return constant(cx, id, false, role);
    }
    let converted = cx.temporary(TensorSpec::inferred(xnnpack::Datatype::F32))?;
    cx.define(Unary { op: UnaryOp::Convert, input: original, output: converted })?;
    Ok(converted)
}

/// The constant in fp32, made once for all nodes that read it.
fn constant(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    for_product: bool,
    role: impl FnOnce() -> Result<Role>,
) -> Result<xnnpack::ValueId> {
    if let Some(&widened) = cx.definer.widened.get(&(id, for_product)) {
        return Ok(widened);
    }
    let dims = &cx.value(id)?.dims;
    let widened = cx.temporary(TensorSpec::new(xnnpack::Datatype::F32, dims).role(role()?))?;
    cx.definer.widened.insert((id, for_product), widened);
    Ok(widened)
}

fn floats(data: &[u8], number: impl Fn([u8; 2]) -> f32) -> Role {
    let floats: Vec<f32> = data.as_chunks().0.iter().map(|&bytes| number(bytes)).collect();
    Role::Static(StaticData::of(&floats))
}
