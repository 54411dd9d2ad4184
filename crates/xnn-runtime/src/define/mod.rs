//! Definition of a graph's values and nodes on an XNNPACK subgraph.
//!
//! One file per operator family; [`node`] says which family a node belongs to.

mod attention;
mod constants;
mod conv;
mod elementwise;
mod fp16_weights;
mod fully_connected;
mod matmul;
mod pool;
mod probe;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod value;

use std::collections::HashMap;

use bytes::Bytes;
use xnn_format::{Graph, Node, NodeOp, OutputRange, Value, ValueId};
use xnnpack::{ExternalId, Flags, Subgraph, TensorSpec};

pub(crate) use self::constants::static_data;
use self::constants::{Roles, roles};
use self::fp16_weights::Form;
pub(crate) use self::fully_connected::has_few_rows;
use crate::error::{NodePlace, Result, RuntimeError};

/// A graph on its way to XNNPACK.
pub(crate) struct Defined {
    /// Everything that XNNPACK needs to make a runtime.
    pub(crate) subgraph: Subgraph,
    /// For each node of the subgraph, the graph's node that it is for.
    pub(crate) origins: Vec<usize>,
    /// Whether sparse kernels are used, which write to their packed weights.
    pub(crate) sparse: bool,
    /// Constants that runs read where they lie.
    pub(crate) read_in_place: Vec<Bytes>,
}

/// External id of the input at this position.
pub(crate) fn input_id(position: usize) -> ExternalId {
    // Positions are below the number of values, which are numbered with 32 bits.
    ExternalId(position as u32)
}

/// External id of the output at this position; they follow those of the inputs.
pub(crate) fn output_id(graph: &Graph, position: usize) -> ExternalId {
    input_id(graph.inputs.len() + position)
}

/// Defines all of `graph`, which has been checked. What follows a constant in `storage` serves as
/// its padding.
pub(crate) fn graph(graph: &Graph, storage: &Bytes) -> Result<Defined> {
    let mut definer = Definer::new(graph, storage)?;
    for (index, node) in graph.nodes.iter().enumerate() {
        definer.current = index;
        self::node(&mut NodeDefiner { definer: &mut definer, node })
            .map_err(|error| error.at(NodePlace::new(graph, index)))?;
    }
    let Definer { subgraph, origins, sparse, read_in_place, .. } = definer;
    Ok(Defined { subgraph, origins, sparse, read_in_place })
}

fn node(cx: &mut NodeDefiner<'_, '_>) -> Result<()> {
    match &cx.node.op {
        NodeOp::Unary { op, input, output } => elementwise::unary(cx, *op, *input, *output),
        NodeOp::Binary { op, inputs, output } => elementwise::binary(cx, *op, *inputs, *output),
        NodeOp::Conv2d(conv) => conv::conv_2d(cx, conv),
        NodeOp::DepthwiseConv2d(conv) => conv::depthwise_conv_2d(cx, conv),
        NodeOp::ConvTranspose2d(conv) => conv::conv_transpose_2d(cx, conv),
        NodeOp::FullyConnected { input, filter, bias, output, sparse } => {
            fully_connected::fully_connected(cx, *input, *filter, *bias, *output, *sparse)
        }
        NodeOp::BatchMatrixMultiply { inputs, output } => {
            matmul::batch_matrix_multiply(cx, *inputs, *output)
        }
        NodeOp::AveragePooling2d(window) => pool::average_pooling_2d(cx, window),
        NodeOp::MaxPooling2d(window) => pool::max_pooling_2d(cx, window),
        NodeOp::ArgMaxPooling2d { window, index } => pool::argmax_pooling_2d(cx, window, *index),
        NodeOp::Unpooling2d { window, index } => pool::unpooling_2d(cx, window, *index),
        NodeOp::GlobalAveragePooling2d { input, output } => {
            reduce::global_average_pooling_2d(cx, *input, *output)
        }
        NodeOp::StaticReduce { op, axes, input, output } => {
            reduce::static_reduce(cx, *op, axes, *input, *output)
        }
        NodeOp::Softmax { input, output } => softmax::softmax(cx, *input, *output),
        NodeOp::Concatenate { axis, inputs, output } => {
            shape::concatenate(cx, *axis, inputs, *output)
        }
        NodeOp::EvenSplit { axis, input, outputs } => shape::even_split(cx, *axis, *input, outputs),
        NodeOp::StaticReshape { new_shape, input, output } => {
            shape::static_reshape(cx, new_shape, *input, *output)
        }
        NodeOp::StaticExpandDims { new_axes, input, output } => {
            shape::static_expand_dims(cx, new_axes, *input, *output)
        }
        NodeOp::StaticTranspose { perm, input, output } => {
            shape::static_transpose(cx, perm, *input, *output)
        }
        NodeOp::StaticSlice { offsets, sizes, input, output } => {
            shape::static_slice(cx, offsets, sizes, *input, *output)
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, input, output } => {
            let paddings = [pre_paddings.as_slice(), post_paddings];
            shape::static_constant_pad(cx, paddings, *padding_value, *input, *output)
        }
        NodeOp::DepthToSpace2d { block_size, input, output } => {
            shape::depth_to_space_2d(cx, *block_size, *input, *output)
        }
        NodeOp::SpaceToDepth2d { block_size, input, output } => {
            shape::space_to_depth_2d(cx, *block_size, *input, *output)
        }
        NodeOp::StaticResizeBilinear2d { new_height, new_width, input, output } => {
            resize::static_resize_bilinear_2d(cx, [*new_height, *new_width], *input, *output)
        }
        NodeOp::Rope { max_tokens: _, input, weights, output } => {
            attention::rope(cx, *input, *weights, *output)
        }
        NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output } => {
            let operands = [*query, *key, *value, *scale, *mask];
            attention::scaled_dot_product_attention(cx, operands, *output)
        }
        _ => Err(RuntimeError::unsupported("the runtime does not know this kind of node")),
    }
}

struct Definer<'g> {
    graph: &'g Graph,
    subgraph: Subgraph,
    /// XNNPACK's id of each value of the graph.
    ids: Vec<xnnpack::ValueId>,
    /// The node that is being defined.
    current: usize,
    origins: Vec<usize>,
    sparse: bool,
    read_in_place: Vec<Bytes>,
    /// Constants that have been made fp32, and whether for products only.
    widened: HashMap<(ValueId, Form), xnnpack::ValueId>,
}

impl<'g> Definer<'g> {
    /// With all values of the graph defined, in their order, so that XNNPACK numbers them alike.
    fn new(graph: &'g Graph, storage: &Bytes) -> Result<Self> {
        let Roles { of_values, read_in_place } = roles(graph, storage)?;
        let mut subgraph = Subgraph::new()?;
        subgraph.reserve(graph.values.len());
        let mut ids = Vec::with_capacity(graph.values.len());
        for (index, (value, role)) in graph.values.iter().zip(of_values).enumerate() {
            let id = value::spec(value, role)
                .and_then(|spec| Ok(subgraph.define_tensor(spec)?))
                .map_err(|error| error.of_value(graph, index))?;
            ids.push(id);
        }
        Ok(Self {
            graph,
            subgraph,
            ids,
            current: 0,
            origins: Vec::new(),
            sparse: false,
            read_in_place,
            widened: HashMap::new(),
        })
    }

    fn value(&self, id: ValueId) -> Result<&'g Value> {
        self.graph.value(id).ok_or_else(|| missing(id))
    }

    fn id(&self, id: ValueId) -> Result<xnnpack::ValueId> {
        self.ids.get(id.index()).copied().ok_or_else(|| missing(id))
    }

    fn define(&mut self, node: impl xnnpack::Node) -> Result<()> {
        self.subgraph.define(node)?;
        self.origins.push(self.current);
        Ok(())
    }
}

fn missing(id: ValueId) -> RuntimeError {
    RuntimeError::graph(format!("value {} does not exist", id.0))
}

/// What the families need to define one node.
struct NodeDefiner<'a, 'g> {
    definer: &'a mut Definer<'g>,
    node: &'g Node,
}

impl<'g> NodeDefiner<'_, 'g> {
    /// The graph's value.
    fn value(&self, id: ValueId) -> Result<&'g Value> {
        self.definer.value(id)
    }

    /// XNNPACK's id of a value.
    fn id(&self, id: ValueId) -> Result<xnnpack::ValueId> {
        self.definer.id(id)
    }

    /// XNNPACK's id of an operand that may be left out.
    fn optional_id(&self, id: Option<ValueId>) -> Result<Option<xnnpack::ValueId>> {
        id.map(|id| self.id(id)).transpose()
    }

    /// XNNPACK's ids of several values.
    fn ids(&self, ids: &[ValueId]) -> Result<Vec<xnnpack::ValueId>> {
        ids.iter().map(|&id| self.id(id)).collect()
    }

    /// A tensor that the graph does not have, for a node that XNNPACK needs several nodes for.
    fn temporary(&mut self, spec: TensorSpec) -> Result<xnnpack::ValueId> {
        Ok(self.definer.subgraph.define_tensor(spec)?)
    }

    /// Defines an XNNPACK node on behalf of this one.
    fn define(&mut self, node: impl xnnpack::Node) -> Result<()> {
        self.definer.define(node)
    }

    /// Bounds of the result.
    fn output_range(&self) -> xnnpack::OutputRange {
        let OutputRange { min, max } = self.node.output_range.unwrap_or(OutputRange::UNBOUNDED);
        xnnpack::OutputRange { min, max }
    }

    /// The node's flags in XNNPACK's terms, by a table of those that it can have.
    fn flags(&self, known: &[(u32, Flags)]) -> Flags {
        known
            .iter()
            .filter(|(bit, _)| self.node.flags & bit != 0)
            .fold(Flags::NONE, |flags, &(_, flag)| flags | flag)
    }
}
