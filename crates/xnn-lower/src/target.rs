//! Properties of the processor that lowering depends on.

/// Computations that the kernels for a processor do fast, and those that they do exactly.
///
/// The default is a processor without kernels beyond those of XNNPACK itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetFeatures {
    /// Whether products of unsigned 8-bit integers are as fast as those of signed ones, so that
    /// [`SignedLayers::Auto`](crate::optimize::SignedLayers::Auto) keeps layers unsigned.
    pub has_fast_uint8: bool,
    /// Whether convolutions of images quantized at run time give the results of TFLite's reference
    /// kernels bit for bit, so that [`DynamicRange::Auto`](crate::DynamicRange::Auto) uses them.
    pub has_exact_dynamic_convolutions: bool,
    /// Largest kernel, height x width, of depthwise convolutions of images quantized at run time;
    /// 0 if there are no kernels for them.
    pub max_dynamic_depthwise_taps: u64,
}
