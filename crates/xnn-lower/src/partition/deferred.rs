//! Operators whose shapes only a run tells: which of them may go then, together, and as what.

use std::collections::BTreeMap;

use bytes::Bytes;
use xnn_model::{
    DType, Inferred, Op, Operator, Quantization, Subgraph, Tensor, TensorId, execution_order,
    fp16_weights,
};

use super::{Decision, Partition, PartitionOptions, Partitioning, clusters, cost};
use crate::why_not::WhyNot;

/// Operators that were left because their shapes are not known before a run, to be partitioned when they are.
///
/// No shape of a tensor inside follows from values inside, so that all are known where those of the inputs and the
/// values of the `sizes` are.
#[derive(Clone, Debug, PartialEq)]
pub struct Deferred {
    /// Indices of the operators, in order.
    pub operators: Vec<usize>,
    /// Tensors that come from outside, in the order of the inputs of `graph`.
    pub inputs: Vec<TensorId>,
    /// Tensors that go outside, in the order of the outputs of `graph`.
    pub outputs: Vec<TensorId>,
    /// The operators as a subgraph of their own. It has as constants what is known of the tensors that they read.
    pub graph: Subgraph,
    /// Positions of the inputs whose values are sizes of other tensors: constants of what is lowered for them.
    pub sizes: Vec<usize>,
}

/// Groups the operators that [`partition`](super::partition) has left for no other reason than shapes that are not known before
/// a run.
#[must_use]
pub fn deferred(
    inferred: &Inferred,
    partitioning: &Partitioning,
    options: &PartitionOptions,
) -> Vec<Deferred> {
    let facts = Facts::new(inferred);
    let graph = facts.graph;
    let operators = graph.operators.iter().zip(&partitioning.decisions);
    let may_go = |(operator, decision): (&Operator, &Decision)| {
        matches!(decision, Decision::Left(WhyNot::UnknownShape { .. }))
            && facts.takes_no_places(operator)
    };
    let may_go: Vec<bool> = operators.map(may_go).collect();
    let mut sets: Vec<Vec<usize>> =
        partitioning.partitions.iter().map(|partition| partition.operators.clone()).collect();
    let claimed = sets.len();
    let limit = options.max_partitions.unwrap_or(usize::MAX);
    for operators in clusters::group(graph, &may_go) {
        let changes_bytes = |&index: &usize| !cost::keeps_bytes(&graph.operators[index].op);
        if sets.len() < limit && operators.iter().any(changes_bytes) {
            sets.push(operators);
            // A partition may stand between two operators of the group, and the group between two of the partition's.
            if execution_order(graph, sets.iter().map(Vec::as_slice)).is_none() {
                sets.pop();
            }
        }
    }
    sets.split_off(claimed).into_iter().map(|set| Deferred::new(&facts, set)).collect()
}

/// Position of the operand that says which shape an operator gives its result.
#[must_use]
pub const fn shape_operand(op: &Op) -> Option<usize> {
    match op {
        Op::Fill | Op::TransposeConv(_) => Some(0),
        Op::BroadcastTo | Op::Reshape(_) => Some(1),
        _ => None,
    }
}

/// What is known of the tensors of a subgraph.
struct Facts<'a> {
    graph: &'a Subgraph,
    /// Elements that follow from constants alone. Those that follow from shapes may be others where inputs are.
    values: Vec<Option<&'a Bytes>>,
}

impl<'a> Facts<'a> {
    fn new(inferred: &'a Inferred) -> Self {
        let graph = inferred.subgraph.as_ref();
        let mut facts = Self { graph, values: vec![None; graph.tensors.len()] };
        for operator in &graph.operators {
            if operator.inputs.iter().flatten().all(|&id| facts.is_constant(id)) {
                for &id in &operator.outputs {
                    facts.values[id] = inferred.values.get(id).and_then(Option::as_ref);
                }
            }
        }
        facts
    }

    fn is_constant(&self, id: TensorId) -> bool {
        self.graph.tensor(id).is_constant() || self.values[id].is_some()
    }

    /// A tensor, as a constant if it is one.
    fn tensor(&self, id: TensorId) -> Tensor {
        let mut tensor = self.graph.tensor(id).clone();
        if let Some(value) = self.values[id] {
            tensor.data = Some(value.clone());
        }
        tensor
    }

    /// Whether an operator reads no integers that are indices, axes, or places of slices, which XNNPACK has to know beforehand
    /// and which may be others in each run; those that say its shape follow from shapes in most models.
    fn takes_no_places(&self, operator: &Operator) -> bool {
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
    fn new(facts: &Facts<'_>, operators: Vec<usize>) -> Self {
        let whole = facts.graph;
        // What widens fp16 filters is lowered with what reads them.
        let is_read = |widens: &Operator| {
            let readers = operators.iter().map(|&index| &whole.operators[index]);
            let mut read = readers.flat_map(|reader| reader.inputs.iter().flatten());
            read.any(|id| widens.outputs.contains(id))
        };
        let widens = fp16_weights(whole).into_iter().zip(&whole.operators).enumerate();
        let widens = widens.filter(|(_, (is_half, widens))| {
            let mut inputs = widens.inputs.iter().flatten();
            *is_half && inputs.all(|&id| facts.is_constant(id)) && is_read(widens)
        });
        let mut inside: Vec<usize> =
            widens.map(|(index, _)| index).chain(operators.clone()).collect();
        inside.sort_unstable();

        let (mut inputs, _) = clusters::boundary(whole, &inside);
        inputs.retain(|&id| !facts.is_constant(id));
        let (_, outputs) = clusters::boundary(whole, &operators);
        let mut copy = Copy { facts, graph: Subgraph::default(), places: BTreeMap::new() };
        for &index in &inside {
            copy.operator(&whole.operators[index]);
        }
        copy.graph.inputs = inputs.iter().map(|&id| copy.tensor(id)).collect();
        copy.graph.outputs = outputs.iter().map(|&id| copy.tensor(id)).collect();
        let says_shape = |id: &TensorId| {
            let operators = operators.iter().map(|&index| &whole.operators[index]);
            let mut shapes = operators.map(|it| it.input(shape_operand(&it.op)?));
            shapes.any(|shape| shape == Some(*id))
        };
        let sizes = (0..inputs.len()).filter(|&position| says_shape(&inputs[position])).collect();
        Self { operators, inputs, outputs, graph: copy.graph, sizes }
    }
}

/// A part of a subgraph, with tensors of its own.
struct Copy<'a> {
    facts: &'a Facts<'a>,
    graph: Subgraph,
    /// Where tensors have gone.
    places: BTreeMap<TensorId, TensorId>,
}

impl Copy<'_> {
    fn tensor(&mut self, id: TensorId) -> TensorId {
        if let Some(&place) = self.places.get(&id) {
            return place;
        }
        let mut tensor = self.facts.tensor(id);
        if let Some(Quantization::Blockwise { scales, zero_points, .. }) = &mut tensor.quantization
        {
            *scales = self.tensor(*scales);
            *zero_points = zero_points.map(|zero_points| self.tensor(zero_points));
        }
        self.graph.tensors.push(tensor);
        let place = self.graph.tensors.len() - 1;
        self.places.insert(id, place);
        place
    }

    fn operator(&mut self, operator: &Operator) {
        let mut copy = operator.clone();
        for id in copy.inputs.iter_mut().flatten().chain(&mut copy.outputs) {
            *id = self.tensor(*id);
        }
        // Only LSTMs have these, which XNNPACK does not.
        copy.intermediates.clear();
        self.graph.operators.push(copy);
    }
}

impl Partition {
    /// Whether it spares more than moving its border costs.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        cost::is_worth_it(self.work, self.boundary_bytes)
    }
}
