//! Contents of a weights cache, and state of the runtime that is being created.

use std::collections::HashMap;
use std::sync::Arc;

use xnnpack_sys as sys;

use super::candidates::Candidates;
use super::slab::{Piece, Slab};
use super::weights::{NodeSeed, PackedNode, PackedWeights};
use crate::fp16_weights::{Fp16Weights, Widened};
use crate::subgraph::{Filter, Subgraph};
use crate::threadpool::ThreadPool;

#[derive(Default)]
pub(super) struct State {
    /// Weights that runtimes may use. Positions are part of the offsets given to XNNPACK.
    pub(super) entries: Vec<PackedWeights>,
    /// Positions in `entries` by address.
    positions: HashMap<usize, usize>,
    /// Positions in `entries` of weights of filters that several nodes use, by filter, bias and
    /// XNNPACK's fingerprint. Their bytes are compared too, since they depend on more.
    shared: HashMap<(usize, usize, u32), Vec<usize>>,
    /// Positions in `entries` of weights that are known to be correct.
    pub(super) packed: HashMap<NodeSeed, usize>,
    /// Weights that are not validated yet.
    pub(super) candidates: Candidates,
    /// Memory that XNNPACK is packing into.
    pub(super) reserved: Option<Piece>,
    /// Allocator of that memory.
    pub(super) slab: Slab,
    /// Nodes of the runtime that is being created, by the address of their filter.
    pub(super) nodes: HashMap<usize, Option<Filter>>,
    /// Its fp16 weights, by the address of their fp32 values.
    pub(super) fp16_weights: HashMap<usize, Fp16Weights>,
    /// The fp16 weights that XNNPACK is packing.
    pub(super) widened: Option<Widened>,
    /// Whether a lookup failed whose result XNNPACK does not check.
    pub(super) failed: bool,
}

/// Distinguishes offsets into [`State::entries`] from those of the native cache.
pub(super) const OWN_ENTRY: usize = 1 << (usize::BITS - 1);

impl State {
    /// Keeps weights as long as the cache lives, and returns their offset.
    pub(super) fn keep(&mut self, packed: PackedWeights) -> usize {
        let Self { entries, positions, .. } = self;
        let position = *positions.entry(packed.0.start().addr()).or_insert_with(|| {
            entries.push(packed);
            entries.len() - 1
        });
        position | OWN_ENTRY
    }

    /// Returns the weights of a filter that several nodes use, or an equal earlier entry: every
    /// runtime packs such weights again.
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

    /// Packed weights of a subgraph's nodes.
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

    /// Validates the length of weights that were returned to XNNPACK before it told their size,
    /// which `packed_size` determines.
    pub(super) fn settle_claims(&mut self, packed_size: impl Fn(NodeSeed) -> Option<usize>) {
        for at in self.candidates.claimed() {
            let size = packed_size(at);
            let weights = size.and_then(|size| self.candidates.confirm(at, size));
            if let Some(weights) = weights {
                let position = self.keep(weights) & !OWN_ENTRY;
                self.packed.insert(at, position);
            } else {
                self.failed = true;
            }
        }
    }

    /// Removes all entries after the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        self.positions.retain(|_, position| *position < count);
        self.packed.retain(|_, position| *position < count);
        self.shared.values_mut().for_each(|positions| positions.retain(|&at| at < count));
    }

    /// Prepares memory for the weights of a runtime of `subgraph`. Most of them are already in
    /// memory if another runtime was created or there are candidates.
    pub(super) fn expect(&mut self, subgraph: &Subgraph, pool: Option<&Arc<ThreadPool>>) {
        let token = subgraph.token();
        let is_new =
            !self.packed.keys().any(|at| at.subgraph == token) && !self.candidates.are_for(token);
        self.slab.expect(if is_new { subgraph.static_bytes() } else { 0 }, pool);
    }

    /// Number of entries.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }
}
