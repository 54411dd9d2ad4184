//! Distance between two tensors.

use serde::Serialize;
use xnn_interp::TensorView;
use xnn_model::{DType, Subgraph, SubgraphId, TensorId};

use crate::numbers::numbers;

/// Distance of a tensor from the reference, at the element with the largest distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Index of the subgraph in the model.
    pub subgraph: SubgraphId,
    /// Index of the operator that computes the tensor; `None` if no operator does.
    pub operator: Option<usize>,
    /// Index of the operator's run. In a loop, the first run with the largest distance.
    pub run: usize,
    /// The operator's name.
    pub op: String,
    /// Index of the tensor in the subgraph.
    pub tensor: TensorId,
    /// The tensor's name.
    pub name: String,
    /// Unit of `distance`.
    pub scale: Scale,
    /// Distance of the elements. Infinite if only one of them is NaN, or if the shapes differ. An infinity equals the largest
    /// float of its sign, because interpreters clamp some results.
    pub distance: f64,
    /// Distance that rounding explains, in the same unit: that of the reference from itself if its inputs change by the
    /// rounding of kernels, each by 2^-20 of itself or, if weights are quantized and inputs are not, by half a step of 8
    /// bits. `None` unless the operator sums floats and the distance is more than [`SMALL`](Self::SMALL).
    pub rounding: Option<f64>,
    /// Position of the element in the dense tensor.
    pub element: usize,
    /// Element of the reference, as it is stored.
    pub expected: f64,
    /// Element that XNNPACK computed.
    pub actual: f64,
}

/// The unit of a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Steps of quantized integers.
    Steps,
    /// Floats: fractions of the range of the reference tensor, including zero.
    Range,
    /// Indices, booleans and other values that must be equal.
    Exact,
}

impl Deviation {
    /// Distance of floats, as a fraction of their range, that is not analyzed further.
    pub const SMALL: f64 = 1e-5;

    /// Deviation of an operator's output in its first run.
    pub(super) fn new(
        (subgraph, graph): (SubgraphId, &Subgraph),
        operator: Option<usize>,
        tensor: TensorId,
        expected: TensorView<'_>,
        actual: &[u8],
    ) -> Self {
        let scale = match expected.dtype {
            dtype if dtype.is_float() => Scale::Range,
            DType::I8 | DType::U8 | DType::I16 => Scale::Steps,
            _ => Scale::Exact,
        };
        let furthest = furthest(expected.dtype, expected.bytes, actual);
        let Furthest { element, expected: from, actual: to, apart, range } = furthest;
        let distance = match scale {
            // A range of subnormals counts as the smallest normal float.
            Scale::Range if apart.is_finite() => apart / range.max(f32::MIN_POSITIVE.into()),
            _ => apart,
        };
        let op = operator.and_then(|index| graph.operators.get(index));
        Self {
            subgraph,
            operator,
            run: 0,
            op: op.map(|operator| operator.op.to_string()).unwrap_or_default(),
            tensor,
            name: graph.tensor(tensor).name.clone(),
            scale,
            distance,
            rounding: None,
            element,
            expected: from,
            actual: to,
        }
    }

    /// Whether the distance is at most `steps`, or this fraction of the range.
    #[must_use]
    pub fn is_within(&self, steps: f64, range: f64) -> bool {
        match self.scale {
            Scale::Steps => self.distance <= steps,
            Scale::Range => self.distance <= range,
            Scale::Exact => self.distance <= 0.0,
        }
    }

    /// Whether the distance is at most four times [`rounding`](Self::rounding).
    #[must_use]
    pub fn is_rounding(&self) -> bool {
        self.distance.is_finite()
            && self.rounding.is_some_and(|rounding| self.distance <= 4.0 * rounding)
    }
}

/// The element with the largest distance.
struct Furthest {
    element: usize,
    expected: f64,
    actual: f64,
    apart: f64,
    /// Difference of the largest and the smallest element of the reference, including zero.
    range: f64,
}

fn furthest(dtype: DType, expected: &[u8], actual: &[u8]) -> Furthest {
    let nothing = Furthest { element: 0, expected: 0.0, actual: 0.0, apart: 0.0, range: 0.0 };
    let different = if expected == actual { 0.0 } else { f64::INFINITY };
    let (Some(a), Some(b)) = (numbers(dtype, expected), numbers(dtype, actual)) else {
        return Furthest { apart: different, ..nothing };
    };
    if a.len() != b.len() {
        return Furthest { apart: f64::INFINITY, ..nothing };
    }
    let mut result = nothing;
    let (mut low, mut high) = (0.0f64, 0.0f64);
    for (element, (expected, actual)) in a.zip(b).enumerate() {
        if expected.is_finite() {
            (low, high) = (low.min(expected), high.max(expected));
        }
        // Interpreters clamp sums and products to finite values; XNNPACK would need another pass for that.
        let is_bounded = dtype == DType::F32
            && actual.is_infinite()
            && expected == f64::from(f32::MAX).copysign(actual);
        let apart = match (expected - actual).abs() {
            _ if expected == actual || (expected.is_nan() && actual.is_nan()) => 0.0,
            _ if is_bounded => 0.0,
            apart if apart.is_nan() => f64::INFINITY,
            apart => apart,
        };
        if apart > result.apart {
            result = Furthest { element, expected, actual, apart, ..result };
        }
    }
    Furthest { range: high - low, ..result }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_floats(expected: &[f32], actual: &[f32]) -> Furthest {
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let [a, b]: [Vec<u8>; 2] = [bytes(expected), bytes(actual)];
        furthest(DType::F32, &a, &b)
    }

    #[test]
    fn the_furthest_element_is_found() {
        let found = of_floats(&[1.0, -2.0, 4.0], &[1.25, -2.0, 3.5]);
        assert_eq!((found.element, found.expected, found.actual), (2, 4.0, 3.5));
        assert_eq!((found.apart, found.range), (0.5, 6.0));
        assert_eq!(of_floats(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]).apart, 0.0);
        assert_eq!(of_floats(&[1.0], &[f32::NAN]).apart, f64::INFINITY);
        assert_eq!(of_floats(&[1.0, 2.0], &[1.0]).apart, f64::INFINITY);
        let bytes = furthest(DType::I8, &[0x80, 3], &[0x7f, 3]);
        assert_eq!((bytes.element, bytes.apart), (0, 255.0));
    }
}
