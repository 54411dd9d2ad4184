//! Operators of transformers.

use std::ptr;

use xnnpack_sys as sys;

use super::checks::expect_shape;
use super::context::{Context, RawIds};
use super::operator::{Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// Rotary positional embedding.
#[derive(Clone, Debug)]
pub struct Rope {
    /// `[batch, tokens, heads, channels]` with an even number of channels.
    pub input: ValueId,
    /// `[max tokens, channels]`: cosines in the first half of each row, sines in the second.
    pub weights: ValueId,
    /// Shape of the input.
    pub output: ValueId,
}

/// Scaled dot-product attention, multi-head or multi-query.
#[derive(Clone, Debug)]
pub struct ScaledDotProductAttention {
    /// If given, logits are replaced by `tanh(logits / cap) * cap`.
    pub logits_cap: Option<f32>,
    /// `[..., heads, tokens, channels]`.
    pub query: ValueId,
    /// `[..., heads, key tokens, channels]`, or without heads (multi-query).
    pub key: ValueId,
    /// `[..., heads, key tokens, value channels]`, or without heads (multi-query).
    pub value: ValueId,
    /// `[channels]`: factors for the query.
    pub scale: ValueId,
    /// `[tokens, key tokens]`: terms added to the logits.
    pub mask: ValueId,
    /// `[..., heads, tokens, value channels]`.
    pub output: ValueId,
}

impl Operator for Rope {
    fn kind(&self) -> &'static str {
        "rope"
    }

    fn links(&self) -> Links {
        Links::new([self.input, self.weights], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        let datatype = cx.expect_datatype(self.input, &[D::F32, D::F16])?;
        cx.expect_datatype(self.weights, &[datatype])?;
        cx.expect_datatype(self.output, &[datatype])?;
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [_, tokens, _, channels] = cx.shape4(self.input)?;
        let weights = cx.shape(self.weights)?;
        match *weights {
            [max_tokens, width] if max_tokens >= tokens && width == channels => {}
            _ => {
                return Err(Error::invalid(format!(
                    "the weights have shape {weights:?}; expected at least [{tokens}, {channels}]"
                )));
            }
        }
        if !channels.is_multiple_of(2) {
            return Err(Error::invalid(format!("{channels} channels; expected an even number")));
        }
        Ok(vec![cx.shape(self.input)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let [input, weights, output] = [self.input, self.weights, self.output].map(|id| ids.of(id));
        // SAFETY: the caller upholds the contract of `Operator::define`. XNNPACK ignores the number
        // of tokens.
        unsafe { sys::xnn_define_rope(graph, usize::MAX, input, weights, output, 0) }
    }
}

impl Operator for ScaledDotProductAttention {
    fn kind(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn links(&self) -> Links {
        Links::new([self.query, self.key, self.value, self.scale, self.mask], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        let datatype = cx.expect_datatype(self.query, &[D::F32, D::F16])?;
        for id in [self.key, self.value, self.scale, self.mask, self.output] {
            cx.expect_datatype(id, &[datatype])?;
        }
        match self.logits_cap {
            Some(cap) if !(cap.is_finite() && cap > 0.0) => {
                Err(Error::invalid(format!("cap {cap} is not positive and finite")))
            }
            _ => Ok(()),
        }
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let (query, key, value) =
            (cx.shape(self.query)?, cx.shape(self.key)?, cx.shape(self.value)?);
        let mismatch = || {
            Error::invalid(format!(
                "shapes of query {query:?}, key {key:?} and value {value:?} do not match"
            ))
        };
        let ([leading @ .., tokens, channels], [key_leading @ .., key_tokens, key_channels]) =
            (&*query, &*key)
        else {
            return Err(mismatch());
        };
        let [value_leading @ .., value_tokens, value_channels] = &*value else {
            return Err(mismatch());
        };
        let [batch @ .., _heads] = leading else { return Err(mismatch()) };
        let fits = (key_leading == leading || key_leading == batch)
            && value_leading == key_leading
            && key_channels == channels
            && value_tokens == key_tokens;
        if !fits {
            return Err(mismatch());
        }
        expect_shape("scale", cx.shape(self.scale)?, &[*channels])?;
        expect_shape("mask", cx.shape(self.mask)?, &[*tokens, *key_tokens])?;
        // XNNPACK stores the logits of all heads, and does not check the product of dimensions.
        Shape::new(&[leading, &[*tokens, *key_tokens]].concat())?;
        Ok(vec![Shape::new(&[leading, &[*tokens, *value_channels]].concat())?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // XNNPACK compares the new inputs with the old output, and fails.
        self.links().inputs.iter().all(|&id| old.shape(id) == new.shape(id))
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let cap = self.logits_cap.map(|cap| sys::xnn_attention_logits_cap_tanh_params { cap });
        let (cap_type, cap) = match &cap {
            Some(cap) => (sys::xnn_attention_logits_cap_type_tanh, ptr::from_ref(cap).cast()),
            None => (sys::xnn_attention_logits_cap_type_none, ptr::null()),
        };
        // SAFETY: the caller upholds the contract of `Operator::define`; `cap` has the type that
        // `cap_type` tells.
        unsafe {
            sys::xnn_define_scaled_dot_product_attention(
                graph,
                cap_type,
                cap,
                ids.of(self.query),
                ids.of(self.key),
                ids.of(self.value),
                ids.of(self.scale),
                ids.of(self.mask),
                ids.of(self.output),
                0,
            )
        }
    }
}
