//! The intermediate representation of a model.
//!
//! Readers check models with [`Model::check`], after which all indices are valid. Programs that
//! build a model should call it, too.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use xnn_file::Pages;

use crate::metadata::AssociatedFiles;
use crate::op::{Op, is_same};
use crate::types::{DType, Quantization, SubgraphId, TensorId, element_count};

/// The schema of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// TFLite, file identifier `TFL3`.
    Tflite,
    /// Circle, file identifier `CIR0`.
    Circle,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tflite => "TFLite",
            Self::Circle => "Circle",
        })
    }
}

/// A model: subgraphs, signatures, metadata. Constants are views of the file's bytes, so cloning is
/// cheap.
///
/// ```
/// use xnn_model::Model;
///
/// # fn main() -> Result<(), xnn_model::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/digits_mobilenet_v2_fp32.tflite");
/// let model = Model::open(path)?;
/// let main = model.main().unwrap();
/// for operator in &main.operators {
///     let shape = operator.outputs.first().and_then(|&id| main.tensor(id).shape.as_ref());
///     println!("{}: {shape:?}", operator.op.name());
/// }
/// assert_eq!(main.tensor(main.inputs[0]).shape, Some(vec![1, 48, 48, 3]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The schema of the file.
    pub dialect: Dialect,
    /// Schema version that the file states (3 for TFLite, 0 for Circle).
    pub version: u32,
    /// Free text written by the producer.
    pub description: String,
    /// Subgraphs, at least one. The first is the entry point.
    pub subgraphs: Vec<Arc<Subgraph>>,
    /// Named entry points with named inputs and outputs.
    pub signatures: Vec<Signature>,
    /// Named binary metadata, such as `TFLITE_METADATA`.
    pub metadata: Vec<Metadata>,
    /// Associated files: the ZIP archive after the flatbuffer.
    pub files: AssociatedFiles,
    /// The memory of the file, if it is mapped.
    pub pages: Pages,
}

impl From<Subgraph> for Model {
    /// A TFLite model with this subgraph alone.
    fn from(subgraph: Subgraph) -> Self {
        Self {
            dialect: Dialect::Tflite,
            version: 3,
            description: String::new(),
            subgraphs: vec![subgraph.into()],
            signatures: Vec::new(),
            metadata: Vec::new(),
            files: AssociatedFiles::default(),
            pages: Pages::default(),
        }
    }
}

/// Named binary metadata of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the metadata.
    pub name: String,
    /// The content.
    pub data: Bytes,
}

/// A named entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Name of the entry point, usually `serving_default`.
    pub key: String,
    /// Index of the subgraph that the signature runs.
    pub subgraph: SubgraphId,
    /// Names and tensors of the inputs, in the order of the file.
    pub inputs: Vec<(String, TensorId)>,
    /// Names and tensors of the outputs, in the order of the file.
    pub outputs: Vec<(String, TensorId)>,
}

/// A subgraph: operators in execution order and their tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subgraph {
    /// Name, often empty or `main`.
    pub name: String,
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// Tensors that the caller provides.
    pub inputs: Vec<TensorId>,
    /// Tensors that the caller receives.
    pub outputs: Vec<TensorId>,
    /// Operators in execution order: each after the producers of its inputs.
    pub operators: Vec<Operator>,
}

/// An operator and its tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The operation and its options.
    pub op: Op,
    /// Version of the operation's semantics, from the operator code.
    pub version: u32,
    /// Input tensors; `None` for omitted optional inputs.
    pub inputs: Vec<Option<TensorId>>,
    /// Output tensors.
    pub outputs: Vec<TensorId>,
    /// Tensors that recurrent operators use for scratch parameters.
    pub intermediates: Vec<TensorId>,
}

/// A tensor: element type, shape, and data if it is constant.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name in the file; not necessarily unique.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major; empty for a scalar. `None` if the file does not state the shape, see
    /// [shape inference](mod@crate::infer).
    pub shape: Option<Vec<usize>>,
    /// Dimensions, with -1 for those that may vary between runs; empty if the rank may vary; `None`
    /// if all dimensions are fixed.
    pub shape_signature: Option<Vec<i32>>,
    /// Quantization parameters.
    pub quantization: Option<Quantization>,
    /// Data of a constant: little endian, dense unless `sparsity` is set.
    pub data: Option<Bytes>,
    /// Whether the tensor keeps its value between runs (state of recurrent operators).
    pub is_variable: bool,
    /// Layout of sparse `data`.
    pub sparsity: Option<Arc<Sparsity>>,
    /// Reason why the data cannot be used (compressed buffers, external buffers, ...), for error
    /// messages.
    pub unusable: Option<String>,
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, dtype, shape, shape_signature, quantization, data, .. } = self;
        let Self { is_variable, sparsity, unusable, .. } = self;
        let is_same_data = match (data, &other.data) {
            (Some(mine), Some(theirs)) => is_same(mine, theirs),
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        is_same_data
            && (name, dtype, shape) == (&other.name, &other.dtype, &other.shape)
            && (shape_signature, quantization) == (&other.shape_signature, &other.quantization)
            && (is_variable, sparsity, unusable)
                == (&other.is_variable, &other.sparsity, &other.unusable)
    }
}

/// Layout of a sparse constant, the schema's `SparsityParameters`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Order in which dimensions are stored. Block dimensions follow the tensor's dimensions.
    pub traversal_order: Vec<usize>,
    /// The dimension that each block dimension splits.
    pub block_map: Vec<usize>,
    /// Storage of each dimension, in traversal order.
    pub dimensions: Vec<SparseDimension>,
}

/// One dimension of [`Sparsity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SparseDimension {
    /// All indices are stored.
    Dense {
        /// Number of indices.
        size: usize,
    },
    /// Compressed sparse rows.
    Csr {
        /// Start of each row in `indices`, and the end of the last row.
        segments: Vec<usize>,
        /// Index of each stored element.
        indices: Vec<usize>,
    },
}

impl Tensor {
    /// A tensor without data, quantization or flags.
    #[must_use]
    pub fn new(name: impl Into<String>, dtype: DType, shape: &[usize]) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: Some(shape.to_vec()),
            shape_signature: None,
            quantization: None,
            data: None,
            is_variable: false,
            sparsity: None,
            unusable: None,
        }
    }

    /// Whether the tensor has data.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.data.is_some()
    }

    /// Number of dimensions; `None` for an unknown shape.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// Number of elements; `None` for an unknown shape and on overflow.
    #[must_use]
    pub fn elements(&self) -> Option<usize> {
        element_count(self.shape.as_deref()?)
    }

    /// Size of the dense tensor in bytes; `None` if the shape or element size is unknown.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.dtype.byte_size(self.elements()?)
    }

    /// Scale and zero point of per-tensor quantization.
    #[must_use]
    pub fn per_tensor(&self) -> Option<(f32, i64)> {
        self.quantization.as_ref()?.per_tensor()
    }

    /// The constant's elements as `i64`, for the small integer tensors of axes, shapes and
    /// paddings. `None` unless this is a constant `i8`, `u8`, `bool`, `i16`, `i32`, `u32` or `i64`
    /// tensor.
    #[must_use]
    pub fn constant_ints(&self) -> Option<Vec<i64>> {
        decode_ints(self.dtype, self.data.as_deref()?)
    }

    /// The constant's elements as `f32`. `None` unless this is a constant `f32` or `f16` tensor.
    #[must_use]
    pub fn constant_floats(&self) -> Option<Vec<f32>> {
        let data = self.data.as_deref()?;
        Some(match self.dtype {
            DType::F32 => le_chunks::<4, _>(data, f32::from_le_bytes),
            DType::F16 => le_chunks::<2, _>(data, |c| half::f16::from_le_bytes(c).to_f32()),
            _ => return None,
        })
    }
}

/// Decodes little-endian elements to `i64`; `None` for types other than integers.
pub(crate) fn decode_ints(dtype: DType, data: &[u8]) -> Option<Vec<i64>> {
    Some(match dtype {
        DType::I8 => data.iter().map(|&b| i64::from(b.cast_signed())).collect(),
        DType::U8 | DType::Bool => data.iter().map(|&b| i64::from(b)).collect(),
        DType::I16 => le_chunks::<2, _>(data, |c| i64::from(i16::from_le_bytes(c))),
        DType::I32 => le_chunks::<4, _>(data, |c| i64::from(i32::from_le_bytes(c))),
        DType::U32 => le_chunks::<4, _>(data, |c| i64::from(u32::from_le_bytes(c))),
        DType::I64 => le_chunks::<8, _>(data, i64::from_le_bytes),
        _ => return None,
    })
}

fn le_chunks<const N: usize, T>(data: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    data.as_chunks::<N>().0.iter().map(|c| decode(*c)).collect()
}

impl Subgraph {
    /// The tensor with this index.
    ///
    /// # Panics
    ///
    /// If the index is out of range, which cannot happen for indices of a checked model.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id]
    }
}

impl Operator {
    /// The input at `position`; `None` if it is omitted.
    #[must_use]
    pub fn input(&self, position: usize) -> Option<TensorId> {
        self.inputs.get(position).copied().flatten()
    }
}

impl Model {
    /// The subgraph of the entry point.
    #[must_use]
    pub fn main(&self) -> Option<&Arc<Subgraph>> {
        self.subgraphs.first()
    }

    /// The signature with this key.
    #[must_use]
    pub fn signature(&self, key: &str) -> Option<&Signature> {
        self.signatures.iter().find(|s| s.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::CustomOptions;

    #[test]
    fn options_are_compared_by_content() {
        let custom = |code: &str, options: &[u8]| {
            let options = Bytes::copy_from_slice(options);
            Op::Custom(CustomOptions { code: code.to_owned(), options })
        };
        let op = custom("Mine", &[1, 2]);
        assert_eq!(op, op.clone());
        assert_eq!(op, custom("Mine", &[1, 2]));
        for other in [custom("Mine", &[1, 3]), custom("Mine", &[1]), custom("Other", &[1, 2])] {
            assert_ne!(op, other);
        }
    }

    #[test]
    fn tensors_are_compared_by_content() {
        let constant = |bytes: &[u8]| {
            let data = Some(Bytes::copy_from_slice(bytes));
            Tensor { data, ..Tensor::new("weights", DType::U8, &[2]) }
        };
        let tensor = constant(&[1, 2]);
        assert_eq!(tensor, tensor.clone());
        assert_eq!(tensor, constant(&[1, 2]));
        let other = |change: fn(&mut Tensor)| {
            let mut other = tensor.clone();
            change(&mut other);
            other
        };
        let others = [
            constant(&[1, 3]),
            other(|tensor| tensor.data = None),
            other(|tensor| tensor.name.clear()),
            other(|tensor| tensor.dtype = DType::I8),
            other(|tensor| tensor.shape = None),
            other(|tensor| tensor.shape_signature = Some(vec![-1])),
            other(|tensor| {
                tensor.quantization = Some(Quantization::PerTensor { scale: 1.0, zero_point: 0 })
            }),
            other(|tensor| tensor.is_variable = true),
            other(|tensor| tensor.unusable = Some("lost".into())),
        ];
        for other in others {
            assert_ne!(tensor, other);
        }
    }
}
