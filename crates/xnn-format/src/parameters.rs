//! Functions and parameters of nodes.

use crate::value::ValueId;

/// Functions of one operand.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named after the functions")]
pub enum UnaryOp {
    Abs,
    /// Round half to even.
    BankersRounding,
    /// Bitwise NOT of 32-bit integers.
    BitwiseNot,
    Ceiling,
    /// Clamps to [`Node::output_range`](crate::Node::output_range).
    Clamp,
    /// Converts to the output's datatype and quantization.
    Convert,
    Copy,
    Cosine,
    /// Number of leading zero bits of 32-bit integers.
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
    /// Number of one bits of 32-bit integers.
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
    /// Whether every row and column of the padding is in a window that also covers a pixel of the
    /// image.
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

/// Height and width in pixels.
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
    /// Pixels around the input; zero with
    /// [`flags::TENSORFLOW_SAME_PADDING`](crate::flags::TENSORFLOW_SAME_PADDING).
    pub padding: Padding2d,
    /// Size of the kernel.
    pub kernel: Size2d,
    /// Step between windows; the upsampling factor of a transposed convolution.
    pub stride: Size2d,
    /// Step inside the kernel.
    pub dilation: Size2d,
    /// Additional rows and columns at the bottom and right of the result of a transposed
    /// convolution.
    pub adjustment: Size2d,
    /// Groups; the number of input channels for depthwise convolution.
    pub groups: u32,
    /// Input channels of a group; 1 for depthwise convolution.
    pub group_input_channels: u32,
    /// Output channels of a group; the multiplier for depthwise convolution.
    pub group_output_channels: u32,
    /// `[N, H, W, groups * group_input_channels]`.
    pub input: ValueId,
    /// Weights, a constant; see the [`NodeOp`](crate::NodeOp) for the shape.
    pub filter: ValueId,
    /// `[groups * group_output_channels]`.
    pub bias: Option<ValueId>,
    /// `[N, H', W', groups * group_output_channels]`.
    pub output: ValueId,
}

/// Parameters of the poolings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooling2d {
    /// Pixels around the input; zero with
    /// [`flags::TENSORFLOW_SAME_PADDING`](crate::flags::TENSORFLOW_SAME_PADDING).
    pub padding: Padding2d,
    /// Size of the window.
    pub kernel: Size2d,
    /// Step between windows.
    pub stride: Size2d,
    /// Step inside the window; 1 x 1 except for max pooling.
    pub dilation: Size2d,
    /// `[N, H, W, C]`.
    pub input: ValueId,
    /// `[N, H', W', C]`.
    pub output: ValueId,
}
