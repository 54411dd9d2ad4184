//! Partitioning rule for TRANSPOSE_CONV.

use xnn_format::{Padding2d, Size2d};
use xnn_model::op::{Padding, TransposeConvOptions};

use super::activation::{FusedActivation, activation};
use super::checks;
use super::conv::size;
use super::weights::{Layer, arithmetic, bias as check_bias};
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a transposed convolution.
#[derive(Clone, Debug)]
pub(crate) struct TransposeConv {
    pub layer: Layer,
    pub kernel: Size2d,
    pub stride: Size2d,
    /// Rows and columns to remove from the result.
    pub padding: Padding2d,
    /// Rows and columns to add at the bottom and right.
    pub adjustment: Size2d,
    pub input_channels: u32,
    pub output_channels: u32,
    pub fused: FusedActivation,
}

/// Rule for TRANSPOSE_CONV.
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

/// Plans a transposed convolution whose result has the shape of `output`.
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
    check_bias(bias, output_channels, arithmetic)?;
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
        layer: Layer::new([input, filter, output], bias, arithmetic, 3),
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
        fused: activation(options.activation, elem)?,
    })
}

/// Returns the pixels to remove before and after the result, and the pixels to add after it, so
/// that `from` pixels become `to`. Returns `None` if that is impossible, or not supported by
/// XNNPACK, which needs a pixel for each phase of the stride but one.
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
            let removed = full.saturating_sub(to);
            Some([removed / 2, removed - removed / 2, to.saturating_sub(full)])
        }
        Padding::Valid => {
            let added = to.checked_sub(full)?;
            (added < stride).then_some([0, 0, added])
        }
    }
}
