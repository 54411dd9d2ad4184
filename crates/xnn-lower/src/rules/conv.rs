//! Partitioning rules for CONV_2D and DEPTHWISE_CONV_2D.

use xnn_format::{Padding2d, Size2d};
use xnn_model::op::{Activation, Conv2dOptions, DepthwiseConv2dOptions, Padding};
use xnn_model::{DType, Quantization};

use super::activation::{FusedActivation, activation};
use super::checks;
use super::options::RuleOptions;
use super::weights::{Arithmetic, DynamicFilter, Layer, arithmetic, bias as check_bias};
use crate::dynamic_range::DynamicRange;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub form: ConvForm,
    pub layer: Layer,
    pub kernel: Size2d,
    pub stride: Size2d,
    pub dilation: Size2d,
    pub padding: ConvPadding,
    pub groups: u32,
    pub group_input_channels: u32,
    pub group_output_channels: u32,
    pub fused: FusedActivation,
}

/// The nodes that compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvForm {
    /// A convolution.
    Dense,
    /// A convolution in which several groups of channels are one, with zeros among its weights.
    Merged {
        /// Groups in one.
        times: usize,
    },
    /// A depthwise convolution.
    Depthwise,
    /// A depthwise convolution of an input in which each channel is repeated as often as it has
    /// filters. XNNPACK computes a convolution for each channel with several filters, which takes 2
    /// to 13 times as long, and has none for images quantized at run time.
    DepthwiseRepeated {
        /// Filters of each channel of the input.
        times: usize,
    },
    /// A fully connected layer of pixels. A 1x1 convolution computes the same, but with one scale
    /// for each image instead of one for each pixel.
    Product,
}

/// Padding around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvPadding {
    /// TensorFlow's SAME, which XNNPACK computes at run time.
    Same,
    /// Given sizes.
    Explicit(Padding2d),
}

/// Attributes that both operators have.
struct Window {
    padding: Padding,
    stride: [i32; 2],
    dilation: [i32; 2],
    activation: Activation,
}

/// Rule for CONV_2D.
pub(crate) fn conv_2d(
    view: OpView<'_>,
    options: &Conv2dOptions,
    rule_options: RuleOptions,
) -> Result<Conv, WhyNot> {
    let (input, filter, _) = tensors(view)?;
    let [.., input_channels] = checks::nhwc(input)?;
    let [output_channels, _, _, filter_channels] = checks::nhwc(filter)?;
    let groups = match (input_channels.checked_div(filter_channels), filter_channels) {
        (Some(groups), _)
            if groups > 0
                && groups * filter_channels == input_channels
                && output_channels % groups == 0 =>
        {
            groups
        }
        _ => {
            return Err(WhyNot::Shape {
                tensor: filter.to_ref(),
                expected: format!(
                    "{input_channels} input channels do not divide into groups of \
                     {filter_channels} for {output_channels} outputs"
                ),
            });
        }
    };
    let window = Window {
        padding: options.padding,
        stride: [options.stride_h, options.stride_w],
        dilation: [options.dilation_h, options.dilation_w],
        activation: options.activation,
    };
    let conv = convolution(view, &window, output_channels, 0)?;
    // Interpreters quantize around zero where all channels have one scale.
    let by_image = rule_options.dynamic_range == DynamicRange::Reference && scales_differ(filter);
    let arithmetic = conv.layer.arithmetic.by_image_if(by_image);
    let times = match arithmetic {
        // Zeros times infinity would be NaN in other groups.
        Arithmetic::Float | Arithmetic::WeightsUnpacked => 1,
        Arithmetic::Dynamic(DynamicFilter::Int4 | DynamicFilter::Blockwise) => 1,
        Arithmetic::Dynamic(DynamicFilter::Int8)
        | Arithmetic::DynamicImages
        | Arithmetic::Quantized(_) => merged_groups(groups, filter),
    };
    let conv = Conv {
        groups: checks::dim(filter, groups / times)?,
        group_input_channels: checks::dim(filter, filter_channels * times)?,
        group_output_channels: checks::dim(filter, output_channels / groups * times)?,
        ..conv
    };
    let (form, num_nonbatch_dims) = match arithmetic {
        Arithmetic::Dynamic(_) if is_pointwise(&conv) => (ConvForm::Product, 1),
        _ if times > 1 => (ConvForm::Merged { times }, 3),
        _ => (ConvForm::Dense, 3),
    };
    Ok(Conv { form, layer: Layer { arithmetic, num_nonbatch_dims, ..conv.layer }, ..conv })
}

/// Number of groups to merge. XNNPACK computes tiles of at least eight output channels, and 16 or 32
/// on most processors: with fewer in a group, it computes and discards the rest, as often as there
/// are groups.
fn merged_groups(groups: usize, filter: Operand<'_>) -> usize {
    const TILE: usize = 16;
    /// Most weights of a layer whose groups are merged.
    const MAX_WEIGHTS: usize = 1 << 20;
    let &[channels, _, _, inputs] = filter.shape else { return 1 };
    let outputs = channels / groups;
    if outputs == 0 || [inputs, outputs] == [1, 1] {
        // XNNPACK computes these as a depthwise convolution.
        return 1;
    }
    let weights = filter.shape.iter().fold(1, |product: usize, &n| product.saturating_mul(n));
    let most = (TILE / outputs).min(MAX_WEIGHTS / weights.max(1));
    (1..=most).rev().find(|times| groups.is_multiple_of(*times)).unwrap_or(1)
}

/// Whether each output pixel depends on one input pixel.
fn is_pointwise(conv: &Conv) -> bool {
    let is_unpadded =
        [ConvPadding::Same, ConvPadding::Explicit(Padding2d::default())].contains(&conv.padding);
    conv.groups == 1 && is_unpadded && [conv.kernel, conv.stride] == [Size2d::ONE; 2]
}

/// Rule for DEPTHWISE_CONV_2D.
pub(crate) fn depthwise_conv_2d(
    view: OpView<'_>,
    options: &DepthwiseConv2dOptions,
    rule_options: RuleOptions,
) -> Result<Conv, WhyNot> {
    let (input, filter, _) = tensors(view)?;
    let [.., input_channels] = checks::nhwc(input)?;
    let [one, _, _, output_channels] = checks::nhwc(filter)?;
    // Interpreters derive the multiplier from the shapes; the attribute may be 0.
    if one != 1 || input_channels == 0 || output_channels % input_channels != 0 {
        return Err(WhyNot::Shape {
            tensor: filter.to_ref(),
            expected: format!(
                "a depthwise filter must be [1, H, W, {input_channels} x multiplier]"
            ),
        });
    }
    let window = Window {
        padding: options.padding,
        stride: [options.stride_h, options.stride_w],
        dilation: [options.dilation_h, options.dilation_w],
        activation: options.activation,
    };
    let conv = convolution(view, &window, output_channels, 3)?;
    let by_image = rule_options.dynamic_range == DynamicRange::Reference
        && supports_dynamic_images(filter, rule_options.max_dynamic_depthwise_taps);
    let arithmetic = match conv.layer.arithmetic.by_image_if(by_image) {
        // XNNPACK has no depthwise kernel for inputs quantized row by row.
        Arithmetic::Dynamic(_) => Arithmetic::WeightsUnpacked,
        other => other,
    };
    let multiplier = output_channels / input_channels;
    let (form, groups, group_output_channels) = match arithmetic {
        _ if repeats_channels(arithmetic, input_channels, multiplier) => {
            (ConvForm::DepthwiseRepeated { times: multiplier }, output_channels, 1)
        }
        _ => (ConvForm::Depthwise, input_channels, multiplier),
    };
    Ok(Conv {
        form,
        layer: Layer { arithmetic, ..conv.layer },
        groups: checks::dim(filter, groups)?,
        group_output_channels: checks::dim(filter, group_output_channels)?,
        ..conv
    })
}

/// Whether to repeat channels that have several filters each.
fn repeats_channels(arithmetic: Arithmetic, input_channels: usize, multiplier: usize) -> bool {
    /// XNNPACK's tile of floats is not wider. A group that fills it is computed as fast.
    const TILE: usize = 8;
    match arithmetic {
        Arithmetic::DynamicImages => multiplier > 1,
        // One channel is a convolution without groups.
        _ if input_channels == 1 || multiplier == 1 => false,
        Arithmetic::Float | Arithmetic::WeightsUnpacked => multiplier < TILE,
        Arithmetic::Dynamic(_) | Arithmetic::Quantized(_) => true,
    }
}

/// Whether the weights are 8-bit with different scales.
fn scales_differ(filter: Operand<'_>) -> bool {
    let Some(Quantization::PerAxis { scales, .. }) = &filter.tensor.quantization else {
        return false;
    };
    filter.tensor.dtype == DType::I8 && scales.iter().any(|scale| Some(scale) != scales.first())
}

/// Whether the kernels of `xnnpack-sys` support depthwise weights for images quantized at run time.
fn supports_dynamic_images(filter: Operand<'_>, max_taps: u64) -> bool {
    /// Their operators are created as int8 convolutions, whose scales XNNPACK bounds by this.
    const MAX_SCALE: f32 = 256.0;
    let is_supported = |scale: &f32| scale.is_normal() && *scale < MAX_SCALE;
    let scales = match &filter.tensor.quantization {
        Some(Quantization::PerAxis { scales, .. }) => scales.iter().all(is_supported),
        _ => filter.tensor.per_tensor().is_some_and(|(scale, _)| is_supported(&scale)),
    };
    let [_, height, width, _] = filter.shape else { return false };
    filter.tensor.dtype == DType::I8
        && scales
        && height.checked_mul(*width).is_some_and(|taps| taps as u64 <= max_taps)
}

fn tensors<'a>(view: OpView<'a>) -> Result<(Operand<'a>, Operand<'a>, Operand<'a>), WhyNot> {
    view.arity(2..=3, 1..=1)?;
    Ok((view.input(0)?, view.input(1)?, view.output(0)?))
}

/// The part of the plan that dense and depthwise convolutions share, without groups and form.
fn convolution(
    view: OpView<'_>,
    window: &Window,
    channels: usize,
    channel_dim: usize,
) -> Result<Conv, WhyNot> {
    let (input, filter, output) = tensors(view)?;
    let bias = view.optional_input(2)?;
    checks::nhwc(output)?;
    let [_, kernel_height, kernel_width, _] = checks::nhwc(filter)?;
    let (elem, _) = checks::same_type(input, output)?;
    let arithmetic = arithmetic(elem, input, filter, output, channel_dim)?;
    check_bias(bias, channels, arithmetic)?;
    let kernel = Size2d {
        height: checks::dim(filter, kernel_height)?,
        width: checks::dim(filter, kernel_width)?,
    };
    let stride = size("stride", window.stride)?;
    let dilation = size("dilation", window.dilation)?;
    let padding = match window.padding {
        Padding::Valid => ConvPadding::Explicit(Padding2d::default()),
        Padding::Same => same_padding(input, kernel, stride, dilation)?,
    };
    Ok(Conv {
        form: ConvForm::Dense,
        layer: Layer { channel_dim, ..Layer::new([input, filter, output], bias, arithmetic, 3) },
        kernel,
        stride,
        dilation,
        padding,
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        fused: activation(window.activation, elem)?,
    })
}

/// The padding of SAME. It is computed here if the stride skips pixels, because XNNPACK computes
/// that wrongly.
fn same_padding(
    input: Operand<'_>,
    kernel: Size2d,
    stride: Size2d,
    dilation: Size2d,
) -> Result<ConvPadding, WhyNot> {
    let extent = |kernel: u32, dilation: u32| {
        (u64::from(kernel).saturating_sub(1)).saturating_mul(dilation.into()).saturating_add(1)
    };
    let [height, width] =
        [extent(kernel.height, dilation.height), extent(kernel.width, dilation.width)];
    if u64::from(stride.height) <= height && u64::from(stride.width) <= width {
        return Ok(ConvPadding::Same);
    }
    let [_, rows, columns, _] = checks::nhwc(input)?;
    let total = |pixels: usize, extent: u64, stride: u32| {
        let steps = (pixels as u64).div_ceil(stride.into()).saturating_sub(1);
        let needed = steps.saturating_mul(stride.into()).saturating_add(extent);
        u32::try_from(needed.saturating_sub(pixels as u64)).map_err(|_| WhyNot::Shape {
            tensor: input.to_ref(),
            expected: "the padding is too large".into(),
        })
    };
    let vertical = total(rows, height, stride.height)?;
    let horizontal = total(columns, width, stride.width)?;
    Ok(ConvPadding::Explicit(Padding2d {
        top: vertical / 2,
        bottom: vertical - vertical / 2,
        left: horizontal / 2,
        right: horizontal - horizontal / 2,
    }))
}

/// Converts the height and width of a stride, a dilation or a window.
pub(crate) fn size(name: &'static str, [height, width]: [i32; 2]) -> Result<Size2d, WhyNot> {
    Ok(Size2d { height: checks::positive(name, height)?, width: checks::positive(name, width)? })
}
