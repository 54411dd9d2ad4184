//! May CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV go?

use xnn_format::{Padding2d, Size2d};
use xnn_model::op::{
    Activation, Conv2dOptions, DepthwiseConv2dOptions, Padding, TransposeConvOptions,
};
use xnn_model::{DType, Quantization, TensorId};

use super::checks::{self, Arithmetic, Elem, Fused};
use crate::partition::DynamicRange;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// A convolution that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub depthwise: bool,
    pub input: TensorId,
    pub filter: TensorId,
    pub bias: Option<TensorId>,
    pub output: TensorId,
    pub kernel: Size2d,
    pub stride: Size2d,
    pub dilation: Size2d,
    pub padding: Border,
    pub groups: u32,
    pub group_input_channels: u32,
    pub group_output_channels: u32,
    pub fused: Fused,
    pub arithmetic: Arithmetic,
}

/// The parameters that both operators have.
struct Window {
    padding: Padding,
    stride: [i32; 2],
    dilation: [i32; 2],
    activation: Activation,
}

pub(crate) fn conv_2d(
    view: OpView<'_>,
    options: &Conv2dOptions,
    dynamic_range: DynamicRange,
) -> Result<Conv, WhyNot> {
    let (input, filter, output) = tensors(view)?;
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
    let of_images = dynamic_range == DynamicRange::Reference && scales_differ(filter);
    Ok(Conv {
        arithmetic: conv.arithmetic.of_images_if(of_images),
        groups: checks::dim(filter, groups)?,
        group_input_channels: checks::dim(filter, filter_channels)?,
        group_output_channels: checks::dim(filter, output_channels / groups)?,
        output: output.id,
        ..conv
    })
}

pub(crate) fn depthwise_conv_2d(
    view: OpView<'_>,
    options: &DepthwiseConv2dOptions,
    dynamic_range: DynamicRange,
) -> Result<Conv, WhyNot> {
    let (input, filter, output) = tensors(view)?;
    let [.., input_channels] = checks::nhwc(input)?;
    let [one, _, _, output_channels] = checks::nhwc(filter)?;
    // Kernels derive the multiplier from the shapes; the attribute may be 0.
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
    let of_images =
        dynamic_range == DynamicRange::Reference && has_dynamic_depthwise_weights(filter);
    Ok(Conv {
        depthwise: true,
        groups: checks::dim(input, input_channels)?,
        group_input_channels: 1,
        group_output_channels: checks::dim(filter, output_channels / input_channels)?,
        output: output.id,
        arithmetic: match conv.arithmetic.of_images_if(of_images) {
            // XNNPACK has no depthwise kernel for inputs quantized row by row.
            Arithmetic::Dynamic => Arithmetic::WeightsUnpacked,
            other => other,
        },
        ..conv
    })
}

/// Whether there are 8-bit weights with scales of which some differ.
fn scales_differ(filter: Operand<'_>) -> bool {
    let Some(Quantization::PerAxis { scales, .. }) = &filter.tensor.quantization else {
        return false;
    };
    filter.tensor.dtype == DType::I8 && scales.iter().any(|scale| Some(scale) != scales.first())
}

/// Whether XNNPACK, with what `xnnpack-sys` adds to it, takes depthwise weights for images quantized at run time.
fn has_dynamic_depthwise_weights(filter: Operand<'_>) -> bool {
    /// Those that it has microkernels for.
    const MAX_TAPS: usize = 25;
    /// What it refuses of int8 convolutions, whose operators it makes of these.
    const TOO_LARGE: f32 = 256.0;
    let expressible = |scale: &f32| scale.is_normal() && *scale < TOO_LARGE;
    let scales = match &filter.tensor.quantization {
        Some(Quantization::PerAxis { scales, .. }) => scales.iter().all(expressible),
        _ => filter.tensor.per_tensor().is_some_and(|(scale, _)| expressible(&scale)),
    };
    let [_, height, width, _] = filter.shape else { return false };
    filter.tensor.dtype == DType::I8
        && scales
        && height.checked_mul(*width).is_some_and(|taps| taps <= MAX_TAPS)
}

/// A transposed convolution that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct TransposeConv {
    pub input: TensorId,
    pub filter: TensorId,
    pub bias: Option<TensorId>,
    pub output: TensorId,
    pub kernel: Size2d,
    pub stride: Size2d,
    /// Rows and columns to cut off the result.
    pub padding: Padding2d,
    /// Rows and columns to add at the bottom and right.
    pub adjustment: Size2d,
    pub input_channels: u32,
    pub output_channels: u32,
    pub fused: Fused,
    pub arithmetic: Arithmetic,
}

pub(crate) fn transpose_conv(
    view: OpView<'_>,
    options: &TransposeConvOptions,
) -> Result<TransposeConv, WhyNot> {
    view.arity(3..=4, 1..=1)?;
    let (shape, filter, input) = (view.input(0)?, view.input(1)?, view.input(2)?);
    let (bias, output) = (view.optional_input(3)?, view.output(0)?);
    checks::constant(shape)?;
    transposed(input, filter, bias, output, options)
}

/// A transposed convolution to the shape that `output` has.
pub(crate) fn transposed(
    input: Operand<'_>,
    filter: Operand<'_>,
    bias: Option<Operand<'_>>,
    output: Operand<'_>,
    options: &TransposeConvOptions,
) -> Result<TransposeConv, WhyNot> {
    let [_, input_height, input_width, input_channels] = checks::nhwc(input)?;
    let [_, output_height, output_width, output_channels] = checks::nhwc(output)?;
    let [filter_out, kernel_height, kernel_width, filter_in] = checks::nhwc(filter)?;
    if filter_in != input_channels || filter_out != output_channels {
        return Err(WhyNot::Shape {
            tensor: filter.to_ref(),
            expected: format!("must be [{output_channels}, H, W, {input_channels}]"),
        });
    }
    let (elem, _) = checks::same_type(input, output)?;
    let arithmetic = arithmetic(elem, input, filter, output, 0)?;
    checks::bias(bias, output_channels, arithmetic)?;
    let stride = size("stride", [options.stride_h, options.stride_w])?;
    let side = |from: usize, to: usize, kernel: usize, stride: u32| {
        border(options.padding, from, to, kernel, stride as usize).ok_or_else(|| WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!(
                "{from} steps of {stride} with a kernel of {kernel} do not make {to}"
            ),
        })
    };
    let [top, bottom, rows] = side(input_height, output_height, kernel_height, stride.height)?;
    let [left, right, columns] = side(input_width, output_width, kernel_width, stride.width)?;
    let dim = |value| checks::dim(filter, value);
    Ok(TransposeConv {
        input: input.id,
        filter: filter.id,
        bias: bias.map(|bias| bias.id),
        output: output.id,
        kernel: Size2d { height: dim(kernel_height)?, width: dim(kernel_width)? },
        stride,
        padding: Padding2d {
            top: dim(top)?,
            right: dim(right)?,
            bottom: dim(bottom)?,
            left: dim(left)?,
        },
        adjustment: Size2d { height: dim(rows)?, width: dim(columns)? },
        input_channels: dim(input_channels)?,
        output_channels: dim(output_channels)?,
        fused: checks::activation(options.activation, elem)?,
        arithmetic,
    })
}

/// What to cut off before and behind, and what to add behind, so that `from`
/// pixels become `to`; `None` if they cannot, or not in XNNPACK, which needs a pixel for each phase
/// of the stride but one.
fn border(
    padding: Padding,
    from: usize,
    to: usize,
    kernel: usize,
    stride: usize,
) -> Option<[usize; 3]> {
    let full = from.checked_sub(1)?.checked_mul(stride)?.checked_add(kernel)?;
    if to + 1 < stride {
        return None;
    }
    match padding {
        Padding::Same => {
            // The convolution that this transposes sees `to` pixels.
            if to.div_ceil(stride) != from {
                return None;
            }
            let cut = full.saturating_sub(to);
            Some([cut / 2, cut - cut / 2, to.saturating_sub(full)])
        }
        Padding::Valid => {
            let added = to.checked_sub(full)?;
            (added < stride).then_some([0, 0, added])
        }
    }
}

fn tensors<'a>(view: OpView<'a>) -> Result<(Operand<'a>, Operand<'a>, Operand<'a>), WhyNot> {
    view.arity(2..=3, 1..=1)?;
    Ok((view.input(0)?, view.input(1)?, view.output(0)?))
}

/// What dense and depthwise convolutions share; groups are left to the caller.
fn convolution(
    view: OpView<'_>,
    window: &Window,
    channels: usize,
    channel_axis: usize,
) -> Result<Conv, WhyNot> {
    let (input, filter, output) = tensors(view)?;
    let bias = view.optional_input(2)?;
    checks::nhwc(output)?;
    let [_, kernel_height, kernel_width, _] = checks::nhwc(filter)?;
    let (elem, _) = checks::same_type(input, output)?;
    let arithmetic = arithmetic(elem, input, filter, output, channel_axis)?;
    checks::bias(bias, channels, arithmetic)?;
    let kernel = Size2d {
        height: checks::dim(filter, kernel_height)?,
        width: checks::dim(filter, kernel_width)?,
    };
    let stride = size("stride", window.stride)?;
    let dilation = size("dilation", window.dilation)?;
    let padding = match window.padding {
        Padding::Valid => Border::Explicit(Padding2d::default()),
        Padding::Same => same_border(input, kernel, stride, dilation)?,
    };
    Ok(Conv {
        depthwise: false,
        input: input.id,
        filter: filter.id,
        bias: bias.map(|bias| bias.id),
        output: output.id,
        kernel,
        stride,
        dilation,
        padding,
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        fused: checks::activation(window.activation, elem)?,
        arithmetic,
    })
}

/// Pixels around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    /// TensorFlow's SAME, which XNNPACK works out at run time.
    Same,
    /// So many.
    Explicit(Padding2d),
}

/// SAME: left to XNNPACK, except where a stride skips pixels, which it gets
/// wrong.
fn same_border(
    input: Operand<'_>,
    kernel: Size2d,
    stride: Size2d,
    dilation: Size2d,
) -> Result<Border, WhyNot> {
    let extent = |kernel: u32, dilation: u32| {
        (u64::from(kernel).saturating_sub(1)).saturating_mul(dilation.into()).saturating_add(1)
    };
    let [height, width] =
        [extent(kernel.height, dilation.height), extent(kernel.width, dilation.width)];
    if u64::from(stride.height) <= height && u64::from(stride.width) <= width {
        return Ok(Border::Same);
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
    Ok(Border::Explicit(Padding2d {
        top: vertical / 2,
        bottom: vertical - vertical / 2,
        left: horizontal / 2,
        right: horizontal - horizontal / 2,
    }))
}

/// How floats are multiplied with 8-bit or 4-bit weights. Convolutions have a pixel of the result for each pixel to
/// quantize, which takes as long as about 4000 float multiplications more than integer ones
/// (docs/optimization.md has the figures): with fewer weights, floats are faster. They are more
/// exact, and 16 KiB at most. Fully connected layers mostly have one row, for which nothing is won, and
/// quantize as interpreters do.
fn dynamic(filter: Operand<'_>) -> Arithmetic {
    const FEW_WEIGHTS: usize = 4096;
    let convolves = filter.tensor.rank() == Some(4);
    match filter.tensor.elements() {
        Some(0..FEW_WEIGHTS) if convolves => Arithmetic::WeightsUnpacked,
        _ => Arithmetic::Dynamic,
    }
}

/// Which arithmetic the types of activations and weights ask for.
pub(crate) fn arithmetic(
    elem: Elem,
    input: Operand<'_>,
    filter: Operand<'_>,
    output: Operand<'_>,
    channel_axis: usize,
) -> Result<Arithmetic, WhyNot> {
    checks::constant(filter)?;
    if filter.shape.contains(&0) {
        return Err(WhyNot::Empty { tensor: filter.to_ref() });
    }
    match (elem, filter.tensor.dtype) {
        (Elem::F32, DType::F32 | DType::F16) => Ok(Arithmetic::Float),
        (Elem::F32, DType::I8 | DType::I4) => {
            checks::quantized_weights(filter, channel_axis)?;
            Ok(dynamic(filter))
        }
        (Elem::Q8(q), dtype) if dtype == input.tensor.dtype || (q.signed && dtype == DType::I4) => {
            checks::quantized_weights(filter, channel_axis)?;
            checks::requantization(q, filter, checks::q8(output)?)?;
            Ok(Arithmetic::Quantized)
        }
        (_, dtype) => Err(WhyNot::Type {
            tensor: filter.to_ref(),
            dtype,
            expected: "f32, f16, i8 or i4 weights for f32 activations, their own type or i4 for 8-bit",
        }),
    }
}

/// Height and width of a stride, a dilation or a window.
pub(crate) fn size(name: &'static str, [height, width]: [i32; 2]) -> Result<Size2d, WhyNot> {
    Ok(Size2d { height: checks::positive(name, height)?, width: checks::positive(name, width)? })
}
