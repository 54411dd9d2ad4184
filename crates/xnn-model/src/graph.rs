//! The intermediate representation: a model as plain, checked data.
//!
//! Indices are valid by construction: a [`Model`] comes from the reader or is
//! built by hand and then passes [`Model::check`].

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use xnn_file::Pages;

use crate::metadata::AssociatedFiles;
use crate::op::{Op, is_same};
use crate::types::{DType, Quantization, element_count};

/// Index of a tensor in its [`Subgraph`].
pub type TensorId = usize;

/// Index of a [`Subgraph`] in its [`Model`].
pub type SubgraphId = usize;

/// Which of the two schemas a file follows.
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

/// A whole model: subgraphs, signatures, metadata. Constants are views of the
/// file's bytes, cloning is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The schema that the file follows.
    pub dialect: Dialect,
    /// Schema version that the file states (3 for TFLite, 0 for Circle).
    pub version: u32,
    /// Free text of the producer.
    pub description: String,
    /// At least one; the first is the entry point.
    pub subgraphs: Vec<Arc<Subgraph>>,
    /// Named entry points with named inputs and outputs.
    pub signatures: Vec<Signature>,
    /// Named blobs, `TFLITE_METADATA` among them.
    pub metadata: Vec<Metadata>,
    /// Files that the model carries along behind itself.
    pub files: AssociatedFiles,
    /// The memory of the file, if it is mapped.
    pub pages: Pages,
}

impl From<Subgraph> for Model {
    /// A model of this subgraph alone, in the dialect of TFLite.
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

/// One named blob of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What the blob is.
    pub name: String,
    /// Its bytes.
    pub data: Bytes,
}

/// A named entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Name of the entry point, `serving_default` as a rule.
    pub key: String,
    /// The subgraph that it runs.
    pub subgraph: SubgraphId,
    /// Names of inputs, in the file's order.
    pub inputs: Vec<(String, TensorId)>,
    /// Names of outputs, in the file's order.
    pub outputs: Vec<(String, TensorId)>,
}

/// Operators in execution order, and the tensors that they read and write.
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
    /// Operators in an order in which each tensor is produced before it is read.
    pub operators: Vec<Operator>,
}

/// One operator with its tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// What it computes, with its options.
    pub op: Op,
    /// Version of the operator's semantics, from the file's operator code.
    pub version: u32,
    /// Input tensors; `None` where an optional one is left out.
    pub inputs: Vec<Option<TensorId>>,
    /// Output tensors.
    pub outputs: Vec<TensorId>,
    /// Tensors that recurrent operators use for scratch parameters.
    pub intermediates: Vec<TensorId>,
}

/// A tensor: type, shape, and bytes if it is constant.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name in the file; not necessarily unique.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major. `None` where the file leaves the shape out: see
    /// shape inference. An empty list is a scalar.
    pub shape: Option<Vec<usize>>,
    /// Dimensions with -1 where they may vary between runs; none where even
    /// their number may; `None` where all are fixed.
    pub shape_signature: Option<Vec<i32>>,
    /// How integers stand for real numbers.
    pub quantization: Option<Quantization>,
    /// The bytes of a constant: little endian, dense unless `sparsity` is set.
    pub data: Option<Bytes>,
    /// Keeps its value from run to run (state of recurrent operators).
    pub is_variable: bool,
    /// How `data` is compressed, for DENSIFY.
    pub sparsity: Option<Arc<Sparsity>>,
    /// Why the bytes or elements cannot be used as they are (compressed
    /// buffers, external buffers, ...): a phrase for error messages.
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

/// Compressed storage of a constant, as the schema's `SparsityParameters`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Order in which dimensions (block dimensions behind the others) are stored.
    pub traversal_order: Vec<usize>,
    /// For each block dimension, the original dimension that it splits.
    pub block_map: Vec<usize>,
    /// Per traversed dimension.
    pub dimensions: Vec<SparseDimension>,
}

/// One dimension of [`Sparsity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SparseDimension {
    /// All indices present.
    Dense {
        /// Number of indices.
        size: usize,
    },
    /// Compressed sparse rows.
    Csr {
        /// Where each row starts in `indices`; one more than there are rows.
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

    /// Whether the file gives the elements.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.data.is_some()
    }

    /// Number of dimensions, if the shape is known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// Number of elements, if the shape is known and does not overflow.
    #[must_use]
    pub fn elements(&self) -> Option<usize> {
        element_count(self.shape.as_deref()?)
    }

    /// Bytes of a dense tensor, if shape and element size are known.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.dtype.byte_size(self.elements()?)
    }

    /// Scale and zero point where one pair serves the whole tensor.
    #[must_use]
    pub fn per_tensor(&self) -> Option<(f32, i64)> {
        self.quantization.as_ref()?.per_tensor()
    }

    /// The constant's elements as `i64`, for the small integer tensors that
    /// carry axes, shapes and paddings. `None` unless this is a constant `i8`,
    /// `u8`, `i16`, `i32`, `u32` or `i64` tensor.
    #[must_use]
    pub fn constant_ints(&self) -> Option<Vec<i64>> {
        decode_ints(self.dtype, self.data.as_deref()?)
    }

    /// The constant's elements as `f32`. `None` unless this is a constant
    /// `f32` or `f16` tensor.
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

/// Little-endian elements as `i64`; `None` for types that are not integers.
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
    /// If the index does not belong to this subgraph; indices inside a checked
    /// model do.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id]
    }
}

impl Operator {
    /// The input at `position`, if the operator has it.
    #[must_use]
    pub fn input(&self, position: usize) -> Option<TensorId> {
        self.inputs.get(position).copied().flatten()
    }
}

impl Model {
    /// The entry point.
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
    fn options_are_the_same_wherever_their_bytes_lie() {
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
    fn tensors_are_the_same_wherever_their_bytes_lie() {
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
