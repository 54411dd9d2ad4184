//! The LSTM cell in floats; weights may be 8-bit.

use xnn_model::op::Activation;

use super::super::activation::logistic_of;
use super::super::dense::{Dense, Operand};
use super::{Cell, Gate, Options, Positions, Weights};
use crate::error::{Refusal, refuse};
use crate::node::Node;

/// One gate.
struct FloatGate {
    input: Dense,
    auxiliary: Option<Dense>,
    recurrent: Dense,
    peephole: Option<Vec<f32>>,
    /// Coefficients of the layer normalization, behind which the bias is added.
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
        if fits { Ok(gate) } else { refuse("gates of different sizes") }
    }

    fn compute(
        &self,
        input: &mut Operand<'_>,
        auxiliary: Option<&mut Operand<'_>>,
        hidden: &mut Operand<'_>,
        cells: &[f32],
        activate: impl Fn(f32) -> f32,
    ) -> Vec<f32> {
        let mut sums = match self.layer_norm {
            Some(_) => vec![0.0; self.bias.len()],
            None => self.bias.clone(),
        };
        self.input.accumulate(input, &mut sums);
        if let (Some(weights), Some(auxiliary)) = (&self.auxiliary, auxiliary) {
            weights.accumulate(auxiliary, &mut sums);
        }
        self.recurrent.accumulate(hidden, &mut sums);
        if let Some(peephole) = &self.peephole {
            for ((sum, w), c) in sums.iter_mut().zip(peephole).zip(cells) {
                *sum += w * c;
            }
        }
        if let Some(coefficients) = &self.layer_norm {
            normalize(&mut sums);
            for ((sum, k), b) in sums.iter_mut().zip(coefficients).zip(&self.bias) {
                *sum = *sum * k + b;
            }
        }
        sums.iter_mut().for_each(|sum| *sum = activate(*sum));
        sums
    }
}

/// To mean 0 and variance 1.
fn normalize(values: &mut [f32]) {
    const EPSILON: f32 = 1e-8;
    let count = values.len() as f32;
    let mean = values.iter().sum::<f32>() / count;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    let inverse = 1.0 / (variance + EPSILON).sqrt();
    values.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
}

/// A function of a cell's values.
pub(in super::super) fn activation(activation: Activation) -> Result<fn(f32) -> f32, Refusal> {
    Ok(match activation {
        Activation::None => |x| x,
        Activation::Relu => |x| x.max(0.0),
        Activation::ReluN1To1 => |x| x.clamp(-1.0, 1.0),
        Activation::Relu6 => |x| x.clamp(0.0, 6.0),
        Activation::Tanh => f32::tanh,
        other => return refuse(format!("activation {other:?}")),
    })
}

pub(super) struct FloatCell {
    /// Coupled to the forget gate where it is left out.
    input: Option<FloatGate>,
    forget: FloatGate,
    cell: FloatGate,
    output: FloatGate,
    projection: Option<(Dense, Vec<f32>)>,
    activation: fn(f32) -> f32,
    cell_clip: f32,
    projection_clip: f32,
    asymmetric: bool,
}

impl FloatCell {
    pub(super) fn new(
        node: &Node<'_>,
        positions: Positions,
        options: Options,
    ) -> Result<Self, Refusal> {
        let weights = Weights { node };
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
        if cell.is_consistent() { Ok(cell) } else { refuse("gates that do not fit each other") }
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
    ) {
        let previous = output.to_vec();
        let mut x = Operand::new(input, self.asymmetric);
        let mut a = auxiliary.map(|a| Operand::new(a, self.asymmetric));
        let mut h = Operand::new(&previous, self.asymmetric);
        let input_gate = self
            .input
            .as_ref()
            .map(|gate| gate.compute(&mut x, a.as_mut(), &mut h, cells, logistic_of));
        let forget = self.forget.compute(&mut x, a.as_mut(), &mut h, cells, logistic_of);
        let fresh = self.cell.compute(&mut x, a.as_mut(), &mut h, cells, self.activation);
        for (i, cell) in cells.iter_mut().enumerate() {
            let input = input_gate.as_ref().map_or_else(|| 1.0 - forget[i], |gate| gate[i]);
            *cell = forget[i] * *cell + fresh[i] * input;
            if self.cell_clip > 0.0 {
                *cell = cell.clamp(-self.cell_clip, self.cell_clip);
            }
        }
        let mut hidden = self.output.compute(&mut x, a.as_mut(), &mut h, cells, logistic_of);
        for (gate, cell) in hidden.iter_mut().zip(cells.iter()) {
            *gate *= (self.activation)(*cell);
        }
        match &self.projection {
            Some((matrix, bias)) => {
                output.copy_from_slice(bias);
                matrix.accumulate(&mut Operand::new(&hidden, self.asymmetric), output);
                if self.projection_clip > 0.0 {
                    let clip = self.projection_clip;
                    output.iter_mut().for_each(|x| *x = x.clamp(-clip, clip));
                }
            }
            None => output.copy_from_slice(&hidden),
        }
    }
}
