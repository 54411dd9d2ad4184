//! Weight matrices of recurrent operators: floats, or 8-bit integers for float operands.

use xnn_model::{DType, Tensor};

use super::gemm::{Packed, multiply_row};
use super::hybrid::quantize_row;
use super::weights::{float_reader, integer_reader};
use crate::error::{Refusal, refuse};
use crate::quant::affine;
use crate::tensor::TensorView;

/// A constant matrix `[rows, columns]`.
pub(super) struct Dense {
    rows: usize,
    columns: usize,
    elements: Elements,
}

enum Elements {
    Floats(Packed<f32>),
    Integers { matrix: Packed<i16>, scale: f32 },
}

/// A vector operand, quantized at most once.
pub(super) struct Operand<'a> {
    floats: &'a [f32],
    asymmetric: bool,
    quantized: &'a mut Vec<i16>,
    /// Scale of the quantized values, once they exist.
    scale: Option<f32>,
}

impl<'a> Operand<'a> {
    /// Creates an operand, with memory in which it can be quantized.
    pub(super) fn new(floats: &'a [f32], asymmetric: bool, quantized: &'a mut Vec<i16>) -> Self {
        Self { floats, asymmetric, quantized, scale: None }
    }

    fn quantized(&mut self) -> (&[i16], f32) {
        let scale = *self.scale.get_or_insert_with(|| {
            self.quantized.clear();
            quantize_row(self.floats, self.asymmetric, self.quantized)
        });
        (self.quantized, scale)
    }
}

impl Dense {
    pub(super) fn new(tensor: &Tensor, view: TensorView<'_>) -> Result<Self, Refusal> {
        let &[rows, columns] = view.shape else {
            return refuse(format!(
                "the weights have shape {:?}, expected two dimensions",
                view.shape
            ));
        };
        let elements = match view.dtype {
            DType::F32 => {
                let floats = float_reader()(view)?;
                Elements::Floats(Packed::from_rows(columns, rows, |r, i| floats[r * columns + i]))
            }
            DType::I8 | DType::U8 => {
                let scale = affine(tensor)?.scale;
                // Unsigned weights of old files nevertheless contain signed bytes.
                let signed = TensorView { dtype: DType::I8, ..view };
                let integers = integer_reader(0)(signed)?;
                let matrix = Packed::from_rows(columns, rows, |r, i| integers[r * columns + i]);
                Elements::Integers { matrix, scale }
            }
            other => return refuse(format!("{other} weights")),
        };
        Ok(Self { rows, columns, elements })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Computes `sums += matrix * operand`. The lengths must fit, see [`Dense::takes`].
    pub(super) fn accumulate(&self, operand: &mut Operand<'_>, sums: &mut [f32]) {
        match &self.elements {
            Elements::Floats(matrix) => {
                multiply_row(operand.floats, matrix, |row, product: f32| sums[row] += product);
            }
            Elements::Integers { matrix, scale } => {
                let (values, row_scale) = operand.quantized();
                let scale = row_scale * scale;
                multiply_row(values, matrix, |row, product: i32| {
                    sums[row] += product as f32 * scale;
                });
            }
        }
    }

    /// Whether the matrix multiplies vectors of this length.
    pub(super) fn takes(&self, length: usize) -> bool {
        self.columns == length
    }
}

/// A constant vector of floats, or of 8-bit integers with a scale.
pub(super) fn vector(tensor: &Tensor, view: TensorView<'_>) -> Result<Vec<f32>, Refusal> {
    match view.dtype {
        DType::F32 => float_reader()(view),
        DType::I8 => {
            let scale = affine(tensor)?.scale;
            let integers = integer_reader(0)(view)?;
            Ok(integers.into_iter().map(|q| f32::from(q) * scale).collect())
        }
        other => refuse(format!("a vector of {other}")),
    }
}
