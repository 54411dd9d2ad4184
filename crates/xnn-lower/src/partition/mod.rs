//! Which operators go to XNNPACK, in which groups, and why the others do not.

mod clusters;
mod cost;
mod deferred;
mod dynamic_range;
mod embedded_graphs;

use std::sync::Arc;

use xnn_format::{Blob, Graph, GraphLimits};
use xnn_model::{Inferred, OutOfMemory, Subgraph, Tensor, TensorId, memory};

pub use self::cost::total_macs;
pub use self::deferred::{Deferred, deferred, shape_operand};
pub use self::dynamic_range::DynamicRange;
pub use self::embedded_graphs::stored_graph;
use crate::fold::{Folded, HalfFilters, fold};
use crate::lower::lower_group;
use crate::optimize::{self, optimize};
use crate::rules::{self, Forms, Plan};
use crate::view::{self, OpView};
use crate::why_not::{NamedTensor, WhyNot};

/// What a person may choose about partitioning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionOptions {
    /// Operators to leave alone, by name (`SOFTMAX`); [`operator_name`](crate::operator_name)
    /// tells which there are.
    pub disable: Vec<String>,
    /// Leave partitions with fewer multiply-accumulates than this.
    pub min_partition_macs: u64,
    /// Keep at most this many partitions, the largest ones.
    pub max_partitions: Option<usize>,
    /// How convolutions of floats with integer weights are computed.
    pub dynamic_range: DynamicRange,
    /// Choose forms of operators that all readers of XN01 know, ExecuTorch's old ones too, where there is a choice.
    pub widely_known: bool,
    /// What happens to a partition's graph before it is compiled.
    pub optimize: optimize::Options,
    /// Keep partitions that spare less than moving their border costs. A model
    /// that goes whole is never left for that.
    pub keep_small: bool,
    /// What graphs that the model holds already may ask for.
    pub limits: GraphLimits,
}

/// What happens to one operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It runs in the partition with this index.
    Delegated {
        /// Index into [`Partitioning::partitions`].
        partition: usize,
    },
    /// It stays with the interpreter.
    Left(WhyNot),
}

/// Operators that run as one XNNPACK graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Indices of the operators, in order.
    pub operators: Vec<usize>,
    /// Tensors that come from outside, in the order of the graph's inputs.
    pub inputs: Vec<TensorId>,
    /// Tensors that go outside, in the order of the graph's outputs.
    pub outputs: Vec<TensorId>,
    /// Tensors that the operators would write, and that nobody has to: their values follow from shapes and constants,
    /// and only partitions read them, which have been given these.
    pub known: Vec<TensorId>,
    /// Multiply-accumulates of one run.
    pub macs: u64,
    /// What it spares the interpreter: multiply-accumulates, or elements where
    /// an operator reads or writes more of them; 0 if no byte changes.
    pub work: u64,
    /// Bytes of inputs and outputs together.
    pub boundary_bytes: u64,
    /// What XNNPACK is asked to compute.
    pub graph: Arc<Graph>,
    /// What optimization did to the graph.
    pub optimization: optimize::Report,
    /// Whether the model holds the graph already, in the one operator that this
    /// is; else it was lowered.
    pub is_stored: bool,
}

/// The decisions for a whole subgraph.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    /// One for each operator.
    pub decisions: Vec<Decision>,
    /// Those that were lowered, in an order in which they can run, then those
    /// that the model holds as graphs.
    pub partitions: Vec<Partition>,
}

impl Partitioning {
    /// Number of delegated operators.
    #[must_use]
    pub fn delegated(&self) -> usize {
        self.decisions.iter().filter(|d| matches!(d, Decision::Delegated { .. })).count()
    }

    /// Whether one partition computes the whole subgraph.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.partitions.len() == 1 && self.delegated() == self.decisions.len()
    }
}

/// Has XNNPACK create a lowered graph, so that only what compiled is claimed.
pub trait Compile {
    /// What a compiled graph is.
    type Output;

    /// Tries to create the graph's operators.
    ///
    /// # Errors
    ///
    /// It is refused, or memory is exhausted.
    fn compile(&mut self, graph: &Arc<Graph>) -> Result<Self::Output, CompileError>;

    /// Whether products of unsigned 8-bit integers are as fast as those of signed ones, so that
    /// [`SignedLayers::Auto`](optimize::SignedLayers::Auto) leaves them unsigned.
    fn has_fast_uint8(&self) -> bool {
        false
    }

    /// Whether convolutions of images quantized at run time give what TFLite's reference kernels do, so that
    /// [`DynamicRange::Auto`] asks for them.
    fn has_exact_dynamic_convolutions(&self) -> bool {
        false
    }

    /// The same for a graph that the model holds as a blob.
    ///
    /// # Errors
    ///
    /// As [`Compile::compile`].
    fn open(&mut self, blob: Blob) -> Result<Self::Output, CompileError> {
        self.compile(blob.graph())
    }
}

/// Why a graph was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// XNNPACK does not accept it: an operator is left.
    Refused(Refusal),
    /// Memory is exhausted, which says nothing of the operators: partitioning ends.
    OutOfMemory(OutOfMemory),
}

impl From<Refusal> for CompileError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// XNNPACK does not accept a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the model's operator at fault; `None` if that is not known.
    pub operator: Option<usize>,
    /// What XNNPACK said.
    pub message: String,
}

/// Accepts everything: for tools that have no XNNPACK at hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl Compile for Unchecked {
    type Output = ();

    fn compile(&mut self, _: &Arc<Graph>) -> Result<(), CompileError> {
        Ok(())
    }
}

/// Decides for every operator of a subgraph, and lowers what goes. Beside the
/// decisions stands what the compiler made of each partition.
///
/// Decisions are about the operators and tensors of the inferred subgraph, which
/// are those of the file. Operators whose results are among `inferred.values` have nothing
/// left to do, and rules see constants in these.
///
/// # Errors
///
/// Memory is exhausted.
pub fn partition<C: Compile>(
    inferred: &Inferred,
    options: &PartitionOptions,
    compiler: &mut C,
) -> Result<(Partitioning, Vec<C::Output>), OutOfMemory> {
    partition_grouped(inferred, options, compiler, clusters::group)
}

/// [`partition`] for hosts that group operators themselves: `group` is told of each operator whether
/// it is claimed, and says which of those run as one step, in the order of the steps. Others that it
/// names are left out.
///
/// # Errors
///
/// As [`partition`].
pub fn partition_grouped<C: Compile>(
    inferred: &Inferred,
    options: &PartitionOptions,
    compiler: &mut C,
    mut group: impl FnMut(&Subgraph, &[bool]) -> Vec<Vec<usize>>,
) -> Result<(Partitioning, Vec<C::Output>), OutOfMemory> {
    memory::ensure(constants_as_floats(&inferred.subgraph), "lowered constants")?;
    let half_filters = match options {
        _ if !options.optimize.allow(optimize::CONSTANTS) => HalfFilters::Computed,
        PartitionOptions { widely_known: true, .. } => HalfFilters::Widened,
        _ => HalfFilters::Stored,
    };
    let Folded { graph, folded } = fold(inferred, half_filters);
    let graph = &*graph;
    let forms = Forms {
        dynamic_range: options.dynamic_range.on(compiler.has_exact_dynamic_convolutions()),
        widely_known: options.widely_known,
    };
    let writers = view::writers(graph);
    let mut plans: Vec<Result<Plan, WhyNot>> = (0..graph.operators.len())
        .map(|index| OpView::new(graph, index).with_writers(&writers))
        .zip(&folded)
        .map(|(view, folded)| plan(view, *folded, options, forms))
        .collect();
    let mut optimize = options.optimize.clone();
    optimize.signed_layers = optimize.signed_layers.on(compiler.has_fast_uint8());
    loop {
        leave_read_outside(graph, &mut plans);
        let partitions = build(graph, &plans, &optimize, &mut group);
        if refuse_small(&partitions, options, &mut plans) {
            continue;
        }
        match compile_all(&partitions, compiler) {
            Ok(mut compiled) => {
                let mut partitioning = decide(plans, partitions);
                embedded_graphs::take(graph, options, compiler, &mut partitioning, &mut compiled)?;
                return Ok((partitioning, compiled));
            }
            Err((_, CompileError::OutOfMemory(exhausted))) => return Err(exhausted),
            // No operator is given up for what optimization made of it.
            Err(_) if !optimize.off => optimize.off = true,
            Err((partition, CompileError::Refused(refusal))) => {
                for index in culprits(partition, &refusal) {
                    let message = refusal.message.clone();
                    plans[index] = Err(WhyNot::CompileFailed { message });
                }
                optimize.off = options.optimize.off;
            }
        }
    }
}

/// Compiles every partition; else the first that fails, and why.
fn compile_all<'p, C: Compile>(
    partitions: &'p [Partition],
    compiler: &mut C,
) -> Result<Vec<C::Output>, (&'p Partition, CompileError)> {
    let compile = |partition: &'p Partition| {
        compiler.compile(&partition.graph).map_err(|error| (partition, error))
    };
    partitions.iter().map(compile).collect()
}

/// Bytes that lowering may make of constants, all of it held at once: a single of each number, at most.
fn constants_as_floats(graph: &Subgraph) -> usize {
    let constants = graph.tensors.iter().filter(|tensor| tensor.is_constant());
    let elements = constants.filter_map(Tensor::elements);
    elements.fold(0, |sum, count| sum.saturating_add(count.saturating_mul(size_of::<f32>())))
}

fn plan(
    view: OpView<'_>,
    folded: bool,
    options: &PartitionOptions,
    forms: Forms,
) -> Result<Plan, WhyNot> {
    let name = view.op().name();
    if options.disable.iter().any(|disabled| disabled.eq_ignore_ascii_case(name)) {
        return Err(WhyNot::Disabled { op: name.to_owned() });
    }
    if folded { rules::folded(view) } else { rules::plan(view, forms) }
}

/// Gives up folded operators whose results operators that stay read: nobody else would write them.
fn leave_read_outside(graph: &Subgraph, plans: &mut [Result<Plan, WhyNot>]) {
    let mut outside = vec![false; graph.tensors.len()];
    // Backwards: an operator that is given up here reads its inputs outside in turn.
    for (operator, plan) in graph.operators.iter().zip(plans).rev() {
        let read = operator.outputs.iter().find(|&&output| outside[output]);
        if let (Ok(Plan::Folded), Some(&id)) = (&*plan, read) {
            let tensor = NamedTensor::new(id, graph.tensor(id));
            *plan = Err(WhyNot::ReadOutside { tensor });
        }
        if plan.is_err() {
            for &input in operator.inputs.iter().flatten() {
                outside[input] = true;
            }
        }
    }
}

fn build(
    graph: &Subgraph,
    plans: &[Result<Plan, WhyNot>],
    options: &optimize::Options,
    group: &mut impl FnMut(&Subgraph, &[bool]) -> Vec<Vec<usize>>,
) -> Vec<Partition> {
    let claimed: Vec<bool> = plans.iter().map(Result::is_ok).collect();
    let is_known = |index: usize| matches!(plans[index], Ok(Plan::Folded));
    let cost = |cost: fn(&Subgraph, usize) -> u64, operators: &[usize]| {
        let costs = operators.iter().filter(|&&i| !is_known(i)).map(|&i| cost(graph, i));
        costs.fold(0, u64::saturating_add)
    };
    // A host may name operators that were given up: each round has fewer, so that rounds end.
    let only_claimed = |operators: Vec<usize>| {
        operators.into_iter().filter(|&i| claimed[i]).collect::<Vec<usize>>()
    };
    group(graph, &claimed)
        .into_iter()
        .map(only_claimed)
        .filter(|operators| !operators.is_empty())
        .map(|operators| {
            let (inputs, outputs) = clusters::boundary(graph, &operators);
            let steps = operators.iter().filter_map(|&i| Some((i, plans[i].as_ref().ok()?)));
            let lowered = lower_group(graph, steps, &inputs, &outputs);
            let (lowered, mut optimization) = optimize(lowered, options);
            let known: Vec<usize> = operators.iter().copied().filter(|&i| is_known(i)).collect();
            if !known.is_empty() {
                optimization.changes.insert(optimize::CONSTANTS, known.len());
            }
            Partition {
                macs: cost(cost::macs, &operators),
                work: cost(cost::work, &operators),
                boundary_bytes: cost::bytes(graph, &inputs) + cost::bytes(graph, &outputs),
                graph: Arc::new(lowered),
                optimization,
                operators,
                inputs,
                outputs,
                known: known.iter().flat_map(|&i| &graph.operators[i].outputs).copied().collect(),
                is_stored: false,
            }
        })
        .collect()
}

/// Gives up partitions that the options do not want; whether there were any.
fn refuse_small(
    partitions: &[Partition],
    options: &PartitionOptions,
    plans: &mut [Result<Plan, WhyNot>],
) -> bool {
    let mut refused = false;
    let is_whole = partitions.len() == 1 && plans.iter().all(Result::is_ok);
    for partition in partitions {
        let is_small = !is_whole && !options.keep_small && !partition.is_worth_it();
        if is_small || partition.macs < options.min_partition_macs {
            refused = true;
            for &index in &partition.operators {
                plans[index] = Err(WhyNot::NotWorthIt {
                    macs: partition.macs,
                    work: partition.work,
                    boundary_bytes: partition.boundary_bytes,
                });
            }
        }
    }
    if refused {
        return true;
    }
    let Some(limit) = options.max_partitions.filter(|&limit| partitions.len() > limit) else {
        return false;
    };
    let mut by_size: Vec<&Partition> = partitions.iter().collect();
    by_size.sort_by_key(|partition| {
        (std::cmp::Reverse(partition.macs), std::cmp::Reverse(partition.operators.len()))
    });
    for partition in by_size.iter().skip(limit) {
        for &index in &partition.operators {
            plans[index] = Err(WhyNot::TooManyPartitions { limit });
        }
    }
    true
}

/// The operators to drop after a refusal: the one at fault, or all of them if
/// nobody knows.
fn culprits(partition: &Partition, refusal: &Refusal) -> Vec<usize> {
    match refusal.operator {
        Some(index) if partition.operators.contains(&index) => vec![index],
        _ => partition.operators.clone(),
    }
}

fn decide(plans: Vec<Result<Plan, WhyNot>>, partitions: Vec<Partition>) -> Partitioning {
    let mut decisions: Vec<Decision> = Vec::with_capacity(plans.len());
    for (index, plan) in plans.into_iter().enumerate() {
        let position = partitions.iter().position(|p| p.operators.contains(&index));
        decisions.push(match (plan, position) {
            (Err(why), _) => Decision::Left(why),
            (Ok(_), Some(partition)) => Decision::Delegated { partition },
            // Only a subgraph that is not in execution order gets here.
            (Ok(_), None) => Decision::Left(WhyNot::CompileFailed {
                message: "its inputs are never produced".into(),
            }),
        });
    }
    Partitioning { decisions, partitions }
}
