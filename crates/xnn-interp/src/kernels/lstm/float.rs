//! The LSTM cell of floats, whose weights may be 8-bit.

use xnn_model::op::Activation;

use super::super::dense::{Dense, Operand};
use super::super::functions;
use super::cell::{Cell, Gate, Options, Positions, Weights};
use crate::error::{Refusal, refuse};
use crate::operator::OperatorContext;
use crate::scratch::Scratch;

/// One gate.
struct FloatGate {
    input: Dense,
    auxiliary: Option<Dense>,
    recurrent: Dense,
    peephole: Option<Vec<f32>>,
    /// Layer normalization coefficients. The bias is added after the normalization.
    layer_norm: Option<Vec<f32>>,
    bias: Vec<f32>,
}

impl FloatGate {
    fn new(weights: &Weights<'_>, positions: Positions, gate: Gate) -> Result<Self, Refusal> {
        let at = gate as usize;
        let dense = |position: usize| -> Result<Dense, Refusal> {
            let (tensor, view) = weights.required(position)?;
            Dense::new(tensor, view)
        };
        let vector = |position: usize| -> Result<Option<Vec<f32>>, Refusal> {
            let Some((tensor, view)) = weights.optional(position)? else { return Ok(None) };
            super::super::dense::vector(tensor, view).map(Some)
        };
        let auxiliary = match positions.auxiliary {
            Some((_, first)) => match weights.optional(first + at)? {
                Some((tensor, view)) => Some(Dense::new(tensor, view)?),
                None => None,
            },
            None => None,
        };
        let layer_norm = match positions.layer_norm {
            Some(first) => vector(first + at)?,
            None => None,
        };
        let peephole = match gate.peephole() {
            Some(offset) => vector(positions.peepholes + offset)?,
            None => None,
        };
        let input = dense(positions.input_weights + at)?;
        let bias = vector(positions.biases + at)?.unwrap_or_else(|| vec![0.0; input.rows()]);
        let gate = Self {
            input,
            auxiliary,
            recurrent: dense(positions.recurrent_weights + at)?,
            peephole,
            layer_norm,
            bias,
        };
        let cells = gate.input.rows();
        let fits = gate.recurrent.rows() == cells
            && gate.bias.len() == cells
            && gate.peephole.as_ref().is_none_or(|p| p.len() == cells)
            && gate.layer_norm.as_ref().is_none_or(|n| n.len() == cells);
        if fits { Ok(gate) } else { refuse("the gates have different sizes") }
    }

    fn compute(
        &self,
        operands: &mut Operands<'_>,
        cells: &[f32],
        activate: Activate,
        sums: &mut Vec<f32>,
    ) {
        sums.clear();
        match self.layer_norm {
            Some(_) => sums.resize(self.bias.len(), 0.0),
            None => sums.extend_from_slice(&self.bias),
        }
        self.input.accumulate(&mut operands.input, sums);
        if let (Some(weights), Some(auxiliary)) = (&self.auxiliary, &mut operands.auxiliary) {
            weights.accumulate(auxiliary, sums);
        }
        self.recurrent.accumulate(&mut operands.hidden, sums);
        if let Some(peephole) = &self.peephole {
            for ((sum, w), c) in sums.iter_mut().zip(peephole).zip(cells) {
                *sum += w * c;
            }
        }
        if let Some(coefficients) = &self.layer_norm {
            normalize(sums);
            for ((sum, k), b) in sums.iter_mut().zip(coefficients).zip(&self.bias) {
                *sum = *sum * k + b;
            }
        }
        activate(sums);
    }
}

/// Operands of the gates' matrices.
struct Operands<'a> {
    input: Operand<'a>,
    auxiliary: Option<Operand<'a>>,
    /// The output of the previous step.
    hidden: Operand<'a>,
}

/// Normalizes to mean 0 and variance 1.
fn normalize(values: &mut [f32]) {
    const EPSILON: f32 = 1e-8;
    let count = values.len() as f32;
    let mean = values.iter().sum::<f32>() / count;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    let inverse = 1.0 / (variance + EPSILON).sqrt();
    values.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
}

/// A function applied to all values of a vector.
pub(in super::super) type Activate = fn(&mut [f32]);

fn logistic(values: &mut [f32]) {
    values.iter_mut().for_each(|x| *x = functions::logistic(*x));
}

/// The activation function of a cell.
pub(in super::super) fn activation(activation: Activation) -> Result<Activate, Refusal> {
    Ok(match activation {
        Activation::None => |_| {},
        Activation::Relu => |values| values.iter_mut().for_each(|x| *x = x.max(0.0)),
        Activation::ReluN1To1 => |values| values.iter_mut().for_each(|x| *x = x.clamp(-1.0, 1.0)),
        Activation::Relu6 => |values| values.iter_mut().for_each(|x| *x = x.clamp(0.0, 6.0)),
        Activation::Tanh => |values| values.iter_mut().for_each(|x| *x = functions::tanh(*x)),
        other => return refuse(format!("activation {other:?}")),
    })
}

pub(super) struct FloatCell {
    /// Coupled to the forget gate if absent.
    input: Option<FloatGate>,
    forget: FloatGate,
    cell: FloatGate,
    output: FloatGate,
    projection: Option<(Dense, Vec<f32>)>,
    activation: Activate,
    cell_clip: f32,
    projection_clip: f32,
    asymmetric: bool,
}

impl FloatCell {
    pub(super) fn new(
        context: &OperatorContext<'_>,
        positions: Positions,
        options: Options,
    ) -> Result<Self, Refusal> {
        let weights = Weights { context };
        let gate = |gate| FloatGate::new(&weights, positions, gate);
        let input = match weights.optional(positions.input_weights)? {
            Some(_) => Some(gate(Gate::Input)?),
            None => None,
        };
        let projection = match weights.optional(positions.projection)? {
            Some((tensor, view)) => {
                let matrix = Dense::new(tensor, view)?;
                let bias = match weights.optional(positions.projection + 1)? {
                    Some((tensor, view)) => super::super::dense::vector(tensor, view)?,
                    None => vec![0.0; matrix.rows()],
                };
                Some((matrix, bias))
            }
            None => None,
        };
        let cell = Self {
            input,
            forget: gate(Gate::Forget)?,
            cell: gate(Gate::Cell)?,
            output: gate(Gate::Output)?,
            projection,
            activation: activation(options.activation)?,
            cell_clip: options.cell_clip,
            projection_clip: options.projection_clip,
            asymmetric: options.asymmetric,
        };
        if cell.is_consistent() { Ok(cell) } else { refuse("the sizes of the gates do not match") }
    }

    fn gates(&self) -> impl Iterator<Item = &FloatGate> {
        self.input.iter().chain([&self.forget, &self.cell, &self.output])
    }

    fn is_consistent(&self) -> bool {
        let (outputs, cells) = self.sizes();
        let projects = self
            .projection
            .as_ref()
            .is_none_or(|(matrix, bias)| matrix.takes(cells) && bias.len() == matrix.rows());
        projects && self.gates().all(|g| g.bias.len() == cells && g.recurrent.takes(outputs))
    }
}

impl Cell<f32> for FloatCell {
    type State = f32;

    fn sizes(&self) -> (usize, usize) {
        let cells = self.cell.bias.len();
        (self.projection.as_ref().map_or(cells, |(matrix, _)| matrix.rows()), cells)
    }

    fn takes(&self, width: usize, auxiliary: Option<usize>) -> bool {
        self.gates().all(|gate| {
            let second = match (&gate.auxiliary, auxiliary) {
                (Some(weights), Some(width)) => {
                    weights.takes(width) && weights.rows() == gate.bias.len()
                }
                _ => true,
            };
            gate.input.takes(width) && second
        })
    }

    fn step(
        &self,
        input: &[f32],
        auxiliary: Option<&[f32]>,
        output: &mut [f32],
        cells: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let [previous, input_gate, forget, fresh, hidden, activated] = &mut scratch.floats;
        let [of_input, of_auxiliary, of_previous, of_hidden, ..] = &mut scratch.shorts;
        let asymmetric = self.asymmetric;
        previous.clear();
        previous.extend_from_slice(output);
        let mut operands = Operands {
            input: Operand::new(input, asymmetric, of_input),
            auxiliary: auxiliary.map(|floats| Operand::new(floats, asymmetric, of_auxiliary)),
            hidden: Operand::new(previous, asymmetric, of_previous),
        };
        self.forget.compute(&mut operands, cells, logistic, forget);
        match &self.input {
            Some(gate) => gate.compute(&mut operands, cells, logistic, input_gate),
            None => {
                input_gate.clear();
                input_gate.extend(forget.iter().map(|forget| 1.0 - forget));
            }
        }
        self.cell.compute(&mut operands, cells, self.activation, fresh);
        for (((cell, forget), fresh), input) in
            cells.iter_mut().zip(forget).zip(fresh).zip(input_gate)
        {
            *cell = *forget * *cell + *fresh * *input;
        }
        if self.cell_clip > 0.0 {
            let clip = self.cell_clip;
            cells.iter_mut().for_each(|cell| *cell = cell.clamp(-clip, clip));
        }
        self.output.compute(&mut operands, cells, logistic, hidden);
        activated.clear();
        activated.extend_from_slice(cells);
        (self.activation)(activated);
        hidden.iter_mut().zip(activated).for_each(|(gate, cell)| *gate *= *cell);
        match &self.projection {
            Some((matrix, bias)) => {
                output.copy_from_slice(bias);
                matrix.accumulate(&mut Operand::new(hidden, asymmetric, of_hidden), output);
                if self.projection_clip > 0.0 {
                    let clip = self.projection_clip;
                    output.iter_mut().for_each(|x| *x = x.clamp(-clip, clip));
                }
            }
            None => output.copy_from_slice(hidden),
        }
    }
}
