//! Definition of a graph's values and nodes on an XNNPACK subgraph.
//!
//! One file per operator family; [`node`] says which family a node belongs to.

mod attention;
mod conv;
mod elementwise;
mod fully_connected;
mod matmul;
mod pool;
mod probe;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod value;
mod widen;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use xnn_format::{Graph, Node, NodeOp, OutputRange, Value, ValueId, readable_behind};
use xnnpack::{AlignedBuffer, ExternalId, Flags, Role, StaticData, Subgraph, TensorSpec};

use crate::error::{NodePlace, Result, RuntimeError};

/// A graph on its way to XNNPACK.
pub(crate) struct Defined {
    /// Everything that XNNPACK needs to make a runtime.
    pub(crate) subgraph: Subgraph,
    /// For each node of the subgraph, the graph's node that it is for.
    pub(crate) origins: Vec<usize>,
    /// Whether sparse kernels are used, which write to their packed weights.
    pub(crate) sparse: bool,
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
    let Definer { subgraph, origins, sparse, .. } = definer;
    Ok(Defined { subgraph, origins, sparse })
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
    /// Constants that have been made fp32, and whether for products only.
    widened: HashMap<(ValueId, bool), xnnpack::ValueId>,
}

impl<'g> Definer<'g> {
    /// With all values of the graph defined, in their order, so that XNNPACK numbers them alike.
    fn new(graph: &'g Graph, storage: &Bytes) -> Result<Self> {
        let roles = roles(graph, storage)?;
        let mut subgraph = Subgraph::new()?;
        let mut ids = Vec::with_capacity(graph.values.len());
        for (index, (value, role)) in graph.values.iter().zip(roles).enumerate() {
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

/// Up to so many bytes, runs read a constant in a copy: one byte that is read of a file takes in megabytes around it
/// where the system keeps it in pieces of that size.
const SMALL: usize = 4096;

/// The constants that runs read where they lie, if they are aligned.
pub(crate) fn read_in_place(graph: &Graph) -> impl Iterator<Item = &Bytes> {
    let packed: HashSet<ValueId> = graph.nodes.iter().flat_map(packed_inputs).collect();
    let values = (0u32..).map(ValueId).zip(&graph.values);
    let unpacked = values.filter(move |(id, _)| !packed.contains(id));
    unpacked.filter_map(|(_, value)| value.data.as_ref()).filter(|data| data.len() > SMALL)
}

/// The part that each value plays.
fn roles(graph: &Graph, storage: &Bytes) -> Result<Vec<Role>> {
    let packed: HashSet<ValueId> = graph.nodes.iter().flat_map(packed_inputs).collect();
    let mut copies = Copies::default();
    let mut role = |(id, value): (ValueId, &Value)| {
        let Some(data) = &value.data else { return Ok(Role::Internal) };
        let element = value.datatype.byte_size(&[1]).unwrap_or(1);
        let is_aligned = data.as_ptr().addr().is_multiple_of(element);
        Ok(Role::Static(match is_aligned && (data.len() > SMALL || packed.contains(&id)) {
            true => static_data(data, storage)?,
            false => copies.of(data)?,
        }))
    };
    let ids = (0u32..).map(ValueId);
    let mut roles = ids.zip(&graph.values).map(&mut role).collect::<Result<Vec<Role>>>()?;
    for (position, &id) in graph.inputs.iter().enumerate() {
        *roles.get_mut(id.index()).ok_or_else(|| missing(id))? = Role::Input(input_id(position));
    }
    for (position, &id) in graph.outputs.iter().enumerate() {
        let role = roles.get_mut(id.index()).ok_or_else(|| missing(id))?;
        *role = Role::Output(output_id(graph, position));
    }
    Ok(roles)
}

/// What of a node's operands XNNPACK packs, so that runs do not read it.
fn packed_inputs(node: &Node) -> Vec<ValueId> {
    match node.op {
        NodeOp::Conv2d(_)
        | NodeOp::DepthwiseConv2d(_)
        | NodeOp::ConvTranspose2d(_)
        | NodeOp::FullyConnected { .. }
        | NodeOp::BatchMatrixMultiply { .. } => node.inputs().into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

/// Copies of constants that are small, or not aligned to their elements. Any number of values may share the bytes of a
/// file, and then they share the copy.
#[derive(Default)]
struct Copies(HashMap<(usize, usize), StaticData>);

impl Copies {
    fn of(&mut self, data: &Bytes) -> Result<StaticData> {
        match self.0.entry((data.as_ptr().addr(), data.len())) {
            Entry::Occupied(copy) => Ok(copy.get().clone()),
            Entry::Vacant(place) => {
                Ok(place.insert(AlignedBuffer::try_copy_of(data)?.into()).clone())
            }
        }
    }
}

/// A constant, with its surroundings as padding where they are in `storage`.
pub(crate) fn static_data(data: &Bytes, storage: &Bytes) -> Result<StaticData> {
    let Some(behind) = readable_behind(data, storage) else {
        return Ok(StaticData::new(data.clone()));
    };
    let end = storage.len() - behind;
    Ok(StaticData::from_slice_of(storage, end - data.len()..end)?)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use xnn_format::{Datatype, Quantization};

    use super::*;

    /// The constants of values of `len` bytes that share one piece of `file`, `offset` bytes behind aligned ones.
    /// Those of the first `packed` are filters.
    fn constants(
        file: &Bytes,
        [offset, len]: [usize; 2],
        datatypes: &[Datatype],
        packed: u32,
    ) -> Vec<StaticData> {
        let value = |&datatype: &Datatype| Value {
            data: Some(file.slice(offset..offset + len)),
            ..Value::new(datatype, Quantization::None, &[2])
        };
        let values = datatypes.iter().map(value).collect();
        let [input, output] = [ValueId(100), ValueId(101)];
        let node = |filter| {
            let filter = ValueId(filter);
            Node::new(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false })
        };
        let nodes = (0..packed).map(node).collect();
        let roles = roles(&Graph { values, nodes, ..Graph::default() }, file);
        let constant = |role| if let Role::Static(data) = role { Some(data) } else { None };
        roles.unwrap().into_iter().filter_map(constant).collect()
    }

    fn file(len: usize) -> Bytes {
        Bytes::from_owner(AlignedBuffer::of(&vec![7u8; len]))
    }

    fn lies_in(constant: &StaticData, file: &Bytes) -> bool {
        file.as_ptr_range().contains(&constant.bytes().as_ptr())
    }

    #[test]
    fn values_that_share_bytes_share_their_copy() {
        let file = file(32);
        for offset in [0, 1, 4, 6] {
            let constants = constants(&file, [offset, 8], &[Datatype::F32; 3], 3);
            assert_eq!(constants.len(), 3);
            for constant in &constants {
                assert_eq!(constant.bytes(), [7; 8]);
                assert_eq!(constant.bytes().as_ptr(), constants[0].bytes().as_ptr());
                assert!(constant.bytes().as_ptr().addr().is_multiple_of(4));
                assert_eq!(lies_in(constant, &file), offset.is_multiple_of(4));
            }
        }
        let constants = constants(&file, [1, 8], &[Datatype::F32, Datatype::QInt8], 2);
        let [float, byte] = <[_; 2]>::try_from(constants).unwrap();
        assert!(!lies_in(&float, &file));
        assert!(lies_in(&byte, &file), "bytes lie well anywhere");
    }

    #[test]
    fn small_constants_that_runs_read_are_copied() {
        let file = file(SMALL + 64);
        for (len, packed, copied) in
            [(4, 0, true), (SMALL, 0, true), (SMALL + 4, 0, false), (4, 1, false)]
        {
            let constants = constants(&file, [0, len], &[Datatype::F32], packed);
            assert_eq!(constants[0].bytes().len(), len);
            assert_eq!(lies_in(&constants[0], &file), !copied, "{len} {packed}");
        }
    }
}
