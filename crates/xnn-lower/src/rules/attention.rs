//! May operators of transformers go: the composite `odml.scaled_dot_product_attention`, and Circle's
//! ROPE?

use xnn_model::TensorId;
use xnn_model::flexbuffer::scalars;
use xnn_model::op::{CompositeOptions, RopeOptions};

use super::checks;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Pairs of elements of each row, rotated by angles.
#[derive(Clone, Debug)]
pub(crate) struct Rope {
    pub input: TensorId,
    pub output: TensorId,
    pub sines: TensorId,
    pub cosines: TensorId,
    /// Pairs of neighbours instead of an element of each half.
    pub interleaved: bool,
}

/// ROPE: XNNPACK's own node wants the tokens in another place and a table that is constant.
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
        // Tables are repeated along the outer dimensions, which they may have with size 1.
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

/// `softmax(query * scale x key^T + mask) x value`, layouts `[batch, tokens, heads, channels]`.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    pub query: TensorId,
    /// Fewer heads than the query's are shared by as many neighbours each as it takes.
    pub key: TensorId,
    pub value: TensorId,
    /// `[batch or 1, 1, tokens, keys]`, added to the logits.
    pub mask: Option<TensorId>,
    pub output: TensorId,
    pub scale: f32,
    /// Logits become `tanh(logits / cap) * cap`.
    pub logit_cap: Option<f32>,
}

const ATTENTION: &str = "odml.scaled_dot_product_attention";

/// STABLEHLO_COMPOSITE, of which one is known. Its meaning is that of its name: the subgraph that
/// would spell it out is not looked at.
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
        let expected = || format!("{:?} does not go with queries of {:?}", t.shape, query.shape);
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
        Some(scale) if scale.is_finite() && capped => Ok(Attention {
            query: query.id,
            key: key.id,
            value: value.id,
            mask: mask.map(|mask| mask.id),
            output: output.id,
            scale,
            logit_cap,
        }),
        _ => Err(WhyNot::Attribute {
            name: "scale, logit_cap",
            value: format!("{scale:?}, {logit_cap:?}"),
            expected: "a number; a positive number or none",
        }),
    }
}
