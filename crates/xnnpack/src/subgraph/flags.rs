//! Binary options of nodes.

use std::ops::{BitOr, BitOrAssign};

use xnnpack_sys as sys;

/// Binary options of a node. The `flags` field of each node lists the supported ones; others are
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No option.
    pub const NONE: Self = Self(0);
    /// TensorFlow's `SAME` padding, computed from the size of the input. Explicit padding must be
    /// 0.
    pub const SAME_PADDING: Self = Self(sys::XNN_FLAG_TENSORFLOW_SAME_PADDING);
    /// The filter of a fully connected node is `[input channels, output channels]`.
    pub const TRANSPOSE_WEIGHTS: Self = Self(sys::XNN_FLAG_TRANSPOSE_WEIGHTS);
    /// The second operand of a matrix product is stored transposed.
    pub const TRANSPOSE_B: Self = Self(sys::XNN_FLAG_TRANSPOSE_B);
    /// The input of a fully connected node is flattened to `[rows, input channels]`.
    pub const RESHAPE_2D: Self = Self(sys::XNN_FLAG_TENSORFLOW_RESHAPE_2D);
    /// fp16 weights of a fully connected node stay in fp16 when they are packed. This halves their
    /// memory, and is faster for up to 8 rows of input. Requires
    /// [`packs_fp16_weights`](crate::packs_fp16_weights) and at least 32 output channels.
    pub const FP16_WEIGHTS: Self = Self(sys::FLAG_HALF_WEIGHTS);
    /// The input of a fully connected node with weights of 8 or 4 bits has more than 8 rows. Some
    /// processors then multiply faster, with weights that are packed differently. Results are the
    /// same.
    pub const MANY_ROWS: Self = Self(sys::FLAG_MANY_ROWS);
    /// Many of the fp32 or fp16 weights of a fully connected node are 0. If the processor
    /// [skips them](crate::skips_zero_weights) and there are at most
    /// [`SPARSE_INPUTS`](crate::SPARSE_INPUTS) input channels, they take no time, unless an input is
    /// NaN or infinite. The last bits of results may differ.
    pub const SPARSE_WEIGHTS: Self = Self(sys::FLAG_SPARSE_WEIGHTS);
    /// A resize uses the pixel positions of TensorFlow 1.
    pub const TENSORFLOW_LEGACY: Self = Self(sys::XNN_FLAG_TENSORFLOW_LEGACY_MODE);
    /// The corner pixels of a resize's input and output coincide.
    pub const ALIGN_CORNERS: Self = Self(sys::XNN_FLAG_ALIGN_CORNERS);
    /// Reduced dimensions are kept with length 1.
    pub const KEEP_DIMS: Self = Self(sys::XNN_FLAG_KEEP_DIMS);
    /// The thread pool's workers sleep after this node.
    pub const YIELD_WORKERS: Self = Self(sys::XNN_FLAG_YIELD_WORKERS);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
