//! Shapes in subgraphs that others call, from what callers pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{Model, Subgraph, SubgraphId, Tensor, TensorId, infer_shapes};

use super::in_graph;
use crate::control::{Control, control_of};
use crate::error::Error;

/// A subgraph whose arguments are not settled after so many looks has none that are.
const LOOKS: usize = 8;

type Shape = Option<Vec<usize>>;

/// The subgraphs that an entry point can reach, each with every shape that can be known.
///
/// Where the file leaves a shape of a called subgraph open (-1), the 1 that it has in the place is no size: arguments
/// have the shape that all callers pass, if there is such a shape, and results what follows.
///
/// # Errors
///
/// There is no such subgraph, or an operator cannot take the shapes of its inputs.
pub fn infer_reachable(
    model: &Model,
    entry: SubgraphId,
) -> Result<BTreeMap<SubgraphId, Arc<Subgraph>>, Error> {
    let mut reached = Reached { entry, ..Reached::default() };
    reached.open.push(entry);
    while let Some(id) = reached.open.pop() {
        let subgraph = model
            .subgraphs
            .get(id)
            .ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))?;
        let infer = |graph: Arc<Subgraph>| infer_shapes(graph).map_err(|error| in_graph(id, error));
        let forgotten = reached.forget(id, subgraph);
        let is_open = !Arc::ptr_eq(&forgotten, subgraph);
        let known = infer(forgotten)?;
        reached.follow(id, &known);
        // An entry point runs with the shapes that it states.
        let inferred = if id == entry && is_open { infer(Arc::clone(subgraph))? } else { known };
        reached.graphs.insert(id, inferred);
    }
    Ok(reached.graphs)
}

#[derive(Default)]
struct Reached {
    entry: SubgraphId,
    graphs: BTreeMap<SubgraphId, Arc<Subgraph>>,
    /// Those whose shapes are to be inferred, possibly again.
    open: Vec<SubgraphId>,
    arguments: BTreeMap<SubgraphId, Arguments>,
    /// Bodies with their conditions.
    loops: BTreeSet<(SubgraphId, SubgraphId)>,
}

#[derive(Default)]
struct Arguments {
    /// What all callers pass; `None` where they do not know, or pass different shapes.
    shapes: Vec<Shape>,
    /// How often they have changed.
    changes: usize,
}

impl Reached {
    /// A subgraph without the shapes that it leaves open.
    fn forget(&self, id: SubgraphId, subgraph: &Arc<Subgraph>) -> Arc<Subgraph> {
        let mut graph = Arc::clone(subgraph);
        let mut give = |id: TensorId, shape: &Shape| {
            if subgraph.tensors.get(id).is_some_and(is_open)
                && let Some(tensor) = Arc::make_mut(&mut graph).tensors.get_mut(id)
            {
                tensor.shape.clone_from(shape);
            }
        };
        for &output in subgraph.operators.iter().flat_map(|operator| &operator.outputs) {
            give(output, &None);
        }
        let passed = self.arguments.get(&id).map_or(&[][..], |arguments| &arguments.shapes);
        for (&input, shape) in subgraph.inputs.iter().zip(passed) {
            give(input, shape);
        }
        graph
    }

    /// Hands the shapes of a subgraph's tensors to those that it calls, and of its results to the loops that it is
    /// the body of.
    fn follow(&mut self, id: SubgraphId, graph: &Subgraph) {
        let shapes = |ids: &mut dyn Iterator<Item = TensorId>| -> Vec<Shape> {
            ids.map(|id| graph.tensors.get(id)?.shape.clone()).collect()
        };
        for operator in &graph.operators {
            let Some(control) = control_of(operator) else { continue };
            let inputs = operator.inputs.iter().flatten().copied();
            let inputs =
                shapes(&mut inputs.skip(usize::from(matches!(control, Control::If { .. }))));
            for callee in control.callees() {
                self.pass(callee, &inputs);
            }
            if let Control::While { condition, body } = control
                && self.loops.insert((body, condition))
            {
                self.open.push(body);
            }
        }
        let state = shapes(&mut graph.outputs.iter().copied());
        let conditions = self.loops.iter().filter(|(body, _)| *body == id);
        for (_, condition) in conditions.copied().collect::<Vec<_>>() {
            self.pass(id, &state);
            self.pass(condition, &state);
        }
    }

    fn pass(&mut self, callee: SubgraphId, shapes: &[Shape]) {
        if callee == self.entry {
            return;
        }
        if let Some(arguments) = self.arguments.get_mut(&callee) {
            if !arguments.meet(shapes) {
                return;
            }
        } else {
            let arguments = Arguments { shapes: shapes.to_vec(), changes: 0 };
            self.arguments.insert(callee, arguments);
        }
        self.open.push(callee);
    }
}

impl Arguments {
    /// Gives up the shapes that another caller does not pass. Whether there were any.
    fn meet(&mut self, passed: &[Shape]) -> bool {
        let mut changed = false;
        for (shape, passed) in self.shapes.iter_mut().zip(passed) {
            if shape.is_some() && shape != passed {
                *shape = None;
                changed = true;
            }
        }
        self.changes += usize::from(changed);
        if self.changes == LOOKS {
            self.shapes.fill(None);
        }
        changed
    }
}

/// Whether the file leaves a dimension to the run.
fn is_open(tensor: &Tensor) -> bool {
    tensor.shape_signature.as_ref().is_some_and(|dims| dims.iter().any(|&dim| dim < 0))
}
