//! Random models of one to five operators: what is claimed runs, operator by
//! operator as the reference kernels do, and as a whole as operator by
//! operator. `XNN_RANDOM_MODELS` sets their number.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;
mod random;
mod runners;

use std::collections::BTreeMap;
use std::env;

use random::{Case, Generator};
use runners::{Values, compare, describe, floats, rounding, run, run_reference, through_blob};
use xnn_delegate::PartitionOptions;
use xnn_delegate::lower::{Decision, Delegation};
use xnn_delegate::model::Subgraph;
use xnn_model::{DType, TensorId};

/// Models of an ordinary run.
const MODELS: u64 = 10_000;
/// The partitions of one model of so many also run through a blob and with two threads.
const ALL_RUNNERS: u64 = 8;

#[derive(Default)]
struct Tally {
    models: usize,
    /// Models that the reference kernels refuse.
    refused: usize,
    /// Models whose floats become infinite: what comes of them is not said anywhere.
    overflowed: usize,
    /// Partitions that also ran through a blob.
    through_blobs: usize,
    /// For each operator and type: claimed, left.
    operators: BTreeMap<String, [usize; 2]>,
}

#[test]
fn what_is_claimed_runs_and_agrees() {
    let count = env::var("XNN_RANDOM_MODELS").map_or(MODELS, |n| n.parse().unwrap());
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in 0..count {
        let Case { graph, inputs } = Generator::model(seed);
        let all_runners = seed % ALL_RUNNERS == 0;
        if let Err(error) = check(&graph, &inputs, all_runners, &mut tally) {
            failures.push(format!("model {seed}: {error}\n{}", describe(&graph)));
        }
    }
    for (operator, [claimed, left]) in &tally.operators {
        println!("{operator}: {claimed} claimed, {left} left");
    }
    println!("{} models, {} refused by the reference kernels", tally.models, tally.refused);
    println!("{} partitions ran through blobs", tally.through_blobs);
    assert!(failures.is_empty(), "{} models failed:\n{}", failures.len(), failures.join("\n"));
    assert!(tally.through_blobs as u64 * ALL_RUNNERS * 4 >= count, "most models have a partition");
    assert!(tally.refused * 4 < tally.models, "most models must be runnable");
    assert!(tally.overflowed * 100 < tally.models, "{} models overflowed", tally.overflowed);
}

fn check(
    graph: &Subgraph,
    inputs: &Values,
    all_runners: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.models += 1;
    let delegation = Delegation::new(&graph.clone().into(), &PartitionOptions::default())
        .map_err(|error| format!("no decisions: {error}"))?;
    let graph = delegation.graph();
    let mut values = inputs.clone();
    for index in 0..graph.operators.len() {
        let alone = alone(graph, index);
        let operator = &graph.operators[index];
        let Ok(reference) = run_reference(&alone, &values) else {
            tally.refused += 1;
            return Ok(());
        };
        let first = graph.tensor(operator.outputs[0]);
        let kind = format!("{} {}", operator.op.name(), first.dtype);
        let claimed =
            matches!(delegation.partitioning().decisions[index], Decision::Delegated { .. });
        tally.operators.entry(kind).or_default()[usize::from(!claimed)] += 1;
        if !claimed {
            values.extend(reference);
            continue;
        }
        let single = Delegation::new(&alone.clone().into(), &PartitionOptions::default())
            .map_err(|error| error.to_string())?;
        let program = single.whole().map_err(|error| format!("operator {index}: {error}"))?;
        let results = run(program, &alone.inputs, &alone.outputs, &values, 1)?;
        for (&id, expected) in &reference {
            compare(graph.tensor(id).dtype, &results[&id], expected, rounding(&alone, &values))
                .map_err(|error| format!("operator {index}: {error}"))?;
        }
        let overflows = |(&id, bytes): (&TensorId, &Vec<u8>)| {
            graph.tensor(id).dtype == DType::F32 && floats(bytes).iter().any(|x| x.is_infinite())
        };
        if results.iter().any(overflows) {
            tally.overflowed += 1;
            return Ok(());
        }
        values.extend(results);
    }
    let partitioning = delegation.partitioning();
    for (partition, program) in partitioning.partitions.iter().zip(delegation.programs()) {
        let results = run(program, &partition.inputs, &partition.outputs, &values, 1)?;
        if all_runners {
            tally.through_blobs += 1;
            let again = through_blob(program)?;
            for threads in [1, 2] {
                let bits = run(&again, &partition.inputs, &partition.outputs, &values, threads)?;
                if bits != results {
                    return Err(format!("a blob with {threads} threads computes something else"));
                }
            }
        }
        for (id, result) in results {
            compare(graph.tensor(id).dtype, &result, &values[&id], 0.0)
                .map_err(|error| format!("the partition as a whole, tensor {id}: {error}"))?;
        }
    }
    Ok(())
}

/// The subgraph of one operator.
fn alone(graph: &Subgraph, index: usize) -> Subgraph {
    let operator = graph.operators[index].clone();
    let mut inputs: Vec<TensorId> = Vec::new();
    for &id in operator.inputs.iter().flatten() {
        if !graph.tensor(id).is_constant() && !inputs.contains(&id) {
            inputs.push(id);
        }
    }
    Subgraph {
        name: String::new(),
        tensors: graph.tensors.clone(),
        inputs,
        outputs: operator.outputs.clone(),
        operators: vec![operator],
    }
}
