//! Facts about inputs: open dimensions, and integers that are indices.

use std::collections::BTreeSet;

use xnn_model::{Op, Operator, Subgraph, TensorId};

use super::Runner;

impl Runner {
    /// Whether an input may have these dimensions according to the model. Open dimensions (-1 in the shape signature) may
    /// have any size; an input of unknown rank may have any number of dimensions. A blob does not declare open dimensions,
    /// so this returns true for every shape of the same rank.
    #[must_use]
    pub fn leaves_open(&self, index: usize, dims: &[usize]) -> bool {
        let Some(spec) = self.inputs().get(index) else { return false };
        let Some(graph) = self.graph() else { return spec.dims.len() == dims.len() };
        let tensor = graph.inputs.get(index).and_then(|&id| graph.tensors.get(id));
        let signature = tensor.and_then(|tensor| tensor.shape_signature.as_deref());
        if signature.is_some_and(<[i32]>::is_empty) {
            return true;
        }
        let is_open =
            |axis: usize| signature.and_then(|dims| dims.get(axis)).is_some_and(|&dim| dim < 0);
        let mut pairs = spec.dims.iter().zip(dims).enumerate();
        spec.dims.len() == dims.len()
            && pairs.all(|(axis, (present, wanted))| present == wanted || is_open(axis))
    }

    /// Number of valid indices if the elements of an input select rows of a table (GATHER, EMBEDDING_LOOKUP); `None` if they
    /// do not, or if that cannot be determined.
    #[must_use]
    pub fn index_limit(&self, index: usize) -> Option<usize> {
        let graph = self.graph()?;
        let mut same = BTreeSet::from([*graph.inputs.get(index)?]);
        let mut limit: Option<usize> = None;
        for operator in &graph.operators {
            let is_read = |position| input(operator, position).is_some_and(|id| same.contains(&id));
            if let Some(rows) = rows(graph, operator, is_read) {
                limit = Some(limit.map_or(rows, |limit| limit.min(rows)));
            }
            if chosen(&operator.op).iter().any(|&position| is_read(position)) {
                same.extend(&operator.outputs);
            }
        }
        limit
    }
}

/// Number of rows of the table that an operator selects from, if `is_read` says that the indices are read.
fn rows(graph: &Subgraph, operator: &Operator, is_read: impl Fn(usize) -> bool) -> Option<usize> {
    let table = |position| graph.tensors.get(input(operator, position)?)?.shape.as_deref();
    match &operator.op {
        Op::Gather(options) if is_read(1) => {
            let table = table(0)?;
            let axis = xnn_model::infer::axis_in_rank(options.axis.into(), table.len()).ok()?;
            table.get(axis).copied()
        }
        Op::EmbeddingLookup if is_read(0) => table(1)?.first().copied(),
        _ => None,
    }
}

fn input(operator: &Operator, position: usize) -> Option<TensorId> {
    operator.inputs.get(position).copied().flatten()
}

/// Inputs whose elements an operator passes on unchanged.
fn chosen(op: &Op) -> &'static [usize] {
    match op {
        Op::Cast(_)
        | Op::ExpandDims
        | Op::Reshape(_)
        | Op::Slice
        | Op::Squeeze(_)
        | Op::StridedSlice(_)
        | Op::Transpose => &[0],
        // Chooses between an index and an index counted from the end.
        Op::Select | Op::SelectV2 => &[1, 2],
        _ => &[],
    }
}
