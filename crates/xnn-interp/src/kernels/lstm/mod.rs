//! LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM.
//!
//! Rows of a batch are independent: a [`Cell`] computes one step of one row.

mod basic;
mod cell;
mod float;
mod integer;

use xnn_model::{DType, Op};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::scratch::Scratch;
use crate::tensor::Element;

use self::cell::{Cell, Options, Positions};
use self::float::FloatCell;
pub(super) use self::float::{Activate, activation};
use self::integer::IntegerCell;

const FORWARD: Positions = Positions {
    input_weights: 1,
    recurrent_weights: 5,
    peepholes: 9,
    biases: 12,
    projection: 16,
    output_state: 18,
    cell_state: 19,
    layer_norm: Some(20),
    auxiliary: None,
};

const BIDIRECTIONAL: [Positions; 2] = [
    Positions {
        output_state: 35,
        cell_state: 36,
        layer_norm: None,
        auxiliary: Some((39, 40)),
        ..FORWARD
    },
    Positions {
        input_weights: 18,
        recurrent_weights: 22,
        peepholes: 26,
        biases: 29,
        projection: 33,
        output_state: 37,
        cell_state: 38,
        layer_norm: None,
        auxiliary: Some((39, 44)),
    },
];

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = match &context.operator.op {
        Op::Lstm(options) if options.basic => return basic::prepare(context),
        Op::Lstm(options) => Options {
            activation: options.activation,
            cell_clip: options.cell_clip,
            projection_clip: options.proj_clip,
            // With one step, both orders are the same.
            time_major: true,
            asymmetric: options.asymmetric_quantize_inputs,
        },
        Op::UnidirectionalSequenceLstm(options) => {
            if options.diagonal_recurrent_tensors {
                return refuse("diagonal recurrent weights");
            }
            Options {
                activation: options.activation,
                cell_clip: options.cell_clip,
                projection_clip: options.proj_clip,
                time_major: options.time_major,
                asymmetric: options.asymmetric_quantize_inputs,
            }
        }
        other => return refuse(format!("{other} is not an LSTM")),
    };
    expect_states(context, FORWARD)?;
    match context.common_type()? {
        DType::F32 => {
            let cell = FloatCell::new(context, FORWARD, options)?;
            sequence::<f32, _>(cell, FORWARD, options)
        }
        DType::I8 => {
            let cell = IntegerCell::new(context, FORWARD, options)?;
            sequence::<i8, _>(cell, FORWARD, options)
        }
        other => context.unsupported(other),
    }
}

fn expect_states(context: &OperatorContext<'_>, positions: Positions) -> Result<(), Refusal> {
    [positions.output_state, positions.cell_state].into_iter().try_for_each(|position| {
        if context.input(position)?.is_variable {
            Ok(())
        } else {
            refuse(format!("input {position} must be a variable"))
        }
    })
}

fn sequence<T: Element, C: Cell<T> + 'static>(
    cell: C,
    positions: Positions,
    options: Options,
) -> Result<Run, Refusal> {
    run(move |call| {
        let target = Target { output: 0, stride: cell.sizes().0, offset: 0 };
        let direction = Direction { time_major: options.time_major, backwards: false };
        let scratch = call.take_scratch()?;
        unroll(call, scratch, &cell, positions, direction, target)
    })
}

/// The order of steps in a tensor.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    pub(super) time_major: bool,
    pub(super) backwards: bool,
}

impl Direction {
    /// Numbers of batches, steps and elements of a sequence.
    pub(super) fn sizes(self, shape: &[usize]) -> Result<(usize, usize, usize), Refusal> {
        match *shape {
            [batches, width] => Ok((batches, 1, width)),
            [time, batches, width] if self.time_major => Ok((batches, time, width)),
            [batches, time, width] => Ok((batches, time, width)),
            _ => refuse(format!("the input has shape {shape:?}, expected rank 2 or 3")),
        }
    }
}

/// Position of a step's output: at `offset` in rows of `stride` elements.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) output: usize,
    pub(super) stride: usize,
    pub(super) offset: usize,
}

impl Target {
    /// Writes the values of a step whose input is the row `at`.
    pub(super) fn write<T: Copy>(
        self,
        output: &mut [T],
        at: usize,
        values: &[T],
    ) -> Result<(), Refusal> {
        let place = output.get_mut(at * self.stride + self.offset..);
        match place.and_then(|rest| rest.get_mut(..values.len())) {
            Some(place) => place.copy_from_slice(values),
            None => return refuse("the size of the output does not match"),
        }
        Ok(())
    }
}

/// Runs a cell over all rows and steps, with its states in variables.
fn unroll<T: Element, C: Cell<T>>(
    call: &mut Call<'_>,
    scratch: &mut Scratch,
    cell: &C,
    positions: Positions,
    direction: Direction,
    target: Target,
) -> Result<(), Refusal> {
    let Direction { time_major, backwards } = direction;
    let hidden = call.take_state::<T>(positions.output_state)?;
    let cells = call.take_state::<C::State>(positions.cell_state)?;
    let (batches, time, width) = direction.sizes(call.shape(0)?)?;
    let input = call.input::<T>(0)?;
    let auxiliary = match positions.auxiliary {
        Some((position, _)) => call.optional_input::<T>(position)?,
        None => None,
    };
    let auxiliary_width = auxiliary.map_or(0, |x| x.len() / (batches * time).max(1));
    if !cell.takes(width, auxiliary.map(|_| auxiliary_width)) {
        return refuse(format!("the weights do not accept rows of {width}"));
    }
    let (output_size, cell_size) = cell.sizes();
    if hidden.len() != batches * output_size || cells.len() != batches * cell_size {
        return refuse("the sizes of the states do not match");
    }
    let output = call.output::<T>(target.output)?;
    let rows = hidden.chunks_exact_mut(output_size.max(1));
    for (batch, (hidden, cells)) in rows.zip(cells.chunks_exact_mut(cell_size.max(1))).enumerate() {
        for step in 0..time {
            let step = if backwards { time - 1 - step } else { step };
            let at = if time_major { step * batches + batch } else { batch * time + step };
            let auxiliary = auxiliary.map(|x| &x[at * auxiliary_width..][..auxiliary_width]);
            cell.step(&input[at * width..][..width], auxiliary, hidden, cells, scratch);
            target.write(output, at, hidden)?;
        }
    }
    Ok(())
}

pub(super) fn bidirectional(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::BidirectionalSequenceLstm(lstm) = &context.operator.op else {
        return refuse(format!("{} is not BIDIRECTIONAL_SEQUENCE_LSTM", context.operator.op));
    };
    let merge = lstm.merge_outputs;
    let options = Options {
        activation: lstm.activation,
        cell_clip: lstm.cell_clip,
        projection_clip: lstm.proj_clip,
        time_major: lstm.time_major,
        asymmetric: lstm.asymmetric_quantize_inputs,
    };
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    let mut cells = Vec::new();
    for positions in BIDIRECTIONAL {
        expect_states(context, positions)?;
        cells.push((FloatCell::new(context, positions, options)?, positions));
    }
    // Without weights of its own, the second input is the input of the backward direction: stacked
    // layers pass both outputs in this way.
    if let Some(aux) = context.optional(39)
        && context.optional(40).is_none()
        && !aux.is_constant()
    {
        return refuse("a second input without weights");
    }
    let widths = cells.iter().map(|(cell, _)| cell.sizes().0);
    let merged_width = widths.sum();
    run(move |call| {
        let scratch = call.take_scratch()?;
        let mut offset = 0;
        for (index, (cell, positions)) in cells.iter().enumerate() {
            let (width, _) = cell.sizes();
            let target = if merge {
                Target { output: 0, stride: merged_width, offset }
            } else {
                Target { output: index, stride: width, offset: 0 }
            };
            let direction = Direction { time_major: options.time_major, backwards: index == 1 };
            unroll(call, scratch, cell, *positions, direction, target)?;
            offset += width;
        }
        Ok(())
    })
}
