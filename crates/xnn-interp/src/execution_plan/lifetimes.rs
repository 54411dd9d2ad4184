//! Lifetimes of tensors and where their memory comes from.

use std::collections::{BTreeMap, BTreeSet};

use xnn_model::{DType, Subgraph, TensorId};

use super::step::Action;
use super::subgraph::SubgraphPlan;
use crate::arena::Lifetime;
use crate::storage::Handover;
use crate::tensor::storage_size;
use crate::variables::Access;

impl SubgraphPlan {
    /// Finds the lifetime of each tensor and from it the tensors in the arena, those that use a
    /// variable's memory, and the outputs whose memory callers may take.
    pub(super) fn plan_lifetimes(&mut self, keep_intermediates: bool) {
        let mut lifetimes = self.lifetimes();
        for (&id, lifetime) in &mut lifetimes {
            if keep_intermediates {
                lifetime.last = usize::MAX;
            } else if let Some(step) = self.steps.get_mut(lifetime.last) {
                step.release.push(id);
            }
        }
        self.lend_variables(&lifetimes);
        let elsewhere = self.outside_of_the_arena();
        self.tenants = lifetimes.into_iter().filter(|(id, _)| !elsewhere.contains(id)).collect();
        let Subgraph { inputs, tensors, .. } = self.subgraph.as_ref();
        let is_single = |id: &TensorId| inputs.iter().filter(|input| *input == id).count() == 1;
        let keeps = |id: &TensorId| is_single(id) && !tensors[*id].is_variable;
        self.keeps = inputs.iter().map(keeps).collect();
        self.takes = inputs.iter().map(|&id| self.takes(id, keep_intermediates)).collect();
        self.gives = self.subgraph.outputs.iter().map(|&id| self.gives(id)).collect();
    }

    /// Lifetimes of the tensors that steps compute. Inputs, outputs, variables and tensors that are
    /// computed once live forever and are not among them.
    fn lifetimes(&self) -> BTreeMap<TensorId, Lifetime> {
        let graph = &self.subgraph;
        let mut stays: Vec<bool> = graph.tensors.iter().map(|t| t.is_variable).collect();
        let once = self.steps.iter().filter(|step| step.once).flat_map(|step| &step.set.outputs);
        for &id in graph.inputs.iter().chain(&graph.outputs).chain(once) {
            stays[id] = true;
        }
        let mut lifetimes: BTreeMap<TensorId, Lifetime> = BTreeMap::new();
        for (index, step) in self.steps.iter().enumerate() {
            for &id in step.set.outputs.iter().filter(|&&id| !stays[id]) {
                lifetimes.entry(id).or_insert(Lifetime { first: index, last: index }).last = index;
            }
            for id in &step.set.inputs {
                if let Some(lifetime) = lifetimes.get_mut(id) {
                    lifetime.last = index;
                }
            }
        }
        lifetimes
    }

    /// Finds the reads of variables that keep their value until the end of the reading tensor's
    /// lifetime.
    fn lend_variables(&mut self, lifetimes: &BTreeMap<TensorId, Lifetime>) {
        for index in 0..self.steps.len() {
            let Action::Access(Access::Read { variable, tensor, .. }) = self.steps[index].action
            else {
                continue;
            };
            let Some(lifetime) = lifetimes.get(&tensor) else { continue };
            let needed = self.steps.get(index + 1..=lifetime.last);
            let keeps = needed.is_some_and(|steps| {
                !steps.iter().any(|step| match &step.action {
                    Action::Access(access) => access.may_change(variable),
                    // Other subgraphs may assign to it.
                    Action::Control(_) => true,
                    Action::Kernel(_) | Action::Delegated(_) | Action::Deferred { .. } => false,
                })
            });
            if let Action::Access(Access::Read { lends, .. }) = &mut self.steps[index].action {
                *lends = keeps && variable.is_known();
            }
        }
    }

    /// Tensors outside of the arena: those that use a variable's memory, those that come from or
    /// move to a subgraph or variable, and strings, whose size is known only in a run.
    fn outside_of_the_arena(&self) -> BTreeSet<TensorId> {
        let is_traded = |id: &&TensorId| {
            let tensor = self.subgraph.tensor(**id);
            let shape = tensor.shape.as_deref();
            shape
                .and_then(|shape| storage_size(tensor.dtype, shape))
                .is_some_and(|bytes| Handover::MoveLarge.moves(bytes))
        };
        let tensors = self.subgraph.tensors.iter().enumerate();
        let strings = tensors.filter(|(_, tensor)| tensor.dtype == DType::String);
        let mut elsewhere: BTreeSet<TensorId> = strings.map(|(id, _)| id).collect();
        for step in &self.steps {
            match &step.action {
                Action::Kernel(_) | Action::Delegated(_) | Action::Deferred { .. } => {}
                Action::Access(Access::Read { tensor, lends, .. }) => {
                    elsewhere.extend(lends.then_some(tensor));
                }
                Action::Access(Access::Assign { tensor, .. }) => {
                    elsewhere.extend(Some(tensor).filter(is_traded));
                }
                Action::Control(_) => {
                    elsewhere.extend(step.set.inputs.iter().filter(is_traded));
                    elsewhere.extend(&step.set.outputs);
                }
            }
        }
        elsewhere
    }

    /// How an input is given a value that its owner does not need any more.
    fn takes(&self, id: TensorId, keep_intermediates: bool) -> Option<Handover> {
        let is_read = self.steps.iter().any(|step| step.set.inputs.contains(&id))
            || self.subgraph.outputs.contains(&id)
            || self.subgraph.tensor(id).is_variable;
        (is_read || keep_intermediates).then(|| self.handover(id))
    }

    /// How the memory of a tensor moves.
    fn handover(&self, id: TensorId) -> Handover {
        let mut engines = self
            .steps
            .iter()
            .filter(|step| matches!(step.action, Action::Delegated(_) | Action::Deferred { .. }));
        match engines.any(|step| step.set.inputs.contains(&id) || step.set.outputs.contains(&id)) {
            true => Handover::MoveLarge,
            false => Handover::Move,
        }
    }

    /// How a caller gets the value of an output: the memory moves if each run computes it anew, and
    /// it belongs to nothing else.
    fn gives(&self, id: TensorId) -> Handover {
        let graph = &self.subgraph;
        let mut steps = self.steps.iter().filter(|step| step.set.outputs.contains(&id));
        let is_computed = steps.next().is_some_and(|step| !step.once);
        let outputs = graph.outputs.iter().filter(|&&output| output == id).count();
        let is_free = outputs == 1
            && (is_computed || graph.inputs.contains(&id))
            && !graph.tensor(id).is_variable;
        if is_free { self.handover(id) } else { Handover::Copy }
    }
}
