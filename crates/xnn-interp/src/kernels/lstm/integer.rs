//! The LSTM cell of integers: 8-bit inputs, outputs and weights, 16-bit cells.

use xnn_model::Tensor;

use super::super::gemm::{Packed, multiply};
use super::super::weights::integer_reader;
use super::cell::{Cell, Gate, Options, Positions, Weights};
use crate::error::{Refusal, refuse};
use crate::fixed::{Multiplier, inverse_sqrt, q16, rounding_shift_right};
use crate::operator::{OperatorContext, constant};
use crate::quant::{Quantized, affine};
use crate::scratch::Scratch;
use crate::tensor::TensorView;

/// Fractional bits of gates without layer normalization.
const GATE_SCALE: f32 = 1.0 / 4096.0;

/// Integer bits of gates, besides the sign.
const GATE_INTEGER_BITS: u32 = 3;

/// A matrix whose products are rescaled.
struct Rescaled {
    matrix: Packed<i16>,
    rows: usize,
    columns: usize,
    /// The bias and the contribution of the input's zero point.
    offset: Vec<i32>,
    multiplier: Multiplier,
}

impl Rescaled {
    fn new(
        view: TensorView<'_>,
        zero_point: i32,
        bias: Option<Vec<i32>>,
        multiplier: Multiplier,
    ) -> Result<Self, Refusal> {
        let &[rows, columns] = view.shape else {
            return refuse(format!(
                "the weights have shape {:?}, expected two dimensions",
                view.shape
            ));
        };
        let elements = integer_reader(0)(view)?;
        let mut offset = bias.unwrap_or_else(|| vec![0; rows]);
        if offset.len() != rows {
            return refuse("the size of a bias does not match the weights");
        }
        for (sum, row) in offset.iter_mut().zip(elements.chunks_exact(columns.max(1))) {
            let weights: i32 = row.iter().map(|&w| i32::from(w)).sum();
            *sum = sum.wrapping_add(zero_point.wrapping_mul(weights));
        }
        let matrix = Packed::from_rows(columns, rows, |row, i| elements[row * columns + i]);
        Ok(Self { matrix, rows, columns, offset, multiplier })
    }

    fn product<'a>(
        &'a self,
        input: &[i16],
        sums: &'a mut Vec<i32>,
    ) -> impl Iterator<Item = i32> + 'a {
        sums.resize(self.rows, 0);
        multiply(input, &self.matrix, sums);
        sums.iter()
            .zip(&self.offset)
            .map(|(sum, offset)| self.multiplier.apply(sum.wrapping_add(*offset)))
    }
}

/// Coefficients of a layer normalization.
struct LayerNorm {
    coefficients: Vec<i16>,
    bias: Vec<i32>,
    multiplier: Multiplier,
    /// Replaces a variance of 0.
    guard: i32,
}

impl LayerNorm {
    fn apply(&self, values: &mut [i16]) {
        let count = values.len() as i64;
        let sum: i64 = values.iter().map(|&v| i64::from(v)).sum();
        let squares: i64 = values.iter().map(|&v| i64::from(v).pow(2)).sum();
        let mean = (sum * 1024 / count) as i32;
        let variance = squares * i64::from((1i32 << 20) / count as i32) - i64::from(mean).pow(2);
        let variance = match (variance / (1 << 20)) as i32 {
            ..1 => self.guard,
            variance => variance,
        };
        let inverse = inverse_sqrt(variance);
        let scale = Multiplier { shift: self.multiplier.shift + 12, ..self.multiplier };
        for ((value, &coefficient), &bias) in
            values.iter_mut().zip(&self.coefficients).zip(&self.bias)
        {
            let centered = 1024 * i32::from(*value) - mean;
            let normal = i64::from(inverse.apply(centered).wrapping_mul(coefficient.into()))
                + i64::from(bias);
            let rounded = if normal > 0 { normal + 512 } else { normal - 512 } / 1024;
            *value = i16::saturate(scale.apply(rounded as i32));
        }
    }
}

struct IntegerGate {
    input: Rescaled,
    recurrent: Rescaled,
    peephole: Option<(Vec<i16>, Multiplier)>,
    layer_norm: Option<LayerNorm>,
}

/// Parameters that all gates share.
struct GateContext<'a> {
    weights: Weights<'a>,
    positions: Positions,
    input: &'a Tensor,
    output_state: &'a Tensor,
    cell_log2: i32,
}

impl IntegerGate {
    fn new(context: &GateContext<'_>, gate: Gate) -> Result<Self, Refusal> {
        let GateContext { weights, positions, .. } = context;
        let at = gate as usize;
        let norm_at = positions.layer_norm.map(|first| first + at);
        let norm = match norm_at {
            Some(position) => weights.optional(position)?,
            None => None,
        };
        let scale = match norm {
            Some(_) => {
                let intermediate = weights.context.intermediate(at);
                affine(
                    intermediate
                        .ok_or_else(|| Refusal("an intermediate tensor is missing".into()))?,
                )?
                .scale
            }
            None => GATE_SCALE,
        };
        let bias = match weights.optional(positions.biases + at)? {
            Some((tensor, _)) => Some(
                constant::<i32>(tensor)
                    .ok_or_else(|| Refusal("a bias must be constant i32".into()))?,
            ),
            None => None,
        };
        let (input, state) = (affine(context.input)?, affine(context.output_state)?);
        let (tensor, view) = weights.required(positions.input_weights + at)?;
        let direct_bias = if norm.is_some() { None } else { bias.clone() };
        let to_input = Rescaled::new(
            view,
            -input.zero_point,
            direct_bias,
            Multiplier::new((affine(tensor)?.scale * input.scale / scale).into()),
        )?;
        let (tensor, view) = weights.required(positions.recurrent_weights + at)?;
        let recurrent = Rescaled::new(
            view,
            -state.zero_point,
            None,
            Multiplier::new((affine(tensor)?.scale * state.scale / scale).into()),
        )?;
        let peephole = match gate.peephole() {
            Some(offset) => match weights.optional(positions.peepholes + offset)? {
                Some((tensor, _)) => {
                    let values = constant::<i16>(tensor)
                        .ok_or_else(|| Refusal("peephole weights must be constant i16".into()))?;
                    let cell = 2f64.powi(context.cell_log2);
                    let real = cell * f64::from(affine(tensor)?.scale) / f64::from(scale);
                    Some((values, Multiplier::new((real as f32).into())))
                }
                None => None,
            },
            None => None,
        };
        let layer_norm = match norm {
            Some((tensor, _)) => {
                let scale = affine(tensor)?.scale;
                Some(LayerNorm {
                    coefficients: constant::<i16>(tensor).ok_or_else(|| {
                        Refusal("layer normalization coefficients must be constant i16".into())
                    })?,
                    bias: bias.unwrap_or_else(|| vec![0; recurrent.rows]),
                    multiplier: Multiplier::new(scale.into()),
                    guard: ((10000.0 * scale) as i32).max(1),
                })
            }
            None => None,
        };
        Ok(Self { input: to_input, recurrent, peephole, layer_norm })
    }

    fn compute(
        &self,
        Operands { input, hidden, sums: [first, second] }: &mut Operands<'_>,
        cells: &[i16],
        activate: fn(&mut [i16], u32),
        gate: &mut Vec<i16>,
    ) {
        let first = self.input.product(input, first).map(i16::saturate);
        let second = self.recurrent.product(hidden, second);
        gate.clear();
        gate.extend(first.zip(second).map(|(a, b)| i16::saturate(b.saturating_add(a.into()))));
        if let Some((weights, multiplier)) = &self.peephole {
            for ((value, &w), &c) in gate.iter_mut().zip(weights).zip(cells) {
                let product = multiplier.apply(i32::from(w) * i32::from(c));
                *value = i16::saturate(product.saturating_add((*value).into()));
            }
        }
        if let Some(norm) = &self.layer_norm {
            norm.apply(gate);
        }
        activate(gate, GATE_INTEGER_BITS);
    }
}

/// Operands of the gates' matrices, and memory for the products.
struct Operands<'a> {
    input: &'a [i16],
    /// The output of the previous step.
    hidden: &'a [i16],
    sums: &'a mut [Vec<i32>; 2],
}

pub(super) struct IntegerCell {
    input: Option<IntegerGate>,
    forget: IntegerGate,
    cell: IntegerGate,
    output: IntegerGate,
    /// Integer bits of the cell state.
    cell_integer_bits: u32,
    /// Shift from the product of two gates (30 bits) to the cell's scale.
    cell_shift: u32,
    cell_clip: i16,
    hidden: Multiplier,
    hidden_zero: i32,
    projection: Option<Rescaled>,
    projection_clip: i8,
    output_zero: i32,
}

impl IntegerCell {
    pub(super) fn new(
        context: &OperatorContext<'_>,
        positions: Positions,
        options: Options,
    ) -> Result<Self, Refusal> {
        let weights = Weights { context };
        let output_state = context.input(positions.output_state)?;
        let cell_scale = affine(context.input(positions.cell_state)?)?.scale;
        let cell_log2 = cell_scale.log2().round() as i32;
        if (cell_scale.log2() - cell_log2 as f32).abs() > 1e-3 || !(-15..=-9).contains(&cell_log2) {
            return refuse(format!(
                "the cell state has scale {cell_scale}, expected a power of two from 2^-15 to 2^-9"
            ));
        }
        let Some(hidden) = context.intermediate(4) else {
            return refuse("8-bit cells without five intermediate tensors");
        };
        let hidden = affine(hidden)?;
        let state = affine(output_state)?;
        let projection = match weights.optional(positions.projection)? {
            Some((tensor, view)) => {
                let bias = match weights.optional(positions.projection + 1)? {
                    Some((bias, _)) => constant::<i32>(bias),
                    None => None,
                };
                let real = affine(tensor)?.scale * hidden.scale / state.scale;
                Some(Rescaled::new(view, hidden.zero_point, bias, Multiplier::new(real.into()))?)
            }
            None => None,
        };
        let has_input_gate = weights.optional(positions.input_weights)?.is_some();
        let input = context.input(0)?;
        let gates = GateContext { weights, positions, input, output_state, cell_log2 };
        let gate = |gate| IntegerGate::new(&gates, gate);
        let product = 2f64.powi(-15) / f64::from(hidden.scale) * 2f64.powi(-15);
        let cell = Self {
            input: if has_input_gate { Some(gate(Gate::Input)?) } else { None },
            forget: gate(Gate::Forget)?,
            cell: gate(Gate::Cell)?,
            output: gate(Gate::Output)?,
            cell_integer_bits: (15 + cell_log2) as u32,
            cell_shift: (30 + cell_log2) as u32,
            cell_clip: clip(options.cell_clip / cell_scale, 32767.0) as i16,
            hidden: Multiplier::new((product as f32).into()),
            hidden_zero: hidden.zero_point,
            projection,
            projection_clip: clip(
                options.projection_clip / affine(context.output(0)?)?.scale,
                127.0,
            ) as i8,
            output_zero: state.zero_point,
        };
        if cell.is_consistent() { Ok(cell) } else { refuse("the sizes of the gates do not match") }
    }

    fn gates(&self) -> impl Iterator<Item = &IntegerGate> {
        self.input.iter().chain([&self.forget, &self.cell, &self.output])
    }

    fn is_consistent(&self) -> bool {
        let (outputs, cells) = self.sizes();
        cells > 0
            && self.projection.as_ref().is_none_or(|projection| projection.columns == cells)
            && self.gates().all(|gate| {
                let norm = gate.layer_norm.as_ref();
                gate.input.rows == cells
                    && gate.recurrent.rows == cells
                    && gate.recurrent.columns == outputs
                    && gate.peephole.as_ref().is_none_or(|(weights, _)| weights.len() == cells)
                    && norm.is_none_or(|n| n.coefficients.len() == cells && n.bias.len() == cells)
            })
    }
}

fn clip(value: f32, most: f32) -> i32 {
    if value > 0.0 { value.min(most) as i32 } else { 0 }
}

impl Cell<i8> for IntegerCell {
    type State = i16;

    fn sizes(&self) -> (usize, usize) {
        let cells = self.cell.input.rows;
        (self.projection.as_ref().map_or(cells, |projection| projection.rows), cells)
    }

    fn takes(&self, width: usize, _: Option<usize>) -> bool {
        self.gates().all(|gate| gate.input.columns == width)
    }

    fn step(
        &self,
        input: &[i8],
        _: Option<&[i8]>,
        output: &mut [i8],
        cells: &mut [i16],
        Scratch { shorts, ints: sums, .. }: &mut Scratch,
    ) {
        let [x, h, input_gate, forget, fresh, gate, values] = shorts;
        x.clear();
        x.extend(input.iter().map(|&q| i16::from(q)));
        h.clear();
        h.extend(output.iter().map(|&q| i16::from(q)));
        let operands = &mut Operands { input: x, hidden: h, sums };
        self.forget.compute(operands, cells, q16::logistic, forget);
        match &self.input {
            Some(gate) => gate.compute(operands, cells, q16::logistic, input_gate),
            None => {
                input_gate.clear();
                input_gate.extend(forget.iter().map(|forget| 32767 - forget));
            }
        }
        self.cell.compute(operands, cells, q16::tanh, fresh);
        for (((cell, &mut forget), &mut fresh), &mut input) in
            cells.iter_mut().zip(forget).zip(&mut *fresh).zip(input_gate)
        {
            let product = |a: i16, b: i16, shift: u32| {
                rounding_shift_right(i32::from(a) * i32::from(b), shift) as i16
            };
            let kept = product(forget, *cell, 15);
            *cell = kept.saturating_add(product(input, fresh, self.cell_shift));
            if self.cell_clip > 0 {
                *cell = (*cell).clamp(-self.cell_clip, self.cell_clip);
            }
        }
        self.output.compute(operands, cells, q16::logistic, gate);
        let bounded = fresh;
        bounded.clear();
        bounded.extend_from_slice(cells);
        q16::tanh(bounded, self.cell_integer_bits);
        let hidden = |zero: i32| {
            gate.iter().zip(&*bounded).map(move |(&gate, &value)| {
                let product = self.hidden.apply(i32::from(gate) * i32::from(value));
                i8::saturate(product.saturating_add(zero))
            })
        };
        match &self.projection {
            Some(projection) => {
                // The zero point is subtracted here and added in the products.
                values.clear();
                values.extend(hidden(-self.hidden_zero).map(i16::from));
                let [sums, _] = &mut *operands.sums;
                for (out, sum) in output.iter_mut().zip(projection.product(values, sums)) {
                    *out = i8::saturate(sum.saturating_add(self.output_zero));
                    if self.projection_clip > 0 {
                        *out = (*out).clamp(-self.projection_clip, self.projection_clip);
                    }
                }
            }
            None => {
                output.iter_mut().zip(hidden(self.hidden_zero)).for_each(|(out, q)| *out = q);
            }
        }
    }
}
