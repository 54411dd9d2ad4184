//! What a kernel computes, in the model's terms: kept for the day that shapes change.

use std::sync::Arc;

use xnn::XnnpackCompiler;
use xnn_lower::{Decision, Partition, PartitionOptions, partition_grouped};
use xnn_model::{Subgraph, TensorId, infer};
use xnn_runtime::Program;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph;

/// Operators of the interpreter's graph that run as one node.
pub(crate) struct Part {
    graph: Arc<Subgraph>,
    operators: Vec<usize>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

impl Part {
    /// The operators of `partition`, which belong to `graph`.
    pub(crate) fn new(graph: &Arc<Subgraph>, partition: &Partition) -> Self {
        Self {
            graph: Arc::clone(graph),
            operators: partition.operators.clone(),
            inputs: partition.inputs.clone(),
            outputs: partition.outputs.clone(),
        }
    }

    /// Indices of the operators, in order.
    pub(crate) fn operators(&self) -> &[usize] {
        &self.operators
    }

    /// Tensors in the order of the program's inputs.
    pub(crate) fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Tensors in the order of the program's outputs.
    pub(crate) fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Dimensions of tensors in the shapes that the part is lowered for.
    pub(crate) fn dims(&self, tensors: &[TensorId]) -> Vec<Vec<usize>> {
        tensors.iter().map(|&id| self.graph.tensor(id).shape.clone().unwrap_or_default()).collect()
    }

    /// The same operators for the shapes that the graph's inputs have in the interpreter now.
    ///
    /// Everything is inferred and lowered anew: paddings, slices and sizes that lowering has made
    /// constant depend on shapes.
    pub(crate) fn reshaped(&self, context: &Context) -> Result<(Self, Program)> {
        let mut graph = Subgraph::clone(&self.graph);
        for &id in &self.graph.inputs {
            if let Some(tensor) = graph.tensors.get_mut(id) {
                tensor.shape = graph::dims(context.tensor(id)?);
            }
        }
        let inferred = infer(&graph).map_err(|error| Error::Shapes(error.to_string()))?;
        let graph = inferred.subgraph.clone();
        let group = |_: &Subgraph, _: &[bool]| vec![self.operators.clone()];
        let options = PartitionOptions::default();
        let (partitioning, programs) =
            partition_grouped(inferred, &options, &mut XnnpackCompiler, group);
        for &index in &self.operators {
            if let Some(Decision::Left(why)) = partitioning.decisions.get(index) {
                let op = &graph.operators[index].op;
                return Err(Error::Shapes(format!("operator {index} ({op}): {why}")));
            }
        }
        match (partitioning.partitions.as_slice(), <[Program; 1]>::try_from(programs)) {
            ([partition], Ok([program])) => Ok((Self::new(&Arc::new(graph), partition), program)),
            _ => Err(Error::Shapes("the operators do not form one graph any more".into())),
        }
    }
}
