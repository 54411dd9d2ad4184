//! fp16 and bf16 operands of nodes that XNNPACK computes in fp32.

use bytes::Bytes;
use half::{bf16, f16};
use xnn_format::{Datatype, ValueId};
use xnnpack::{Fp16Weights, Role, StaticData, TensorSpec, Unary, UnaryOp};

use super::definer::NodeDefiner;
use super::value::Form;
use crate::error::Result;

/// Returns the filter, or its form for fp32 if it is fp16 and `input` is fp32.
pub(super) fn filter(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    input: ValueId,
    form: Form,
) -> Result<xnnpack::ValueId> {
    let Some(data) = fp16_data(cx, id, input)? else { return cx.id(id) };
    constant(cx, id, form, || {
        Ok(match form {
            Form::Fp32 | Form::Fp32Matrix => {
                floats(data, |bytes| f16::from_le_bytes(bytes).to_f32())
            }
            Form::Fp16 | Form::Fp16Matrix => {
                Role::Fp16Weights(Fp16Weights::new(StaticData::new(data.clone()))?)
            }
        })
    })
}

/// Returns the filter as a matrix: all dimensions but the first become one.
pub(super) fn matrix(
    cx: &mut NodeDefiner<'_, '_>,
    id: ValueId,
    input: ValueId,
) -> Result<xnnpack::ValueId> {
    let filter = cx.value(id)?;
    match &filter.data {
        Some(data) if filter.datatype == Datatype::F32 && filter.dims.len() != 2 => {
            let role = || Ok(Role::Static(StaticData::new(data.clone())));
            constant(cx, id, Form::Fp32Matrix, role)
        }
        _ => self::filter(cx, id, input, Form::Fp16Matrix),
    }
}

/// Returns the data of an fp16 filter whose `input` is fp32.
pub(super) fn fp16_data<'g>(
    cx: &NodeDefiner<'_, 'g>,
    id: ValueId,
    input: ValueId,
) -> Result<Option<&'g Bytes>> {
    let filter = cx.value(id)?;
    let is_wanted = filter.datatype == Datatype::F16 && cx.value(input)?.datatype == Datatype::F32;
    Ok(filter.data.as_ref().filter(|_| is_wanted))
}

/// Returns the value, or its conversion to fp32 if it is bf16. Constants are converted now, others
/// at run time.
pub(super) fn bf16(cx: &mut NodeDefiner<'_, '_>, id: ValueId) -> Result<xnnpack::ValueId> {
    let value = cx.value(id)?;
    let original = cx.id(id)?;
    if value.datatype != Datatype::Bf16 {
        return Ok(original);
    }
    if let Some(data) = &value.data {
        let role = || Ok(floats(data, |bytes| bf16::from_le_bytes(bytes).to_f32()));
        return constant(cx, id, Form::Fp32, role);
    }
    let converted = cx.temporary(TensorSpec::inferred(xnnpack::Datatype::F32))?;
    cx.define(Unary { op: UnaryOp::Convert, input: original, output: converted })?;
    Ok(converted)
}

/// Returns a converted constant, which nodes share.
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
        (Form::Fp16Matrix | Form::Fp32Matrix, [rows, rest @ ..]) => {
            vec![*rows, rest.iter().product()]
        }
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
