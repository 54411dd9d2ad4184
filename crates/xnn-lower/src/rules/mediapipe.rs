//! Partitioning rules for MediaPipe's custom operators Convolution2DTransposeBias,
//! MaxPoolingWithArgmax2D and MaxUnpooling2D.
//!
//! Their custom options are the first fields of TFLite's C structures in little-endian order.

use xnn_format::Size2d;
use xnn_model::op::{CustomOptions, Padding, TransposeConvOptions};
use xnn_model::{DType, Op, TensorId};

use super::checks;
use super::conv::size;
use super::transpose_conv::{self, TransposeConv};
use crate::view::{OpView, Operand};
use crate::why_not::{NamedTensor, WhyNot};

const ARGMAX_POOLING: &str = "MaxPoolingWithArgmax2D";
const UNPOOLING: &str = "MaxUnpooling2D";
const TRANSPOSE_CONV: &str = "Convolution2DTransposeBias";

/// Names of all custom operators that can be delegated.
pub(crate) const CUSTOM_OPERATORS: [&str; 3] = [ARGMAX_POOLING, UNPOOLING, TRANSPOSE_CONV];

/// Plan for a custom operator.
pub(crate) enum CustomPlan {
    ArgMaxPool(ArgMaxPool),
    TransposeConv(TransposeConv),
}

/// Plan for a maximum pooling that also returns positions, or for its inverse. Strides equal the
/// window.
#[derive(Clone, Debug)]
pub(crate) struct ArgMaxPool {
    pub unpool: bool,
    pub input: TensorId,
    pub output: TensorId,
    /// Positions in the window, in XNNPACK's own representation.
    pub index: TensorId,
    pub kernel: Size2d,
}

/// Rule for custom operators.
pub(crate) fn custom(view: OpView<'_>, options: &CustomOptions) -> Result<CustomPlan, WhyNot> {
    match options.code.as_str() {
        ARGMAX_POOLING => argmax_pooling(view, options).map(CustomPlan::ArgMaxPool),
        UNPOOLING => unpooling(view, options).map(CustomPlan::ArgMaxPool),
        TRANSPOSE_CONV => transpose_conv_bias(view, options).map(CustomPlan::TransposeConv),
        op => Err(WhyNot::UnsupportedOperator { op: op.escape_debug().to_string() }),
    }
}

fn argmax_pooling(view: OpView<'_>, options: &CustomOptions) -> Result<ArgMaxPool, WhyNot> {
    view.arity(1..=1, 2..=2)?;
    let (input, output, index) = (view.input(0)?, view.output(0)?, view.output(1)?);
    // There is no common representation of positions outside XNNPACK.
    let escapes = view.graph.outputs.contains(&index.id)
        || view.graph.operators.iter().any(|operator| {
            let is_unpooling = matches!(&operator.op, Op::Custom(o) if o.code == UNPOOLING);
            operator.inputs.contains(&Some(index.id)) && !is_unpooling
        });
    if escapes {
        return Err(WhyNot::Shape {
            tensor: index.to_ref(),
            expected: "only MaxUnpooling2D may read positions".into(),
        });
    }
    pool(input, output, index.id, options, false)
}

fn unpooling(view: OpView<'_>, options: &CustomOptions) -> Result<ArgMaxPool, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, index, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let producer = view.graph.operators.iter().find(|o| o.outputs.contains(&index.id));
    if !matches!(producer.map(|o| &o.op), Some(Op::Custom(o)) if o.code == ARGMAX_POOLING) {
        return Err(WhyNot::Shape {
            tensor: index.to_ref(),
            expected: "positions must come from MaxPoolingWithArgmax2D".into(),
        });
    }
    pool(input, output, index.id, options, true)
}

fn pool(
    input: Operand<'_>,
    output: Operand<'_>,
    index: TensorId,
    options: &CustomOptions,
    unpool: bool,
) -> Result<ArgMaxPool, WhyNot> {
    for t in [input, output] {
        checks::nhwc(t)?;
        float(t)?;
    }
    let [padding, stride_w, stride_h, filter_w, filter_h] = fields(options)?;
    let kernel = size("filter size", [filter_h, filter_w])?;
    if size("stride", [stride_h, stride_w])? != kernel || kernel == Size2d::ONE {
        return Err(WhyNot::Attribute {
            name: "stride",
            value: format!("{stride_h}x{stride_w}"),
            expected: "the filter size, which is more than 1x1",
        });
    }
    self::padding(padding)?;
    // If windows cover the image exactly, SAME and VALID are equal.
    let image = checks::nhwc(if unpool { output } else { input })?;
    let [_, height, width, _] = image;
    if height % kernel.height as usize != 0 || width % kernel.width as usize != 0 {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("{height}x{width} does not divide into windows of {kernel:?}"),
        });
    }
    Ok(ArgMaxPool { unpool, input: input.id, output: output.id, index, kernel })
}

/// Rule for a TRANSPOSE_CONV with other inputs. The output's shape is that of the tensor.
fn transpose_conv_bias(view: OpView<'_>, options: &CustomOptions) -> Result<TransposeConv, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, filter, bias, output) =
        (view.input(0)?, view.input(1)?, view.input(2)?, view.output(0)?);
    for t in [input, filter, bias, output] {
        float(t)?;
    }
    let [padding, stride_w, stride_h] = fields(options)?;
    let options = TransposeConvOptions {
        padding: self::padding(padding)?,
        stride_w,
        stride_h,
        ..TransposeConvOptions::default()
    };
    transpose_conv::transposed(input, filter, Some(bias), output, &options)
}

fn float(t: Operand<'_>) -> Result<(), WhyNot> {
    match t.tensor.dtype {
        DType::F32 => Ok(()),
        dtype => {
            Err(WhyNot::Type { tensor: NamedTensor::new(t.id, t.tensor), dtype, expected: "f32" })
        }
    }
}

/// The first `N` 32-bit fields of the custom options.
fn fields<const N: usize>(options: &CustomOptions) -> Result<[i32; N], WhyNot> {
    let words = options.options.as_chunks::<4>().0;
    let fields: Vec<i32> = words.iter().take(N).map(|word| i32::from_le_bytes(*word)).collect();
    <[i32; N]>::try_from(fields).map_err(|_| WhyNot::Attribute {
        name: "custom options",
        value: format!("{} bytes", options.options.len()),
        expected: "the fields of TFLite's structure",
    })
}

/// TFLite's `TfLitePadding`.
fn padding(code: i32) -> Result<Padding, WhyNot> {
    match code {
        1 => Ok(Padding::Same),
        2 => Ok(Padding::Valid),
        code => Err(WhyNot::Attribute {
            name: "padding",
            value: code.to_string(),
            expected: "1 (SAME) or 2 (VALID)",
        }),
    }
}
