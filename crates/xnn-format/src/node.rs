//! Nodes of a graph: what XNNPACK is asked to compute.
//!
//! Field names and units follow the schema and XNNPACK's `xnn_define_*`
//! functions: heights before widths, pixels for paddings and strides.

use crate::graph::ValueId;
use crate::wire;

/// One operator of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it computes.
    pub op: NodeOp,
    /// Bounds of the result in real units; `None` means unbounded. CLAMP keeps
    /// its bounds here too.
    pub output_range: Option<OutputRange>,
    /// XNNPACK flags, see [`flags`].
    pub flags: u32,
    /// Index of the model's operator that this node came from. In files 65535
    /// stands for `None`.
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

    /// From the largest negative float to the largest one: infinities become these, NaN stays.
    pub const FINITE: Self = Self { min: f32::MIN, max: f32::MAX };

    /// Whether every finite number is within the bounds.
    #[must_use]
    pub fn holds_all_finite(self) -> bool {
        self.min <= f32::MIN && self.max >= f32::MAX
    }
}

/// Bits of [`Node::flags`], as XNNPACK's `XNN_FLAG_*` (some bits mean different
/// things to different operators).
pub mod flags {
    /// Fully connected: the filter is `[inputs, outputs]`. Batch matrix
    /// multiply: the second operand is transposed.
    pub const TRANSPOSE_WEIGHTS: u32 = 0x1;
    /// Batch matrix multiply: the first operand is transposed, which no node here can have.
    pub const TRANSPOSE_A: u32 = 0x2;
    /// Sparse fully connected: the operand is in another layout than kernels for sparse weights read.
    pub const INPUT_NHWC: u32 = 0x2;
    /// Convolution, pooling: padding as TensorFlow's SAME.
    pub const TENSORFLOW_SAME_PADDING: u32 = 0x4;
    /// Fully connected: the operand is taken for `[-1, I]`, whatever its rank.
    pub const TENSORFLOW_RESHAPE_2D: u32 = 0x4;
    /// Resize: TensorFlow's coordinates without half-pixel centers.
    pub const TENSORFLOW_LEGACY_MODE: u32 = 0x4;
    /// Fully connected and transposed convolution in fp16: the filter is fp32 in spite of its type, which no node here can have.
    pub const FP32_STATIC_WEIGHTS: u32 = 0x8;
    /// Resize: corner pixels keep their values.
    pub const ALIGN_CORNERS: u32 = 0x8;
    /// Convolution, resize: less memory for pointers into the image. Results are the same.
    pub const TRANSIENT_INDIRECTION_BUFFER: u32 = 0x20;
    /// Reshape: the model itself leaves the dimension that is 0 open, so that it stands for whatever changes; without this
    /// flag it is for the batch. XNNPACK ignores it.
    pub const OPEN_DIMENSION: u32 = 0x1000_0000;
    /// Reductions: reduced dimensions stay with size 1.
    pub const KEEP_DIMS: u32 = 0x40;
}

/// What a node computes, on which values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeOp {
    /// Element by element.
    Unary {
        /// The function.
        op: UnaryOp,
        /// Operand.
        input: ValueId,
        /// Result, of the operand's shape.
        output: ValueId,
    },
    /// Element by element over two operands that broadcast against each other.
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
        /// Prefer the kernel for weights that are mostly zero.
        sparse: bool,
    },
    /// `[.., M, K] x [.., K, N]`; `[.., N, K]` with [`flags::TRANSPOSE_WEIGHTS`].
    BatchMatrixMultiply {
        /// Operands.
        inputs: [ValueId; 2],
        /// Result `[.., M, N]`.
        output: ValueId,
    },
    /// Mean over windows, borders not counted.
    AveragePooling2d(Pooling2d),
    /// Maximum over windows.
    MaxPooling2d(Pooling2d),
    /// Maximum over windows, and where it was.
    ArgMaxPooling2d {
        /// The window; strides equal its size.
        window: Pooling2d,
        /// Index of the maximum in its window, i32.
        index: ValueId,
    },
    /// Puts values back where [`NodeOp::ArgMaxPooling2d`] found them.
    Unpooling2d {
        /// The window; `input` holds the values.
        window: Pooling2d,
        /// Indices from the pooling.
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
    /// Joins values along a dimension.
    Concatenate {
        /// The dimension.
        axis: u32,
        /// 2 to 5 operands.
        inputs: Vec<ValueId>,
        /// Result.
        output: ValueId,
    },
    /// Cuts a value in equal parts along a dimension.
    EvenSplit {
        /// The dimension.
        axis: u32,
        /// Operand.
        input: ValueId,
        /// 2 to 4 results.
        outputs: Vec<ValueId>,
    },
    /// The same elements in another shape.
    StaticReshape {
        /// Dimensions; at most one 0, which is inferred.
        new_shape: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Inserts dimensions of size 1.
    StaticExpandDims {
        /// Where they are in the result, ascending.
        new_axes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Reorders dimensions.
    StaticTranspose {
        /// For each dimension of the result, the operand's.
        perm: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// A box out of a value.
    StaticSlice {
        /// Where the box starts, per dimension.
        offsets: Vec<usize>,
        /// Its size; 0 means "to the end".
        sizes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Surrounds a value with a constant.
    StaticConstantPad {
        /// Elements before, per dimension.
        pre_paddings: Vec<usize>,
        /// Elements behind, per dimension.
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
        /// Which.
        op: ReduceOp,
        /// The dimensions, ascending.
        axes: Vec<usize>,
        /// Operand.
        input: ValueId,
        /// Result.
        output: ValueId,
    },
    /// Moves channels into space.
    DepthToSpace2d {
        /// Edge of the square block.
        block_size: u32,
        /// `[N, H, W, block * block * C]`.
        input: ValueId,
        /// `[N, H * block, W * block, C]`.
        output: ValueId,
    },
    /// Moves space into channels.
    SpaceToDepth2d {
        /// Edge of the square block.
        block_size: u32,
        /// `[N, H * block, W * block, C]`.
        input: ValueId,
        /// `[N, H, W, block * block * C]`.
        output: ValueId,
    },
    /// Rotary position embedding.
    Rope {
        /// Tokens that the weights serve.
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

/// Functions of one operand.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named after the functions")]
pub enum UnaryOp {
    Abs,
    /// Round half to even.
    BankersRounding,
    /// Of 32-bit integers.
    BitwiseNot,
    Ceiling,
    /// Between the bounds of the node's output range.
    Clamp,
    /// To the output's datatype and quantization.
    Convert,
    Copy,
    Cosine,
    /// Zero bits before the first one, of 32-bit integers.
    CountLeadingZeros,
    CubeRoot,
    Elu {
        alpha: f32,
    },
    Exp,
    Floor,
    Gelu,
    HardSwish,
    LeakyRelu {
        negative_slope: f32,
    },
    Log,
    Negate,
    /// One bits of 32-bit integers.
    Popcount,
    ReciprocalSquareRoot,
    Sigmoid,
    Sign,
    Sine,
    Square,
    SquareRoot,
    Tanh,
}

/// Functions of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named after the functions")]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    /// The second operand is the slope for negative elements, per channel.
    Prelu,
    SquaredDifference,
    CopySign,
    Modulus,
    Atan2,
    Pow,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    ShiftLeft,
    ShiftRightLogical,
    ShiftRightArithmetic,
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named after the functions")]
pub enum ReduceOp {
    Sum,
    Mean,
}

/// Pixels around an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the four sides")]
pub struct Padding2d {
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
    pub left: u32,
}

impl Padding2d {
    /// Whether every row and column of the padding lies in a window that sees a pixel of the image, too.
    #[must_use]
    pub fn is_within_reach(&self, kernel: Size2d, dilation: Size2d) -> bool {
        let covered = |kernel: u32, dilation: u32| {
            u64::from(kernel.saturating_sub(1)) * u64::from(dilation) + 1
        };
        let Self { top, right, bottom, left } = *self;
        let (rows, columns) =
            (covered(kernel.height, dilation.height), covered(kernel.width, dilation.width));
        u64::from(top.max(bottom)) < rows && u64::from(left.max(right)) < columns
    }
}

/// Height and width of something, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "height and width")]
pub struct Size2d {
    pub height: u32,
    pub width: u32,
}

impl Size2d {
    /// 1 x 1.
    pub const ONE: Self = Self { height: 1, width: 1 };
}

/// Parameters of the convolutions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Pixels around the input; zero with [`flags::TENSORFLOW_SAME_PADDING`].
    pub padding: Padding2d,
    /// Size of the kernel.
    pub kernel: Size2d,
    /// Step between windows (upsampling of transposed convolution).
    pub stride: Size2d,
    /// Step inside the kernel.
    pub dilation: Size2d,
    /// Extra rows and columns at the bottom and right of a transposed
    /// convolution's result.
    pub adjustment: Size2d,
    /// Groups; the number of input channels for depthwise convolution.
    pub groups: u32,
    /// Input channels of a group; 1 for depthwise convolution.
    pub group_input_channels: u32,
    /// Output channels of a group; the multiplier for depthwise convolution.
    pub group_output_channels: u32,
    /// `[N, H, W, groups * group_input_channels]`.
    pub input: ValueId,
    /// Weights.
    pub filter: ValueId,
    /// `[groups * group_output_channels]`.
    pub bias: Option<ValueId>,
    /// `[N, H', W', groups * group_output_channels]`.
    pub output: ValueId,
}

/// Parameters of the poolings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooling2d {
    /// Pixels around the input; zero with [`flags::TENSORFLOW_SAME_PADDING`].
    pub padding: Padding2d,
    /// Size of the window.
    pub kernel: Size2d,
    /// Step between windows.
    pub stride: Size2d,
    /// Step inside the window; only max pooling uses it.
    pub dilation: Size2d,
    /// `[N, H, W, C]`.
    pub input: ValueId,
    /// `[N, H', W', C]`.
    pub output: ValueId,
}

impl NodeOp {
    /// The name of the kind of node, as in the schema but without `XNN`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        wire::kind(self)
    }
}

impl Node {
    /// A node without bounds or flags.
    #[must_use]
    pub fn new(op: NodeOp) -> Self {
        Self { op, output_range: None, flags: 0, debug_handle: None }
    }
}
