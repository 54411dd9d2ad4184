//! Descriptions of inputs and outputs.

use xnn_format::{Datatype, Quantization};
use xnn_model::{DType, Subgraph, TensorId};
use xnn_runtime::TensorInfo;

use crate::numbers::numbers;

/// Description of an input or output.
///
/// ```
/// use xnn_delegate::{DType, Runner};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_int8.tflite");
/// let runner = Runner::open(path)?;
/// let input = &runner.inputs()[0];
/// assert_eq!((input.dtype, input.dims.as_slice()), (DType::I8, [1, 48, 48, 3].as_slice()));
/// assert_eq!(input.byte_size(), Some(48 * 48 * 3));
/// // Quantized elements as real numbers.
/// let (scale, zero_point) = input.quantization.unwrap();
/// assert_eq!(zero_point, -1);
/// assert_eq!(input.reals(&[2]).unwrap(), [3.0 * scale]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// Name in the model, or in the signature that is run; empty if unknown.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Current dimensions, row-major. `[0]` before the first run if the shape of an output is known in a run only.
    pub dims: Vec<usize>,
    /// Scale and zero point of per-tensor quantization: `real = (q - zero_point) * scale`.
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

    /// Size of the elements in bytes; `None` for types without a fixed size.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.dtype.byte_size(xnn_model::element_count(&self.dims)?)
    }

    /// Converts elements of this tensor to real numbers, dequantized if they are quantized; `None` if the type is not
    /// numeric. Integers above 2^24 are rounded.
    #[must_use]
    pub fn reals(&self, elements: &[u8]) -> Option<Vec<f32>> {
        Some(self.each_real(elements)?.collect())
    }

    /// Converts as [`TensorSpec::reals`], one by one, without allocating.
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
            // 4-bit types are weights, never inputs or outputs.
            _ => DType::U4,
        };
        Self { name: info.name.clone(), dtype, dims: info.dims.clone(), quantization }
    }
}
