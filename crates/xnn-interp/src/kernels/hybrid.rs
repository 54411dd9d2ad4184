//! Quantization of float operands for 8-bit weights, in each run.

/// Rows of 8-bit integers with their scales.
pub(super) struct Rows {
    /// Quantized values minus the zero point of their row.
    pub(super) values: Vec<i16>,
    /// Scales, one per row.
    pub(super) scales: Vec<f32>,
}

/// Quantizes `rows` rows: symmetrically, or over the range of each row.
pub(super) fn quantize_rows(input: &[f32], rows: usize, asymmetric: bool) -> Rows {
    let mut values = Vec::with_capacity(input.len());
    let mut scales = Vec::with_capacity(rows);
    let width = input.len().checked_div(rows).unwrap_or(0).max(1);
    for row in input.chunks_exact(width) {
        scales.push(quantize_row(row, asymmetric, &mut values));
    }
    Rows { values, scales }
}

/// Appends a quantized row minus its zero point, and returns its scale.
pub(super) fn quantize_row(row: &[f32], asymmetric: bool, values: &mut Vec<i16>) -> f32 {
    if asymmetric { asymmetrically(row, values) } else { symmetrically(row, values) }
}

fn symmetrically(row: &[f32], values: &mut Vec<i16>) -> f32 {
    let range = row.iter().fold(0.0f32, |range, x| range.max(x.abs()));
    if range == 0.0 {
        values.extend(row.iter().map(|_| 0));
        return 1.0;
    }
    let inverse = 127.0 / range;
    values.extend(row.iter().map(|x| (x * inverse).round().clamp(-127.0, 127.0) as i16));
    range / 127.0
}

fn asymmetrically(row: &[f32], values: &mut Vec<i16>) -> f32 {
    let low = row.iter().fold(0.0f32, |low, &x| low.min(x));
    let high = row.iter().fold(0.0f32, |high, &x| high.max(x));
    if low == high {
        values.extend(row.iter().map(|_| 0));
        return 1.0;
    }
    let scale = (high - low) / 255.0;
    if !scale.is_finite() {
        // Infinities cannot be quantized, so results are NaN.
        values.extend(row.iter().map(|_| 0));
        return f32::NAN;
    }
    let (below, above) = (f64::from(low) / f64::from(scale), f64::from(high) / f64::from(scale));
    // The end of the range whose zero point is more exact determines it.
    let zero_point =
        if 128.0 + below.abs() < 127.0 + above.abs() { -128.0 - below } else { 127.0 - above };
    let zero_point = zero_point.round().clamp(-128.0, 127.0) as f32;
    let inverse = 1.0 / scale;
    let (least, most) = (-128.0 - zero_point, 127.0 - zero_point);
    // Adding 0.5 to the largest number below 0.5 gives 1; the reference kernels do the same.
    let nearest = |x: f32| (x + 0.5f32.copysign(x)).trunc();
    values.extend(row.iter().map(|x| nearest(x * inverse).clamp(least, most) as i16));
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_zero() {
        let rows = quantize_rows(&[-2.0, 1.0, 0.0, 0.0], 2, false);
        assert_eq!(rows.values, [-127, 64, 0, 0]);
        assert_eq!(rows.scales, [2.0 / 127.0, 1.0]);
    }

    #[test]
    fn over_the_range() {
        let rows = quantize_rows(&[0.0, 50.5, 51.0, 255.0], 1, true);
        assert_eq!(rows.values, [0, 51, 51, 255]);
        assert_eq!(rows.scales, [1.0]);
    }

    #[test]
    fn infinities_give_no_number() {
        for asymmetric in [false, true] {
            let rows = quantize_rows(&[1.0, f32::INFINITY, -1.0], 1, asymmetric);
            assert!((f32::from(rows.values[1]) * rows.scales[0]).is_nan(), "{asymmetric}");
        }
    }
}
