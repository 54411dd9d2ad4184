//! Propagates small integer values that depend on shapes, which exporters compute for RESHAPE,
//! SLICE, TILE and similar operators.

use super::index::{StridedSlice, StridedSliceBounds};
use super::inputs::{Fact, OutputShape, size};
use super::math::broadcast_shapes;
use crate::op::{Activation, Op};
use crate::types::{DType, element_count};

/// Maximum number of propagated elements; no computed shape has more.
const MAX_ELEMENTS: usize = 64;

/// The data of the outputs, if the operator is one of those that compute shapes and its inputs are
/// known. `shapes` are the shapes of the outputs.
pub(super) fn fold(
    op: &Op,
    facts: &[Option<Fact<'_>>],
    shapes: &[OutputShape],
) -> Option<Vec<Vec<u8>>> {
    let elements = |shape: &OutputShape| match shape {
        OutputShape::Known(shape) => element_count(shape).filter(|&n| n <= MAX_ELEMENTS),
        OutputShape::Dynamic | OutputShape::Stated => None,
    };
    let counts = shapes.iter().map(elements).collect::<Option<Vec<usize>>>()?;
    let fact = |i: usize| facts.get(i)?.as_ref();
    let dtype = match op {
        Op::Shape(options) => options.out_type,
        Op::Cast(options) => options.to,
        Op::Rank => DType::I32,
        Op::Split(_) => fact(1)?.dtype,
        _ => fact(0)?.dtype,
    };
    let values = evaluate(op, facts)?;
    let mut rest = values.as_slice();
    let mut results = Vec::with_capacity(counts.len());
    for count in counts {
        let (values, behind) = rest.split_at_checked(count)?;
        results.push(encode(dtype, values)?);
        rest = behind;
    }
    // Otherwise both operands were broadcast, which `pairwise` does not support.
    rest.is_empty().then_some(results)
}

/// The concatenated values of all outputs.
fn evaluate(op: &Op, facts: &[Option<Fact<'_>>]) -> Option<Vec<i64>> {
    let fact = |i: usize| facts.get(i)?.as_ref();
    let ints = |i: usize| fact(i)?.ints();
    let dims = |i: usize| fact(i)?.shape.as_deref();
    let none = Activation::None;
    Some(match op {
        Op::Shape(_) => dims(0)?.iter().map(|&d| i64::try_from(d).ok()).collect::<Option<_>>()?,
        Op::Rank => vec![i64::try_from(dims(0)?.len()).ok()?],
        Op::Cast(_) | Op::ExpandDims | Op::Reshape(_) | Op::Squeeze(_) => ints(0)?,
        // Concatenation along the first dimension, where the order in memory is the order of the
        // inputs.
        Op::Concatenation(options) if options.axis == 0 || dims(0)?.len() == 1 => joined(facts)?,
        Op::Pack(options) if options.axis == 0 || dims(0)?.is_empty() => joined(facts)?,
        Op::StridedSlice(options) => {
            let (begin, end, strides) = (ints(1)?, ints(2)?, ints(3)?);
            let bounds = StridedSliceBounds { begin: &begin, end: &end, strides: &strides };
            strided(&ints(0)?, dims(0)?, &StridedSlice::new(dims(0)?, bounds, options).ok()?)?
        }
        // Splits along the first dimension, likewise.
        Op::Split(_) if dims(1)?.len() == 1 => ints(1)?,
        Op::SplitV(_) if dims(0)?.len() == 1 => ints(0)?,
        Op::Unpack(options) if options.axis == 0 => ints(0)?,
        Op::Slice if dims(0)?.len() == 1 => {
            let (begin, count) = (*ints(1)?.first()?, *ints(2)?.first()?);
            let values = ints(0)?;
            let rest = values.get(size(begin).ok()?..)?;
            rest.get(..size(count).unwrap_or(rest.len()))?.to_vec()
        }
        Op::Gather(options) if dims(0)?.len() == 1 && options.batch_dims == 0 => {
            let values = ints(0)?;
            ints(1)?.into_iter().map(|i| at(&values, i)).collect::<Option<_>>()?
        }
        Op::ReduceProd(_) if dims(0)?.len() == 1 => {
            vec![ints(0)?.into_iter().try_fold(1i64, i64::checked_mul)?]
        }
        Op::BroadcastArgs => {
            let shape =
                |i: usize| ints(i)?.into_iter().map(|d| size(d).ok()).collect::<Option<Vec<_>>>();
            let joint = broadcast_shapes(&shape(0)?, &shape(1)?)?;
            joint.into_iter().map(|d| i64::try_from(d).ok()).collect::<Option<_>>()?
        }
        Op::Add(o) if o.activation == none => pairwise(&ints(0)?, &ints(1)?, i64::checked_add)?,
        Op::Sub(o) if o.activation == none => pairwise(&ints(0)?, &ints(1)?, i64::checked_sub)?,
        Op::Mul(o) if o.activation == none => pairwise(&ints(0)?, &ints(1)?, i64::checked_mul)?,
        Op::Div(o) if o.activation == none => pairwise(&ints(0)?, &ints(1)?, i64::checked_div)?,
        Op::FloorDiv => pairwise(&ints(0)?, &ints(1)?, |a, b| {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        })?,
        Op::FloorMod => pairwise(&ints(0)?, &ints(1)?, |a, b| {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        })?,
        Op::Maximum => pairwise(&ints(0)?, &ints(1)?, |a, b| Some(a.max(b)))?,
        Op::Minimum => pairwise(&ints(0)?, &ints(1)?, |a, b| Some(a.min(b)))?,
        _ => return None,
    })
}

fn at(values: &[i64], index: i64) -> Option<i64> {
    values.get(usize::try_from(index).ok()?).copied()
}

/// Elements of a slice of values of this shape.
fn strided(values: &[i64], shape: &[usize], slice: &StridedSlice) -> Option<Vec<i64>> {
    let ranges = slice.starts.iter().zip(&slice.strides).zip(&slice.counts).zip(shape);
    let mut indices = vec![0i64];
    for (((&start, &stride), &count), &dim) in ranges {
        let (start, dim) = (i64::try_from(start).ok()?, i64::try_from(dim).ok()?);
        let along = |index: i64| {
            (0..i64::try_from(count).unwrap_or(0)).map(move |i| index * dim + start + i * stride)
        };
        indices = indices.into_iter().flat_map(along).collect();
    }
    indices.into_iter().map(|index| at(values, index)).collect()
}

fn joined(facts: &[Option<Fact<'_>>]) -> Option<Vec<i64>> {
    let parts = facts.iter().map(|f| f.as_ref()?.ints()).collect::<Option<Vec<_>>>()?;
    Some(parts.concat())
}

/// Applies `f` to pairs of elements. A single element is broadcast.
fn pairwise(a: &[i64], b: &[i64], f: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    match (a, b) {
        (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect(),
        (a, &[b]) => a.iter().map(|&a| f(a, b)).collect(),
        (&[a], b) => b.iter().map(|&b| f(a, b)).collect(),
        _ => None,
    }
}

fn encode(dtype: DType, values: &[i64]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for &value in values {
        match dtype {
            DType::I32 => bytes.extend(i32::try_from(value).ok()?.to_le_bytes()),
            DType::I64 => bytes.extend(value.to_le_bytes()),
            _ => return None,
        }
    }
    Some(bytes)
}
