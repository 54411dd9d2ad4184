//! Operators whose shapes are known only during a run, grouped so that they can be partitioned
//! then.

use std::collections::BTreeMap;

use bytes::Bytes;
use xnn_model::{
    DType, Inferred, Op, Operator, Quantization, Subgraph, Tensor, TensorId, execution_order,
    fp16_weights,
};

use super::decision::{Decision, Partitioning};
use super::options::PartitionOptions;
use super::{clusters, cost};
use crate::why_not::WhyNot;

/// Operators that were not delegated because their shapes are unknown before a run. They can be
/// partitioned when the shapes are known.
///
/// All shapes of the group follow from the shapes of its inputs and the values of the inputs in
/// `sizes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Deferred {
    /// Indices of the operators, ascending.
    pub operators: Vec<usize>,
    /// Boundary tensors that the group reads, in the order of the inputs of `graph`.
    pub inputs: Vec<TensorId>,
    /// Boundary tensors that the group writes, in the order of the outputs of `graph`.
    pub outputs: Vec<TensorId>,
    /// The operators as a subgraph of their own, in which known values of the tensors that they
    /// read are constants.
    pub graph: Subgraph,
    /// Positions of the inputs whose values are shapes of other tensors. They are constants when
    /// the group is lowered.
    pub sizes: Vec<usize>,
}

/// Groups the operators that [`partition`](super::partition) did not delegate only because their
/// shapes are unknown before a run.
#[must_use]
pub fn deferred(
    inferred: &Inferred,
    partitioning: &Partitioning,
    options: &PartitionOptions,
) -> Vec<Deferred> {
    let known = KnownValues::new(inferred);
    let graph = known.graph;
    let operators = graph.operators.iter().zip(&partitioning.decisions);
    let can_be_deferred = |(operator, decision): (&Operator, &Decision)| {
        matches!(decision, Decision::NotDelegated(WhyNot::UnknownShape { .. }))
            && known.has_constant_indices(operator)
    };
    let can_be_deferred: Vec<bool> = operators.map(can_be_deferred).collect();
    let mut sets: Vec<Vec<usize>> =
        partitioning.partitions.iter().map(|partition| partition.operators.clone()).collect();
    let partition_count = sets.len();
    let limit = options.max_partitions.unwrap_or(usize::MAX);
    for operators in clusters::group(graph, &can_be_deferred) {
        let changes_bytes = |&index: &usize| !cost::keeps_bytes(&graph.operators[index].op);
        if sets.len() < limit && operators.iter().any(changes_bytes) {
            sets.push(operators);
            // A partition and the group may each need a result of the other.
            if execution_order(graph, sets.iter().map(Vec::as_slice)).is_none() {
                sets.pop();
            }
        }
    }
    sets.split_off(partition_count).into_iter().map(|set| Deferred::new(&known, set)).collect()
}

/// Position of the operand whose values are the shape of an operator's result.
#[must_use]
pub const fn shape_operand(op: &Op) -> Option<usize> {
    match op {
        Op::Fill | Op::TransposeConv(_) => Some(0),
        Op::BroadcastTo | Op::Reshape(_) => Some(1),
        _ => None,
    }
}

/// Values of a subgraph's tensors that are known before a run.
struct KnownValues<'a> {
    graph: &'a Subgraph,
    /// Elements that follow from constants alone. Elements that follow from shapes may differ
    /// between runs.
    values: Vec<Option<&'a Bytes>>,
}

impl<'a> KnownValues<'a> {
    fn new(inferred: &'a Inferred) -> Self {
        let graph = inferred.subgraph.as_ref();
        let mut known = Self { graph, values: vec![None; graph.tensors.len()] };
        for operator in &graph.operators {
            if operator.inputs.iter().flatten().all(|&id| known.is_constant(id)) {
                for &id in &operator.outputs {
                    known.values[id] = inferred.values.get(id).and_then(Option::as_ref);
                }
            }
        }
        known
    }

    fn is_constant(&self, id: TensorId) -> bool {
        self.graph.tensor(id).is_constant() || self.values[id].is_some()
    }

    /// A copy of a tensor with its known value.
    fn tensor(&self, id: TensorId) -> Tensor {
        let mut tensor = self.graph.tensor(id).clone();
        if let Some(value) = self.values[id] {
            tensor.data = Some(value.clone());
        }
        tensor
    }

    /// Whether all indices, axes and slice positions that an operator reads are constants. XNNPACK
    /// needs them before a run. The operand that is the result's shape may vary: it follows from
    /// other shapes in most models.
    fn has_constant_indices(&self, operator: &Operator) -> bool {
        let shape = shape_operand(&operator.op);
        operator.inputs.iter().enumerate().all(|(position, id)| match id {
            Some(id) if Some(position) != shape => {
                let dtype = self.graph.tensor(*id).dtype;
                self.is_constant(*id) || !matches!(dtype, DType::I32 | DType::I64)
            }
            _ => true,
        })
    }
}

impl Deferred {
    fn new(known: &KnownValues<'_>, operators: Vec<usize>) -> Self {
        let whole = known.graph;
        // Operators that widen fp16 weights are lowered together with the readers.
        let is_read = |widens: &Operator| {
            let readers = operators.iter().map(|&index| &whole.operators[index]);
            let mut read = readers.flat_map(|reader| reader.inputs.iter().flatten());
            read.any(|id| widens.outputs.contains(id))
        };
        let widens = fp16_weights(whole).into_iter().zip(&whole.operators).enumerate();
        let widens = widens.filter(|(_, (is_half, widens))| {
            let mut inputs = widens.inputs.iter().flatten();
            *is_half && inputs.all(|&id| known.is_constant(id)) && is_read(widens)
        });
        let mut inside: Vec<usize> =
            widens.map(|(index, _)| index).chain(operators.clone()).collect();
        inside.sort_unstable();

        let (mut inputs, _) = clusters::boundary(whole, &inside);
        inputs.retain(|&id| !known.is_constant(id));
        let (_, outputs) = clusters::boundary(whole, &operators);
        let mut copy = SubgraphCopy { known, graph: Subgraph::default(), ids: BTreeMap::new() };
        for &index in &inside {
            copy.operator(&whole.operators[index]);
        }
        copy.graph.inputs = inputs.iter().map(|&id| copy.tensor(id)).collect();
        copy.graph.outputs = outputs.iter().map(|&id| copy.tensor(id)).collect();
        let is_shape = |id: &TensorId| {
            let operators = operators.iter().map(|&index| &whole.operators[index]);
            let mut shapes = operators.map(|it| it.input(shape_operand(&it.op)?));
            shapes.any(|shape| shape == Some(*id))
        };
        let sizes = (0..inputs.len()).filter(|&position| is_shape(&inputs[position])).collect();
        Self { operators, inputs, outputs, graph: copy.graph, sizes }
    }
}

/// A copy of a part of a subgraph.
struct SubgraphCopy<'a> {
    known: &'a KnownValues<'a>,
    graph: Subgraph,
    /// Ids of tensors in the copy, by their ids in the original.
    ids: BTreeMap<TensorId, TensorId>,
}

impl SubgraphCopy<'_> {
    fn tensor(&mut self, id: TensorId) -> TensorId {
        if let Some(&copied) = self.ids.get(&id) {
            return copied;
        }
        let mut tensor = self.known.tensor(id);
        if let Some(Quantization::Blockwise { scales, zero_points, .. }) = &mut tensor.quantization
        {
            *scales = self.tensor(*scales);
            *zero_points = zero_points.map(|zero_points| self.tensor(zero_points));
        }
        self.graph.tensors.push(tensor);
        let copied = self.graph.tensors.len() - 1;
        self.ids.insert(id, copied);
        copied
    }

    fn operator(&mut self, operator: &Operator) {
        let mut copy = operator.clone();
        for id in copy.inputs.iter_mut().flatten().chain(&mut copy.outputs) {
            *id = self.tensor(*id);
        }
        // Only LSTMs have intermediates, and XNNPACK has no LSTM.
        copy.intermediates.clear();
        self.graph.operators.push(copy);
    }
}
