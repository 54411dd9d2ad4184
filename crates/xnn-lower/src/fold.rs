//! Constants: which operators have nothing left to do, and elements in the forms that lowering needs.

use std::borrow::Cow;

use bytes::Bytes;
use xnn_model::{DType, Inferred, Quantization, Subgraph, Tensor, TensorId};

/// A subgraph in which foldable operators' outputs are constants.
pub(crate) struct Folded<'a> {
    /// A copy only if there are any.
    pub graph: Cow<'a, Subgraph>,
    /// For each operator, whether its outputs are known.
    pub folded: Vec<bool>,
}

/// What becomes of filters that operators make of constants in fp16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HalfFilters {
    /// They are computed in each run.
    Computed,
    /// They are constants in fp16.
    Stored,
    /// They are constants in fp32.
    Widened,
}

/// Makes constants of the values that inference knows. Outputs of the subgraph stay with their
/// operators: somebody has to write them.
pub(crate) fn fold(inferred: &Inferred, half_filters: HalfFilters) -> Folded<'_> {
    let Inferred { subgraph, values } = inferred;
    let (mut graph, mut values) =
        (Cow::Borrowed(subgraph.as_ref()), Cow::Borrowed(values.as_slice()));
    let mut folded = vec![false; graph.operators.len()];
    if half_filters != HalfFilters::Computed {
        let filters = xnn_model::fp16_weights(subgraph).into_iter().enumerate();
        for (index, _) in filters.filter(|(_, is_half)| *is_half) {
            fold_filter(&mut graph, &mut values, index, half_filters);
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

/// Gives the result of an operator, which widens a filter, the operator's input, if that is constant.
fn fold_filter(
    graph: &mut Cow<'_, Subgraph>,
    values: &mut Cow<'_, [Option<Bytes>]>,
    index: usize,
    half_filters: HalfFilters,
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
    if half_filters == HalfFilters::Stored {
        values.to_mut()[output] = Some(data);
        graph.to_mut().tensors[output].dtype = DType::F16;
    } else {
        let constant = Tensor { data: Some(data), ..tensor.clone() };
        values.to_mut()[output] = constant.constant_floats().map(|floats| to_bytes(&floats));
    }
}

/// The elements of a 4-bit constant, one in each byte as `i8`.
pub(crate) fn nibbles(tensor: &Tensor) -> Option<Vec<u8>> {
    let elements = tensor.elements()?;
    let data = tensor.data.as_deref().filter(|_| tensor.dtype == DType::I4)?;
    // Shifting up and back spreads the sign.
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

/// Signed nibbles as XNNPACK has them: 8 added.
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
