//! A model that is ready to run: every operator with its kernel.

mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{
    DType, Limits, Model, Op, Operator, Subgraph, SubgraphId, Tensor, TensorId, infer_shapes,
};

use crate::arena::Lifetime;
use crate::constants::constant_operators;
use crate::control::{Control, control_of};
use crate::delegate::{CompiledPartition, Delegate, Partition};
use crate::error::{Error, ErrorKind, Refusal};
use crate::interpreter::InterpOptions;
use crate::kernels;
use crate::node::{Node, Run};
use crate::resources::Name;
use crate::storage::TensorBuf;
use crate::tensor::{TensorRef, storage_size};

/// The subgraphs that can be reached from an entry point.
pub(crate) struct Program {
    pub(crate) graphs: BTreeMap<SubgraphId, Graph>,
    /// What delegates run, by the number that [`Action::Delegated`] has.
    pub(crate) partitions: Vec<Arc<dyn CompiledPartition>>,
    /// What resources are known by; the position is the handle.
    pub(crate) names: Vec<Name>,
    pub(crate) limits: Limits,
}

/// One subgraph with its steps.
pub(crate) struct Graph {
    pub(crate) id: SubgraphId,
    pub(crate) subgraph: Arc<Subgraph>,
    pub(crate) steps: Vec<Step>,
    /// Intermediate tensors that steps compute, with the steps that need them.
    pub(crate) tenants: Vec<(TensorId, Lifetime)>,
    /// What VAR_HANDLE and HASHTABLE give, the same in every run.
    pub(crate) handles: Vec<(TensorId, u64)>,
    /// By tensor.
    constants: Vec<Constant>,
}

/// Where the elements of a constant lie.
enum Constant {
    /// There are none.
    Absent,
    /// In the file: so many bytes.
    File(usize),
    /// In a copy, since those in the file are not aligned for their type.
    Copy(TensorBuf),
}

/// What runs at once.
pub(crate) struct Step {
    /// The operator, or the first of a partition: for errors.
    pub(crate) operator: usize,
    /// The operators with what they take and give.
    pub(crate) part: Partition,
    pub(crate) action: Action,
    /// Positions of the inputs that a kernel changes: variables.
    pub(crate) states: Vec<usize>,
    /// Outputs with their positions, and behind these the states; sorted by tensor.
    pub(crate) written: Vec<(TensorId, usize)>,
    /// Whether it computes the same in every run, so that one is enough.
    pub(crate) once: bool,
    /// Tensors that no later step reads.
    pub(crate) release: Vec<TensorId>,
}

pub(crate) enum Action {
    Kernel(Run),
    Control(Control),
    /// The number of the partition in the program.
    Delegated(usize),
}

/// A partition with the engine that runs it.
pub(crate) struct Delegated {
    pub(crate) partition: Partition,
    pub(crate) compiled: Arc<dyn CompiledPartition>,
}

impl Program {
    pub(crate) fn new(
        model: &Model,
        entry: SubgraphId,
        options: &InterpOptions,
    ) -> Result<Self, Error> {
        let mut program = Self {
            graphs: BTreeMap::new(),
            partitions: vec![],
            names: vec![],
            limits: options.limits.clone(),
        };
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            if program.graphs.contains_key(&id) {
                continue;
            }
            let subgraph = model
                .subgraphs
                .get(id)
                .ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))?;
            let mut graph = program.prepare(id, subgraph, &options.delegates)?;
            graph.plan_lifetimes(options.keep_intermediates);
            for step in &graph.steps {
                if let Action::Control(control) = &step.action {
                    open.extend(control.callees());
                }
            }
            program.graphs.insert(id, graph);
        }
        Ok(program)
    }

    pub(crate) fn graph(&self, id: SubgraphId) -> Result<&Graph, Error> {
        self.graphs.get(&id).ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))
    }

    /// The handle of a resource.
    fn handle(&mut self, name: Name) -> u64 {
        let known = self.names.iter().position(|other| *other == name);
        let handle = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        handle as u64
    }

    /// Makes the steps of a subgraph.
    fn prepare(
        &mut self,
        id: SubgraphId,
        subgraph: &Arc<Subgraph>,
        delegates: &[Arc<dyn Delegate>],
    ) -> Result<Graph, Error> {
        let inferred = Arc::new(infer_shapes(subgraph).map_err(|error| in_graph(id, error))?);
        let mut claims = schedule::Claims::default();
        for delegate in delegates {
            schedule::claim(&inferred, delegate.as_ref(), &mut claims)?;
        }
        let is_constant = constant_operators(&inferred);
        let (mut steps, mut handles) = (Vec::new(), Vec::new());
        for unit in schedule::order(&inferred, &claims)? {
            let step = match unit {
                schedule::Unit::Operator(index) => {
                    let operator = &inferred.operators[index];
                    check_tensors(id, &inferred, index)?;
                    if let Some(name) = Name::of(&operator.op) {
                        let node = Node { subgraph: &inferred, operator };
                        node.expect_output(0, DType::Resource).map_err(|Refusal(message)| {
                            unsupported(id, index, operator, message)
                        })?;
                        handles.push((operator.outputs[0], self.handle(name)));
                        continue;
                    }
                    let failure = claims.failed.get(&index).map(String::as_str);
                    let action = action_of(id, &inferred, index, failure)?;
                    if let Some(failure) = failure {
                        log::warn!("operator {index} stays with the interpreter: {failure}");
                    }
                    let once = is_constant[index] && matches!(action, Action::Kernel(_));
                    Step { once, ..Step::new(&inferred, single(&inferred, index), action) }
                }
                schedule::Unit::Delegated(Delegated { partition, compiled }) => {
                    self.partitions.push(compiled);
                    Step::new(&inferred, partition, Action::Delegated(self.partitions.len() - 1))
                }
            };
            steps.push(step);
        }
        let constants = inferred.tensors.iter().enumerate();
        let constants =
            constants.map(|(id, tensor)| Constant::of(id, tensor)).collect::<Result<_, _>>()?;
        Ok(Graph { id, subgraph: inferred, steps, tenants: vec![], handles, constants })
    }
}

impl Constant {
    /// Constants have the size that their shape needs, and are aligned.
    fn of(id: TensorId, tensor: &Tensor) -> Result<Self, Error> {
        if tensor.unusable.is_some() || tensor.is_variable {
            return Ok(Self::Absent);
        }
        let (Some(data), Some(shape)) = (&tensor.data, &tensor.shape) else {
            return Ok(Self::Absent);
        };
        if tensor.sparsity.is_some() {
            return Ok(Self::File(data.len()));
        }
        let Some(size) = storage_size(tensor.dtype, shape) else { return Ok(Self::Absent) };
        let Some(dense) = data.get(..size) else {
            return Err(Error::invalid(format!(
                "tensor {id} ({:?}) has {} bytes where its shape needs {size}",
                tensor.name,
                data.len()
            )));
        };
        let alignment = tensor.dtype.bits().unwrap_or(8).div_ceil(8).min(8);
        if dense.as_ptr().align_offset(alignment) == 0 {
            return Ok(Self::File(size));
        }
        let copy = TensorBuf::from_bytes(tensor.dtype, shape, dense);
        Ok(copy.map_or(Self::File(size), Self::Copy))
    }
}

impl Step {
    fn new(graph: &Subgraph, part: Partition, action: Action) -> Self {
        let operator = part.operators.first().copied().unwrap_or(0);
        let mut written: Vec<TensorId> = part.outputs.clone();
        let mut states = vec![];
        if let (Action::Kernel(_), Some(node)) = (&action, graph.operators.get(operator)) {
            for (position, id) in node.inputs.iter().enumerate() {
                if let Some(id) = *id
                    && graph.tensor(id).is_variable
                    && !written.contains(&id)
                {
                    states.push(position);
                    written.push(id);
                }
            }
        }
        let mut written: Vec<(TensorId, usize)> = written.into_iter().zip(0..).collect();
        written.sort_unstable();
        Self { operator, part, action, states, written, once: false, release: vec![] }
    }
}

impl Graph {
    /// Finds the steps that need each tensor. Inputs, outputs, variables and what is computed once stay; so
    /// does what control operators give, which has memory already.
    fn plan_lifetimes(&mut self, keep_intermediates: bool) {
        let graph = &self.subgraph;
        let mut stays: Vec<bool> = graph.tensors.iter().map(|t| t.is_variable).collect();
        let handed = self.steps.iter().filter(|step| matches!(step.action, Action::Control(_)));
        let handed: Vec<TensorId> = handed.flat_map(|step| &step.part.outputs).copied().collect();
        let once = self.steps.iter().filter(|step| step.once).flat_map(|step| &step.part.outputs);
        for &id in graph.inputs.iter().chain(&graph.outputs).chain(once) {
            stays[id] = true;
        }
        let mut lifetimes: BTreeMap<TensorId, Lifetime> = BTreeMap::new();
        for (index, step) in self.steps.iter().enumerate() {
            for &id in step.part.outputs.iter().filter(|&&id| !stays[id]) {
                lifetimes.entry(id).or_insert(Lifetime { first: index, last: index }).last = index;
            }
            for id in &step.part.inputs {
                if let Some(lifetime) = lifetimes.get_mut(id) {
                    lifetime.last = index;
                }
            }
        }
        for (&id, lifetime) in &mut lifetimes {
            if keep_intermediates {
                lifetime.last = usize::MAX;
            } else if let Some(step) = self.steps.get_mut(lifetime.last) {
                step.release.push(id);
            }
        }
        lifetimes.retain(|id, _| !handed.contains(id));
        self.tenants = lifetimes.into_iter().collect();
    }

    pub(crate) fn operator(&self, index: usize) -> &Operator {
        &self.subgraph.operators[index]
    }

    /// The elements of a constant.
    pub(crate) fn constant(&self, id: TensorId) -> Option<TensorRef<'_>> {
        match self.constants.get(id)? {
            Constant::Absent => None,
            Constant::File(size) => {
                let tensor = self.subgraph.tensors.get(id)?;
                let bytes = tensor.data.as_deref()?.get(..*size)?;
                Some(TensorRef { dtype: tensor.dtype, shape: tensor.shape.as_deref()?, bytes })
            }
            Constant::Copy(copy) => Some(copy.view()),
        }
    }

    /// Adds the operator to an error.
    pub(crate) fn locate(&self, index: usize, error: Error) -> Error {
        let name = self.subgraph.operators.get(index).map_or("", |o| o.op.name());
        error.at(self.id, index, name)
    }
}

/// An operator that runs alone, with all that it takes and gives.
fn single(subgraph: &Subgraph, index: usize) -> Partition {
    let operator = &subgraph.operators[index];
    let inputs = operator.inputs.iter().flatten().copied().collect();
    Partition { operators: vec![index], inputs, outputs: operator.outputs.clone() }
}

/// An error of shape inference, with the subgraph.
fn in_graph(id: SubgraphId, error: xnn_model::Error) -> Error {
    let operator = error.place().operator.clone();
    let error = Error::from(ErrorKind::Model(error));
    match operator {
        Some((index, name)) => error.at(id, index, &name),
        None => error,
    }
}

/// Refuses an operator, which no delegate runs.
fn unsupported(graph: SubgraphId, index: usize, operator: &Operator, message: String) -> Error {
    Error::from(ErrorKind::Unsupported(message)).at(graph, index, operator.op.name())
}

/// Refuses tensors that no kernel can read or write.
fn check_tensors(graph: SubgraphId, subgraph: &Subgraph, index: usize) -> Result<(), Error> {
    let operator = &subgraph.operators[index];
    let mut given = BTreeSet::new();
    if let Some(&id) = operator.outputs.iter().find(|id| !given.insert(**id)) {
        let error = Error::invalid(format!("gives tensor {:?} twice", subgraph.tensors[id].name));
        return Err(error.at(graph, index, operator.op.name()));
    }
    let used = operator.inputs.iter().flatten().chain(&operator.outputs);
    used.map(|&id| &subgraph.tensors[id]).try_for_each(|tensor| match &tensor.unusable {
        Some(reason) => {
            let message = format!("tensor {:?}: {reason}", tensor.name);
            Err(unsupported(graph, index, operator, message))
        }
        None => Ok(()),
    })
}

/// What runs an operator that no delegate runs; `failure` is why one that wanted
/// it could not.
fn action_of(
    graph: SubgraphId,
    subgraph: &Subgraph,
    index: usize,
    failure: Option<&str>,
) -> Result<Action, Error> {
    let operator = &subgraph.operators[index];
    let unsupported = |message| unsupported(graph, index, operator, message);
    if let Some(control) = control_of(operator) {
        return Ok(Action::Control(control));
    }
    let Some(prepare) = kernels::find(&operator.op) else {
        let missing = match &operator.op {
            Op::Custom(custom) => format!("no kernel for the custom operator {:?}", custom.code),
            op => format!("no kernel for {op}"),
        };
        return Err(unsupported(match failure {
            Some(failure) => format!("{missing}; {failure}"),
            None => missing,
        }));
    };
    match prepare(&Node { subgraph, operator }) {
        Ok(run) => Ok(Action::Kernel(run)),
        Err(Refusal(message)) => Err(unsupported(message)),
    }
}
