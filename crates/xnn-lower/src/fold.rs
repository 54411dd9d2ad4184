//! Constant folding, and conversions of constants for lowering.

use std::borrow::Cow;

use bytes::Bytes;
use xnn_model::{DType, Inferred, Quantization, Subgraph, Tensor, TensorId};

/// A subgraph in which the outputs of foldable operators are constants.
pub(crate) struct Folded<'a> {
    /// A copy only if an operator is folded.
    pub graph: Cow<'a, Subgraph>,
    /// For each operator, whether all of its outputs are known.
    pub folded: Vec<bool>,
}

/// Treatment of filters that a DEQUANTIZE makes of fp16 constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fp16Weights {
    /// Each run computes them.
    Computed,
    /// They become fp16 constants.
    Kept,
    /// They become fp32 constants.
    Widened,
}

/// Turns values that inference knows into constants. Outputs of the subgraph are excluded, because
/// an operator has to write them.
pub(crate) fn fold(inferred: &Inferred, fp16_weights: Fp16Weights) -> Folded<'_> {
    let Inferred { subgraph, values } = inferred;
    let (mut graph, mut values) =
        (Cow::Borrowed(subgraph.as_ref()), Cow::Borrowed(values.as_slice()));
    let mut folded = vec![false; graph.operators.len()];
    if fp16_weights != Fp16Weights::Computed {
        let filters = xnn_model::fp16_weights(subgraph).into_iter().enumerate();
        for (index, _) in filters.filter(|(_, is_half)| *is_half) {
            fold_filter(&mut graph, &mut values, index, fp16_weights);
        }
    }
    for (operator, folded) in subgraph.operators.iter().zip(&mut folded) {
        let is_known = |&id: &TensorId| {
            values.get(id).is_some_and(Option::is_some)
                && !subgraph.outputs.contains(&id)
                && !subgraph.tensors[id].is_variable
        };
        *folded = !operator.outputs.is_empty() && operator.outputs.iter().all(is_known);
        if *folded {
            for &id in &operator.outputs {
                graph.to_mut().tensors[id].data.clone_from(&values[id]);
            }
        }
    }
    Folded { graph, folded }
}

/// Folds an operator that widens an fp16 filter, if its input is constant.
fn fold_filter(
    graph: &mut Cow<'_, Subgraph>,
    values: &mut Cow<'_, [Option<Bytes>]>,
    index: usize,
    fp16_weights: Fp16Weights,
) {
    let operator = &graph.operators[index];
    let (&[Some(input)], &[output]) = (operator.inputs.as_slice(), operator.outputs.as_slice())
    else {
        return;
    };
    let tensor = graph.tensor(input);
    let Some(data) = values[input].as_ref().or(tensor.data.as_ref()).cloned() else { return };
    if Some(data.len()) != tensor.byte_size() || values[output].is_some() {
        return;
    }
    if fp16_weights == Fp16Weights::Kept {
        values.to_mut()[output] = Some(data);
        graph.to_mut().tensors[output].dtype = DType::F16;
    } else {
        let constant = Tensor { data: Some(data), ..tensor.clone() };
        values.to_mut()[output] = constant.constant_floats().map(|floats| to_bytes(&floats));
    }
}

/// The elements of a 4-bit constant as `i8`, one in each byte.
pub(crate) fn nibbles(tensor: &Tensor) -> Option<Vec<u8>> {
    let elements = tensor.elements()?;
    let data = tensor.data.as_deref().filter(|_| tensor.dtype == DType::I4)?;
    // The arithmetic shift extends the sign.
    let spread = |nibble: u8| ((nibble << 4).cast_signed() >> 4).cast_unsigned();
    let mut bytes: Vec<u8> = data.iter().flat_map(|&b| [spread(b), spread(b >> 4)]).collect();
    if bytes.len() < elements || bytes.len() > elements + 1 {
        return None;
    }
    bytes.truncate(elements);
    Some(bytes)
}

/// The elements of an integer constant.
pub(crate) fn integers(tensor: &Tensor) -> Option<Vec<i64>> {
    match nibbles(tensor) {
        Some(bytes) => Some(bytes.into_iter().map(|b| i64::from(b.cast_signed())).collect()),
        None => tensor.constant_ints(),
    }
}

/// Signed nibbles in XNNPACK's representation, which adds 8.
pub(crate) fn excess_8(nibbles: &[u8]) -> Bytes {
    nibbles.iter().map(|byte| byte ^ 0x88).collect::<Vec<u8>>().into()
}

/// The real values of an integer constant, per tensor or per axis.
pub(crate) fn dequantized(tensor: &Tensor) -> Option<Vec<f32>> {
    let values = integers(tensor)?;
    let real = |value: i64, zero_point: i64, scale: f32| (value - zero_point) as f32 * scale;
    match tensor.quantization.as_ref()? {
        Quantization::PerTensor { scale, zero_point } => {
            Some(values.iter().map(|&value| real(value, *zero_point, *scale)).collect())
        }
        Quantization::PerAxis { scales, zero_points, axis } => {
            let shape = tensor.shape.as_deref()?;
            let channels = *shape.get(*axis)?;
            let inner: usize = shape.get(axis + 1..)?.iter().product();
            if channels != scales.len() || !zero_points.fit(channels) || inner == 0 {
                return None;
            }
            let channel = |i: usize| i / inner % channels;
            let with_channel = values.iter().enumerate().map(|(i, &value)| {
                let c = channel(i);
                real(value, zero_points.at(c), scales[c])
            });
            Some(with_channel.collect())
        }
        _ => None,
    }
}

/// Little-endian bytes of floats.
pub(crate) fn to_bytes(floats: &[f32]) -> Bytes {
    floats.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}
