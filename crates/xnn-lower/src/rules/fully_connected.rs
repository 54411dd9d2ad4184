//! Partitioning rule for FULLY_CONNECTED.

use xnn_model::Quantization;
use xnn_model::op::{FullyConnectedOptions, WeightsFormat};

use super::activation::{FusedActivation, activation};
use super::checks::{self, Elem};
use super::weights::{Arithmetic, DynamicFilter, Layer, arithmetic, bias as check_bias};
use crate::blockwise;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a fully connected layer.
#[derive(Clone, Debug)]
pub(crate) struct FullyConnected {
    pub layer: Layer,
    /// Shape `[rows, inputs]` to which the input is reshaped first, if it has another shape.
    pub flatten: Option<[usize; 2]>,
    pub fused: FusedActivation,
}

/// Returns the arithmetic for blockwise weights. Weights that XNNPACK cannot multiply are converted
/// to floats.
fn blockwise(
    view: OpView<'_>,
    elem: Elem,
    filter: Operand<'_>,
    inputs: usize,
) -> Result<Arithmetic, WhyNot> {
    checks::constant(filter)?;
    let unsupported = |expected| WhyNot::Quantization { tensor: filter.to_ref(), expected };
    if !elem.is_f32() {
        return Err(unsupported("blockwise weights for f32 activations"));
    }
    if blockwise::packed(view.graph, filter.tensor).is_some() {
        return Ok(Arithmetic::Dynamic(DynamicFilter::Blockwise));
    }
    match blockwise::unpacked(view.graph, filter.tensor) {
        Some(weights) if weights.len().is_multiple_of(inputs) => Ok(Arithmetic::WeightsUnpacked),
        _ => Err(unsupported("blocks that divide the rows, with constant f32 or f16 scales")),
    }
}

/// Rule for FULLY_CONNECTED.
pub(crate) fn fully_connected(
    view: OpView<'_>,
    options: &FullyConnectedOptions,
) -> Result<FullyConnected, WhyNot> {
    view.arity(2..=3, 1..=1)?;
    let (input, filter, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let bias = view.optional_input(2)?;
    if options.weights_format != WeightsFormat::Default {
        return Err(WhyNot::Attribute {
            name: "weights_format",
            value: format!("{:?}", options.weights_format),
            expected: "DEFAULT",
        });
    }
    checks::rank(filter, 2, "2 (outputs, inputs)")?;
    let (outputs, inputs) = match *filter.shape {
        [outputs, inputs] if outputs > 0 && inputs > 0 => (outputs, inputs),
        _ => return Err(WhyNot::Empty { tensor: filter.to_ref() }),
    };
    let (elem, _) = checks::same_type(input, output)?;
    let arithmetic = match filter.tensor.quantization {
        Some(Quantization::Blockwise { .. }) => blockwise(view, elem, filter, inputs)?,
        _ => arithmetic(elem, input, filter, output, 0)?,
    };
    check_bias(bias, outputs, arithmetic)?;
    let rows = input.tensor.elements().unwrap_or(0) / inputs;
    let shape_error = |expected: String| WhyNot::Shape { tensor: input.to_ref(), expected };
    let flatten = if options.keep_num_dims {
        if input.shape.last() != Some(&inputs) {
            return Err(shape_error(format!("the last dimension must be {inputs}")));
        }
        None
    } else {
        if rows.checked_mul(inputs) != input.tensor.elements() {
            return Err(shape_error(format!("its elements do not divide into rows of {inputs}")));
        }
        (input.shape.len() != 2 || input.shape[1] != inputs).then_some([rows, inputs])
    };
    Ok(FullyConnected {
        layer: Layer::new([input, filter, output], bias, arithmetic, 1),
        flatten,
        fused: activation(options.activation, elem)?,
    })
}
