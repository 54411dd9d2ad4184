//! How convolutions of floats with integer weights are computed.

use std::str::FromStr;

use crate::names::choice;

/// What convolutions of floats with integer weights multiply. Interpreters quantize each image when it arrives.
///
/// Any last bit of a layer may decide about a step of the next one's inputs, and a few layers on about most of them: two
/// ways of computing that are not the same bit for bit are soon as far apart as quantization is coarse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicRange {
    /// [`Reference`](Self::Reference) where that is exact and fast, else [`Rows`](Self::Rows).
    #[default]
    Auto,
    /// What TFLite's reference kernels do: images are quantized as a whole, for depthwise layers too. The results are theirs
    /// bit for bit on processors that `xnnpack-sys` has microkernels for.
    Reference,
    /// What is nearest to the model with float weights: each pixel has a scale of its own where a layer is a matrix
    /// product, and depthwise and small layers multiply floats. All of it is in XNNPACK.
    Rows,
}

impl DynamicRange {
    /// Every choice, as users name it.
    pub const NAMES: [(&str, Self); 3] =
        [("auto", Self::Auto), ("reference", Self::Reference), ("rows", Self::Rows)];

    /// What it comes to on a backend that convolves as reference kernels do, or does not.
    #[must_use]
    pub fn on(self, has_exact_convolutions: bool) -> Self {
        match self {
            Self::Auto if has_exact_convolutions => Self::Reference,
            Self::Auto => Self::Rows,
            chosen => chosen,
        }
    }
}

/// One of [`DynamicRange::NAMES`].
impl FromStr for DynamicRange {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        choice(&Self::NAMES, name)
    }
}
