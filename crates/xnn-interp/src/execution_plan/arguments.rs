//! Inference of shapes in subgraphs that others call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{Model, Subgraph, SubgraphId, Tensor, TensorId, infer_shapes};

use crate::control::{Control, control_of};
use crate::error::{Error, ErrorKind};

/// Number of changes after which all argument shapes of a subgraph count as unknown.
const MAX_CHANGES: usize = 8;

type Shape = Option<Vec<usize>>;

/// The subgraphs that an entry point can reach, with all shapes that are known before a run.
///
/// If a called subgraph leaves a dimension open (-1), the 1 that the file stores in its place is
/// ignored. Arguments have the shape that all callers pass, if it is the same, and shape inference
/// finds the others.
///
/// # Errors
///
/// The subgraph does not exist, or an operator does not accept the shapes of its inputs.
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
        // An entry point runs with the shapes that the file states.
        let inferred = if id == entry && is_open { infer(Arc::clone(subgraph))? } else { known };
        reached.graphs.insert(id, inferred);
    }
    Ok(reached.graphs)
}

#[derive(Default)]
struct Reached {
    entry: SubgraphId,
    graphs: BTreeMap<SubgraphId, Arc<Subgraph>>,
    /// Subgraphs whose shapes are still to be inferred, possibly again.
    open: Vec<SubgraphId>,
    arguments: BTreeMap<SubgraphId, Arguments>,
    /// Loops, as body and condition.
    loops: BTreeSet<(SubgraphId, SubgraphId)>,
}

#[derive(Default)]
struct Arguments {
    /// The shapes that all callers pass; `None` if one is unknown or they differ.
    shapes: Vec<Shape>,
    /// Number of changes so far.
    changes: usize,
}

impl Reached {
    /// The subgraph without the shapes that the file leaves open.
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

    /// Passes the shapes of a subgraph's tensors to the subgraphs that it calls, and the shapes of
    /// its results to the loops of which it is the body.
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
    /// Removes the shapes that another caller does not pass. Returns whether any were removed.
    fn meet(&mut self, passed: &[Shape]) -> bool {
        let mut changed = false;
        for (shape, passed) in self.shapes.iter_mut().zip(passed) {
            if shape.is_some() && shape != passed {
                *shape = None;
                changed = true;
            }
        }
        self.changes += usize::from(changed);
        if self.changes == MAX_CHANGES {
            self.shapes.fill(None);
        }
        changed
    }
}

/// Whether the file leaves a dimension open until a run.
fn is_open(tensor: &Tensor) -> bool {
    tensor.shape_signature.as_ref().is_some_and(|dims| dims.iter().any(|&dim| dim < 0))
}

/// Adds the subgraph to an error of shape inference.
fn in_graph(id: SubgraphId, error: xnn_model::Error) -> Error {
    let operator = error.place().operator.clone();
    let error = Error::from(ErrorKind::Model(error));
    match operator {
        Some((index, name)) => error.at(id, index, &name),
        None => error,
    }
}
