//! Digests of graphs and their constants.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::encode::{self, Placement};
use crate::graph::Graph;
use crate::node::Node;
use crate::value::Value;

/// XXH3-128 of `bytes`: detects accidental changes, not forgery.
#[must_use]
pub fn digest(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Digest of a graph without its constants and its origin.
#[must_use]
pub fn graph_digest(graph: &Graph) -> u128 {
    // Every constant gets a place of its own, without a search for equal constants.
    let mut end = 0;
    let mut places = Vec::new();
    let of_value = graph.values.iter().map(|value| {
        let data = value.data.as_ref()?;
        places.push(end..end + data.len() as u64);
        end += data.len() as u64;
        Some(places.len() - 1)
    });
    let of_value = of_value.collect();
    digest(&encode::graph(graph, &Placement { places, of_value }))
}

/// Digest of everything that packed weights depend on except the elements of constants: nodes that
/// read constants, dimensions of constants, element types and quantization of all values. Other
/// shapes of computed values do not change it, unless a parameter of such a node depends on them.
#[must_use]
pub fn packing_digest(graph: &Graph) -> u128 {
    let reads_constant = |node: &&Node| {
        let is_constant = |id| graph.value(id).is_some_and(|value| value.data.is_some());
        node.inputs().into_iter().any(is_constant)
    };
    let values = graph.values.iter().map(|value| match &value.data {
        Some(_) => value.clone(),
        None => Value { dims: Vec::new(), ..value.clone() },
    });
    graph_digest(&Graph {
        values: values.collect(),
        nodes: graph.nodes.iter().filter(reads_constant).cloned().collect(),
        ..Graph::default()
    })
}

/// Digest of all constants of a graph, in the order of the values. Reads every byte.
#[must_use]
pub fn constants_digest(graph: &Graph) -> u128 {
    let mut hash = Xxh3Default::new();
    for data in graph.values.iter().filter_map(|value| value.data.as_deref()) {
        hash.update(data);
    }
    hash.digest128()
}
