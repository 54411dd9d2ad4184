//! Constants of a subgraph, and the nodes that read them.

use std::collections::{HashMap, HashSet};

use super::Subgraph;
use super::context::{Value, index};
use crate::fp16_weights::Fp16Weights;
use crate::static_data::StaticData;
use crate::value::Role;

/// Identifies a node in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKey {
    pub(crate) subgraph: u64,
    pub(crate) node: usize,
}

/// Constant operand of exactly one node.
pub(crate) struct Filter {
    pub(crate) node: NodeKey,
    pub(crate) data: StaticData,
}

impl Subgraph {
    /// Total size of all constants that nodes read, as packed, in bytes.
    pub(crate) fn static_bytes(&self) -> usize {
        let fp16 = self.nodes().iter().filter_map(|node| index(node.operator.fp16_filter()?));
        let packed_as_fp16: HashSet<usize> = fp16.collect();
        let bytes = |(index, value): (usize, &Value)| match &value.role {
            Role::Static(data) => data.bytes().len(),
            Role::Fp16Weights(weights) if packed_as_fp16.contains(&index) => {
                weights.data().bytes().len()
            }
            Role::Fp16Weights(weights) => weights.byte_size(),
            _ => 0,
        };
        let read = self.values().iter().enumerate().filter(|(_, value)| value.consumed);
        read.map(bytes).fold(0, usize::saturating_add)
    }

    /// Constants that are stored in fp16.
    pub(crate) fn fp16_weights(&self) -> impl Iterator<Item = &Fp16Weights> {
        self.values().iter().filter_map(|value| match &value.role {
            Role::Fp16Weights(weights) => Some(weights),
            _ => None,
        })
    }

    /// Nodes by the address of their constant operands; `None` for an operand of several nodes.
    pub(crate) fn nodes_by_data(&self) -> HashMap<usize, Option<Filter>> {
        let mut nodes = HashMap::new();
        for node in self.nodes() {
            for id in node.operator.links().inputs {
                let value = index(id).and_then(|index| self.values().get(index));
                let (start, data) = match value.map(|value| &value.role) {
                    Some(Role::Static(data)) => (data.start(), data),
                    Some(Role::Fp16Weights(weights)) => (weights.start(), weights.data()),
                    _ => continue,
                };
                let node = NodeKey { subgraph: self.token, node: node.reference.index };
                nodes
                    .entry(start.addr())
                    .and_modify(|shared| *shared = None)
                    .or_insert_with(|| Some(Filter { node, data: data.clone() }));
            }
        }
        nodes
    }
}
