//! What a weights cache has, and what it knows of the runtime that is being created.

use std::collections::HashMap;

use xnnpack_sys as sys;

use super::candidates::Offers;
use super::slab::{Piece, Slab};
use super::{NodeSeed, PackedNode, PackedWeights};
use crate::buffer::StaticData;
use crate::fp16_weights::{Halves, Widened};
use crate::subgraph::Subgraph;

#[derive(Default)]
pub(super) struct State {
    /// Weights that runtimes may use, at the offsets given to XNNPACK.
    pub(super) entries: Vec<PackedWeights>,
    /// Positions in `entries` by address.
    positions: HashMap<usize, usize>,
    /// Positions in `entries` of weights at filters that several nodes use, by filter, bias and XNNPACK's fingerprint: what
    /// else they depend on, their bytes show.
    shared: HashMap<(usize, usize, u32), Vec<usize>>,
    /// Positions in `entries` of weights that are known to be right.
    pub(super) packed: HashMap<NodeSeed, usize>,
    /// Weights that may be right.
    pub(super) offers: Offers,
    /// Space that XNNPACK is packing into.
    pub(super) reserved: Option<Piece>,
    /// Where that space comes from.
    pub(super) slab: Slab,
    /// Nodes of the runtime that is being created, by the address of their filter.
    pub(super) nodes: HashMap<usize, Option<Filter>>,
    /// Filters of it that are kept in fp16, by their address.
    pub(super) halves: HashMap<usize, Halves>,
    /// The one of them that XNNPACK is packing.
    pub(super) widened: Option<Widened>,
    /// XNNPACK was told "not found" where it does not look at the answer.
    pub(super) failed: bool,
}

/// A node of a subgraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKey {
    pub(crate) subgraph: u64,
    pub(crate) node: usize,
}

/// The constant operand of exactly one node.
pub(crate) struct Filter {
    pub(crate) node: NodeKey,
    pub(crate) data: StaticData,
}

/// Marks offsets into [`State::entries`] apart from those of the native cache.
pub(super) const OWN_ENTRY: usize = 1 << (usize::BITS - 1);

impl State {
    /// Keeps weights as long as the cache lives, and gives their offset.
    pub(super) fn keep(&mut self, packed: PackedWeights) -> usize {
        let Self { entries, positions, .. } = self;
        let position = *positions.entry(packed.0.start().addr()).or_insert_with(|| {
            entries.push(packed);
            entries.len() - 1
        });
        position | OWN_ENTRY
    }

    /// Weights at a filter that several nodes use, or the same ones if they have been packed before: every runtime packs
    /// them.
    pub(super) fn unify(
        &mut self,
        raw: &sys::xnn_weights_cache_look_up_key,
        fresh: PackedWeights,
    ) -> PackedWeights {
        let Self { entries, shared, .. } = self;
        let positions = shared.entry((raw.kernel.addr(), raw.bias.addr(), raw.seed)).or_default();
        let known = positions.iter().filter_map(|&position| entries.get(position));
        if let Some(known) = known.into_iter().find(|known| known.bytes() == fresh.bytes()) {
            return known.clone();
        }
        // `keep` puts them there.
        positions.push(entries.len());
        fresh
    }

    /// The weights of a subgraph's nodes.
    pub(super) fn packed_of(&self, subgraph: u64) -> Vec<PackedNode> {
        let mut nodes: Vec<PackedNode> = self
            .packed
            .iter()
            .filter(|(at, _)| at.subgraph == subgraph)
            .filter_map(|(at, &position)| {
                let weights = self.entries.get(position)?.clone();
                Some(PackedNode { node: at.node, seed: at.seed, weights })
            })
            .collect();
        nodes.sort_by_key(|packed| (packed.node, packed.seed));
        nodes
    }

    /// Whether XNNPACK will read no more than there is of the weights that it was told to use
    /// before it told their size; `packed_size` asks it.
    pub(super) fn settle_claims(&mut self, packed_size: impl Fn(NodeSeed) -> Option<usize>) {
        for at in self.offers.claimed() {
            let size = packed_size(at);
            let weights = size.and_then(|size| self.offers.confirm(at, size));
            if let Some(weights) = weights {
                let position = self.keep(weights) & !OWN_ENTRY;
                self.packed.insert(at, position);
            } else {
                self.failed = true;
            }
        }
    }

    /// Forgets what was kept since there were `count` entries.
    pub(super) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        self.positions.retain(|_, position| *position < count);
        self.packed.retain(|_, position| *position < count);
        self.shared.values_mut().for_each(|positions| positions.retain(|&at| at < count));
    }

    /// Prepares for the weights of a runtime of `subgraph`, most of which are there if another one has been
    /// created or offers have been made.
    pub(super) fn expect(&mut self, subgraph: &Subgraph) {
        let token = subgraph.token();
        let is_new =
            !self.packed.keys().any(|at| at.subgraph == token) && !self.offers.are_for(token);
        self.slab.expect(if is_new { subgraph.static_bytes() } else { 0 });
    }

    /// Number of weights kept.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }
}
