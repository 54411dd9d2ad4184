//! Reads the typed graph from the flatbuffer.

mod constants;
mod ids;
mod node;
mod scales;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result, require};
use crate::generated::graph::{XNNGraph, root_as_xnngraph_with_opts};
use crate::graph::{Graph, Origin};
use crate::limits::{GraphLimits, at_most};
use crate::node::{Node, NodeOp};
use crate::parameters::UnaryOp;
use crate::source::ConstantSource;
use crate::value::{Datatype, Quantization, Value, ValueId};
use constants::Constants;
use ids::Ids;
use scales::Scales;
use value::External;

/// The parts of a file that hold a graph.
pub(crate) struct Parts<'a> {
    /// The whole file.
    pub(crate) file: &'a Bytes,
    /// The flatbuffer in `file`.
    pub(crate) flatbuffer: &'a [u8],
    /// Byte range of the constants in `file`; `None` for bare flatbuffers.
    pub(crate) constants: Option<Range<u64>>,
    /// Source of named constants.
    pub(crate) named: &'a dyn ConstantSource,
}

/// Verifies the flatbuffer and reads the graph. Does not call [`Graph::check`].
pub(crate) fn graph(parts: &Parts<'_>, limits: &GraphLimits) -> Result<Graph> {
    let verifier = limits.verifier(parts.flatbuffer.len());
    let root = root_as_xnngraph_with_opts(&verifier, parts.flatbuffer)?;
    require!(
        root.xvalues().is_some() && root.xnodes().is_some(),
        "the lists of values and nodes are missing"
    );
    let mut reader = Reader::default();
    reader.values(&root, &constants(parts, &root))?;
    let inputs = externals("input", &reader.inputs, root.num_externs())?;
    let outputs = externals("output", &reader.outputs, root.num_externs())?;
    if let Some(id) = reader.inputs.keys().find(|id| reader.outputs.contains_key(id)) {
        return Err(Error::invalid(format!("external id {id} is an input and an output")));
    }
    at_most("the number of external values", inputs.len() + outputs.len(), limits.max_externals)?;
    reader.quantize_inputs();
    reader.nodes(&root)?;
    let Reader { values, nodes, .. } = reader;
    Ok(Graph { values, nodes, inputs, outputs, origin: Origin::default() })
}

fn constants<'a>(parts: &Parts<'a>, root: &XNNGraph<'a>) -> Constants<'a> {
    match &parts.constants {
        Some(region) => Constants::After {
            file: parts.file,
            region: region.clone(),
            entries: root.constant_data(),
            named: parts.named,
        },
        None => Constants::Inside { file: parts.file, buffers: root.constant_buffer() },
    }
}

#[derive(Default)]
struct Reader {
    values: Vec<Value>,
    nodes: Vec<Node>,
    ids: Ids,
    inputs: BTreeMap<u32, ValueId>,
    outputs: BTreeMap<u32, ValueId>,
    /// Ids and values of XN00 inputs that nodes read in quantized form.
    quantized_inputs: Vec<(u32, ValueId)>,
}

impl Reader {
    fn values(&mut self, root: &XNNGraph<'_>, constants: &Constants<'_>) -> Result<()> {
        let mut scales = Scales::default();
        for (index, value) in root.xvalues().iter().flatten().enumerate() {
            value::value(&value, constants, &mut scales)
                .and_then(|definition| self.define(index, definition))
                .map_err(|error| error.in_value(index))?;
        }
        Ok(())
    }

    fn define(&mut self, index: usize, definition: value::Definition) -> Result<()> {
        let value = ValueId(u32::try_from(index).map_err(|_| Error::invalid("too many values"))?);
        self.ids.define(definition.id, value)?;
        let previous = match definition.external {
            Some(External::Input(id)) => self.inputs.insert(id, value),
            Some(External::Output(id)) => self.outputs.insert(id, value),
            None => None,
        };
        require!(previous.is_none(), "its external id is also used by another value");
        if definition.quantize_input {
            require!(
                matches!(definition.external, Some(External::Input(_))),
                "only inputs can have a dq_datatype"
            );
            self.quantized_inputs.push((definition.id, value));
        }
        self.values.push(definition.value);
        Ok(())
    }

    /// Inserts the conversions that XN00 leaves to its readers: nodes read the quantized form of
    /// these inputs, with one scale per row.
    fn quantize_inputs(&mut self) {
        for (id, input) in std::mem::take(&mut self.quantized_inputs) {
            let Some(value) = self.values.get(input.index()) else { continue };
            let quantization = Quantization::Dynamic { num_nonbatch_dims: 1 };
            let output = ValueId(self.values.len() as u32);
            self.values.push(Value::new(Datatype::QdInt8, quantization, &value.dims.clone()));
            self.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Convert, input, output }));
            self.ids.redefine(id, output);
        }
    }

    fn nodes(&mut self, root: &XNNGraph<'_>) -> Result<()> {
        for (index, node) in root.xnodes().iter().flatten().enumerate() {
            let node = node::node(&node, &self.ids)
                .map_err(|error| error.in_node(index, node::kind(&node)))?;
            self.nodes.push(node);
        }
        Ok(())
    }
}

/// The values in the order of their external ids. Like upstream's readers, uses the external ids of
/// the values and not the graph's lists of inputs and outputs.
fn externals(what: &str, values: &BTreeMap<u32, ValueId>, count: u32) -> Result<Vec<ValueId>> {
    if let Some((&id, &value)) = values.last_key_value().filter(|&(&id, _)| id >= count) {
        let error = Error::invalid(format!(
            "{what} has external id {id}, but the graph has {count} external values"
        ));
        return Err(error.in_value(value.index()));
    }
    Ok(values.values().copied().collect())
}
