//! Shape inference for graphs.
//!
//! Kernels rely on the shapes of weights and operands without comparing them, so this module
//! compares all shapes that must match. Dimensions that a graph gives for computed values are hints
//! and not used, with two exceptions where XNNPACK uses them ([`check`]).

mod arrange;
mod image;
mod matrix;
mod shapes;

use crate::error::{Error, Result, require};
use crate::graph::Graph;
use crate::limits::{GraphLimits, MAX_RANK, at_most};
use crate::node::{Node, NodeOp};
use crate::parameters::BinaryOp;
use crate::value::{Quantization, ValueId};
use crate::wire::size;
pub(crate) use image::pointers;
use shapes::{Dims, Shapes};

impl Graph {
    /// Infers the dimensions of all values, one entry per value, from those of the inputs. Values
    /// that no node writes keep their dimensions. Values may have a dimension of 0 only if an input
    /// does.
    ///
    /// # Errors
    /// The first node whose operands do not match; values and indirection pointers that exceed the
    /// limits.
    pub fn shapes(&self, inputs: &[&[usize]], limits: &GraphLimits) -> Result<Vec<Vec<usize>>> {
        require!(
            inputs.len() == self.inputs.len(),
            "{} shapes for {} inputs",
            inputs.len(),
            self.inputs.len()
        );
        let mut shapes = Shapes {
            dims: self.values.iter().map(|value| value.dims.clone()).collect(),
            may_be_empty: inputs.iter().any(|dims| dims.contains(&0)),
        };
        for (&id, &dims) in self.inputs.iter().zip(inputs) {
            self.set(&mut shapes, id, dims.to_vec(), limits)
                .map_err(|error| error.in_value(id.index()))?;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            self.infer(node, &mut shapes, limits)
                .map_err(|error| error.in_node(index, node.op.kind()))?;
        }
        Ok(shapes.dims)
    }

    fn infer(&self, node: &Node, shapes: &mut Shapes, limits: &GraphLimits) -> Result<()> {
        let results = results(node, shapes)?;
        let result = results.first().map_or(&[][..], Vec::as_slice);
        let pointers = pointers(&node.op, result, |id| shapes.of(id).unwrap_or(&[]));
        at_most("the size in bytes of pointers into the image", pointers, limits.max_value_bytes)?;
        node.outputs()
            .into_iter()
            .zip(results)
            .try_for_each(|(id, dims)| self.set(shapes, id, dims, limits))
    }

    fn set(
        &self,
        shapes: &mut Shapes,
        id: ValueId,
        dims: Dims,
        limits: &GraphLimits,
    ) -> Result<()> {
        at_most("the rank", dims.len(), MAX_RANK)?;
        require!(
            shapes.may_be_empty || !dims.contains(&0),
            "value {} would have no elements: its shape is {dims:?}",
            id.0
        );
        let size = self.value(id).and_then(|value| value.datatype.byte_size(&dims));
        at_most("the size in bytes", size.unwrap_or(usize::MAX), limits.max_value_bytes)?;
        if let Some(slot) = shapes.dims.get_mut(id.index()) {
            *slot = dims;
        }
        Ok(())
    }
}

/// Infers the shapes for the input dimensions stated in the graph, and compares them with the
/// stated dimensions where XNNPACK uses those.
pub(crate) fn check(graph: &Graph, limits: &GraphLimits) -> Result<()> {
    let inputs: Vec<&[usize]> = graph
        .inputs
        .iter()
        .filter_map(|&id| graph.value(id))
        .map(|value| value.dims.as_slice())
        .collect();
    let shapes = graph.shapes(&inputs, limits)?;
    for (index, (value, shape)) in graph.values.iter().zip(&shapes).enumerate() {
        // XNNPACK allocates memory for scales by the hint unless the value grows.
        if let Quantization::Dynamic { num_nonbatch_dims } = value.quantization {
            let rows = |dims: &[usize]| {
                let batch = dims.len().checked_sub(num_nonbatch_dims)?;
                dims.get(..batch).map(|dims| dims.iter().product::<usize>())
            };
            if rows(shape).is_none() || rows(shape) != rows(&value.dims) {
                let error = Error::invalid(format!(
                    "the dynamically quantized rows of {:?} differ from those of the inferred shape {shape:?}",
                    value.dims
                ));
                return Err(error.in_value(index));
            }
        }
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        // XNNPACK counts the axes from the end of the hint.
        if let NodeOp::GlobalAveragePooling2d { input, .. } = node.op {
            let hint = graph.value(input).map(|value| &value.dims);
            let shape = shapes.get(input.index());
            if hint.map(Vec::len) != shape.map(Vec::len) {
                let error = Error::invalid(format!("the operand is {shape:?} instead of {hint:?}"));
                return Err(error.in_node(index, node.op.kind()));
            }
        }
    }
    Ok(())
}

/// The dimensions of a node's outputs.
fn results(node: &Node, shapes: &Shapes) -> Result<Vec<Dims>> {
    let one = |dims: Dims| Ok(vec![dims]);
    match &node.op {
        NodeOp::Unary { input, .. } => one(shapes.of(*input)?.to_vec()),
        NodeOp::Softmax { input, .. } => {
            let dims = shapes.of(*input)?;
            require!(!dims.is_empty(), "expected at least 1 dimension, found a scalar");
            one(dims.to_vec())
        }
        NodeOp::Binary { op, inputs: [a, b], .. } => {
            let dims = arrange::broadcast(shapes.of(*a)?, shapes.of(*b)?)?;
            require!(
                *op != BinaryOp::Prelu || dims == shapes.of(*a)?,
                "slopes of shape {:?} do not broadcast to {:?}",
                shapes.of(*b)?,
                shapes.of(*a)?
            );
            one(dims)
        }
        NodeOp::Conv2d(conv) => one(image::convolution(conv, node.flags, shapes)?),
        NodeOp::DepthwiseConv2d(conv) => one(image::depthwise(conv, node.flags, shapes)?),
        NodeOp::ConvTranspose2d(conv) => one(image::conv_transpose(conv, shapes)?),
        NodeOp::FullyConnected { input, filter, bias, .. } => {
            one(matrix::fully_connected(*input, *filter, *bias, node.flags, shapes)?)
        }
        NodeOp::BatchMatrixMultiply { inputs: [a, b], .. } => {
            one(matrix::batch_matrix_multiply(shapes.of(*a)?, shapes.of(*b)?, node.flags)?)
        }
        NodeOp::AveragePooling2d(window) | NodeOp::MaxPooling2d(window) => {
            one(image::pooling(window, node.flags, shapes)?)
        }
        NodeOp::ArgMaxPooling2d { window, .. } => {
            let dims = image::pooling(window, node.flags, shapes)?;
            Ok(vec![dims.clone(), dims])
        }
        NodeOp::Unpooling2d { window, index } => one(image::unpooling(window, *index, shapes)?),
        NodeOp::GlobalAveragePooling2d { input, .. } => {
            let dims = shapes.of(*input)?;
            let Some(height) = dims.len().checked_sub(3) else {
                return Err(Error::invalid(format!("{dims:?} has no height, width and channels")));
            };
            one(arrange::reduce(dims, &[height, height + 1], node.flags)?)
        }
        NodeOp::StaticReduce { axes, input, .. } => {
            one(arrange::reduce(shapes.of(*input)?, axes, node.flags)?)
        }
        NodeOp::Concatenate { axis, inputs, .. } => {
            one(arrange::concatenate(*axis, inputs, shapes)?)
        }
        NodeOp::EvenSplit { axis, input, outputs } => {
            let mut dims = shapes.of(*input)?.to_vec();
            let dim = arrange::axis_of(&mut dims, *axis)?;
            require!(
                dim.is_multiple_of(outputs.len()),
                "{dim} cannot be split into {} equal parts",
                outputs.len()
            );
            *dim /= outputs.len();
            Ok(vec![dims; outputs.len()])
        }
        NodeOp::StaticReshape { new_shape, input, .. } => {
            one(arrange::reshape(shapes.of(*input)?, new_shape)?)
        }
        NodeOp::StaticExpandDims { new_axes, input, .. } => {
            let mut dims = shapes.of(*input)?.to_vec();
            for &axis in new_axes {
                require!(axis <= dims.len(), "the new axis {axis} is out of range for {dims:?}");
                dims.insert(axis, 1);
            }
            one(dims)
        }
        NodeOp::StaticTranspose { perm, input, .. } => {
            let dims = shapes.of(*input)?;
            require!(perm.len() == dims.len(), "{perm:?} cannot permute {dims:?}");
            one(perm.iter().filter_map(|&dim| dims.get(dim).copied()).collect())
        }
        NodeOp::StaticSlice { offsets, sizes, input, .. } => {
            one(arrange::slice(shapes.of(*input)?, offsets, sizes)?)
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, input, .. } => {
            one(arrange::pad(shapes.of(*input)?, pre_paddings, post_paddings)?)
        }
        NodeOp::StaticResizeBilinear2d { new_height, new_width, input, .. } => {
            let [batch, _, _, channels] = shapes.rank(*input)?;
            one(vec![batch, *new_height, *new_width, channels])
        }
        NodeOp::DepthToSpace2d { block_size, input, .. } => {
            let [batch, height, width, channels] = shapes.rank(*input)?;
            let block = size(*block_size);
            let area = arrange::product(&[block, block])?;
            require!(
                channels.is_multiple_of(area),
                "{channels} channels do not divide into {block} x {block} blocks"
            );
            let (height, width) =
                (arrange::product(&[height, block])?, arrange::product(&[width, block])?);
            one(vec![batch, height, width, channels / area])
        }
        NodeOp::SpaceToDepth2d { block_size, input, .. } => {
            let [batch, height, width, channels] = shapes.rank(*input)?;
            let block = size(*block_size);
            require!(
                height.is_multiple_of(block) && width.is_multiple_of(block),
                "{height} x {width} pixels do not divide into {block} x {block} blocks"
            );
            let channels = arrange::product(&[channels, block, block])?;
            one(vec![batch, height / block, width / block, channels])
        }
        NodeOp::Rope { max_tokens, input, weights, .. } => {
            let dims = shapes.of(*input)?;
            let &[.., tokens, _, channels] = dims else {
                return Err(Error::invalid(format!("{dims:?} has no tokens, heads and channels")));
            };
            require!(
                tokens <= *max_tokens,
                "{tokens} tokens, but the weights are for {max_tokens}"
            );
            require!(channels.is_multiple_of(2), "{channels} channels do not divide into pairs");
            let weights = shapes.of(*weights)?;
            require!(
                weights.ends_with(&[*max_tokens, channels]),
                "weights of {weights:?} instead of [{max_tokens}, {channels}]"
            );
            one(dims.to_vec())
        }
        NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, .. } => {
            let of = |id: &ValueId| shapes.of(*id);
            one(matrix::attention(of(query)?, of(key)?, of(value)?, of(scale)?, of(mask)?)?)
        }
    }
}
