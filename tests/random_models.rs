//! Random models of one to five operators: what is claimed runs, operator by
//! operator as the reference kernels do, and as a whole as operator by
//! operator. `XNN_RANDOM_MODELS` sets their number.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod random;

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::sync::Arc;

use random::Generator;
use xnn_delegate::{
    Decision, Delegation, Entry, InterpOptions, Interpreter, Model, PartitionOptions, Program,
    Session, SessionOptions, Subgraph,
};
use xnn_model::op::Op;
use xnn_model::{DType, Dialect, TensorId};

/// Models of an ordinary run.
const MODELS: u64 = 10_000;
/// Part of the output's range that an fp32 result may be from the reference.
const PART: f32 = 1e-5;
/// Steps that an 8-bit result may be from the reference.
const STEPS: i32 = 1;

type Values = HashMap<TensorId, Vec<u8>>;

#[derive(Default)]
struct Tally {
    models: usize,
    /// Models that the reference kernels refuse.
    refused: usize,
    /// For each operator and type: claimed, left.
    operators: BTreeMap<String, [usize; 2]>,
}

#[test]
fn what_is_claimed_runs_and_agrees() {
    let count = env::var("XNN_RANDOM_MODELS").map_or(MODELS, |n| n.parse().unwrap());
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in 0..count {
        let (graph, inputs) = Generator::new(seed).model();
        if let Err(error) = check(&graph, &inputs, &mut tally) {
            failures.push(format!("model {seed}: {error}\n{}", describe(&graph)));
        }
    }
    for (operator, [claimed, left]) in &tally.operators {
        println!("{operator}: {claimed} claimed, {left} left");
    }
    println!("{} models, {} refused by the reference kernels", tally.models, tally.refused);
    assert!(failures.is_empty(), "{} models failed:\n{}", failures.len(), failures.join("\n"));
    assert!(tally.refused * 4 < tally.models, "most models must be runnable");
}

fn check(graph: &Subgraph, inputs: &Values, tally: &mut Tally) -> Result<(), String> {
    tally.models += 1;
    let delegation = Delegation::new(graph, &PartitionOptions::default())
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
        let single = Delegation::new(&alone, &PartitionOptions::default())
            .map_err(|error| error.to_string())?;
        let program = single.whole().map_err(|error| format!("operator {index}: {error}"))?;
        let results = run(program, &alone.inputs, &alone.outputs, &values)?;
        // A mean can cancel out: its rounding is then that of what was added.
        let added = match operator.op {
            Op::Mean(_) => alone.inputs.iter().map(|id| magnitude(&values[id])).fold(0.0, f32::max),
            _ => 0.0,
        };
        for (&id, expected) in &reference {
            compare(graph.tensor(id).dtype, &results[&id], expected, added)
                .map_err(|error| format!("operator {index}: {error}"))?;
        }
        values.extend(results);
    }
    let partitioning = delegation.partitioning();
    for (partition, program) in partitioning.partitions.iter().zip(delegation.programs()) {
        let results = run(program, &partition.inputs, &partition.outputs, &values)?;
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

fn run_reference(graph: &Subgraph, values: &Values) -> Result<Values, String> {
    let model = Model {
        dialect: Dialect::Tflite,
        version: 3,
        description: String::new(),
        subgraphs: vec![Arc::new(graph.clone())],
        signatures: Vec::new(),
        metadata: Vec::new(),
        files: Default::default(),
    };
    let text = |error: xnn_interp::Error| error.to_string();
    let mut interpreter =
        Interpreter::new(&model, Entry::Main, &InterpOptions::default()).map_err(text)?;
    for (position, id) in graph.inputs.iter().enumerate() {
        interpreter.input_mut(position).map_err(text)?.bytes.copy_from_slice(&values[id]);
    }
    interpreter.run().map_err(text)?;
    let outputs = graph.outputs.iter().enumerate();
    outputs
        .map(|(position, &id)| Ok((id, interpreter.output(position).map_err(text)?.bytes.to_vec())))
        .collect()
}

fn run(
    program: &Program,
    inputs: &[TensorId],
    outputs: &[TensorId],
    values: &Values,
) -> Result<Values, String> {
    let mut session = Session::new(program, &SessionOptions::default())
        .map_err(|error| format!("claimed, but: {error}"))?;
    for (position, id) in inputs.iter().enumerate() {
        session.input_mut(position).copy_from_slice(&values[id]);
    }
    session.run().map_err(|error| format!("claimed, but: {error}"))?;
    let outputs = outputs.iter().enumerate();
    Ok(outputs.map(|(position, &id)| (id, session.output(position).to_vec())).collect())
}

/// `range` is the least that counts as the range of the output.
fn compare(dtype: DType, ours: &[u8], theirs: &[u8], range: f32) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} bytes, not {}", ours.len(), theirs.len()));
    }
    match dtype {
        DType::F32 => {
            let (a, b) = (floats(ours), floats(theirs));
            let range = magnitude(theirs).max(range);
            let most = PART * range;
            let agree =
                |a: f32, b: f32| a == b || (a - b).abs() <= most || a.is_nan() && b.is_nan();
            match a.iter().zip(&b).position(|(a, b)| !agree(*a, *b)) {
                None => Ok(()),
                Some(at) => {
                    Err(format!("element {at} is {}, not {} (range {range})", a[at], b[at]))
                }
            }
        }
        DType::I8 | DType::U8 => {
            let number = |byte: u8| {
                if dtype == DType::I8 { i32::from(byte.cast_signed()) } else { i32::from(byte) }
            };
            let apart = |(a, b): (&u8, &u8)| (number(*a) - number(*b)).abs();
            match ours.iter().zip(theirs).position(|pair| apart(pair) > STEPS) {
                None => Ok(()),
                Some(at) => {
                    Err(format!("element {at} is {}, not {}", number(ours[at]), number(theirs[at])))
                }
            }
        }
        _ if ours == theirs => Ok(()),
        _ => Err("differs".into()),
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// The largest finite magnitude.
fn magnitude(bytes: &[u8]) -> f32 {
    let finite = floats(bytes).into_iter().filter(|value| value.is_finite());
    finite.fold(0.0, |most, value| most.max(value.abs()))
}

fn describe(graph: &Subgraph) -> String {
    let operators = graph.operators.iter().map(|operator| {
        let tensor = |id: &TensorId| {
            let t = graph.tensor(*id);
            format!(
                "{id}:{}{:?}{:?}",
                t.dtype,
                t.shape.as_deref().unwrap_or_default(),
                t.per_tensor()
            )
        };
        let inputs: Vec<String> = operator.inputs.iter().flatten().map(tensor).collect();
        let outputs: Vec<String> = operator.outputs.iter().map(tensor).collect();
        format!("  {:?} {} -> {}", operator.op, inputs.join(" "), outputs.join(" "))
    });
    operators.collect::<Vec<_>>().join("\n")
}
