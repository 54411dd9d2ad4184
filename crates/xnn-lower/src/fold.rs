//! Constant folding: operators whose inputs are all in the file are computed
//! once, here, so that rules see their results as constants.

use crate::densify::densify;
use bytes::Bytes;
use xnn_model::{DType, Inferred, Op, Operator, Quantization, Subgraph, Tensor};

/// A subgraph in which foldable operators' outputs are constants.
pub(crate) struct Folded {
    pub graph: Subgraph,
    /// For each operator, whether its outputs were computed here.
    pub folded: Vec<bool>,
}

/// Folds what can be folded: dequantized weights, and the arithmetic on shapes
/// that inference has followed. Outputs of the subgraph stay with their
/// operators: somebody has to write them.
pub(crate) fn fold(inferred: Inferred) -> Folded {
    let Inferred { subgraph: mut graph, mut values } = inferred;
    let mut folded = vec![false; graph.operators.len()];
    for (index, folded) in folded.iter_mut().enumerate() {
        let operator = &graph.operators[index];
        let &[output] = operator.outputs.as_slice() else { continue };
        if graph.outputs.contains(&output) || graph.tensors[output].is_variable {
            continue;
        }
        let followed = values.get_mut(output).and_then(Option::take).map(Bytes::from);
        if let Some(data) = followed.or_else(|| evaluate(&graph, operator, output)) {
            graph.tensors[output].data = Some(data);
            *folded = true;
        }
    }
    Folded { graph, folded }
}

fn evaluate(graph: &Subgraph, operator: &Operator, output: usize) -> Option<Bytes> {
    let input = graph.tensor(operator.input(0)?);
    let output = graph.tensor(output);
    match operator.op {
        Op::Dequantize => dequantize(input, output),
        Op::Densify if input.dtype == output.dtype && input.unusable.is_none() => {
            densify(input).map(Bytes::from).filter(|data| Some(data.len()) == output.byte_size())
        }
        _ => None,
    }
}

fn dequantize(input: &Tensor, output: &Tensor) -> Option<Bytes> {
    if output.dtype != DType::F32 || input.sparsity.is_some() || input.unusable.is_some() {
        return None;
    }
    if input.data.as_ref()?.len() != input.byte_size()? {
        return None;
    }
    let floats = match input.dtype {
        DType::F16 => input.constant_floats()?,
        DType::I8 | DType::U8 | DType::I4 => dequantized(input)?,
        _ => return None,
    };
    Some(to_bytes(&floats))
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
            if channels != scales.len() || channels != zero_points.len() || inner == 0 {
                return None;
            }
            let channel = |i: usize| i / inner % channels;
            let with_channel = values.iter().enumerate().map(|(i, &value)| {
                let c = channel(i);
                real(value, zero_points[c], scales[c])
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
