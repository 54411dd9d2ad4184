//! May CONV_2D and DEPTHWISE_CONV_2D go?

use xnn_format::Size2d;
use xnn_model::op::{Activation, Conv2dOptions, DepthwiseConv2dOptions, Padding};
use xnn_model::{DType, TensorId};

use super::checks::{self, Arithmetic, Elem, Fused};
use crate::view::{OpView, TensorView};
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
    pub same_padding: bool,
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

pub(crate) fn conv_2d(view: OpView<'_>, options: &Conv2dOptions) -> Result<Conv, WhyNot> {
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
    Ok(Conv {
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
    Ok(Conv {
        depthwise: true,
        groups: checks::dim(input, input_channels)?,
        group_input_channels: 1,
        group_output_channels: checks::dim(filter, output_channels / input_channels)?,
        output: output.id,
        // XNNPACK has no depthwise kernel for dynamically quantized inputs.
        arithmetic: match conv.arithmetic {
            Arithmetic::Dynamic => Arithmetic::WeightsUnpacked,
            other => other,
        },
        ..conv
    })
}

fn tensors<'a>(
    view: OpView<'a>,
) -> Result<(TensorView<'a>, TensorView<'a>, TensorView<'a>), WhyNot> {
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
    Ok(Conv {
        depthwise: false,
        input: input.id,
        filter: filter.id,
        bias: bias.map(|bias| bias.id),
        output: output.id,
        kernel: Size2d {
            height: checks::dim(filter, kernel_height)?,
            width: checks::dim(filter, kernel_width)?,
        },
        stride: size("stride", window.stride)?,
        dilation: size("dilation", window.dilation)?,
        same_padding: window.padding == Padding::Same,
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        fused: checks::activation(window.activation, elem)?,
        arithmetic,
    })
}

/// Which arithmetic the types of activations and weights ask for.
pub(crate) fn arithmetic(
    elem: Elem,
    input: TensorView<'_>,
    filter: TensorView<'_>,
    output: TensorView<'_>,
    channel_axis: usize,
) -> Result<Arithmetic, WhyNot> {
    checks::constant(filter)?;
    if filter.shape.contains(&0) {
        return Err(WhyNot::Empty { tensor: filter.to_ref() });
    }
    match (elem, filter.tensor.dtype) {
        (Elem::F32, DType::F32) => Ok(Arithmetic::Float),
        (Elem::F32, DType::I8) => {
            checks::weights_q8(filter, channel_axis)?;
            Ok(Arithmetic::Dynamic)
        }
        (Elem::Q8(q), dtype) if dtype == input.tensor.dtype => {
            checks::weights_q8(filter, channel_axis)?;
            checks::requantization(q, filter, checks::q8(output)?)?;
            Ok(Arithmetic::Quantized)
        }
        (_, dtype) => Err(WhyNot::Type {
            tensor: filter.to_ref(),
            dtype,
            expected: "f32 or i8 weights for f32 activations, the activations' type for 8-bit",
        }),
    }
}

/// Height and width of a stride, a dilation or a window.
pub(crate) fn size(name: &'static str, [height, width]: [i32; 2]) -> Result<Size2d, WhyNot> {
    Ok(Size2d { height: checks::positive(name, height)?, width: checks::positive(name, width)? })
}
