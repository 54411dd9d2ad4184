//! Partitioning rules for operators of transformers: the composite
//! `odml.scaled_dot_product_attention`, and Circle's ROPE.

use xnn_model::TensorId;
use xnn_model::flexbuffer::scalars;
use xnn_model::op::{CompositeOptions, RopeOptions};

use super::checks;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a rotation of pairs of elements of each row.
#[derive(Clone, Debug)]
pub(crate) struct Rope {
    pub input: TensorId,
    pub output: TensorId,
    pub sines: TensorId,
    pub cosines: TensorId,
    /// A pair is two neighbours, instead of one element of each half of the row.
    pub interleaved: bool,
}

/// Rule for ROPE. XNNPACK's own node is not used: it needs another order of dimensions and a
/// constant table.
pub(crate) fn rope(view: OpView<'_>, options: &RopeOptions) -> Result<Rope, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, sines, cosines, output) =
        (view.input(0)?, view.input(1)?, view.input(2)?, view.output(0)?);
    for t in [input, sines, cosines, output] {
        checks::f32_operand(t)?;
    }
    let even = input.shape.last().is_some_and(|row| row.is_multiple_of(2));
    if !even || output.shape != input.shape {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: "must have rows of an even length, like the output".into(),
        });
    }
    for table in [sines, cosines] {
        // Tables broadcast along the outer dimensions, which are missing or have size 1.
        let ones = table.shape.iter().take_while(|&&dim| dim == 1).count();
        let fits = table.shape.len() <= input.shape.len()
            && table.shape.last() == input.shape.last()
            && input.shape.ends_with(&table.shape[ones..]);
        if !fits {
            return Err(WhyNot::Shape {
                tensor: table.to_ref(),
                expected: format!("{:?} does not end {:?}", table.shape, input.shape),
            });
        }
    }
    Ok(Rope {
        input: input.id,
        output: output.id,
        sines: sines.id,
        cosines: cosines.id,
        interleaved: options.interleaved,
    })
}

/// Plan for `softmax(query * scale x key^T + mask) x value`, with tensors of the layout
/// `[batch, tokens, heads, channels]`.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    pub query: TensorId,
    /// If it has fewer heads than the query, neighbouring heads of the query share one.
    pub key: TensorId,
    pub value: TensorId,
    pub output: TensorId,
    pub scale: f32,
    pub form: AttentionForm,
}

/// The nodes that compute an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttentionForm {
    /// XNNPACK's node, which has one mask for all images and as many keys as heads.
    Node {
        /// `[1, 1, tokens, keys]`, added to the logits.
        mask: TensorId,
    },
    /// Products and a softmax.
    Products {
        /// `[batch or 1, 1, tokens, keys]`, added to the logits.
        mask: Option<TensorId>,
        /// Logits become `tanh(logits / cap) * cap`.
        logit_cap: Option<f32>,
    },
}

/// XNNPACK's node needs a scale for each channel, in memory.
const MAX_SCALES: usize = 1 << 16;

const ATTENTION: &str = "odml.scaled_dot_product_attention";

/// Rule for STABLEHLO_COMPOSITE. The name defines the meaning: the subgraph with the decomposition
/// is not used.
pub(crate) fn composite(view: OpView<'_>, options: &CompositeOptions) -> Result<Attention, WhyNot> {
    if options.name != ATTENTION || options.version != 0 {
        let CompositeOptions { name, version, .. } = options;
        let name = name.escape_debug();
        return Err(WhyNot::UnsupportedOperator { op: format!("{name} (version {version})") });
    }
    view.arity(3..=4, 1..=1)?;
    let [query, key, value] = [view.input(0)?, view.input(1)?, view.input(2)?];
    let (mask, output) = (view.optional_input(3)?, view.output(0)?);
    for t in [Some(query), Some(key), Some(value), mask, Some(output)].into_iter().flatten() {
        checks::f32_operand(t)?;
        checks::nhwc(t)?;
    }
    let [batch, tokens, heads, channels] = checks::nhwc(query)?;
    let [_, keys, key_heads, _] = checks::nhwc(key)?;
    let expect = |t: Operand<'_>, fits: bool| {
        let expected = || format!("{:?} does not match queries of {:?}", t.shape, query.shape);
        if fits { Ok(()) } else { Err(WhyNot::Shape { tensor: t.to_ref(), expected: expected() }) }
    };
    expect(
        key,
        key.shape == [batch, keys, key_heads, channels] && heads.is_multiple_of(key_heads),
    )?;
    expect(value, value.shape == key.shape)?;
    expect(output, output.shape == query.shape)?;
    if let Some(mask) = mask {
        let shared = [1, batch].iter().any(|&batch| mask.shape == [batch, 1, tokens, keys]);
        expect(mask, shared)?;
    }
    let attributes = scalars(&options.attributes).unwrap_or_default();
    let number = |name| attributes.get(name).map(|scalar| scalar.as_f32());
    let (scale, logit_cap) = (number("scale"), number("logit_cap"));
    let capped = logit_cap.is_none_or(|cap| cap.is_finite() && cap > 0.0);
    match scale {
        Some(scale) if scale.is_finite() && capped => {
            let fits_node = heads == key_heads && logit_cap.is_none() && channels <= MAX_SCALES;
            let form = match mask {
                Some(mask) if fits_node && mask.shape[0] == 1 => {
                    AttentionForm::Node { mask: mask.id }
                }
                _ => AttentionForm::Products { mask: mask.map(|mask| mask.id), logit_cap },
            };
            Ok(Attention {
                query: query.id,
                key: key.id,
                value: value.id,
                output: output.id,
                scale,
                form,
            })
        }
        _ => Err(WhyNot::Attribute {
            name: "scale, logit_cap",
            value: format!("{scale:?}, {logit_cap:?}"),
            expected: "a finite number; a positive number or none",
        }),
    }
}
