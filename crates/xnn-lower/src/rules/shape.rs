//! Partitioning rules for operators that only move data.
//!
//! Input and output must have the same quantization: interpreters ignore a difference.

use xnn_format::UnaryOp;
use xnn_model::op::{Activation, ConcatenationOptions, Op, PackOptions};
use xnn_model::{DType, TensorId};

use super::checks;
use super::elementwise::unary_in_8_bits;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// The first dimension of a new shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadingDim {
    /// Inferred from the number of elements, because it depends on the batch.
    Inferred,
    /// Fixed to its value when the model was lowered.
    Fixed,
}

impl LeadingDim {
    pub fn inferred_if(depends_on_batch: bool) -> Self {
        if depends_on_batch { Self::Inferred } else { Self::Fixed }
    }

    /// Returns the shape for XNNPACK, which infers a dimension of 0.
    pub fn apply(self, shape: &[usize]) -> Vec<usize> {
        let mut shape = shape.to_vec();
        if let (Self::Inferred, Some(first)) = (self, shape.first_mut()) {
            *first = 0;
        }
        shape
    }
}

/// Plan for giving elements another shape.
#[derive(Clone, Debug)]
pub(crate) struct Reshape {
    pub input: TensorId,
    pub output: TensorId,
    /// Contains at most one 0, which XNNPACK infers.
    pub new_shape: Vec<usize>,
    /// See [`flags::OPEN_DIMENSION`](xnn_format::flags::OPEN_DIMENSION).
    pub is_open: bool,
}

/// Rule for RESHAPE, SQUEEZE and EXPAND_DIMS.
pub(crate) fn reshape(view: OpView<'_>) -> Result<Reshape, WhyNot> {
    view.arity(1..=2, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_elem(input, output)?;
    if input.tensor.elements() != output.tensor.elements() {
        return Err(WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!("{:?} cannot become {:?}", input.shape, output.shape),
        });
    }
    let open = open_dimension(view, input, output);
    let mut new_shape = output.shape.to_vec();
    let (OpenDimension::ByModel(axis) | OpenDimension::ForBatch(axis)) = open else {
        return Ok(Reshape { input: input.id, output: output.id, new_shape, is_open: false });
    };
    if let Some(dim) = new_shape.get_mut(axis) {
        *dim = 0;
    }
    let is_open = matches!(open, OpenDimension::ByModel(_));
    Ok(Reshape { input: input.id, output: output.id, new_shape, is_open })
}

/// The dimension of a reshape's output that follows from the number of elements.
#[derive(Clone, Copy)]
enum OpenDimension {
    /// No dimension: all sizes are fixed.
    None,
    /// The dimension that the model leaves open.
    ByModel(usize),
    /// The dimension that depends on the batch. Others may depend on other dimensions of the input.
    ForBatch(usize),
}

fn open_dimension(view: OpView<'_>, input: Operand<'_>, output: Operand<'_>) -> OpenDimension {
    let first =
        |is_batch: bool| if is_batch { OpenDimension::ForBatch(0) } else { OpenDimension::None };
    let keeps_batch = input.shape.first() == output.shape.first();
    match &view.operator.op {
        Op::Reshape(options) => {
            let stored = options.new_shape.iter().flatten().map(|&dim| i64::from(dim));
            let requested = view.input(1).and_then(checks::constant_ints);
            let requested = requested.unwrap_or_else(|_| stored.collect());
            // The sizes may depend on a batch, which is then in the first one. Otherwise the model
            // has no other batch.
            let has_batch = keeps_batch || output.shape.first() != Some(&1);
            match requested.iter().position(|&dim| dim == -1) {
                None => first(has_batch),
                Some(axis) => match view.writer(1) {
                    None => OpenDimension::ByModel(axis),
                    // `[batch, -1, channels]`, but not if the first element is a constant of the
                    // model.
                    Some(shape) if keeps_batch && shape.writer(0).is_some() => {
                        OpenDimension::ForBatch(0)
                    }
                    Some(_) => OpenDimension::ForBatch(axis),
                },
            }
        }
        // The input's first dimension becomes the second if the new dimension is the first.
        Op::ExpandDims => {
            let axis = view.input(1).and_then(|axis| checks::one_axis(axis, output));
            axis.map_or(OpenDimension::None, |axis| OpenDimension::ForBatch(usize::from(axis == 0)))
        }
        Op::Squeeze(options) if options.squeeze_dims.is_empty() => {
            first(keeps_batch && input.shape.first() != Some(&1))
        }
        Op::Squeeze(options) => {
            let rank = input.shape.len();
            let removed = |&axis: &i32| checks::axis(axis.into(), rank).is_ok_and(|axis| axis == 0);
            first(!options.squeeze_dims.iter().any(removed))
        }
        _ => OpenDimension::None,
    }
}

/// Plan for reordering dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Transpose {
    pub input: TensorId,
    pub output: TensorId,
    pub perm: Vec<usize>,
}

/// Rule for TRANSPOSE.
pub(crate) fn transpose(view: OpView<'_>) -> Result<Transpose, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, order, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let rank = input.shape.len();
    let perm = checks::constant_ints(order)?
        .into_iter()
        .map(|value| checks::axis(value, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank) {
        return Err(WhyNot::Shape {
            tensor: order.to_ref(),
            expected: format!("{perm:?} is not an order of {rank} dimensions"),
        });
    }
    Ok(Transpose { input: input.id, output: output.id, perm })
}

/// Plan for adding a constant border.
#[derive(Clone, Debug)]
pub(crate) struct Pad {
    pub input: TensorId,
    pub output: TensorId,
    pub pre: Vec<usize>,
    pub post: Vec<usize>,
    /// The real value, not the quantized one.
    pub value: f32,
}

/// Rule for PAD and PADV2.
pub(crate) fn pad(view: OpView<'_>) -> Result<Pad, WhyNot> {
    view.arity(2..=3, 1..=1)?;
    let (input, paddings, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let amounts = checks::constant_ints(paddings)?
        .into_iter()
        .map(usize::try_from)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| WhyNot::Attribute {
            name: "paddings",
            value: "negative".into(),
            expected: "at least 0",
        })?;
    let (pairs, rest) = amounts.as_chunks::<2>();
    if pairs.len() != input.shape.len() || !rest.is_empty() {
        return Err(WhyNot::Shape {
            tensor: paddings.to_ref(),
            expected: format!("needs a pair for each of {} dimensions", input.shape.len()),
        });
    }
    let value = match view.optional_input(2)? {
        None => 0.0,
        Some(value) => scalar(value, input)?,
    };
    Ok(Pad {
        input: input.id,
        output: output.id,
        pre: pairs.iter().map(|[pre, _]| *pre).collect(),
        post: pairs.iter().map(|[_, post]| *post).collect(),
        value,
    })
}

/// Returns the real value of a constant with one element, which has the type and quantization of
/// `like`.
fn scalar(t: Operand<'_>, like: Operand<'_>) -> Result<f32, WhyNot> {
    checks::constant(t)?;
    let one = |n: usize| n == 1;
    let value = match checks::same_elem(t, like)? {
        checks::Elem::F32 => t.tensor.constant_floats().filter(|v| one(v.len())).map(|v| v[0]),
        checks::Elem::Q8(q) => t
            .tensor
            .constant_ints()
            .filter(|v| one(v.len()))
            .map(|v| (v[0] - i64::from(q.zero_point)) as f32 * q.scale),
    };
    value
        .ok_or_else(|| WhyNot::Shape { tensor: t.to_ref(), expected: "must be one element".into() })
}

/// Plan for joining values along a dimension.
#[derive(Clone, Debug)]
pub(crate) struct Concatenation {
    pub inputs: Vec<Joined>,
    pub output: TensorId,
    pub axis: usize,
    /// Whether the axis is new, so that inputs lack it.
    pub new_axis: bool,
}

/// An input of a concatenation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub id: TensorId,
    pub conversion: Conversion,
}

/// How an input is converted to the output's quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// It has the output's quantization.
    None,
    /// One node.
    Node,
    /// Two nodes, through floats, because XNNPACK cannot convert between these scales in 8 bits.
    ThroughFloat,
}

/// Rule for CONCATENATION.
pub(crate) fn concatenation(
    view: OpView<'_>,
    options: &ConcatenationOptions,
) -> Result<Concatenation, WhyNot> {
    view.arity(1..=usize::MAX, 1..=1)?;
    let (inputs, output) = (view.inputs()?, view.output(0)?);
    if options.activation != Activation::None {
        return Err(WhyNot::Attribute {
            name: "fused_activation_function",
            value: format!("{:?}", options.activation),
            expected: "NONE",
        });
    }
    let axis = checks::axis(options.axis.into(), output.shape.len())?;
    let mut joined = Vec::with_capacity(inputs.len());
    for input in &inputs {
        // Interpreters convert unsigned operands of this operator, but of no other one.
        let (from, to) = if output.tensor.dtype == DType::U8 {
            checks::same_type(*input, output)?
        } else {
            let elem = checks::same_elem(*input, output)?;
            (elem, elem)
        };
        let conversion = if from == to {
            Conversion::None
        } else if unary_in_8_bits(UnaryOp::Convert, from, to) {
            Conversion::Node
        } else {
            Conversion::ThroughFloat
        };
        joined.push(Joined { id: input.id, conversion });
        checks::usable(*input)?;
        let fits = input.shape.len() == output.shape.len()
            && (0..output.shape.len()).all(|d| d == axis || input.shape[d] == output.shape[d]);
        if !fits {
            return Err(WhyNot::Shape {
                tensor: input.to_ref(),
                expected: format!("{:?} is not part of {:?}", input.shape, output.shape),
            });
        }
    }
    Ok(Concatenation { inputs: joined, output: output.id, axis, new_axis: false })
}

/// Rule for PACK, which joins values along a new dimension.
pub(crate) fn pack(view: OpView<'_>, options: &PackOptions) -> Result<Concatenation, WhyNot> {
    view.arity(1..=usize::MAX, 1..=1)?;
    let (inputs, output) = (view.inputs()?, view.output(0)?);
    let axis = checks::axis(options.axis.into(), output.shape.len())?;
    for input in &inputs {
        checks::same_elem(*input, output)?;
        let mut joined = output.shape.to_vec();
        joined.remove(axis);
        if input.shape != joined {
            return Err(WhyNot::Shape {
                tensor: input.to_ref(),
                expected: format!("{:?} is not a slice of {:?}", input.shape, output.shape),
            });
        }
    }
    Ok(Concatenation {
        inputs: inputs.iter().map(|t| Joined { id: t.id, conversion: Conversion::None }).collect(),
        output: output.id,
        axis,
        new_axis: true,
    })
}
