//! SELECT, SELECT_V2, WHERE, TOPK_V2, UNIQUE and BUCKETIZE.

use xnn_model::{DType, Op};

use super::order::{Key, Ordered, positions};
use super::shape::{expect_index_type, store};
use super::strides::{broadcast_strides, broadcasts_to, for_each_row, merged};
use super::unary::look_up;
use crate::call::{Call, size};
use crate::dims::Dims;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::Element;
use crate::tensor::width;

pub(super) fn select(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::Bool)?;
    let dtype = context.output(0)?.dtype;
    context.expect_input(1, dtype)?;
    context.expect_input(2, dtype)?;
    let choose = match width(dtype)? {
        1 => choose::<1>,
        2 => choose::<2>,
        4 => choose::<4>,
        8 => choose::<8>,
        width => return refuse(format!("elements of {width} bytes")),
    };
    let by_rows = matches!(context.operator.op, Op::Select);
    run(move |call| {
        let shape = call.output_shape(0)?;
        let mut condition_shape = Dims::from_slice(call.shape(0)?);
        if by_rows {
            let (x, y) = (call.shape(1)?, call.shape(2)?);
            let fits = match condition_shape.as_slice() {
                [] => true,
                &[rows] if x.first() == Some(&rows) => true,
                condition => condition == x,
            };
            // SELECT does not broadcast its operands.
            if x != y || !fits {
                return refuse(format!(
                    "condition {condition_shape:?} and operands {x:?} and {y:?} have different shapes"
                ));
            }
            // There, a vector of conditions selects whole rows.
            if condition_shape.len() == 1 {
                condition_shape.resize(shape.len(), 1);
            }
        }
        let (x_shape, y_shape) = (call.shape(1)?, call.shape(2)?);
        let operands = [condition_shape.as_slice(), x_shape, y_shape];
        if !broadcasts_to(operands, &shape) {
            return refuse(format!(
                "condition {condition_shape:?} and operands {x_shape:?} and {y_shape:?} do not broadcast to {shape:?}"
            ));
        }
        let steps = operands.map(|operand| broadcast_strides(operand, &shape));
        let condition = call.input::<u8>(0)?;
        let (x, y) = (call.tensor(1)?.bytes, call.tensor(2)?.bytes);
        let target = call.output_bytes(0)?;
        choose(condition, [x, y], target, &shape, &steps);
        Ok(())
    })
}

/// Selects elements of `WIDTH` bytes.
fn choose<const WIDTH: usize>(
    condition: &[u8],
    sources: [&[u8]; 2],
    target: &mut [u8],
    shape: &[usize],
    [c, x, y]: &[Dims; 3],
) {
    let [(xs, _), (ys, _)] = sources.map(|bytes| bytes.as_chunks::<WIDTH>());
    let (targets, _) = target.as_chunks_mut::<WIDTH>();
    let (shape, steps) = merged(shape, [c, x, y]);
    let row = shape.last().copied().unwrap_or(1);
    let [step_c, step_x, step_y] = steps.each_ref().map(|s| s.last().copied().unwrap_or(0));
    let mut rows = targets.chunks_exact_mut(row.max(1));
    for_each_row(&shape, steps.each_ref().map(|s| s.as_slice()), |[c, x, y]| {
        for (i, target) in rows.next().into_iter().flatten().enumerate() {
            let (x, y) = (&xs[x + i * step_x], &ys[y + i * step_y]);
            *target = if condition[c + i * step_c] != 0 { *x } else { *y };
        }
    });
}

/// WHERE: indices of the nonzero elements.
pub(super) fn find(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_output(0, DType::I64)?;
    match context.input(0)?.dtype {
        DType::Bool | DType::U8 => find_in::<u8>(),
        DType::F32 => find_in::<f32>(),
        DType::I8 => find_in::<i8>(),
        DType::I32 => find_in::<i32>(),
        DType::I64 => find_in::<i64>(),
        DType::U32 => find_in::<u32>(),
        other => context.unsupported(other),
    }
}

fn find_in<T: Element>() -> Result<Run, Refusal> {
    run(|call| {
        let shape = call.shape(0)?;
        let input = call.input::<T>(0)?;
        let steps = super::strides::strides(shape);
        let found = (0..input.len()).filter(|&at| input[at] != T::default());
        // Counting first takes less memory than a list of positions, which has 8 bytes for one of the input.
        call.allocate(0, &[found.clone().count(), shape.len()])?;
        let rows = call.output::<i64>(0)?.chunks_exact_mut(shape.len().max(1));
        for (row, at) in rows.zip(found) {
            for (d, out) in row.iter_mut().enumerate() {
                *out = (at / steps[d] % shape[d]) as i64;
            }
        }
        Ok(())
    })
}

pub(super) fn top_k(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let dtype = context.common_type()?;
    if !matches!(context.output(1)?.dtype, DType::I16 | DType::I32) {
        return context.unsupported(context.output(1)?.dtype);
    }
    match dtype {
        DType::F32 => top_k_of::<f32>(),
        DType::U8 => top_k_of::<u8>(),
        DType::I8 => top_k_of::<i8>(),
        DType::I16 => top_k_of::<i16>(),
        DType::I32 => top_k_of::<i32>(),
        DType::I64 => top_k_of::<i64>(),
        other => context.unsupported(other),
    }
}

/// The first of equal elements is the larger. NaN is smaller than every number.
fn top_k_of<T: Ordered>() -> Result<Run, Refusal> {
    run(|call| {
        let depth = call.shape(0)?.last().copied().unwrap_or(1).max(1);
        let k = size(call.int(1)?)?;
        // A block more than the result: a list of all elements would take eight bytes for each.
        let block = k.max(4096);
        let mut order = Vec::with_capacity(block.saturating_add(k).min(depth));
        let (mut values, mut indices) = (vec![], vec![]);
        for row in call.input::<T>(0)?.chunks_exact(depth) {
            order.clear();
            let mut elements = row.iter().zip(positions(depth)?);
            while elements.len() > 0 {
                order.extend(elements.by_ref().take(block).map(|(&x, at)| x.descending(at)));
                if (1..order.len()).contains(&k) {
                    order.select_nth_unstable(k - 1);
                }
                order.truncate(k);
            }
            order.sort_unstable();
            values.extend(order.iter().map(|key| row[key.position()]));
            indices.extend(order.iter().map(|key| key.position() as u32));
        }
        call.output::<T>(0)?.iter_mut().zip(values).for_each(|(out, value)| *out = value);
        match call.outputs.get(1).map(|output| output.dtype()) {
            Some(DType::I16) => {
                let output = call.output::<i16>(1)?;
                output.iter_mut().zip(indices).for_each(|(out, i)| *out = i as i16);
                Ok(())
            }
            _ => store(call, 1, indices.into_iter().map(|i| i as usize)),
        }
    })
}

pub(super) fn unique(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.common_type()?;
    expect_index_type(context, 1)?;
    match context.input(0)?.dtype {
        DType::F32 => unique_in::<f32>(),
        DType::U8 => unique_in::<u8>(),
        DType::I8 => unique_in::<i8>(),
        DType::I16 => unique_in::<i16>(),
        DType::I32 => unique_in::<i32>(),
        DType::I64 => unique_in::<i64>(),
        other => context.unsupported(other),
    }
}

fn unique_in<T: Ordered>() -> Result<Run, Refusal> {
    run(|call: &mut Call<'_>| {
        let input = call.input::<T>(0)?;
        let elements = input.iter().zip(positions(input.len())?);
        let mut order: Vec<_> = elements.map(|(&x, at)| x.ascending(at)).collect();
        order.sort_unstable();
        // The first element of each group of equal ones represents it, until the groups have numbers.
        let mut number: Vec<u32> = positions(input.len())?.collect();
        for pair in order.windows(2) {
            if let &[a, b] = pair
                && a.is_tied(b)
            {
                number[b.position()] = number[a.position()];
            }
        }
        drop(order);
        let mut values = Vec::new();
        for at in 0..input.len() {
            let first = number[at] as usize;
            if first == at {
                number[at] = values.len() as u32;
                values.push(input[at]);
            } else {
                number[at] = number[first];
            }
        }
        call.allocate(0, &[values.len()])?;
        call.allocate(1, &[number.len()])?;
        call.output::<T>(0)?.copy_from_slice(&values);
        store(call, 1, number.into_iter().map(|number| number as usize))
    })
}

pub(super) fn bucketize(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Bucketize(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not BUCKETIZE", context.operator.op));
    };
    context.expect_output(0, DType::I32)?;
    let boundaries = options.boundaries;
    if !boundaries.is_sorted() {
        return refuse("the boundaries are not sorted");
    }
    fn bucket(boundaries: &[f32], x: f64) -> i32 {
        boundaries.partition_point(|&b| f64::from(b) <= x) as i32
    }
    match context.input(0)?.dtype {
        DType::F32 => look_up(boundaries, |boundaries, x: f32| bucket(boundaries, x.into())),
        DType::F64 => look_up(boundaries, |boundaries, x: f64| bucket(boundaries, x)),
        DType::I32 => look_up(boundaries, |boundaries, x: i32| bucket(boundaries, x.into())),
        DType::I64 => look_up(boundaries, |boundaries, x: i64| bucket(boundaries, x as f64)),
        other => context.unsupported(other),
    }
}
