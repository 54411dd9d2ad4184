//! May AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D go?

use xnn_format::Size2d;
use xnn_model::TensorId;
use xnn_model::op::{Padding, Pool2dOptions};

use super::checks::{self, Fused};
use super::conv::size;
use super::gather::{GatheredAxis, Run};
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// A pooling that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub kind: PoolKind,
    pub input: TensorId,
    pub output: TensorId,
    /// What is picked along an axis first, so that windows lie side by side that did not.
    pub windows: Vec<GatheredAxis>,
    pub kernel: Size2d,
    /// At most the kernel.
    pub stride: Size2d,
    pub same_padding: bool,
    /// Whether the one window of floats is the whole image, whatever the batch.
    pub of_image: bool,
    pub fused: Fused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Average,
    /// The root of the mean square, of floats.
    L2,
    Max,
}

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
    Ok(Pool {
        kind,
        input: input.id,
        output: output.id,
        windows,
        kernel,
        stride,
        same_padding: options.padding == Padding::Same,
        of_image: elem.is_f32() && is_image(input, kernel) && checks::nhwc(output)?[1..3] == [1, 1],
        fused: match checks::activation(options.activation, elem)? {
            Fused::Tanh => {
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

/// Whether a window of `kernel` pixels is a whole image of the input.
fn is_image(input: Operand<'_>, kernel: Size2d) -> bool {
    let [_, height, width, _] = input.shape else { return false };
    let [rows, columns] = [kernel.height, kernel.width].map(|pixels| pixels as usize);
    (*height, *width) == (rows, columns) && !input.is_dynamic(1) && !input.is_dynamic(2)
}

/// Windows with elements between them, which XNNPACK does not have, as picks and a smaller stride.
fn windows(
    input: Operand<'_>,
    output: Operand<'_>,
    kernel: Size2d,
    stride: Size2d,
) -> Result<(Vec<GatheredAxis>, Size2d), WhyNot> {
    let [_, height, width, _] = checks::nhwc(input)?;
    let [_, rows, columns, _] = checks::nhwc(output)?;
    let mut picks = Vec::new();
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
        picks.push((axis, vec![Run { start: 0, width, step: distance, count }]));
        Ok(window)
    };
    let stride = Size2d {
        height: along(1, height, rows, kernel.height, stride.height)?,
        width: along(2, width, columns, kernel.width, stride.width)?,
    };
    Ok((picks, stride))
}
