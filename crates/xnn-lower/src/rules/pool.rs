//! Partitioning rules for AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D.

use xnn_format::Size2d;
use xnn_model::TensorId;
use xnn_model::op::{Activation, Padding, Pool2dOptions};

use super::activation::{FusedActivation, activation};
use super::checks::{self, Elem, Q8};
use super::conv::size;
use super::gather::{GatheredAxis, Run};
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a pooling.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub form: PoolForm,
    pub input: TensorId,
    pub output: TensorId,
    /// Elements to gather along an axis first, so that windows with gaps between them become
    /// adjacent.
    pub windows: Vec<GatheredAxis>,
    pub kernel: Size2d,
    /// At most the kernel.
    pub stride: Size2d,
    pub same_padding: bool,
    pub fused: FusedActivation,
}

/// The nodes that compute a pooling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PoolForm {
    /// A clamp, for averages and maxima of one pixel, which XNNPACK's poolings do not support.
    OnePixel,
    /// A maximum pooling.
    Max,
    /// An average pooling of floats.
    Average,
    /// The mean of a whole image, which is faster. Sums of rows of floats are divided in the order of
    /// interpreters.
    ImageAverage,
    /// An average pooling of floats between conversions of 8-bit integers, which XNNPACK's average
    /// poolings do not support.
    QuantizedAverage(Q8),
    /// An average pooling of integers in floats, whose sums are exact, for large windows.
    IntegerAverage(Q8),
    /// The root of an average of squares.
    RootMeanSquare,
    /// The root of squares, for windows of one pixel.
    RootSquare,
}

/// The function of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Average,
    /// The root of the mean square, for floats only.
    L2,
    Max,
}

/// Rule for poolings.
pub(crate) fn pool_2d(
    view: OpView<'_>,
    options: &Pool2dOptions,
    kind: PoolKind,
) -> Result<Pool, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let elem = checks::same_elem(input, output)?;
    if kind == PoolKind::L2 {
        checks::f32_operand(input)?;
    }
    let kernel = size("filter size", [options.filter_height, options.filter_width])?;
    let stride = size("stride", [options.stride_h, options.stride_w])?;
    let (windows, stride) = windows(input, output, kernel, stride)?;
    let is_image = checks::nhwc(output)?[1..3] == [1, 1] && is_image(input, kernel);
    let form = match (kind, elem) {
        (PoolKind::L2, _) if kernel == Size2d::ONE => PoolForm::RootSquare,
        (PoolKind::L2, _) => PoolForm::RootMeanSquare,
        _ if kernel == Size2d::ONE => PoolForm::OnePixel,
        (PoolKind::Max, _) => PoolForm::Max,
        (PoolKind::Average, elem) if is_image && has_exact_mean(elem, kernel, options) => {
            PoolForm::ImageAverage
        }
        (PoolKind::Average, Elem::Q8(q)) if area(kernel) <= MAX_FLOAT_MEAN => {
            PoolForm::QuantizedAverage(q)
        }
        (PoolKind::Average, Elem::Q8(q)) if area(kernel) <= MAX_INTEGER_MEAN => {
            PoolForm::IntegerAverage(q)
        }
        (PoolKind::Average, Elem::Q8(_)) => {
            return Err(WhyNot::Attribute {
                name: "filter size",
                value: format!("{}x{}", kernel.height, kernel.width),
                expected: "at most 4096 pixels for averages of 8-bit integers, or 8192 and odd for \
                           that of an image",
            });
        }
        (PoolKind::Average, Elem::F32) => PoolForm::Average,
    };
    Ok(Pool {
        form,
        input: input.id,
        output: output.id,
        windows,
        kernel,
        stride,
        same_padding: options.padding == Padding::Same,
        fused: match activation(options.activation, elem)? {
            FusedActivation::Tanh => {
                return Err(WhyNot::Attribute {
                    name: "fused_activation_function",
                    value: "TANH".into(),
                    expected: "NONE, RELU, RELU_N1_TO_1 or RELU6",
                });
            }
            fused => fused,
        },
    })
}

/// Whether a window of `kernel` pixels is a whole image of the input, for any batch.
fn is_image(input: Operand<'_>, kernel: Size2d) -> bool {
    let [_, height, width, _] = input.shape else { return false };
    let [rows, columns] = [kernel.height, kernel.width].map(|pixels| pixels as usize);
    (*height, *width) == (rows, columns) && !input.is_dynamic(1) && !input.is_dynamic(2)
}

/// Whether the mean of an image is what interpreters compute. XNNPACK does not bound means of
/// integers, and rounds ties to even. An odd number of integers has no ties.
fn has_exact_mean(elem: Elem, kernel: Size2d, options: &Pool2dOptions) -> bool {
    let area = area(kernel);
    elem.is_f32() || options.activation == Activation::None && area % 2 == 1 && area <= MAX_ODD_MEAN
}

/// Pixels of a window.
fn area(kernel: Size2d) -> u64 {
    u64::from(kernel.height) * u64::from(kernel.width)
}

/// The most integers, an odd number, whose mean is certainly closer to its float, which is off by
/// less than 255 / 2^22, than to a tie, from which it is `1 / (2 * area)` away.
const MAX_ODD_MEAN: u64 = 1 << 13;

/// The most pixels whose mean can be rounded as interpreters round it (`lower::pool::settle_ties`),
/// although each pixel and each sum is rounded to a float: `area + 3` roundings of up to 255 / 2^24
/// are less than `1 / (4 * area)`.
const MAX_FLOAT_MEAN: u64 = 100;

/// The most pixels if they are integers, whose sums are exact: three roundings remain.
const MAX_INTEGER_MEAN: u64 = 1 << 12;

/// Replaces strides larger than the kernel, which XNNPACK does not support: the windows are
/// gathered first, and then adjacent. Returns what to gather, and the new stride.
fn windows(
    input: Operand<'_>,
    output: Operand<'_>,
    kernel: Size2d,
    stride: Size2d,
) -> Result<(Vec<GatheredAxis>, Size2d), WhyNot> {
    let [_, height, width, _] = checks::nhwc(input)?;
    let [_, rows, columns, _] = checks::nhwc(output)?;
    let mut gathered = Vec::new();
    let mut along = |axis, size: usize, count: usize, window: u32, step: u32| {
        if step <= window {
            return Ok(step);
        }
        let (width, distance) = (window as usize, step as usize);
        let reach = count.saturating_sub(1).saturating_mul(distance).saturating_add(width);
        if reach > size {
            return Err(WhyNot::Attribute {
                name: "stride",
                value: step.to_string(),
                expected: "at most the filter size where a window reaches over the edge",
            });
        }
        gathered.push((axis, vec![Run { start: 0, width, step: distance, count }]));
        Ok(window)
    };
    let stride = Size2d {
        height: along(1, height, rows, kernel.height, stride.height)?,
        width: along(2, width, columns, kernel.width, stride.width)?,
    };
    Ok((gathered, stride))
}
