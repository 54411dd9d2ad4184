//! Element types, shapes and quantization of tensors.

use std::fmt;
use std::sync::Arc;

/// Index of a tensor in its [`Subgraph`](crate::Subgraph).
pub type TensorId = usize;

/// Index of a [`Subgraph`](crate::Subgraph) in its [`Model`](crate::Model).
pub type SubgraphId = usize;

/// Element type of a tensor.
///
/// The union of the element types of the TFLite and Circle schemas, whose codes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16: the upper half of an IEEE 754 single.
    BF16,
    /// IEEE 754 double precision.
    F64,
    /// 8-bit signed integer, usually quantized.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer, usually quantized.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 4-bit signed integer, two elements per byte, even index in the low bits.
    I4,
    /// 2-bit signed integer, four elements per byte.
    I2,
    /// 4-bit unsigned integer, two elements per byte.
    U4,
    /// One byte, 0 or 1.
    Bool,
    /// Strings in TFLite's packed layout.
    String,
    /// Pairs of singles.
    Complex64,
    /// Pairs of doubles.
    Complex128,
    /// Handle of a variable or table; holds no elements.
    Resource,
    /// TFLite's variant; holds no elements.
    Variant,
    /// An unsupported type (FP8, GGML, MX, ...): its code in the schema of the file.
    Other(i8),
}

impl DType {
    /// Size of one element in bits; `None` for types without a fixed size.
    #[must_use]
    pub const fn bits(self) -> Option<usize> {
        Some(match self {
            Self::I2 => 2,
            Self::I4 | Self::U4 => 4,
            Self::I8 | Self::U8 | Self::Bool => 8,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 16,
            Self::F32 | Self::I32 | Self::U32 => 32,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
            Self::String | Self::Resource | Self::Variant | Self::Other(_) => return None,
        })
    }

    /// Size of `elements` elements in bytes, rounded up to whole bytes; `None` for types without a
    /// fixed size and on overflow.
    #[must_use]
    pub fn byte_size(self, elements: usize) -> Option<usize> {
        Some(elements.checked_mul(self.bits()?)?.div_ceil(8))
    }

    /// Whether elements are floating-point numbers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::BF16 | Self::F64)
    }

    /// Whether elements are `i8` or `u8`.
    #[must_use]
    pub const fn is_8bit(self) -> bool {
        matches!(self, Self::I8 | Self::U8)
    }

    /// The name that tools print: `f32`, `i8`, ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I4 => "i4",
            Self::I2 => "i2",
            Self::U4 => "u4",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Complex64 => "c64",
            Self::Complex128 => "c128",
            Self::Resource => "resource",
            Self::Variant => "variant",
            Self::Other(_) => "other",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(code) => write!(f, "other({code})"),
            known => f.write_str(known.name()),
        }
    }
}

/// Zero points of the slices of a tensor. Takes no memory if all are 0, as is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZeroPoints(Option<Arc<[i64]>>);

impl ZeroPoints {
    /// The zero point of a slice; 0 if the slice is out of range.
    #[must_use]
    pub fn at(&self, slice: usize) -> i64 {
        self.0.as_ref().and_then(|each| each.get(slice)).copied().unwrap_or(0)
    }

    /// The first zero point that is not 0.
    #[must_use]
    pub fn nonzero(&self) -> Option<i64> {
        self.0.iter().flat_map(|each| each.iter()).copied().find(|&zero_point| zero_point != 0)
    }

    /// Whether the zero points match this number of slices.
    #[must_use]
    pub fn fit(&self, slices: usize) -> bool {
        self.0.as_ref().is_none_or(|each| each.len() == slices)
    }
}

impl From<Vec<i64>> for ZeroPoints {
    /// Zero points in the order of the slices.
    fn from(each: Vec<i64>) -> Self {
        Self(each.iter().any(|&zero_point| zero_point != 0).then(|| each.into()))
    }
}

/// Quantization parameters of a tensor: `real = (q - zero_point) * scale`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Quantization {
    /// One scale and zero point for the whole tensor.
    PerTensor {
        /// Step between two neighbouring integers, in real units.
        scale: f32,
        /// The integer that represents 0.
        zero_point: i64,
    },
    /// A scale and zero point per slice along one dimension.
    PerAxis {
        /// One scale per slice.
        scales: Arc<[f32]>,
        /// One zero point per slice.
        zero_points: ZeroPoints,
        /// The quantized dimension, below the tensor's rank.
        axis: usize,
    },
    /// A scale per block of consecutive elements of the last dimension. Scales and zero points are
    /// tensors of the subgraph.
    Blockwise {
        /// Index of the tensor of scales.
        scales: usize,
        /// Index of the tensor of zero points; `None` if all are 0.
        zero_points: Option<usize>,
        /// Number of elements that share a scale.
        block_size: usize,
    },
    /// Unsupported quantization (custom, MX, ...): the tag of the schema's union.
    Other(u8),
}

impl Quantization {
    /// Scale and zero point of [`Quantization::PerTensor`].
    #[must_use]
    pub fn per_tensor(&self) -> Option<(f32, i64)> {
        match self {
            Self::PerTensor { scale, zero_point } => Some((*scale, *zero_point)),
            _ => None,
        }
    }
}

/// Number of elements of a shape; `None` on overflow.
#[must_use]
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
}
