//! LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM.
//!
//! Rows of a batch do not meet: a [`Cell`] takes one row one step further.

mod basic;
mod float;
mod integer;

use xnn_model::op::Activation;
use xnn_model::{DType, Op, Tensor};

use super::scratch::Scratch;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, is_fixed, run};
use crate::tensor::{Element, TensorView};

use self::float::FloatCell;
pub(super) use self::float::{Activate, activation};
use self::integer::IntegerCell;

/// Positions of the inputs of one direction.
#[derive(Clone, Copy)]
struct Positions {
    /// Of the input gate's weights; forget, cell and output gate follow.
    input_weights: usize,
    recurrent_weights: usize,
    /// Of the input gate's peephole weights; forget and output gate follow.
    peepholes: usize,
    biases: usize,
    projection: usize,
    output_state: usize,
    cell_state: usize,
    /// Of the input gate's coefficients, where there are any.
    layer_norm: Option<usize>,
    /// A second input with weights of its own.
    auxiliary: Option<(usize, usize)>,
}

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

/// The four gates, in the order of their inputs.
#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Input = 0,
    Forget = 1,
    Cell = 2,
    Output = 3,
}

impl Gate {
    /// Offset among the peephole weights, which the cell gate does not have.
    fn peephole(self) -> Option<usize> {
        match self {
            Self::Input => Some(0),
            Self::Forget => Some(1),
            Self::Cell => None,
            Self::Output => Some(2),
        }
    }
}

/// What all variants have of their options.
#[derive(Clone, Copy)]
struct Options {
    activation: Activation,
    cell_clip: f32,
    projection_clip: f32,
    time_major: bool,
    asymmetric: bool,
}

/// One row, one step further.
trait Cell<T>: Send + Sync {
    type State: Element;

    /// Lengths of output and cell state.
    fn sizes(&self) -> (usize, usize);

    /// Whether inputs of these lengths can be taken.
    fn takes(&self, width: usize, auxiliary: Option<usize>) -> bool;

    /// Computes a new output state from the input.
    fn step(
        &self,
        input: &[T],
        auxiliary: Option<&[T]>,
        output: &mut [T],
        cell: &mut [Self::State],
        scratch: &mut Scratch,
    );
}

/// A node's tensors as weights: constants when the model is loaded.
struct Weights<'a> {
    node: &'a Node<'a>,
}

impl<'a> Weights<'a> {
    /// A constant that may be left out.
    fn optional(&self, position: usize) -> Result<Option<(&'a Tensor, TensorView<'a>)>, Refusal> {
        let Some(tensor) = self.node.optional(position) else { return Ok(None) };
        match (tensor.shape.as_deref(), tensor.data.as_deref()) {
            (Some(shape), Some(bytes)) if is_fixed(tensor) => {
                Ok(Some((tensor, TensorView { dtype: tensor.dtype, shape, bytes })))
            }
            _ => refuse(format!("input {position} is not constant")),
        }
    }

    fn required(&self, position: usize) -> Result<(&'a Tensor, TensorView<'a>), Refusal> {
        self.optional(position)?.ok_or_else(|| Refusal(format!("input {position} is missing")))
    }
}

pub(super) fn prepare(node: &Node<'_>) -> Result<Run, Refusal> {
    let options = match &node.operator.op {
        Op::Lstm(options) if options.basic => return basic::prepare(node),
        Op::Lstm(options) => Options {
            activation: options.activation,
            cell_clip: options.cell_clip,
            projection_clip: options.proj_clip,
            // One step: rows follow each other either way.
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
        other => return refuse(format!("{other} is no LSTM")),
    };
    expect_states(node, FORWARD)?;
    match node.common_type()? {
        DType::F32 => {
            let cell = FloatCell::new(node, FORWARD, options)?;
            sequence::<f32, _>(cell, FORWARD, options)
        }
        DType::I8 => {
            let cell = IntegerCell::new(node, FORWARD, options)?;
            sequence::<i8, _>(cell, FORWARD, options)
        }
        other => node.unsupported(other),
    }
}

fn expect_states(node: &Node<'_>, positions: Positions) -> Result<(), Refusal> {
    [positions.output_state, positions.cell_state].into_iter().try_for_each(|position| {
        if node.input(position)?.is_variable {
            Ok(())
        } else {
            refuse(format!("input {position} is not a variable"))
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

/// How steps follow each other in a tensor.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    pub(super) time_major: bool,
    pub(super) backwards: bool,
}

/// Where the outputs of steps go: behind `offset` in rows of `stride` elements.
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
            None => return refuse("an output of another size than the operator's"),
        }
        Ok(())
    }
}

/// Runs a cell over all rows and steps, with the states that its variables keep.
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
    let shape = call.shape(0)?;
    let (batches, time, width) = match *shape {
        [batches, width] => (batches, 1, width),
        [time, batches, width] if time_major => (batches, time, width),
        [batches, time, width] => (batches, time, width),
        _ => return refuse(format!("an input of shape {shape:?}")),
    };
    let input = call.input::<T>(0)?;
    let auxiliary = match positions.auxiliary {
        Some((position, _)) => call.optional_input::<T>(position)?,
        None => None,
    };
    let auxiliary_width = auxiliary.map_or(0, |x| x.len() / (batches * time).max(1));
    if !cell.takes(width, auxiliary.map(|_| auxiliary_width)) {
        return refuse(format!("weights that do not take rows of {width}"));
    }
    let (output_size, cell_size) = cell.sizes();
    if hidden.len() != batches * output_size || cells.len() != batches * cell_size {
        return refuse("states of another size than the operator's");
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

pub(super) fn bidirectional(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::BidirectionalSequenceLstm(lstm) = &node.operator.op else {
        return refuse(format!("{} is no bidirectional LSTM", node.operator.op));
    };
    let merge = lstm.merge_outputs;
    let options = Options {
        activation: lstm.activation,
        cell_clip: lstm.cell_clip,
        projection_clip: lstm.proj_clip,
        time_major: lstm.time_major,
        asymmetric: lstm.asymmetric_quantize_inputs,
    };
    if node.common_type()? != DType::F32 {
        return node.unsupported(node.common_type()?);
    }
    let mut cells = Vec::new();
    for positions in BIDIRECTIONAL {
        expect_states(node, positions)?;
        cells.push((FloatCell::new(node, positions, options)?, positions));
    }
    // Without weights of its own the second input belongs to the backward
    // half: stacked layers hand over both outputs that way.
    if let Some(aux) = node.optional(39)
        && node.optional(40).is_none()
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
