//! What inputs may be: shapes that the model leaves open, and numbers that are indices.

use std::collections::BTreeSet;

use xnn_model::{Op, Operator, Subgraph, TensorId};

use crate::runner::Runner;

impl Runner {
    /// Whether an input may have these dimensions, as far as the model says: those that it leaves open (-1 in the
    /// signature of the shape) may have any size, and there may be any number of them where it does not say how many there
    /// are. A blob does not say, [`Runner::resize_inputs`] finds out.
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

    /// How many indices there are, where the elements of an input choose rows of a table (GATHER,
    /// EMBEDDING_LOOKUP); `None` where they do not, or only in a way that cannot be followed.
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

/// The rows of the table that an operator takes some from, if its indices are read as `is_read` says.
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

/// The inputs that an operator takes its results from as they are.
fn chosen(op: &Op) -> &'static [usize] {
    match op {
        Op::Cast(_)
        | Op::ExpandDims
        | Op::Reshape(_)
        | Op::Slice
        | Op::Squeeze(_)
        | Op::StridedSlice(_)
        | Op::Transpose => &[0],
        // A choice between an index and one counted from the end.
        Op::Select | Op::SelectV2 => &[1, 2],
        _ => &[],
    }
}
