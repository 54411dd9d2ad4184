//! Nodes of a graph.
//!
//! Field names and units follow the schema and XNNPACK's `xnn_define_*` functions: heights before
//! widths, pixels for paddings and strides.

use crate::parameters::{BinaryOp, Conv2d, Pooling2d, ReduceOp, UnaryOp};
use crate::value::ValueId;

/// One operator of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The operation and its operands.
    pub op: NodeOp,
    /// Bounds of the result in real units, for [`UnaryOp::Clamp`] as well; `None` for unbounded.
    pub output_range: Option<OutputRange>,
    /// XNNPACK flags, see [`flags`].
    pub flags: u32,
    /// Index of the model operator that the node was lowered from. Files store 65535 for `None`.
    pub debug_handle: Option<u32>,
}

/// Bounds of a result in real units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputRange {
    /// Lower bound, `-inf` for none.
    pub min: f32,
    /// Upper bound, `+inf` for none.
    pub max: f32,
}

impl OutputRange {
    /// No bounds.
    pub const UNBOUNDED: Self = Self { min: f32::NEG_INFINITY, max: f32::INFINITY };

    /// All finite floats: clamps infinities to the largest finite values and keeps NaN.
    pub const FINITE: Self = Self { min: f32::MIN, max: f32::MAX };

    /// Whether all finite floats are within the bounds.
    #[must_use]
    pub fn holds_all_finite(self) -> bool {
        self.min <= f32::MIN && self.max >= f32::MAX
    }
}

/// Bits of [`Node::flags`], the values of XNNPACK's `XNN_FLAG_*`. The meaning of some bits depends
/// on the operation.
pub mod flags {
    /// Fully connected: the filter is `[inputs, outputs]`. Batch matrix
    /// multiply: the second operand is transposed.
    pub const TRANSPOSE_WEIGHTS: u32 = 0x1;
    /// Batch matrix multiply: the first operand is transposed.
    /// [`Graph::check`](crate::Graph::check) refuses it.
    pub const TRANSPOSE_A: u32 = 0x2;
    /// Sparse fully connected: the operand is NHWC. [`Graph::check`](crate::Graph::check) refuses
    /// it.
    pub const INPUT_NHWC: u32 = 0x2;
    /// Convolution, pooling: padding as TensorFlow's SAME.
    pub const TENSORFLOW_SAME_PADDING: u32 = 0x4;
    /// Fully connected: the operand of any rank is reshaped to `[-1, I]`.
    pub const TENSORFLOW_RESHAPE_2D: u32 = 0x4;
    /// Resize: TensorFlow's coordinates without half-pixel centers.
    pub const TENSORFLOW_LEGACY_MODE: u32 = 0x4;
    /// Fully connected, transposed convolution: an fp16 filter has fp32 data.
    /// [`Graph::check`](crate::Graph::check) refuses it.
    pub const FP32_STATIC_WEIGHTS: u32 = 0x8;
    /// Resize: the corner pixels of input and output are aligned.
    pub const ALIGN_CORNERS: u32 = 0x8;
    /// Convolution, resize: less memory for indirection pointers; same results.
    pub const TRANSIENT_INDIRECTION_BUFFER: u32 = 0x20;
    /// Reshape: the inferred dimension (0) is also inferred in the model, so it may absorb any
    /// change of shape. Without this flag it absorbs a change of the batch only. XNNPACK ignores
    /// the flag.
    pub const OPEN_DIMENSION: u32 = 0x1000_0000;
    /// Global average: images must have the height and width that the graph states, because the model
    /// pools windows of this size. Without this flag, images of any size are averaged. XNNPACK ignores
    /// the flag.
    pub const FIXED_SIZE: u32 = 0x1000_0000;
    /// Reductions: reduced dimensions stay with size 1.
    pub const KEEP_DIMS: u32 = 0x40;
}

/// An operation and the values that it reads and writes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeOp {
    /// A function of each element.
    Unary {
        /// The function.
        op: UnaryOp,
        /// Operand.
        input: ValueId,
        /// Result, with the operand's shape.
        output: ValueId,
    },
    /// A function of pairs of elements of two operands, which are broadcast.
    Binary {
        /// The function.
        op: BinaryOp,
        /// Operands.
        inputs: [ValueId; 2],
        /// Result.
        output: ValueId,
    },
    /// Convolution, filter `[O, KH, KW, I / groups]`.
    Conv2d(Conv2d),
    /// Depthwise convolution, filter `[1, KH, KW, I * multiplier]`.
    DepthwiseConv2d(Conv2d),
    /// Transposed convolution, filter `[O, KH, KW, I / groups]`; `stride` is
    /// the upsampling factor.
    ConvTranspose2d(Conv2d),
    /// `input x filter^T + bias`, filter `[O, I]`.
    FullyConnected {
        /// `[.., I]`.
        input: ValueId,
        /// `[O, I]`, `[I, O]` with [`flags::TRANSPOSE_WEIGHTS`].
        filter: ValueId,
        /// `[O]`.
        bias: Option<ValueId>,
        /// `[.., O]`.
        output: ValueId,
        /// Use the kernels for sparse weights.
        sparse: bool,
    },
    /// `[.., M, K] x [.., K, N]`; `[.., N, K]` with [`flags::TRANSPOSE_WEIGHTS`].
    BatchMatrixMultiply {
        /// Operands.
        inputs: [ValueId; 2],
        /// Result `[.., M, N]`.
        output: ValueId,
    },
    /// Mean over windows; padding does not count.
    AveragePooling2d(Pooling2d),
    /// Maximum over windows.
    MaxPooling2d(Pooling2d),
    /// Maximum over windows and its index.
    ArgMaxPooling2d {
        /// The window; strides equal its size.
        window: Pooling2d,
        /// Index of the maximum in its window, int32.
        index: ValueId,
    },
    /// Scatters values to the positions found by [`NodeOp::ArgMaxPooling2d`].
    Unpooling2d {
        /// The window; its `input` holds the values.
        window: Pooling2d,
        /// Indices written by the pooling.
        index: ValueId,
    },
    /// Mean over height and width.
    GlobalAveragePooling2d {
        /// `[N, H, W, C]`.
        input: ValueId,
        /// `[N, C]`, `[N, 1, 1, C]` with [`flags::KEEP_DIMS`].
        output: ValueId,
    },
    /// Softmax over the last dimension.
    Softmax {
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Concatenates values along a dimension.
    Concatenate {
        /// The dimension.
        axis: u32,
        /// 2 to 5 operands.
        inputs: Vec<ValueId>,
        /// Result.
        output: ValueId,
    },
    /// Splits a value into equal parts along a dimension.
    EvenSplit {
        /// The dimension.
        axis: u32,
        /// Operand.
        input: ValueId,
        /// 2 to 4 results.
        outputs: Vec<ValueId>,
    },
    /// Changes the shape of a value.
    StaticReshape {
        /// Dimensions; at most one is 0, which means inferred.
        new_shape: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Inserts dimensions of size 1.
    StaticExpandDims {
        /// Positions of the new dimensions in the result, ascending.
        new_axes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Permutes dimensions.
    StaticTranspose {
        /// For each dimension of the result, the dimension of the operand.
        perm: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Slices a value.
    StaticSlice {
        /// First index per dimension.
        offsets: Vec<usize>,
        /// Size per dimension; 0 means "to the end".
        sizes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Pads a value with a constant.
    StaticConstantPad {
        /// Elements before, per dimension.
        pre_paddings: Vec<usize>,
        /// Elements after, per dimension.
        post_paddings: Vec<usize>,
        /// The constant, in real units.
        padding_value: f32,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Bilinear resize of height and width.
    StaticResizeBilinear2d {
        /// Height of the result.
        new_height: usize,
        /// Width of the result.
        new_width: usize,
        /// `[N, H, W, C]`.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Sum or mean over dimensions.
    StaticReduce {
        /// The reduction.
        op: ReduceOp,
        /// The dimensions, ascending.
        axes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Rearranges channels into blocks of pixels.
    DepthToSpace2d {
        /// Side of the square block in pixels.
        block_size: u32,
        /// `[N, H, W, block * block * C]`.
        input: ValueId,
        /// `[N, H * block, W * block, C]`.
        output: ValueId,
    },
    /// Rearranges blocks of pixels into channels.
    SpaceToDepth2d {
        /// Side of the square block in pixels.
        block_size: u32,
        /// `[N, H * block, W * block, C]`.
        input: ValueId,
        /// `[N, H, W, block * block * C]`.
        output: ValueId,
    },
    /// Rotary position embedding.
    Rope {
        /// Number of tokens that the weights cover.
        max_tokens: usize,
        /// `[N, tokens, heads, channels]`.
        input: ValueId,
        /// `[max_tokens, channels]`: cosines, then sines.
        weights: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Attention: `softmax((query * scale) x key^T + mask) x value`.
    ScaledDotProductAttention {
        /// `[N, heads, tokens, channels]`.
        query: ValueId,
        /// `[N, heads, keys, channels]`.
        key: ValueId,
        /// `[N, heads, keys, value channels]`.
        value: ValueId,
        /// `[channels]`.
        scale: ValueId,
        /// `[tokens, keys]`.
        mask: ValueId,
        /// `[N, heads, tokens, value channels]`.
        output: ValueId,
    },
}

impl Node {
    /// A node without bounds or flags.
    #[must_use]
    pub fn new(op: NodeOp) -> Self {
        Self { op, output_range: None, flags: 0, debug_handle: None }
    }
}
