//! SVDF: a filter over the features of the latest steps, factored by rank.

use xnn_model::op::Activation;
use xnn_model::{DType, Op};

use super::dense::{Dense, Operand, vector};
use super::gemm::{Accumulator, Packed, dot, multiply};
use super::weights::integer_reader;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run, constant, is_fixed, run};
use crate::quant::{Quantized, affine, clamp, float_bounds};
use crate::scratch::Scratch;
use crate::tensor::TensorView;

const FEATURES: usize = 1;
const TIMES: usize = 2;
const BIAS: usize = 3;
const STATE: usize = 4;

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Svdf(options) = &context.operator.op else {
        return refuse(format!("{} is not SVDF", context.operator.op));
    };
    let rank = match usize::try_from(options.rank) {
        Ok(rank @ 1..) => rank,
        _ => return refuse(format!("the rank is {}, expected at least 1", options.rank)),
    };
    if !context.input(STATE)?.is_variable {
        return refuse("the state must be a variable");
    }
    match (context.input(0)?.dtype, context.output(0)?.dtype) {
        (DType::F32, DType::F32) => {
            float(context, rank, options.activation, options.asymmetric_quantize_inputs)
        }
        (DType::I8, DType::I8) => integer(context, rank, options.activation),
        (input, output) => refuse(format!("{input} input with {output} output")),
    }
}

fn weights<'a>(context: &OperatorContext<'a>, position: usize) -> Result<TensorView<'a>, Refusal> {
    let tensor = context.input(position)?;
    match (tensor.shape.as_deref(), tensor.data.as_deref()) {
        (Some(shape), Some(bytes)) if is_fixed(tensor) => {
            Ok(TensorView { dtype: tensor.dtype, shape, bytes })
        }
        _ => refuse(format!("input {position} must be constant")),
    }
}

/// Removes the oldest step of every filter and appends the newest.
fn shift<T: Copy>(state: &mut [T], memory: usize, newest: impl Iterator<Item = T>) {
    if !state.is_empty() {
        state.copy_within(1.., 0);
    }
    for (steps, newest) in state.chunks_exact_mut(memory.max(1)).zip(newest) {
        if let Some(last) = steps.last_mut() {
            *last = newest;
        }
    }
}

/// The sum over the filters of each unit and the steps in their memory.
fn sums<T: Copy, C: Accumulator<T, T>>(
    state: &[T],
    times: &[T],
    per_unit: usize,
) -> impl Iterator<Item = C> {
    let units = state.chunks_exact(per_unit.max(1)).zip(times.chunks_exact(per_unit.max(1)));
    units.map(|(steps, weights)| dot(steps, weights))
}

/// Number of steps in the filters' memory.
fn memory_of(call: &Call<'_>) -> Result<usize, Refusal> {
    let [_, memory] = call.dims(TIMES)?;
    Ok(memory)
}

fn float(
    context: &OperatorContext<'_>,
    rank: usize,
    activation: Activation,
    asymmetric: bool,
) -> Result<Run, Refusal> {
    let features = Dense::new(context.input(FEATURES)?, weights(context, FEATURES)?)?;
    let times = vector(context.input(TIMES)?, weights(context, TIMES)?)?;
    let bounds = float_bounds(activation)?;
    run(move |call| {
        let [batches, width] = call.dims(0)?;
        let memory = memory_of(call)?;
        let filters = features.rows();
        if !features.takes(width) || times.len() != filters * memory {
            return refuse("the weights do not match the input");
        }
        let input = call.input::<f32>(0)?;
        let bias = call.bias::<f32>(BIAS, filters / rank)?;
        let state = call.take_state::<f32>(STATE)?;
        let Scratch { floats: [newest, ..], shorts: [quantized, ..], .. } = call.take_scratch()?;
        let units = filters / rank;
        let output = call.output::<f32>(0)?;
        if state.len() != batches * filters * memory {
            return refuse("the size of the state does not match");
        }
        let rows = input.chunks_exact(width.max(1)).zip(output.chunks_exact_mut(units.max(1)));
        for ((row, out), state) in rows.zip(state.chunks_exact_mut((filters * memory).max(1))) {
            newest.clear();
            newest.resize(filters, 0.0);
            features.accumulate(&mut Operand::new(row, asymmetric, quantized), newest);
            shift(state, memory, newest.iter().copied());
            for (unit, (out, sum)) in
                out.iter_mut().zip(sums(state, &times, memory * rank)).enumerate()
            {
                let sum: f32 = sum;
                *out = clamp(sum + bias.map_or(0.0, |bias| bias[unit]), bounds);
            }
        }
        Ok(())
    })
}

fn integer(
    context: &OperatorContext<'_>,
    rank: usize,
    activation: Activation,
) -> Result<Run, Refusal> {
    if activation != Activation::Relu {
        return refuse(format!("fused activation {activation:?}"));
    }
    let view = weights(context, FEATURES)?;
    let &[filters, width] = view.shape else {
        return refuse(format!("the weights have shape {:?}, expected two dimensions", view.shape));
    };
    let elements = integer_reader(0)(view)?;
    let features = Packed::from_rows(width, filters, |row, i| elements[row * width + i]);
    let times = constant::<i16>(context.input(TIMES)?)
        .ok_or_else(|| Refusal("the time weights must be constant i16".into()))?;
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let state = affine(context.input(STATE)?)?;
    let feature_scale = affine(context.input(FEATURES)?)?.scale;
    let time_scale = affine(context.input(TIMES)?)?.scale;
    let to_state = Multiplier::new(f64::from(from.scale * feature_scale / state.scale));
    let to_output = Multiplier::new(f64::from(state.scale * time_scale / to.scale));
    run(move |call| {
        let [batches, input_width] = call.dims(0)?;
        let memory = memory_of(call)?;
        if input_width != width || times.len() != filters * memory {
            return refuse("the weights do not match the input");
        }
        let input = call.input::<i8>(0)?;
        let bias = call.bias::<i32>(BIAS, filters / rank)?;
        let state = call.take_state::<i16>(STATE)?;
        let Scratch { ints: [newest, ..], shorts: [lifted, ..], .. } = call.take_scratch()?;
        let units = filters / rank;
        let output = call.output::<i8>(0)?;
        if state.len() != batches * filters * memory {
            return refuse("the size of the state does not match");
        }
        let rows = input.chunks_exact(width.max(1)).zip(output.chunks_exact_mut(units.max(1)));
        for ((row, out), state) in rows.zip(state.chunks_exact_mut((filters * memory).max(1))) {
            lifted.clear();
            lifted.extend(row.iter().map(|&q| (i32::from(q) - from.zero_point) as i16));
            newest.resize(filters, 0);
            multiply(lifted, &features, newest);
            // Computes several sums in parallel before each is stored.
            lifted.clear();
            lifted.extend(newest.iter().map(|&sum| i16::saturate(to_state.apply(sum))));
            shift(state, memory, lifted.iter().copied());
            newest.truncate(units);
            newest
                .iter_mut()
                .zip(sums(state, &times, memory * rank))
                .for_each(|(to, sum)| *to = sum);
            if let Some(bias) = bias {
                newest.iter_mut().zip(bias).for_each(|(sum, &bias)| *sum = sum.wrapping_add(bias));
            }
            for (out, &sum) in out.iter_mut().zip(&*newest) {
                *out = i8::saturate(to_output.apply(sum).saturating_add(to.zero_point));
            }
        }
        Ok(())
    })
}
