//! Operators of transformers.

use xnn_format::ValueId;
use xnnpack::{Rope, ScaledDotProductAttention};

use super::definer::NodeDefiner;
use crate::error::Result;

pub(super) fn rope(
    cx: &mut NodeDefiner<'_, '_>,
    input: ValueId,
    weights: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = Rope { input: cx.id(input)?, weights: cx.id(weights)?, output: cx.id(output)? };
    cx.define(node)
}

pub(super) fn scaled_dot_product_attention(
    cx: &mut NodeDefiner<'_, '_>,
    [query, key, value, scale, mask]: [ValueId; 5],
    output: ValueId,
) -> Result<()> {
    let node = ScaledDotProductAttention {
        logits_cap: None,
        query: cx.id(query)?,
        key: cx.id(key)?,
        value: cx.id(value)?,
        scale: cx.id(scale)?,
        mask: cx.id(mask)?,
        output: cx.id(output)?,
    };
    cx.define(node)
}
