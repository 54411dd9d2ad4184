//! May AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D go?

use xnn_format::Size2d;
use xnn_model::TensorId;
use xnn_model::op::{Padding, Pool2dOptions};

use super::checks::{self, Fused};
use super::conv::size;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// A pooling that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub kind: PoolKind,
    pub input: TensorId,
    pub output: TensorId,
    pub kernel: Size2d,
    pub stride: Size2d,
    pub same_padding: bool,
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
    checks::nhwc(input)?;
    checks::nhwc(output)?;
    let elem = checks::same_elem(input, output)?;
    if kind == PoolKind::L2 {
        checks::f32_operand(input)?;
    }
    let kernel = size("filter size", [options.filter_height, options.filter_width])?;
    let stride = size("stride", [options.stride_h, options.stride_w])?;
    if stride.height > kernel.height || stride.width > kernel.width {
        return Err(WhyNot::Attribute {
            name: "stride",
            value: format!("{}x{}", stride.height, stride.width),
            expected: "at most the filter size",
        });
    }
    Ok(Pool {
        kind,
        input: input.id,
        output: output.id,
        kernel,
        stride,
        same_padding: options.padding == Padding::Same,
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
