//! Inputs and outputs, as callers see them.

use xnn_format::{Datatype, Quantization};
use xnn_model::{DType, Subgraph, TensorId};
use xnn_runtime::TensorInfo;

use crate::numbers::numbers;

/// An input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// The model's name for it; empty where unknown.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Present dimensions, row-major. `[0]` for an output whose shape only a
    /// run can tell, before the first.
    pub dims: Vec<usize>,
    /// Scale and zero point of integers that stand for real numbers:
    /// `real = (q - zero_point) * scale`.
    pub quantization: Option<(f32, i64)>,
}

impl TensorSpec {
    pub(crate) fn of(graph: &Subgraph, id: TensorId) -> Self {
        let tensor = graph.tensor(id);
        Self {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            dims: tensor.shape.clone().unwrap_or_else(|| vec![0]),
            quantization: tensor.per_tensor(),
        }
    }

    /// Bytes that the elements take; `None` for types without a fixed size.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.dtype.byte_size(xnn_model::element_count(&self.dims)?)
    }

    /// The real numbers that elements of this tensor stand for; `None` if they
    /// are no numbers. Integers above 2^24 are rounded.
    #[must_use]
    pub fn reals(&self, elements: &[u8]) -> Option<Vec<f32>> {
        Some(self.each_real(elements)?.collect())
    }

    /// [`TensorSpec::reals`] one by one, which takes no memory.
    #[must_use]
    pub fn each_real<'a>(&self, elements: &'a [u8]) -> Option<impl Iterator<Item = f32> + use<'a>> {
        let quantization = self.quantization.filter(|_| !self.dtype.is_float());
        let numbers = numbers(self.dtype, elements)?.map(|number| number as f32);
        Some(numbers.map(move |number| match quantization {
            Some((scale, zero_point)) => (number - zero_point as f32) * scale,
            None => number,
        }))
    }
}

impl From<&Self> for TensorSpec {
    fn from(spec: &Self) -> Self {
        spec.clone()
    }
}

impl From<&TensorInfo> for TensorSpec {
    fn from(info: &TensorInfo) -> Self {
        let quantization = match info.quantization {
            Quantization::PerTensor { scale, zero_point } => Some((scale, zero_point.into())),
            _ => None,
        };
        let dtype = match info.datatype {
            Datatype::F32 | Datatype::PackedF32 => DType::F32,
            Datatype::F16 => DType::F16,
            Datatype::Bf16 => DType::BF16,
            Datatype::QInt8 | Datatype::QcInt8 | Datatype::QdInt8 | Datatype::QpInt8 => DType::I8,
            Datatype::QUint8 => DType::U8,
            Datatype::QInt32 | Datatype::QcInt32 | Datatype::Int32 => DType::I32,
            // Nibbles: weights, never inputs or outputs.
            _ => DType::U4,
        };
        Self { name: info.name.clone(), dtype, dims: info.dims.clone(), quantization }
    }
}
