//! Weights that were packed elsewhere and may be right.
//!
//! XNNPACK asks for weights without saying how long they must be, and takes what it gets for its
//! own. So that a file may be wrong without harm, an offer is used only
//!
//! - where XNNPACK packs all the same (it does for transposed convolutions): if the bytes are equal;
//! - where it does not: if the length is the one that XNNPACK names when it has created the
//!   operator, or when it is asked (see [`probe`](super::probe)). Until then nothing is read.
//!
//! Of each kind of node the smallest is packed and compared, so that weights of another model, or
//! for another processor, are noticed. What then is left to trust are numbers: no microkernel for
//! dense weights takes an address or an index out of them. (Sparse ones do; their weights are in no
//! cache.)

use std::collections::HashMap;

use super::slab::Piece;
use super::{NodeSeed, PackedNode, PackedWeights};
use crate::subgraph::Subgraph;
use crate::value::Datatype;

/// Largest weights, in bytes, that are packed only to be compared.
const MAX_WITNESS: usize = 1 << 16;

/// What is offered to the nodes of subgraphs that have no runtime yet.
#[derive(Default)]
pub(super) struct Offers {
    offers: HashMap<NodeSeed, Offer>,
    /// Offers that XNNPACK was told to use, without having said how long they must be.
    claims: Vec<NodeSeed>,
    /// An offer was wrong: none is to be used.
    refused: Option<NodeSeed>,
    /// Offers that were right.
    used: usize,
}

struct Offer {
    weights: PackedWeights,
    /// Not to be used unless it is what XNNPACK packs.
    witness: bool,
}

impl Offers {
    /// Takes note of weights for nodes of `subgraph`.
    pub(super) fn add(&mut self, subgraph: &Subgraph, packed: Vec<PackedNode>) {
        let mut smallest: HashMap<Kind, (usize, NodeSeed)> = HashMap::new();
        for PackedNode { node, seed, weights } in packed {
            let Some(kind) = kind(subgraph, node) else { continue };
            let at = NodeSeed { subgraph: subgraph.token(), node, seed };
            let size = weights.bytes().len();
            if size <= MAX_WITNESS {
                let least = smallest.entry(kind).or_insert((size, at));
                *least = (*least).min((size, at));
            }
            self.offers.insert(at, Offer { weights, witness: false });
        }
        for (_, at) in smallest.values() {
            if let Some(offer) = self.offers.get_mut(at) {
                offer.witness = true;
            }
        }
    }

    /// Whether there are any for this subgraph.
    pub(super) fn are_for(&self, subgraph: u64) -> bool {
        self.offers.keys().any(|at| at.subgraph == subgraph)
    }

    /// The weights for XNNPACK to use, if there are any that need no comparison.
    pub(super) fn claim(&mut self, at: NodeSeed) -> Option<PackedWeights> {
        let offer = self.offers.get(&at).filter(|offer| !offer.witness)?;
        if !self.claims.contains(&at) {
            self.claims.push(at);
        }
        Some(offer.weights.clone())
    }

    /// Claims that XNNPACK has not confirmed.
    pub(super) fn claimed(&self) -> Vec<NodeSeed> {
        self.claims.clone()
    }

    /// Settles a claim: XNNPACK reads `size` bytes. `None` if that is not what there is.
    pub(super) fn confirm(&mut self, at: NodeSeed, size: usize) -> Option<PackedWeights> {
        self.claims.retain(|claim| *claim != at);
        let offer = self.offers.get(&at)?;
        if offer.weights.bytes().len() != size {
            self.refused = Some(at);
            return None;
        }
        self.used += 1;
        Some(offer.weights.clone())
    }

    /// What was offered for the weights that XNNPACK has just packed, if it is the same.
    pub(super) fn compare(&mut self, at: NodeSeed, fresh: Piece) -> PackedWeights {
        match self.offers.get(&at) {
            Some(offer) if offer.weights.bytes() == fresh.bytes() => {
                self.used += 1;
                offer.weights.clone()
            }
            Some(_) => {
                self.refused = Some(at);
                fresh.into()
            }
            None => fresh.into(),
        }
    }

    /// Ends the offers for a subgraph, a runtime of which has been created; whether they were right.
    pub(super) fn close(&mut self, subgraph: u64) -> bool {
        let count = self.offers.keys().filter(|at| at.subgraph == subgraph).count();
        self.offers.retain(|at, _| at.subgraph != subgraph);
        self.claims.clear();
        let used = std::mem::take(&mut self.used);
        match self.refused.take() {
            Some(at) => {
                log::warn!(
                    "the packed weights of node {} are not what XNNPACK packs here; packing all anew",
                    at.node
                );
                false
            }
            None => {
                if count > 0 {
                    log::info!("{used} of {count} packed weights are used as they are");
                }
                true
            }
        }
    }
}

/// Nodes that XNNPACK packs alike: kind, datatypes, and whether each filter sees one channel, which
/// makes a convolution a depthwise one.
type Kind = (&'static str, Vec<Datatype>, bool);

fn kind(subgraph: &Subgraph, node: usize) -> Option<Kind> {
    let entry = subgraph.nodes().get(node)?;
    let links = entry.operator.links();
    let ids = || links.inputs.iter().chain(&links.outputs).copied();
    let datatypes = ids().filter_map(|id| Some(subgraph.value(id)?.datatype)).collect();
    let one_channel = |id| {
        subgraph.value(id).is_some_and(|value| value.role.is_constant())
            && matches!(subgraph.shape(id), Some([_, .., 1]))
    };
    Some((entry.reference.kind, datatypes, ids().any(one_channel)))
}
