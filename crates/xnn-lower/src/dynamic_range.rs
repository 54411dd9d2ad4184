//! The option that chooses how convolutions with float inputs and integer weights are computed.

use std::str::FromStr;

use crate::choice::choice;
use crate::target::TargetFeatures;

/// How convolutions with float inputs and integer weights are computed. TFLite's reference kernels
/// quantize each image at run time.
///
/// The last bit of a layer's result may change how the next layer's input is quantized, and a few
/// layers later most elements: results of two methods that are not bit-identical differ by as much
/// as quantization is coarse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicRange {
    /// [`Reference`](Self::Reference) where that is exact and fast, otherwise [`Rows`](Self::Rows).
    #[default]
    Auto,
    /// Each image has one scale, in depthwise layers too, like in TFLite's reference kernels.
    /// Results are bit-identical to theirs on processors that `xnnpack-sys` has microkernels for.
    Reference,
    /// Closest to the model with float weights, and computed by XNNPACK's own kernels: each pixel
    /// has a scale of its own where a layer is a matrix product, and depthwise and small layers
    /// multiply floats.
    Rows,
}

impl DynamicRange {
    /// All values with the names that users give them.
    pub const NAMES: [(&str, Self); 3] =
        [("auto", Self::Auto), ("reference", Self::Reference), ("rows", Self::Rows)];

    /// Replaces [`Auto`](Self::Auto) by the choice for a processor.
    #[must_use]
    pub fn resolve(self, target: &TargetFeatures) -> Self {
        match self {
            Self::Auto if target.has_exact_dynamic_convolutions => Self::Reference,
            Self::Auto => Self::Rows,
            chosen => chosen,
        }
    }
}

/// Parses a name from [`DynamicRange::NAMES`].
impl FromStr for DynamicRange {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        choice(&Self::NAMES, name)
    }
}
