//! Reads fields that both schemas share.

use bytes::Bytes;
use flatbuffers::{Follow, Vector};

use crate::error::Error;
use crate::op::Op;
use crate::types::{DType, Quantization};

/// The operator with this code and default options.
///
/// Negative codes belong to Circle, codes from 206 to TFLite; `own` is whether the dialect has the
/// code. An unknown code becomes [`Op::Unknown`].
pub(super) fn op_from_code(code: i32, custom: &str, own: bool) -> Op {
    if code == crate::op::CUSTOM_CODE {
        return Op::Custom(crate::op::CustomOptions {
            code: custom.to_owned(),
            options: Bytes::new(),
        });
    }
    Op::from_code(code).filter(|_| own).unwrap_or(Op::Unknown { code })
}

/// The code of an operator: the larger of both fields, as in TFLite. Older files have only the
/// byte-sized field, some writers only the wide field. Circle's own codes are negative.
pub(super) fn opcode(deprecated: i8, wide: i32) -> i32 {
    let narrow = i32::from(deprecated);
    if narrow < 0 { narrow } else { narrow.max(wide) }
}

/// A tensor's shape, and its signature with -1 for dimensions that may vary.
type Dimensions = (Option<Vec<usize>>, Option<Vec<i32>>);

/// The shape and the shape signature. Older files store -1 in the shape instead.
pub(super) fn dimensions(
    shape: Option<Vector<'_, i32>>,
    signature: Option<Vector<'_, i32>>,
    has_rank: bool,
) -> Result<Dimensions, Error> {
    let varies = |dims: &Vector<'_, i32>| dims.iter().any(|d| d == -1);
    let signature = signature.filter(varies).or(shape.filter(varies));
    if signature.is_some_and(|s| shape.is_some_and(|shape| s.len() != shape.len())) {
        return Err(Error::invalid("its shape and its shape signature differ in rank"));
    }
    let shape = match shape {
        Some(dims) if varies(&dims) => None,
        Some(dims) => Some(indices(Some(dims), "its shape")?),
        // A signature says that the dimensions vary, not that there are none.
        None => (has_rank && signature.is_none()).then(Vec::new),
    };
    Ok((shape, signature.map(|s| s.iter().collect())))
}

/// Whether the data of a constant without a shape is one element. Writers omit the empty shape of a
/// scalar.
pub(super) fn is_scalar(dtype: DType, data: Option<&Bytes>) -> bool {
    data.is_some_and(|data| dtype.byte_size(1) == Some(data.len()))
}

/// The elements of a vector; none if it is absent.
pub(super) fn items<'a, T: Follow<'a> + 'a>(
    vector: Option<Vector<'a, T>>,
) -> impl ExactSizeIterator<Item = T::Inner> {
    vector.unwrap_or_default().into_iter()
}

/// Collects the items with the exact capacity, which `collect` does not use for results.
pub(super) fn all<T>(
    items: impl ExactSizeIterator<Item = Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        all.push(item?);
    }
    Ok(all)
}

/// The element at `index`; `None` if the vector is absent or too short.
pub(super) fn item<'a, T: Follow<'a> + 'a>(
    vector: Option<Vector<'a, T>>,
    index: u32,
) -> Option<T::Inner> {
    let index = usize::try_from(index).ok()?;
    vector.filter(|v| index < v.len()).map(|v| v.get(index))
}

/// Reads indices, which must not be negative.
pub(super) fn indices(vector: Option<Vector<'_, i32>>, what: &str) -> Result<Vec<usize>, Error> {
    all(items(vector).map(|i| {
        usize::try_from(i).map_err(|_| Error::invalid(format!("{what} has the negative entry {i}")))
    }))
}

/// Per-tensor or per-axis quantization from scales and zero points.
pub(super) fn affine(
    scales: Vec<f32>,
    mut zero_points: Vec<i64>,
    axis: i32,
    shape: Option<&[usize]>,
) -> Result<Option<Quantization>, Error> {
    let slices = scales.len();
    if let ([scale], [] | [_]) = (&*scales, &*zero_points) {
        let zero_point = zero_points.first().copied().unwrap_or(0);
        return Ok(Some(Quantization::PerTensor { scale: *scale, zero_point }));
    }
    if slices == 0 {
        return Ok(None);
    }
    match zero_points.len() {
        0 => {}
        1 => zero_points.resize(slices, zero_points[0]),
        n if n == slices => {}
        n => return Err(Error::invalid(format!("{slices} scales but {n} zero points"))),
    }
    Ok(Some(Quantization::PerAxis {
        scales: scales.into(),
        zero_points: zero_points.into(),
        axis: quantized_axis(axis, slices, shape)?,
    }))
}

/// The quantized dimension, checked where the shape is known.
fn quantized_axis(axis: i32, slices: usize, shape: Option<&[usize]>) -> Result<usize, Error> {
    let index = usize::try_from(axis).ok();
    match (index, shape) {
        (Some(axis), None) => return Ok(axis),
        (Some(axis), Some(shape)) if shape.get(axis) == Some(&slices) => return Ok(axis),
        // The only dimension; the reader reports the wrong one.
        (_, Some(&[only])) if only == slices => return Ok(0),
        _ => {}
    }
    Err(Error::invalid(format!(
        "{slices} scales along dimension {axis} do not fit the shape {:?}",
        shape.unwrap_or_default()
    )))
}
