//! Candidates: weights that were packed elsewhere and are validated before use.
//!
//! XNNPACK looks up weights without telling their length, and does not validate them. To tolerate a
//! wrong file, a candidate is used only
//!
//! - if XNNPACK packs regardless (as for transposed convolutions) and the bytes are equal;
//! - otherwise, if its length is the one that XNNPACK tells after creating the operator, or that a
//!   [`probe`](super::probe) finds. Until then nothing is read.
//!
//! For each kind of node the smallest candidate is compared with freshly packed weights, which
//! detects weights of another model or processor. Undetected differences can only change results:
//! those microkernels that read places of inputs from packed weights read them only after
//! [`sys::has_sound_weights`](xnnpack_sys::has_sound_weights) has validated them. (XNNPACK's sparse
//! ones also read addresses; their weights are not cached.)

use std::collections::HashMap;

use super::slab::Piece;
use super::weights::{NodeSeed, PackedNode, PackedWeights};
use crate::subgraph::Subgraph;
use crate::value::Datatype;

/// Maximal size in bytes of weights that are packed only for comparison.
const MAX_WITNESS: usize = 1 << 16;

/// Candidates for nodes of subgraphs that have no runtime yet.
#[derive(Default)]
pub(super) struct Candidates {
    candidates: HashMap<NodeSeed, Candidate>,
    /// Candidates that were returned to XNNPACK before it told their length.
    claims: Vec<NodeSeed>,
    /// Why none is used: one was wrong.
    refused: Option<Refusal>,
    /// Number of candidates that were correct.
    used: usize,
}

/// Why candidates are refused.
enum Refusal {
    /// One has another length than the weights of this node, or other bytes.
    Differs { node: usize },
    /// One names inputs that its layer does not have.
    IsUnsound,
}

struct Candidate {
    weights: PackedWeights,
    /// Whether the candidate must be compared with weights that XNNPACK packs.
    witness: bool,
}

impl Candidates {
    /// Adds weights for nodes of `subgraph`.
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
            self.candidates.insert(at, Candidate { weights, witness: false });
        }
        for (_, at) in smallest.values() {
            if let Some(candidate) = self.candidates.get_mut(at) {
                candidate.witness = true;
            }
        }
    }

    /// Whether there are candidates for this subgraph.
    pub(super) fn are_for(&self, subgraph: u64) -> bool {
        self.candidates.keys().any(|at| at.subgraph == subgraph)
    }

    /// Returns weights for XNNPACK, if there is a candidate that requires no comparison.
    pub(super) fn claim(&mut self, at: NodeSeed) -> Option<PackedWeights> {
        let candidate = self.candidates.get(&at).filter(|candidate| !candidate.witness)?;
        if !self.claims.contains(&at) {
            self.claims.push(at);
        }
        Some(candidate.weights.clone())
    }

    /// Claims whose length is not confirmed yet.
    pub(super) fn claimed(&self) -> Vec<NodeSeed> {
        self.claims.clone()
    }

    /// Confirms a claim, given that XNNPACK reads `size` bytes. `None` if the candidate has another
    /// length.
    pub(super) fn confirm(&mut self, at: NodeSeed, size: usize) -> Option<PackedWeights> {
        self.claims.retain(|claim| *claim != at);
        let candidate = self.candidates.get(&at)?;
        if candidate.weights.bytes().len() != size {
            self.refused = Some(Refusal::Differs { node: at.node });
            return None;
        }
        self.used += 1;
        Some(candidate.weights.clone())
    }

    /// Compares a candidate with weights that XNNPACK has just packed. Returns the candidate if
    /// they are equal.
    pub(super) fn compare(&mut self, at: NodeSeed, fresh: Piece) -> PackedWeights {
        match self.candidates.get(&at) {
            Some(candidate) if candidate.weights.bytes() == fresh.bytes() => {
                self.used += 1;
                candidate.weights.clone()
            }
            Some(_) => {
                self.refused = Some(Refusal::Differs { node: at.node });
                fresh.into()
            }
            None => fresh.into(),
        }
    }

    /// Whether a candidate is used, so that what it tells microkernels must be validated.
    pub(super) fn need_validation(&self) -> bool {
        self.used > 0 && self.refused.is_none()
    }

    /// Refuses all candidates, because one names inputs that its layer does not have.
    pub(super) fn refuse_unsound(&mut self) {
        self.refused = Some(Refusal::IsUnsound);
    }

    /// Removes the candidates for a subgraph after its runtime was created. Returns whether all
    /// were correct.
    pub(super) fn close(&mut self, subgraph: u64) -> bool {
        let count = self.candidates.keys().filter(|at| at.subgraph == subgraph).count();
        self.candidates.retain(|at, _| at.subgraph != subgraph);
        self.claims.clear();
        let used = std::mem::take(&mut self.used);
        match self.refused.take() {
            Some(Refusal::Differs { node }) => {
                log::warn!(
                    "the cached packed weights of node {node} differ from those of XNNPACK; packing all weights again"
                );
                false
            }
            Some(Refusal::IsUnsound) => {
                log::warn!("the cached packed weights are damaged; packing all weights again");
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

/// Properties of nodes whose weights XNNPACK packs alike: kind, datatypes, and whether each filter
/// reads one channel, as in depthwise convolutions.
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
