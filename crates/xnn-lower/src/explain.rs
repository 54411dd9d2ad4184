//! Report of all decisions about a subgraph, as text and as JSON.

use std::fmt;

use serde::Serialize;
use xnn_model::{Subgraph, TensorId};

use crate::optimize;
use crate::partition::{Decision, Deferred, Partitioning};
use crate::why_not::WhyNot;

/// Report of all decisions about a subgraph.
///
/// `Display` is the text that `xnn explain` prints, and `Serialize` its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// One entry for each operator.
    pub nodes: Vec<NodeReport>,
    /// One entry for each partition.
    pub partitions: Vec<PartitionReport>,
    /// `delegated N of M nodes in P partitions`, and the number of deferred nodes.
    pub summary: String,
}

/// Decision about one operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeReport {
    /// Index in the subgraph.
    pub index: usize,
    /// The schema's name.
    pub op: String,
    /// Inputs, without optional ones that are absent.
    pub inputs: Vec<TensorReport>,
    /// Outputs.
    pub outputs: Vec<TensorReport>,
    /// The partition that runs it.
    pub partition: Option<usize>,
    /// The group with which the operator is delegated during a run, when its shapes are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<usize>,
    /// Why the operator is not delegated.
    pub reason: Option<ReasonReport>,
    /// Whether the delegate runs the operator on this project's reference kernels.
    pub hosted: bool,
}

/// Summary of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TensorReport {
    /// Index in the subgraph.
    pub id: TensorId,
    /// Name in the file.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Dimensions; absent where unknown.
    pub shape: Option<Vec<usize>>,
}

/// A [`WhyNot`] in serializable form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonReport {
    /// [`WhyNot::code`].
    pub code: &'static str,
    /// The reason in one sentence.
    pub message: String,
}

/// Summary of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionReport {
    /// Indices of its operators.
    pub nodes: Vec<usize>,
    /// Multiply-accumulates of one run.
    pub macs: u64,
    /// Boundary tensors that it reads.
    pub inputs: Vec<TensorReport>,
    /// Boundary tensors that it writes.
    pub outputs: Vec<TensorReport>,
    /// Bytes of inputs and outputs together.
    pub boundary_bytes: u64,
    /// Changes that optimization made to its graph.
    pub optimization: optimize::Report,
}

impl Report {
    /// Creates the report of the decisions about `graph`.
    #[must_use]
    pub fn new(graph: &Subgraph, partitioning: &Partitioning) -> Self {
        let nodes: Vec<NodeReport> = graph
            .operators
            .iter()
            .zip(&partitioning.decisions)
            .enumerate()
            .map(|(index, (operator, decision))| {
                let inputs: Vec<TensorId> = operator.inputs.iter().flatten().copied().collect();
                let (partition, reason) = match decision {
                    Decision::Delegated { partition } => (Some(*partition), None),
                    Decision::NotDelegated(why) => (None, Some(ReasonReport::new(why))),
                };
                NodeReport {
                    index,
                    op: operator.op.to_string(),
                    inputs: tensors(graph, &inputs),
                    outputs: tensors(graph, &operator.outputs),
                    partition,
                    deferred: None,
                    reason,
                    hosted: false,
                }
            })
            .collect();
        let partitions: Vec<PartitionReport> = partitioning
            .partitions
            .iter()
            .map(|partition| PartitionReport {
                nodes: partition.operators.clone(),
                macs: partition.macs,
                inputs: tensors(graph, &partition.inputs),
                outputs: tensors(graph, &partition.outputs),
                boundary_bytes: partition.boundary_bytes,
                optimization: partition.optimization.clone(),
            })
            .collect();
        let summary = format!(
            "delegated {} of {} nodes in {} partition{}",
            partitioning.delegated(),
            nodes.len(),
            partitions.len(),
            plural(partitions.len()),
        );
        Self { nodes, partitions, summary }
    }

    /// Records that the delegate runs an operator on its own reference kernels.
    pub fn set_hosted(&mut self, operator: usize) {
        if let Some(node) = self.nodes.get_mut(operator) {
            node.hosted = true;
        }
    }

    /// Adds the operators that are partitioned during a run, when their shapes are known.
    #[must_use]
    pub fn with_deferred(mut self, groups: &[Deferred]) -> Self {
        for (group, Deferred { operators, .. }) in groups.iter().enumerate() {
            for &index in operators {
                if let Some(node) = self.nodes.get_mut(index) {
                    node.deferred = Some(group);
                }
            }
        }
        let count: usize = groups.iter().map(|group| group.operators.len()).sum();
        if count > 0 {
            let shapes = if count == 1 { "its shape is" } else { "their shapes are" };
            self.summary.push_str(&format!(", {count} more deferred until {shapes} known"));
        }
        self
    }
}

impl ReasonReport {
    fn new(why: &WhyNot) -> Self {
        Self { code: why.code(), message: why.to_string() }
    }
}

fn tensors(graph: &Subgraph, ids: &[TensorId]) -> Vec<TensorReport> {
    let report = |&id: &TensorId| {
        let tensor = graph.tensor(id);
        TensorReport {
            id,
            name: tensor.name.clone(),
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.clone(),
        }
    };
    ids.iter().map(report).collect()
}

impl fmt::Display for TensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            None => write!(f, "{}[?]", self.dtype),
            Some(shape) => {
                write!(f, "{}[", self.dtype)?;
                for (i, dim) in shape.iter().enumerate() {
                    write!(f, "{}{dim}", if i == 0 { "" } else { "x" })?;
                }
                write!(f, "]")
            }
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let inputs: Vec<String> = node.inputs.iter().map(ToString::to_string).collect();
            let outputs: Vec<String> = node.outputs.iter().map(ToString::to_string).collect();
            let tensors = format!("{} -> {}", inputs.join(" "), outputs.join(" "));
            match (&node.partition, &node.reason) {
                (Some(partition), _) => {
                    writeln!(
                        f,
                        "{:>4} {:<28} partition {partition}  {tensors}",
                        node.index, node.op
                    )?;
                }
                (None, reason) => {
                    let status = match node.deferred {
                        Some(group) => format!("deferred {group}"),
                        None if node.hosted => "hosted".to_owned(),
                        None => "fallback".to_owned(),
                    };
                    writeln!(f, "{:>4} {:<28} {status:<12} {tensors}", node.index, node.op)?;
                    if let Some(ReasonReport { code, message }) = reason {
                        writeln!(f, "     {:<28} [{code}] {message}", "")?;
                    }
                }
            }
        }
        for (index, partition) in self.partitions.iter().enumerate() {
            writeln!(
                f,
                "partition {index}: {} node{}, {} MACs, {} in, {} out, {} boundary bytes",
                partition.nodes.len(),
                plural(partition.nodes.len()),
                partition.macs,
                partition.inputs.len(),
                partition.outputs.len(),
                partition.boundary_bytes,
            )?;
            writeln!(f, "    {}", partition.optimization)?;
        }
        writeln!(f, "{}", self.summary)
    }
}
