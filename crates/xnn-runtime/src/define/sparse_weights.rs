//! Weights of which many are 0.

use xnn_format::{Datatype, Value, ValueId};

use super::definer::NodeDefiner;
use super::fully_connected;
use crate::error::Result;

/// Weights that are looked at first. Weights of most layers are not read any further, so that they
/// are not read from a file only to be counted.
const SAMPLE: usize = 64;

/// Whether the products of the input's rows with a constant fp32 or fp16 filter are faster without
/// its zeros ([`xnnpack::Flags::SPARSE_WEIGHTS`]): at least half of the weights are 0.
pub(super) fn are_sparse(
    cx: &NodeDefiner<'_, '_>,
    [input, filter, output]: [ValueId; 3],
) -> Result<bool> {
    let [input, filter, output] = [cx.value(input)?, cx.value(filter)?, cx.value(output)?];
    let are_floats = input.datatype == Datatype::F32 && output.datatype == Datatype::F32;
    let channels = |value: &Value| value.dims.last().copied().unwrap_or(1);
    // An input may have more dimensions than its layer, which flattens it; a filter has not.
    let size = [fully_connected::rows(&output.dims), channels(filter), channels(output)];
    Ok(are_floats && xnnpack::skips_zero_weights(size) && are_half_zeros(filter))
}

fn are_half_zeros(filter: &Value) -> bool {
    let Some(data) = &filter.data else { return false };
    match filter.datatype {
        Datatype::F32 => are_half(data.as_chunks().0, |&bytes| f32::from_le_bytes(bytes) == 0.0),
        Datatype::F16 => {
            are_half(data.as_chunks().0, |&bytes| u16::from_le_bytes(bytes) & 0x7fff == 0)
        }
        _ => false,
    }
}

fn are_half<T>(weights: &[T], is_zero: impl Fn(&T) -> bool) -> bool {
    let zeros = |weights: &[T]| weights.iter().filter(|&weight| is_zero(weight)).count();
    let sample = weights.get(..SAMPLE).unwrap_or(weights);
    zeros(sample) >= sample.len() / 4 && zeros(weights) >= weights.len().div_ceil(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use half::f16;
    use xnn_format::Quantization;

    use super::*;

    /// A filter of `len` weights, of which the first `zeros` are 0 or -0.
    fn filters(zeros: usize, len: usize) -> [Value; 2] {
        let weight = |i: usize| if i < zeros { [0.0f32, -0.0][i % 2] } else { 0.5 + i as f32 };
        let floats: Vec<u8> = (0..len).flat_map(|i| weight(i).to_le_bytes()).collect();
        let halves: Vec<u8> =
            (0..len).flat_map(|i| f16::from_f32(weight(i)).to_le_bytes()).collect();
        [(Datatype::F32, floats), (Datatype::F16, halves)].map(|(datatype, data)| Value {
            data: Some(data.into()),
            ..Value::new(datatype, Quantization::None, &[1, len])
        })
    }

    #[test]
    fn half_of_the_weights_are_zero_or_more() {
        for (zeros, len, expected) in [
            (100, 200, true),
            (99, 200, false),
            (101, 201, true),
            (100, 201, false),
            (200, 200, true),
            (0, 200, false),
            (1, 2, true),
            (0, 1, false),
        ] {
            for filter in filters(zeros, len) {
                assert_eq!(are_half_zeros(&filter), expected, "{zeros} of {len}");
            }
        }
    }

    #[test]
    fn zeros_behind_a_sample_without_any_do_not_count() {
        for (first, expected) in [(SAMPLE / 4, true), (SAMPLE / 4 - 1, false)] {
            let weights = |i| if i < first || i >= SAMPLE { 0u8 } else { 1 };
            let weights: Vec<u8> = (0..4 * SAMPLE).map(weights).collect();
            assert_eq!(are_half(&weights, |&weight| weight == 0), expected, "{first}");
        }
    }

    #[test]
    fn integers_and_computed_filters_are_not_sparse() {
        let [float, _] = filters(8, 8);
        assert!(are_half_zeros(&float));
        assert!(!are_half_zeros(&Value { data: None, ..float.clone() }));
        assert!(!are_half_zeros(&Value { datatype: Datatype::QInt8, ..float }));
    }

    #[test]
    fn rows_are_all_dimensions_but_the_last() {
        for (dims, expected) in
            [(&[1, 4, 5, 6][..], 20), (&[7], 1), (&[], 1), (&[usize::MAX, 2, 3], usize::MAX)]
        {
            assert_eq!(fully_connected::rows(dims), expected, "{dims:?}");
        }
    }
}
