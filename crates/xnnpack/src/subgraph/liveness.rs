//! Nodes and tensors that contribute to a result.

use super::Subgraph;
use super::context::{Value, index};
use super::operator::Fusion;
use crate::status::{Error, Result};
use crate::value::Role;

impl Subgraph {
    /// Returns for each node whether it contributes to an output or a persistent tensor. XNNPACK
    /// aborts the process if a defined node feeds only nodes that do not.
    pub(crate) fn live_nodes(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes().len()];
        let mut needed: Vec<bool> = self
            .values()
            .iter()
            .map(|value| matches!(value.role, Role::Output(_) | Role::Persistent))
            .collect();
        for (node, live) in self.nodes().iter().zip(&mut live).rev() {
            let links = node.operator.links();
            let mut outputs = links.outputs.iter().filter_map(|&id| index(id));
            *live = outputs.any(|index| needed[index]);
            if *live {
                for index in links.inputs.iter().filter_map(|&id| index(id)) {
                    needed[index] = true;
                }
            }
        }
        live
    }

    /// Returns for each value whether a live node reads or writes it.
    pub(super) fn used_values(&self, live: &[bool]) -> Vec<bool> {
        let mut used = vec![false; self.values().len()];
        for (node, _) in self.nodes().iter().zip(live).filter(|(_, live)| **live) {
            let links = node.operator.links();
            for index in links.inputs.iter().chain(&links.outputs).filter_map(|&id| index(id)) {
                used[index] = true;
            }
        }
        used
    }

    /// Refuses an output that nothing reads, but that XNNPACK would write to.
    fn check_all_outputs_used(&self) -> Result<()> {
        let live = self.live_nodes();
        let mut read = vec![false; self.values.len()];
        for (node, _) in self.nodes.iter().zip(&live).filter(|(_, live)| **live) {
            for id in node.operator.links().inputs {
                read[self.own(id)?] = true;
            }
        }
        for (node, &live) in self.nodes.iter().zip(&live) {
            if !live || node.operator.fusion() != Fusion::NeedsAllOutputs {
                continue;
            }
            for id in node.operator.links().outputs {
                let index = self.own(id)?;
                if !read[index] && matches!(self.values[index].role, Role::Internal) {
                    let reason = format!("its output {id} is not used");
                    return Err(Error::unsupported(reason).at(node.reference));
                }
            }
        }
        Ok(())
    }

    /// Refuses a subgraph that cannot run.
    pub(crate) fn check_complete(&self) -> Result<()> {
        const OP: &str = "create runtime";
        if self.nodes.is_empty() {
            return Err(Error::invalid("the subgraph has no nodes").during(OP));
        }
        self.check_all_outputs_used().map_err(|error| error.during(OP))?;
        let missing = |value: &&Value| value.producer.is_none();
        let outputs = self.values.iter().filter(|value| matches!(value.role, Role::Output(_)));
        match outputs.clone().find(missing).and_then(|value| value.role.external_id()) {
            Some(id) => {
                Err(Error::invalid(format!("output {id} is not computed by a node")).during(OP))
            }
            None if outputs.count() == 0 => {
                Err(Error::invalid("the subgraph has no output").during(OP))
            }
            None => Ok(()),
        }
    }
}
