//! State of a graph's definition on an XNNPACK subgraph.

use std::collections::HashMap;

use bytes::Bytes;
use xnn_format::{Graph, Node, OutputRange, Value, ValueId};
use xnnpack::{Flags, Subgraph, TensorSpec};

use super::constants::{Roles, roles};
use super::value::{self, Form, missing};
use crate::error::Result;

pub(super) struct Definer<'g> {
    pub(super) graph: &'g Graph,
    pub(super) subgraph: Subgraph,
    /// XNNPACK's ids of the graph's values.
    pub(super) ids: Vec<xnnpack::ValueId>,
    /// Index of the node that is being defined.
    pub(super) current: usize,
    pub(super) origins: Vec<usize>,
    pub(super) sparse: bool,
    pub(super) read_in_place: Vec<Bytes>,
    /// Constants that have been converted to fp32, by form.
    pub(super) widened: HashMap<(ValueId, Form), xnnpack::ValueId>,
}

impl<'g> Definer<'g> {
    /// Defines all values of the graph, in order.
    pub(super) fn new(graph: &'g Graph, storage: &Bytes) -> Result<Self> {
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

    pub(super) fn value(&self, id: ValueId) -> Result<&'g Value> {
        self.graph.value(id).ok_or_else(|| missing(id))
    }

    pub(super) fn id(&self, id: ValueId) -> Result<xnnpack::ValueId> {
        self.ids.get(id.index()).copied().ok_or_else(|| missing(id))
    }

    pub(super) fn define(&mut self, node: impl xnnpack::DefineOperator) -> Result<()> {
        self.subgraph.define(node)?;
        self.origins.push(self.current);
        Ok(())
    }
}

/// Context in which operator families define one node.
pub(super) struct NodeDefiner<'a, 'g> {
    pub(super) definer: &'a mut Definer<'g>,
    pub(super) node: &'g Node,
}

impl<'g> NodeDefiner<'_, 'g> {
    /// A value of the graph.
    pub(super) fn value(&self, id: ValueId) -> Result<&'g Value> {
        self.definer.value(id)
    }

    /// XNNPACK's id of a value.
    pub(super) fn id(&self, id: ValueId) -> Result<xnnpack::ValueId> {
        self.definer.id(id)
    }

    /// XNNPACK's id of an optional operand.
    pub(super) fn optional_id(&self, id: Option<ValueId>) -> Result<Option<xnnpack::ValueId>> {
        id.map(|id| self.id(id)).transpose()
    }

    /// XNNPACK's ids of several values.
    pub(super) fn ids(&self, ids: &[ValueId]) -> Result<Vec<xnnpack::ValueId>> {
        ids.iter().map(|&id| self.id(id)).collect()
    }

    /// Defines a tensor that is not in the graph, for a node that is defined as several XNNPACK
    /// nodes.
    pub(super) fn temporary(&mut self, spec: TensorSpec) -> Result<xnnpack::ValueId> {
        Ok(self.definer.subgraph.define_tensor(spec)?)
    }

    /// Defines an XNNPACK node for this node.
    pub(super) fn define(&mut self, node: impl xnnpack::DefineOperator) -> Result<()> {
        self.definer.define(node)
    }

    /// Bounds of the output.
    pub(super) fn output_range(&self) -> xnnpack::OutputRange {
        let OutputRange { min, max } = self.node.output_range.unwrap_or(OutputRange::UNBOUNDED);
        xnnpack::OutputRange { min, max }
    }

    /// The node's flags, converted with a table of the supported ones.
    pub(super) fn flags(&self, known: &[(u32, Flags)]) -> Flags {
        known
            .iter()
            .filter(|(bit, _)| self.node.flags & bit != 0)
            .fold(Flags::NONE, |flags, &(_, flag)| flags | flag)
    }
}
