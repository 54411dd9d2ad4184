//! Tensors of a subgraph: element types, shapes, quantization and the part that they play.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use xnnpack_sys as sys;

use crate::buffer::StaticData;
use crate::fp16_weights::Halves;
use crate::status::{Error, Result};

/// Most dimensions that a tensor may have.
pub const MAX_DIMS: usize = sys::XNN_MAX_TENSOR_DIMS as usize;

/// Most bytes that one tensor may have. Sums and small multiples of sizes below it cannot overflow
/// inside XNNPACK, which does not check them.
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
    /// Signed 8-bit, one scale and zero point.
    Qint8 = xnn_datatype_qint8, "qint8", 8;
    /// Unsigned 8-bit, one scale and zero point.
    Quint8 = xnn_datatype_quint8, "quint8", 8;
    /// Signed 32-bit (biases), one scale.
    Qint32 = xnn_datatype_qint32, "qint32", 32;
    /// Signed 8-bit, a scale per channel.
    Qcint8 = xnn_datatype_qcint8, "qcint8", 8;
    /// Signed 32-bit (biases), a scale per channel.
    Qcint32 = xnn_datatype_qcint32, "qcint32", 32;
    /// 4-bit, two to a byte with the first in the low half, a scale per channel.
    Qcint4 = xnn_datatype_qcint4, "qcint4", 4;
    /// 4-bit, two to a byte with the first in the low half, a bfloat16 scale per block of a channel.
    Qbint4 = xnn_datatype_qbint4, "qbint4", 4;
    /// Signed 8-bit, quantized while running, parameters per row.
    Qdint8 = xnn_datatype_qdint8, "qdint8", 8;
}

impl Datatype {
    /// Alignment that a buffer of such elements needs, in bytes.
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
    /// A shape of the given dimensions.
    ///
    /// # Errors
    /// More than [`MAX_DIMS`] dimensions, one that is zero, or more than [`MAX_TENSOR_BYTES`]
    /// elements in all.
    pub fn new(dims: &[usize]) -> Result<Self> {
        let mut shape = Self { rank: dims.len(), dims: [0; MAX_DIMS] };
        let Some(slot) = shape.dims.get_mut(..dims.len()) else {
            return Err(Error::unsupported(format!(
                "a tensor of {} dimensions; at most {MAX_DIMS} are possible",
                dims.len()
            )));
        };
        slot.copy_from_slice(dims);
        if dims.contains(&0) {
            return Err(Error::invalid(format!("shape {dims:?} has an empty dimension")));
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

    /// Bytes that elements of `datatype` take, packed.
    ///
    /// # Errors
    /// More than [`MAX_TENSOR_BYTES`].
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

/// How the integers of a tensor stand for real numbers: `real = (stored - zero_point) * scale`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Quantization {
    /// Not quantized.
    #[default]
    None,
    /// One pair of parameters for the tensor.
    PerTensor {
        /// The stored value that stands for 0.
        zero_point: i32,
        /// Positive, finite and normalized.
        scale: f32,
    },
    /// A scale for each index of one dimension.
    PerChannel {
        /// 0, but 0 or 8 for [`Datatype::Qcint4`].
        zero_point: i32,
        /// The dimension that the scales run along.
        axis: usize,
        /// As many as the dimension is long; each positive, finite and normalized.
        scales: Arc<[f32]>,
    },
    /// A scale for each block of a channel (only [`Datatype::Qbint4`], a matrix
    /// `[output channels, input channels]`).
    Blockwise {
        /// 0 or 8.
        zero_point: i32,
        /// The dimension of output channels.
        axis: usize,
        /// Elements of a channel that share a scale; divides the number of input channels.
        block_size: usize,
        /// bfloat16 bits, `[output channels, input channels / block_size]`.
        scales: Arc<[u16]>,
    },
    /// Parameters computed while running (only [`Datatype::Qdint8`]).
    Dynamic {
        /// How many innermost dimensions make up a row that shares its parameters.
        nonbatch_dims: usize,
    },
}

/// The name under which the world outside a subgraph knows an input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId(pub u32);

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where the elements of a tensor come from and who sees them.
#[derive(Clone, Debug, Default)]
pub enum Role {
    /// Computed and used inside the subgraph.
    #[default]
    Internal,
    /// Constant.
    Static(StaticData),
    /// Constant fp32, kept in fp16 until it is packed: filters of [`Conv2d`](crate::Conv2d)s in one group with several input
    /// channels, and of [`FullyConnected`](crate::FullyConnected)s.
    Halves(Halves),
    /// Given by the caller at every run.
    Input(ExternalId),
    /// Computed for the caller at every run; other nodes may read it too.
    Output(ExternalId),
    /// Kept in the runtime from one run to the next; zero at first, but in a workspace that other runtimes used before.
    Persistent,
}

impl Role {
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Role::Static(_) | Role::Halves(_))
    }

    /// The external name, of an input or output.
    #[must_use]
    pub fn external_id(&self) -> Option<ExternalId> {
        match self {
            Role::Input(id) | Role::Output(id) => Some(*id),
            Role::Internal | Role::Static(_) | Role::Halves(_) | Role::Persistent => None,
        }
    }
}

/// A tensor to be defined with [`Subgraph::define_tensor`](crate::Subgraph::define_tensor).
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions. Of a tensor that a node computes they may be left out; if given, the number of
    /// elements must be the one that the node computes.
    pub dims: Option<Vec<usize>>,
    /// Quantization parameters, in the form that the datatype asks for.
    pub quantization: Quantization,
    /// Where the elements come from.
    pub role: Role,
}

impl TensorSpec {
    /// An internal tensor that is not quantized.
    #[must_use]
    pub fn new(datatype: Datatype, dims: &[usize]) -> Self {
        Self {
            datatype,
            dims: Some(dims.to_vec()),
            quantization: Quantization::None,
            role: Role::Internal,
        }
    }

    /// An internal tensor whose shape follows from the node that computes it.
    #[must_use]
    pub fn inferred(datatype: Datatype) -> Self {
        Self { datatype, dims: None, quantization: Quantization::None, role: Role::Internal }
    }

    /// With these quantization parameters.
    #[must_use]
    pub fn quantized(mut self, quantization: Quantization) -> Self {
        self.quantization = quantization;
        self
    }

    /// With this role.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }
}

/// A tensor of one particular subgraph.
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
