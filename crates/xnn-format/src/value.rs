//! The values of a graph: element types, quantization, shapes and constants.

use std::sync::Arc;

use bytes::Bytes;

/// Index of a [`Value`] in its [`Graph`](crate::Graph).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The id as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One tensor of a [`Graph`](crate::Graph).
#[derive(Clone, Debug)]
pub struct Value {
    /// Element type.
    pub datatype: Datatype,
    /// Quantization parameters.
    pub quantization: Quantization,
    /// Dimensions, row-major (NHWC for images, OHWI for filters). For values that nodes write they
    /// are a hint; the runtime infers them.
    pub dims: Vec<usize>,
    /// The elements of a constant: little endian, dense, see [`Datatype::byte_size`]. `None` for
    /// other values.
    pub data: Option<Bytes>,
}

impl Value {
    /// Whether neither value is constant, or both are with the same bytes. Does not read data at
    /// the same address.
    #[must_use]
    pub fn has_data_of(&self, other: &Self) -> bool {
        match (&self.data, &other.data) {
            (Some(mine), Some(theirs)) => {
                mine.as_ptr_range() == theirs.as_ptr_range() || mine == theirs
            }
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let Self { datatype, quantization, dims, data: _ } = self;
        (datatype, quantization, dims) == (&other.datatype, &other.quantization, &other.dims)
            && self.has_data_of(other)
    }
}

/// Element types, `XNNDatatype` in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Datatype {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// Signed 8-bit integers, one scale and zero point.
    QInt8,
    /// Unsigned 8-bit integers, one scale and zero point.
    QUint8,
    /// Signed 32-bit integers, one scale (biases).
    QInt32,
    /// Signed 8-bit integers, a scale per channel (weights).
    QcInt8,
    /// Signed 32-bit integers, a scale per channel (biases).
    QcInt32,
    /// 4-bit integers stored as `n + 8`, a scale per channel (weights).
    QcInt4,
    /// Signed 8-bit integers, scale and zero point per row, computed at run time.
    QdInt8,
    /// 4-bit integers stored as `n + 8`, a scale per block (weights).
    QbInt4,
    /// [`Datatype::QdInt8`] in a packed layout. Never stored in files.
    QpInt8,
    /// Signed 32-bit integers.
    Int32,
    /// fp32 in a packed layout. Never stored in files.
    PackedF32,
    /// bfloat16: the upper half of an IEEE 754 single.
    Bf16,
}

impl Datatype {
    /// Size of one element in bits.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::QcInt4 | Self::QbInt4 => 4,
            Self::QInt8 | Self::QUint8 | Self::QcInt8 | Self::QdInt8 | Self::QpInt8 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::F32 | Self::QInt32 | Self::QcInt32 | Self::Int32 | Self::PackedF32 => 32,
        }
    }

    /// The name that tools print: `fp32`, `qcint8`, ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "fp32",
            Self::F16 => "fp16",
            Self::QInt8 => "qint8",
            Self::QUint8 => "quint8",
            Self::QInt32 => "qint32",
            Self::QcInt8 => "qcint8",
            Self::QcInt32 => "qcint32",
            Self::QcInt4 => "qcint4",
            Self::QdInt8 => "qdint8",
            Self::QbInt4 => "qbint4",
            Self::QpInt8 => "qpint8",
            Self::Int32 => "int32",
            Self::PackedF32 => "pfp32",
            Self::Bf16 => "bf16",
        }
    }

    /// Size in bytes of a dense constant with these dimensions. 4-bit elements are packed two per
    /// byte, and each row of the last dimension starts at a new byte. `None` on overflow.
    #[must_use]
    pub fn byte_size(self, dims: &[usize]) -> Option<usize> {
        let (rows, row) = match dims.split_last() {
            Some((&last, outer)) => {
                (outer.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?, last)
            }
            None => (1, 1),
        };
        rows.checked_mul(row.checked_mul(self.bits())?.div_ceil(8))
    }
}

/// Quantization parameters of a value, `XNNQuantParams` in the schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Quantization {
    /// Not quantized: floats and plain integers.
    #[default]
    None,
    /// `real = (q - zero_point) * scale`.
    PerTensor {
        /// Step between neighbouring integers.
        scale: f32,
        /// The integer that represents 0.
        zero_point: i32,
    },
    /// A scale per slice of one dimension. The zero point is 0 (stored 8 for 4-bit elements).
    PerChannel {
        /// One scale per slice.
        scales: Arc<[f32]>,
        /// The quantized dimension.
        channel_dim: usize,
    },
    /// A scale per block of a row. The zero point is stored 8.
    Blockwise {
        /// Scales `[channels, blocks per row]`, row-major. XNNPACK rounds them to bf16.
        scales: Arc<[f32]>,
        /// The dimension of the channels, 0 for weights `[out, in]`.
        channel_dim: usize,
        /// Number of elements that share a scale: a multiple of 32 that divides the row.
        block_size: usize,
    },
    /// Scale and zero point per row, computed at run time (qd8).
    Dynamic {
        /// Number of trailing dimensions that share one scale: 1 for matrices, 3 for images.
        num_nonbatch_dims: usize,
    },
}

impl Quantization {
    /// The scales; empty if not quantized or quantized at run time.
    #[must_use]
    pub fn scales(&self) -> &[f32] {
        match self {
            Self::None | Self::Dynamic { .. } => &[],
            Self::PerTensor { scale, .. } => std::slice::from_ref(scale),
            Self::PerChannel { scales, .. } | Self::Blockwise { scales, .. } => scales,
        }
    }

    /// The name that tools print: `per channel`, ...
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PerTensor { .. } => "per tensor",
            Self::PerChannel { .. } => "per channel",
            Self::Blockwise { .. } => "blockwise",
            Self::Dynamic { .. } => "dynamic",
        }
    }
}

impl Value {
    /// A value that is not constant.
    #[must_use]
    pub fn new(datatype: Datatype, quantization: Quantization, dims: &[usize]) -> Self {
        Self { datatype, quantization, dims: dims.to_vec(), data: None }
    }

    /// Makes the value a constant with these elements.
    #[must_use]
    pub fn with_data(mut self, data: Bytes) -> Self {
        self.data = Some(data);
        self
    }

    /// Size in bytes of the dense elements; `None` on overflow.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.datatype.byte_size(&self.dims)
    }
}
