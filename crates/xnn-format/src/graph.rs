//! The typed mirror of an XN01 graph: values, nodes, and where they came from.

use std::sync::Arc;

use bytes::Bytes;

use crate::node::Node;

/// Index of a [`Value`] in its [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The id as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Nodes in execution order over the values that they read and write.
///
/// This is the only thing that lowering and the runtime share. It says nothing
/// of TFLite, and nothing of XNNPACK's C interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// All values; a [`ValueId`] is an index into them.
    pub values: Vec<Value>,
    /// Operators, each behind the producers of its inputs.
    pub nodes: Vec<Node>,
    /// Values that the caller provides, in the order of external ids.
    pub inputs: Vec<ValueId>,
    /// Values that the caller receives, in the order of external ids, which go
    /// on behind the inputs'.
    pub outputs: Vec<ValueId>,
    /// Names and provenance; no influence on results.
    pub origin: Origin,
}

/// One tensor of a [`Graph`].
#[derive(Clone, Debug)]
pub struct Value {
    /// Element type.
    pub datatype: Datatype,
    /// How integers stand for real numbers.
    pub quantization: Quantization,
    /// Dimensions, row-major (NHWC for images, OHWI for filters). Of values
    /// that nodes produce they are a hint; the runtime recomputes them.
    pub dims: Vec<usize>,
    /// The elements of a constant: little endian, dense.
    pub data: Option<Bytes>,
}

impl Value {
    /// Whether both are computed, or constants with the same bytes. What lies at the same place is not read.
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
    /// Unsigned nibbles standing for `n - 8`, a scale per channel (weights).
    QcInt4,
    /// Signed 8-bit integers, scale and zero point per row, found at run time.
    QdInt8,
    /// Unsigned nibbles standing for `n - 8`, a scale per block (weights).
    QbInt4,
    /// [`Datatype::QdInt8`] in a packed layout. Never stored.
    QpInt8,
    /// Signed 32-bit integers.
    Int32,
    /// Packed singles. Never stored.
    PackedF32,
    /// The upper half of a single.
    Bf16,
}

impl Datatype {
    /// Bits that one element takes.
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

    /// Bytes of a dense constant with these dimensions: nibbles are packed two
    /// a byte and each row of the last dimension starts at a new byte. `None`
    /// on overflow.
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

/// How the integers of a value stand for real numbers, `XNNQuantParams` in the
/// schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Quantization {
    /// Not at all: floats and plain integers.
    #[default]
    None,
    /// `real = (q - zero_point) * scale`.
    PerTensor {
        /// Step between neighbouring integers.
        scale: f32,
        /// The integer that stands for 0.
        zero_point: i32,
    },
    /// A scale per slice of one dimension; the zero point is 0 (8 for nibbles).
    PerChannel {
        /// One per slice.
        scales: Arc<[f32]>,
        /// The dimension.
        channel_dim: usize,
    },
    /// A scale per block of a row; the zero point is 8.
    Blockwise {
        /// `[channels, blocks per row]`, row-major. XNNPACK keeps them as bf16.
        scales: Arc<[f32]>,
        /// The dimension that rows belong to, 0 for weights `[out, in]`.
        channel_dim: usize,
        /// Elements that share a scale; a multiple of 32 that divides the row.
        block_size: usize,
    },
    /// Found at run time, per row.
    Dynamic {
        /// Trailing dimensions that share one scale: 1 for matrices, 3 for
        /// images.
        num_nonbatch_dims: usize,
    },
}

impl Quantization {
    /// The scales that are known before run time.
    #[must_use]
    pub fn scales(&self) -> &[f32] {
        match self {
            Self::None | Self::Dynamic { .. } => &[],
            Self::PerTensor { scale, .. } => std::slice::from_ref(scale),
            Self::PerChannel { scales, .. } | Self::Blockwise { scales, .. } => scales,
        }
    }

    /// What tools call it: `per channel`, ...
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

/// Where a graph came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Program and version that wrote the graph.
    pub producer: String,
    /// File name of the model, without folders.
    pub source_name: String,
    /// SHA-256 of the model file.
    pub source_sha256: Option<[u8; 32]>,
    /// Key of the signature that was lowered, if any.
    pub signature: String,
    /// Names of [`Graph::inputs`]; empty where unknown.
    pub input_names: Vec<String>,
    /// Names of [`Graph::outputs`]; empty where unknown.
    pub output_names: Vec<String>,
    /// For a node's `debug_handle`: the operator of the model that it came
    /// from, like `CONV_2D#3`.
    pub node_names: Vec<(u32, String)>,
    /// Named blobs that travel along, the model's own metadata among them.
    pub metadata: Vec<(String, Bytes)>,
}

impl Value {
    /// A value that a node produces or the caller provides.
    #[must_use]
    pub fn new(datatype: Datatype, quantization: Quantization, dims: &[usize]) -> Self {
        Self { datatype, quantization, dims: dims.to_vec(), data: None }
    }

    /// The same value with elements.
    #[must_use]
    pub fn with_data(mut self, data: Bytes) -> Self {
        self.data = Some(data);
        self
    }

    /// Bytes of a dense tensor of this type and shape; `None` on overflow.
    #[must_use]
    pub fn byte_size(&self) -> Option<usize> {
        self.datatype.byte_size(&self.dims)
    }
}

impl Graph {
    /// The value with this id, if there is one.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Option<&Value> {
        self.values.get(id.index())
    }

    /// Appends a value.
    pub fn push_value(&mut self, value: Value) -> ValueId {
        // A graph of 2^32 values does not fit in memory.
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        id
    }

    /// The name of the model operator that a node came from, if recorded.
    #[must_use]
    pub fn node_name(&self, node: &Node) -> Option<&str> {
        let handle = node.debug_handle?;
        let names = &self.origin.node_names;
        let position = names.binary_search_by_key(&handle, |(handle, _)| *handle).ok()?;
        names.get(position).map(|(_, name)| name.as_str())
    }
}
