//! Tensors of a subgraph: element types, shapes, quantization and roles.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use xnnpack_sys as sys;

use crate::fp16_weights::Fp16Weights;
use crate::static_data::StaticData;
use crate::status::{Error, Result};

/// Maximal number of dimensions of a tensor.
pub const MAX_DIMS: usize = sys::XNN_MAX_TENSOR_DIMS as usize;

/// Maximal size of a tensor in bytes. Sums and small multiples of sizes within this limit cannot
/// overflow inside XNNPACK, which does not check them.
pub const MAX_TENSOR_BYTES: usize =
    if usize::BITS >= 64 { usize::MAX >> 24 } else { usize::MAX / 8 };

macro_rules! datatypes {
    ($($(#[$doc:meta])* $name:ident = $raw:ident, $text:literal, $bits:literal;)*) => {
        /// Element type of a tensor (`enum xnn_datatype`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Datatype {
            $($(#[$doc])* $name,)*
        }

        impl Datatype {
            /// Size of an element in bits.
            #[must_use]
            pub const fn bits(self) -> usize {
                match self { $(Self::$name => $bits,)* }
            }

            pub(crate) const fn raw(self) -> sys::xnn_datatype {
                match self { $(Self::$name => sys::$raw,)* }
            }

            const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

datatypes! {
    /// IEEE 754 single precision.
    F32 = xnn_datatype_fp32, "fp32", 32;
    /// IEEE 754 half precision.
    F16 = xnn_datatype_fp16, "fp16", 16;
    /// The upper half of an IEEE 754 single.
    Bf16 = xnn_datatype_bf16, "bf16", 16;
    /// Signed 32-bit integer, not quantized.
    I32 = xnn_datatype_int32, "int32", 32;
    /// Signed 8-bit integer, one scale and zero point.
    Qint8 = xnn_datatype_qint8, "qint8", 8;
    /// Unsigned 8-bit integer, one scale and zero point.
    Quint8 = xnn_datatype_quint8, "quint8", 8;
    /// Signed 32-bit integer (biases), one scale.
    Qint32 = xnn_datatype_qint32, "qint32", 32;
    /// Signed 8-bit integer, one scale per channel.
    Qcint8 = xnn_datatype_qcint8, "qcint8", 8;
    /// Signed 32-bit integer (biases), one scale per channel.
    Qcint32 = xnn_datatype_qcint32, "qcint32", 32;
    /// 4-bit integer, two per byte with the first in the low nibble, one scale per channel.
    Qcint4 = xnn_datatype_qcint4, "qcint4", 4;
    /// 4-bit integer, two per byte with the first in the low nibble, one bfloat16 scale per block
    /// of a channel.
    Qbint4 = xnn_datatype_qbint4, "qbint4", 4;
    /// Signed 8-bit integer, quantized at run time, one scale and zero point per row.
    Qdint8 = xnn_datatype_qdint8, "qdint8", 8;
}

impl Datatype {
    /// Required alignment of a buffer of such elements, in bytes.
    #[must_use]
    pub const fn alignment(self) -> usize {
        if self.bits() < 8 { 1 } else { self.bits() / 8 }
    }

    /// Whether the elements are floating-point numbers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Dimensions of a tensor, outermost first: at most [`MAX_DIMS`], none of them zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: usize,
    dims: [usize; MAX_DIMS],
}

impl Shape {
    /// Creates a shape with the given dimensions.
    ///
    /// # Errors
    /// More than [`MAX_DIMS`] dimensions, a dimension of 0, or more than [`MAX_TENSOR_BYTES`]
    /// elements.
    pub fn new(dims: &[usize]) -> Result<Self> {
        let mut shape = Self { rank: dims.len(), dims: [0; MAX_DIMS] };
        let Some(slot) = shape.dims.get_mut(..dims.len()) else {
            return Err(Error::unsupported(format!(
                "a tensor of {} dimensions exceeds the limit of {MAX_DIMS}",
                dims.len()
            )));
        };
        slot.copy_from_slice(dims);
        if dims.contains(&0) {
            return Err(Error::invalid(format!("shape {dims:?} has a dimension of 0")));
        }
        dims.iter()
            .try_fold(1usize, |product, &dim| product.checked_mul(dim))
            .filter(|&elements| elements <= MAX_TENSOR_BYTES)
            .ok_or_else(|| Error::invalid(format!("shape {dims:?} has too many elements")))?;
        Ok(shape)
    }

    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.iter().product()
    }

    /// Size in bytes of the tensor with elements of `datatype`; 4-bit elements are packed in pairs.
    ///
    /// # Errors
    /// The size exceeds [`MAX_TENSOR_BYTES`].
    pub fn bytes(&self, datatype: Datatype) -> Result<usize> {
        self.elements()
            .checked_mul(datatype.bits())
            .map(|bits| bits.div_ceil(8))
            .filter(|&bytes| bytes <= MAX_TENSOR_BYTES)
            .ok_or_else(|| {
                Error::invalid(format!("{datatype} tensor of shape {self:?} is too large"))
            })
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.dims[..self.rank]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

/// Quantization parameters of a tensor: `real = (stored - zero_point) * scale`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Quantization {
    /// Not quantized.
    #[default]
    None,
    /// One scale and zero point for the tensor.
    PerTensor {
        /// Stored value of 0.
        zero_point: i32,
        /// Positive, finite and not subnormal.
        scale: f32,
    },
    /// One scale per index of one dimension.
    PerChannel {
        /// 0; for [`Datatype::Qcint4`], 0 or 8.
        zero_point: i32,
        /// Quantized dimension.
        axis: usize,
        /// One scale per index of the dimension; each positive, finite and not subnormal.
        scales: Arc<[f32]>,
    },
    /// One scale per block of a channel (only for [`Datatype::Qbint4`] matrices
    /// `[output channels, input channels]`).
    Blockwise {
        /// 0 or 8.
        zero_point: i32,
        /// Dimension of output channels.
        axis: usize,
        /// Number of elements of a channel that share a scale; divides the number of input
        /// channels.
        block_size: usize,
        /// bfloat16 bits, `[output channels, input channels / block_size]`.
        scales: Arc<[u16]>,
    },
    /// Parameters computed at run time (only [`Datatype::Qdint8`]).
    Dynamic {
        /// Number of innermost dimensions that form a row with common parameters.
        nonbatch_dims: usize,
    },
}

/// Identifier of an input or output outside of a subgraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId(pub u32);

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Source of a tensor's elements, and their lifetime.
#[derive(Clone, Debug, Default)]
pub enum Role {
    /// Computed and used inside the subgraph.
    #[default]
    Internal,
    /// Constant.
    Static(StaticData),
    /// Constant of datatype fp32 that is stored in fp16 until it is packed. Supported for filters
    /// of [`Conv2d`](crate::Conv2d) with one group and several input channels, and of
    /// [`FullyConnected`](crate::FullyConnected).
    Fp16Weights(Fp16Weights),
    /// Provided by the caller for every run.
    Input(ExternalId),
    /// Computed for the caller in every run; nodes may also read it.
    Output(ExternalId),
    /// Kept by the runtime from one run to the next. Initially zero, except in a workspace that
    /// other runtimes have used.
    Persistent,
}

impl Role {
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Role::Static(_) | Role::Fp16Weights(_))
    }

    /// External id of an input or output.
    #[must_use]
    pub fn external_id(&self) -> Option<ExternalId> {
        match self {
            Role::Input(id) | Role::Output(id) => Some(*id),
            Role::Internal | Role::Static(_) | Role::Fp16Weights(_) | Role::Persistent => None,
        }
    }
}

/// A tensor to be defined with [`Subgraph::define_tensor`](crate::Subgraph::define_tensor).
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions. Optional for a tensor that a node computes; if given, the number of elements
    /// must match the computed shape.
    pub dims: Option<Vec<usize>>,
    /// Quantization parameters, in the form that the datatype requires.
    pub quantization: Quantization,
    /// Source of the elements.
    pub role: Role,
}

impl TensorSpec {
    /// Creates an internal tensor that is not quantized.
    #[must_use]
    pub fn new(datatype: Datatype, dims: &[usize]) -> Self {
        Self {
            datatype,
            dims: Some(dims.to_vec()),
            quantization: Quantization::None,
            role: Role::Internal,
        }
    }

    /// Creates an internal tensor whose shape is inferred from the node that computes it.
    #[must_use]
    pub fn inferred(datatype: Datatype) -> Self {
        Self { datatype, dims: None, quantization: Quantization::None, role: Role::Internal }
    }

    /// Sets the quantization parameters.
    #[must_use]
    pub fn quantized(mut self, quantization: Quantization) -> Self {
        self.quantization = quantization;
        self
    }

    /// Sets the role.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }
}

/// Identifier of a tensor in one subgraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId {
    pub(crate) subgraph: u64,
    pub(crate) index: u32,
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {}", self.index)
    }
}
