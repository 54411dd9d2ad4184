//! Decides which operators are delegated, groups them into partitions, and lowers each partition.

mod clusters;
mod compile;
mod cost;
mod decision;
mod deferred;
mod embedded_graphs;
mod options;

use std::sync::Arc;

use xnn_model::{Inferred, OutOfMemory, Subgraph, Tensor, TensorId, memory};

pub use self::compile::{Compile, CompileError, Refusal, Unchecked};
pub use self::cost::total_macs;
pub use self::decision::{Decision, Partition, Partitioning};
pub use self::deferred::{Deferred, deferred, shape_operand};
pub use self::embedded_graphs::embedded_graph;
pub use self::options::PartitionOptions;
use crate::fold::{Folded, Fp16Weights, fold};
use crate::lower::lower_group;
use crate::optimize::{self, optimize};
use crate::rules::{self, Plan, RuleOptions};
use crate::view::{self, OpView};
use crate::why_not::{NamedTensor, WhyNot};

/// Decides for every operator of a subgraph whether it is delegated, and lowers the delegated ones.
/// Returns the decisions, and the compiler's output for each partition.
///
/// Operators and tensors keep the indices that they have in the file. Operators whose results are
/// in `inferred.values` need no node, and rules treat these results as constants.
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

/// [`partition`] for hosts that group operators themselves: `group` gets the subgraph and, for each
/// operator, whether it can be delegated. It returns the groups that run as one step, in the order
/// of the steps. Operators in a group that cannot be delegated are ignored.
///
/// # Errors
///
/// Returns the errors of [`partition`].
pub fn partition_grouped<C: Compile>(
    inferred: &Inferred,
    options: &PartitionOptions,
    compiler: &mut C,
    mut group: impl FnMut(&Subgraph, &[bool]) -> Vec<Vec<usize>>,
) -> Result<(Partitioning, Vec<C::Output>), OutOfMemory> {
    memory::ensure(constants_as_floats(&inferred.subgraph), "lowered constants")?;
    let fp16_weights = match options {
        _ if !options.optimize.allow(optimize::CONSTANTS) => Fp16Weights::Computed,
        PartitionOptions { widely_known: true, .. } => Fp16Weights::Widened,
        _ => Fp16Weights::Kept,
    };
    let Folded { graph, folded } = fold(inferred, fp16_weights);
    let graph = &*graph;
    let target = compiler.target_features();
    let rule_options = RuleOptions {
        dynamic_range: options.dynamic_range.resolve(&target),
        max_dynamic_depthwise_taps: target.max_dynamic_depthwise_taps,
        widely_known: options.widely_known,
    };
    let writers = view::writers(graph);
    let mut plans: Vec<Result<Plan, WhyNot>> = (0..graph.operators.len())
        .map(|index| OpView::new(graph, index).with_writers(&writers))
        .zip(&folded)
        .map(|(view, folded)| plan(view, *folded, options, rule_options))
        .collect();
    let mut optimize = options.optimize.clone();
    optimize.signed_layers = optimize.signed_layers.resolve(&target);
    loop {
        leave_read_outside(graph, &mut plans);
        let candidates = candidates(graph, &plans, &mut group);
        if refuse_small(&candidates, options, &mut plans) {
            continue;
        }
        let partitions: Vec<Partition> = candidates
            .into_iter()
            .map(|candidate| lower_candidate(graph, &plans, &optimize, candidate))
            .collect();
        match compile_all(&partitions, compiler) {
            Ok(mut compiled) => {
                let mut partitioning = decide(plans, partitions);
                embedded_graphs::delegate(
                    graph,
                    options,
                    compiler,
                    &mut partitioning,
                    &mut compiled,
                )?;
                return Ok((partitioning, compiled));
            }
            Err((_, CompileError::OutOfMemory(exhausted))) => return Err(exhausted),
            // The graph as it was lowered is tried before any operator falls back.
            Err(_) if !optimize.off => optimize.off = true,
            Err((partition, CompileError::Refused(refusal))) => {
                for index in failing_operators(partition, &refusal) {
                    let message = refusal.message.clone();
                    plans[index] = Err(WhyNot::CompileFailed { message });
                }
                optimize.off = options.optimize.off;
            }
        }
    }
}

/// Compiles every partition. Returns the first that fails with its error.
fn compile_all<'p, C: Compile>(
    partitions: &'p [Partition],
    compiler: &mut C,
) -> Result<Vec<C::Output>, (&'p Partition, CompileError)> {
    let compile = |partition: &'p Partition| {
        compiler.compile(&partition.graph).map_err(|error| (partition, error))
    };
    partitions.iter().map(compile).collect()
}

/// Upper bound of the bytes that lowering allocates for constants: each element as an `f32`.
fn constants_as_floats(graph: &Subgraph) -> usize {
    let constants = graph.tensors.iter().filter(|tensor| tensor.is_constant());
    let elements = constants.filter_map(Tensor::elements);
    elements.fold(0, |sum, count| sum.saturating_add(count.saturating_mul(size_of::<f32>())))
}

fn plan(
    view: OpView<'_>,
    folded: bool,
    options: &PartitionOptions,
    rule_options: RuleOptions,
) -> Result<Plan, WhyNot> {
    let name = view.op().name();
    if options.disable.iter().any(|disabled| disabled.eq_ignore_ascii_case(name)) {
        return Err(WhyNot::Disabled { op: name.to_owned() });
    }
    if folded { rules::folded(view) } else { rules::plan(view, rule_options) }
}

/// Leaves folded operators to the interpreter where an operator outside of all partitions reads
/// their results, which no partition would write.
fn leave_read_outside(graph: &Subgraph, plans: &mut [Result<Plan, WhyNot>]) {
    let mut outside = vec![false; graph.tensors.len()];
    // Backwards: an operator that falls back here reads its inputs outside of partitions in turn.
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

/// Operators that become a partition if they are worth it.
struct Candidate {
    operators: Vec<usize>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
    macs: u64,
    work: u64,
    boundary_bytes: u64,
}

/// Groups the operators that have a plan.
fn candidates(
    graph: &Subgraph,
    plans: &[Result<Plan, WhyNot>],
    group: &mut impl FnMut(&Subgraph, &[bool]) -> Vec<Vec<usize>>,
) -> Vec<Candidate> {
    let claimed: Vec<bool> = plans.iter().map(Result::is_ok).collect();
    let cost = |cost: fn(&Subgraph, usize) -> u64, operators: &[usize]| {
        let costs = operators.iter().filter(|&&i| !is_folded(plans, i)).map(|&i| cost(graph, i));
        costs.fold(0, u64::saturating_add)
    };
    // A host may name operators that fell back. Each round has fewer, so that the rounds end.
    let only_claimed = |operators: Vec<usize>| {
        operators.into_iter().filter(|&i| claimed[i]).collect::<Vec<usize>>()
    };
    group(graph, &claimed)
        .into_iter()
        .map(only_claimed)
        .filter(|operators| !operators.is_empty())
        .map(|operators| {
            let (inputs, outputs) = clusters::boundary(graph, &operators);
            Candidate {
                macs: cost(cost::macs, &operators),
                work: cost(cost::work, &operators),
                boundary_bytes: cost::bytes(graph, &inputs) + cost::bytes(graph, &outputs),
                operators,
                inputs,
                outputs,
            }
        })
        .collect()
}

fn is_folded(plans: &[Result<Plan, WhyNot>], index: usize) -> bool {
    matches!(plans[index], Ok(Plan::Folded))
}

fn lower_candidate(
    graph: &Subgraph,
    plans: &[Result<Plan, WhyNot>],
    options: &optimize::Options,
    candidate: Candidate,
) -> Partition {
    let Candidate { operators, inputs, outputs, macs, work, boundary_bytes } = candidate;
    let steps = operators.iter().filter_map(|&i| Some((i, plans[i].as_ref().ok()?)));
    let lowered = lower_group(graph, steps, &inputs, &outputs);
    let (lowered, mut optimization) = optimize(lowered, options);
    let folded: Vec<usize> = operators.iter().copied().filter(|&i| is_folded(plans, i)).collect();
    if !folded.is_empty() {
        optimization.changes.insert(optimize::CONSTANTS, folded.len());
    }
    Partition {
        graph: Arc::new(lowered),
        optimization,
        known: folded.iter().flat_map(|&i| &graph.operators[i].outputs).copied().collect(),
        operators,
        inputs,
        outputs,
        macs,
        work,
        boundary_bytes,
        is_embedded: false,
    }
}

/// Drops candidates that are too small for the options. Returns whether there were any.
fn refuse_small(
    candidates: &[Candidate],
    options: &PartitionOptions,
    plans: &mut [Result<Plan, WhyNot>],
) -> bool {
    let mut refused = false;
    let is_whole = candidates.len() == 1 && plans.iter().all(Result::is_ok);
    for candidate in candidates {
        let is_small = !is_whole
            && !options.keep_small
            && !cost::is_worth_it(candidate.work, candidate.boundary_bytes);
        if is_small || candidate.macs < options.min_partition_macs {
            refused = true;
            for &index in &candidate.operators {
                plans[index] = Err(WhyNot::NotWorthIt {
                    macs: candidate.macs,
                    work: candidate.work,
                    boundary_bytes: candidate.boundary_bytes,
                });
            }
        }
    }
    if refused {
        return true;
    }
    let Some(limit) = options.max_partitions.filter(|&limit| candidates.len() > limit) else {
        return false;
    };
    let mut by_size: Vec<&Candidate> = candidates.iter().collect();
    by_size.sort_by_key(|candidate| {
        (std::cmp::Reverse(candidate.macs), std::cmp::Reverse(candidate.operators.len()))
    });
    for candidate in by_size.iter().skip(limit) {
        for &index in &candidate.operators {
            plans[index] = Err(WhyNot::TooManyPartitions { limit });
        }
    }
    true
}

/// The operators that fall back after a refusal: the failing one, or all of them if it is unknown.
fn failing_operators(partition: &Partition, refusal: &Refusal) -> Vec<usize> {
    match refusal.operator {
        Some(index) if partition.operators.contains(&index) => vec![index],
        _ => partition.operators.clone(),
    }
}

fn decide(plans: Vec<Result<Plan, WhyNot>>, partitions: Vec<Partition>) -> Partitioning {
    let mut partition_of = vec![None; plans.len()];
    for (index, partition) in partitions.iter().enumerate() {
        for &operator in &partition.operators {
            partition_of[operator] = Some(index);
        }
    }
    let decide = |(plan, partition)| match (plan, partition) {
        (Err(why), _) => Decision::NotDelegated(why),
        (Ok(_), Some(partition)) => Decision::Delegated { partition },
        // Only a subgraph that is not in execution order gets here.
        (Ok(_), None) => Decision::NotDelegated(WhyNot::CompileFailed {
            message: "no operator before it produces its inputs".into(),
        }),
    };
    let decisions = plans.into_iter().zip(partition_of).map(decide).collect();
    Partitioning { decisions, partitions }
}
