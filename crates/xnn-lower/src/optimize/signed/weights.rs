//! New filters and biases of layers that become signed or get repeated channels.

use bytes::Bytes;
use xnn_format::{Datatype, Quantization, Value};

use super::layers::{Layer, LayerKind, RANGE};

/// Changes of a layer's weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerChange {
    /// The weights become int8 without a zero point.
    pub signed: bool,
    /// Input channels that are repeated after the others. Their weights are the part of the
    /// original weights that does not fit into int8.
    pub repeated_inputs: Vec<usize>,
    /// Output channels that are repeated after the others.
    pub repeated_outputs: Vec<usize>,
}

/// The filter and the bias after `change`.
///
/// Channels with weights that do not fit into int8 get a larger scale, and their weights are
/// rounded, unless a repeated input makes them exact.
pub(super) fn changed(
    layer: &Layer,
    filter: &Value,
    bias: Option<&Value>,
    change: &LayerChange,
) -> Option<(Value, Option<Value>)> {
    let channels = *filter.dims.get(layer.channel_dim)?;
    let data = filter.data.as_deref()?;
    let mut weights = (0..data.len()).map(|p| layer.weight(data, p)).collect::<Vec<_>>();
    let ratios = if change.signed && change.repeated_inputs.is_empty() {
        fit(layer, &mut weights, channels)
    } else {
        vec![1.0; channels]
    };
    let (dims, weights) = widen(layer, &filter.dims, &weights, change);
    let bytes = weights.iter().map(|&weight| match change.signed {
        true => (weight as i8).cast_unsigned(),
        false => (weight + i16::from(layer.zero_point)) as u8,
    });
    let bytes = bytes.collect::<Vec<u8>>();
    let with_repeated = |n: usize| (0..n).chain(change.repeated_outputs.iter().copied());
    let (datatype, quantization) = if change.signed {
        let scales = with_repeated(channels).map(|c| layer.scale * ratios[c]).collect();
        (Datatype::QcInt8, Quantization::PerChannel { scales, channel_dim: layer.channel_dim })
    } else {
        (filter.datatype, filter.quantization.clone())
    };
    let new_filter = Value::new(datatype, quantization, &dims).with_data(bytes.into());
    let Some(bias) = bias else { return Some((new_filter, None)) };

    let &Quantization::PerTensor { scale, .. } = &bias.quantization else { return None };
    let old: Vec<i32> =
        bias.data.as_deref()?.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b)).collect();
    let elements: Option<Vec<i32>> = with_repeated(channels)
        .map(|c| {
            Some(if ratios[c] == 1.0 { *old.get(c)? } else { rescale(*old.get(c)?, ratios[c]) })
        })
        .collect();
    let elements = elements?;
    let data: Bytes = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    let (datatype, quantization) = if change.signed {
        let scales = with_repeated(channels).map(|c| scale * ratios[c]).collect();
        (Datatype::QcInt32, Quantization::PerChannel { scales, channel_dim: 0 })
    } else {
        (bias.datatype, bias.quantization.clone())
    };
    let new_bias = Value::new(datatype, quantization, &[elements.len()]).with_data(data);
    Some((new_filter, Some(new_bias)))
}

fn rescale(bias: i32, ratio: f32) -> i32 {
    (f64::from(bias) / f64::from(ratio)).round() as i32
}

/// Rounds the weights of channels with overflow so that they fit. Returns the factor of each
/// channel's scale.
fn fit(layer: &Layer, weights: &mut [i16], channels: usize) -> Vec<f32> {
    let per_channel = weights.len() / channels.max(1);
    let channel_of = |p: usize| if layer.channel_dim == 0 { p / per_channel } else { p % channels };
    let limit = f32::from(*RANGE.end());
    let mut ratios = vec![1.0; channels];
    for &position in &layer.overflow {
        let ratio = &mut ratios[channel_of(position)];
        *ratio = f32::max(*ratio, f32::from(weights[position]).abs() / limit);
    }
    for (position, weight) in weights.iter_mut().enumerate() {
        let ratio = ratios[channel_of(position)];
        if ratio != 1.0 {
            *weight = clamped((f32::from(*weight) / ratio).round() as i16);
        }
    }
    ratios
}

/// Adds the repeated channels. Returns the new dimensions and weights.
fn widen(
    layer: &Layer,
    dims: &[usize],
    weights: &[i16],
    change: &LayerChange,
) -> (Vec<usize>, Vec<i16>) {
    let mut dims = dims.to_vec();
    let (inputs, outputs) = (&change.repeated_inputs, &change.repeated_outputs);
    if inputs.is_empty() && outputs.is_empty() {
        return (dims, weights.to_vec());
    }
    let last = dims.len() - 1;
    let row = dims[last];
    let mut wide = Vec::new();
    if layer.kind == LayerKind::Depthwise {
        for tap in weights.chunks_exact(row) {
            wide.extend_from_slice(tap);
            wide.extend(outputs.iter().map(|&channel| tap[channel]));
        }
    } else {
        let per_output = weights.len() / dims[0];
        for output in (0..dims[0]).chain(outputs.iter().copied()) {
            for tap in weights[output * per_output..][..per_output].chunks_exact(row) {
                let split = |weight: i16| if change.signed { clamped(weight) } else { weight };
                wide.extend(tap.iter().map(|&weight| split(weight)));
                wide.extend(inputs.iter().map(|&channel| tap[channel] - split(tap[channel])));
            }
        }
        dims[0] += outputs.len();
    }
    dims[last] += if layer.kind == LayerKind::Depthwise { outputs.len() } else { inputs.len() };
    (dims, wide)
}

/// The part of a weight that fits into a signed layer.
fn clamped(weight: i16) -> i16 {
    weight.clamp(*RANGE.start(), *RANGE.end())
}

/// Whether the rest of a weight, after [`clamped`], fits into the weight of a repeated input.
pub(super) fn can_be_split(weight: i16) -> bool {
    RANGE.contains(&(weight - clamped(weight)))
}
