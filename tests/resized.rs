//! Graphs that are lowered once, as in files, in other sizes than those of their model: they compute
//! what the model does in these sizes, or refuse them.
//!
//! `XNN_RESIZED_SEEDS` sets the number of cases for each operator and type.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;
mod random;
mod runners;

use std::collections::BTreeMap;
use std::env;

use random::{Case, Generator, families};
use runners::{Values, compare, describe, rounding, run_reference, through_blob};
use xnn_delegate::{
    Decision, Delegation, PartitionOptions, Program, Session, SessionOptions, Subgraph,
};
use xnn_model::op::{
    Conv2dOptions, DepthwiseConv2dOptions, GatherOptions, Op, PackOptions, Padding, ReducerOptions,
    ReshapeOptions, ShapeOptions,
};
use xnn_model::{DType, infer_shapes};
use xnn_testing::{GraphBuilder, Random};

/// Cases of each operator and type, or models of several operators for each of them.
const SEEDS: u64 = 12;

/// What became of other sizes.
#[derive(Default)]
struct Tally {
    agree: usize,
    /// Refused by the graph, not by the model.
    refused: usize,
    /// Refused by the model: graphs may be more generous.
    senseless: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// The first dimension of all inputs.
    Batch(usize),
    /// A dimension of an input, which is not the first.
    Inner(usize),
}

#[test]
fn operators_in_other_sizes() {
    let seeds = env::var("XNN_RESIZED_SEEDS").map_or(SEEDS, |n| n.parse().unwrap());
    let mut batches: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut inner = Tally::default();
    let mut failures = Vec::new();
    for family in families() {
        for &scheme in family.schemes {
            for seed in 0..seeds {
                let case = Generator::case(family, scheme, seed);
                let exact = !scheme.is_dynamic();
                for change in [Change::Batch(3), Change::Inner(2)] {
                    let tally = match change {
                        Change::Batch(_) => batches.entry(family.op).or_default(),
                        Change::Inner(_) => &mut inner,
                    };
                    if let Err(error) = check(&case, change, exact, seed, tally) {
                        let graph = describe(&case.graph);
                        failures.push(format!("{} {seed} {change:?}: {error}\n{graph}", family.op));
                    }
                }
            }
        }
    }
    for (op, Tally { agree, refused, senseless }) in &batches {
        println!("{op}: {agree} batches agree, {refused} refused, {senseless} senseless");
    }
    println!("other dimensions: {} agree, {} refused", inner.agree, inner.refused);
    assert!(batches.values().filter(|tally| tally.agree > 0).count() > 70, "operators");
    assert!(inner.agree > inner.refused, "most operators follow other dimensions");
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}

/// Shapes only: what a chain adds up to, no tolerance says.
#[test]
fn models_in_other_sizes() {
    let count = SEEDS * 100;
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in 0..count {
        let case = Generator::model(seed);
        for change in [Change::Batch(3), Change::Inner(2)] {
            if let Err(error) = check(&case, change, false, seed, &mut tally) {
                failures.push(format!("{seed} {change:?}: {error}\n{}", describe(&case.graph)));
            }
        }
    }
    println!("{} agree, {} refused", tally.agree, tally.refused);
    assert!(tally.agree > tally.refused, "most models follow");
    assert!(failures.is_empty(), "{} models failed:\n{}", failures.len(), failures.join("\n"));
}

/// As a layer of weights on each of some rows asks for them in TensorFlow.
#[test]
fn shapes_that_follow_from_a_batch() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 5, 4]);
    let shape = g.tensor("shape", DType::I32, &[3]);
    let [outer, axis] = [("outer", [0, 1].as_slice()), ("axis", &[0])]
        .map(|(name, data)| g.constant_i32(name, &[data.len()], data));
    let sizes = g.tensor("sizes", DType::I32, &[2]);
    let rows = g.tensor("rows", DType::I32, &[]);
    let columns = g.constant_i32("columns", &[], &[4]);
    let asked = g.tensor("asked", DType::I32, &[2]);
    let y = g.tensor("y", DType::F32, &[5, 4]);
    g.op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[x], &[shape])
        .op(Op::Gather(GatherOptions { axis: 0, batch_dims: 0 }), &[shape, outer], &[sizes])
        .op(Op::ReduceProd(ReducerOptions { keep_dims: false }), &[sizes, axis], &[rows])
        .op(Op::Pack(PackOptions { values_count: 2, axis: 0 }), &[rows, columns], &[asked])
        .op(Op::Reshape(ReshapeOptions::default()), &[x, asked], &[y])
        .output(y);
    let inputs = Values::from([(x, Random::new(1).tensor(DType::F32, 20))]);
    let mut tally = Tally::default();
    check(&Case { graph: g.build(), inputs }, Change::Batch(3), true, 0, &mut tally).unwrap();
    assert_eq!(tally.agree, 1);
}

fn check(
    case: &Case,
    change: Change,
    exact: bool,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    if case.graph.operators.iter().any(|operator| is_for_its_sizes(&operator.op, change)) {
        return Ok(());
    }
    let Some((resized, values)) = resize(case, change, seed) else { return Ok(()) };
    let delegation = Delegation::new(&case.graph.clone().into(), &PartitionOptions::default())
        .map_err(|error| format!("no decisions: {error}"))?;
    let decisions = &delegation.partitioning().decisions;
    if decisions.iter().any(|decision| matches!(decision, Decision::Left(_))) {
        return Ok(());
    }
    let program = through_blob(delegation.whole().map_err(|error| error.to_string())?)?;
    let ours = run(&program, &resized, &values);
    let theirs = infer_shapes(resized.clone().into()).map_err(|error| error.to_string());
    let expected = theirs.as_ref().ok().map(|graph| run_reference(graph, &values));
    match (ours, theirs) {
        (_, Err(_)) => tally.senseless += 1,
        (Ok(_), _) if matches!(expected, Some(Err(_))) => tally.senseless += 1,
        (Err(_), Ok(_)) => tally.refused += 1,
        (Ok((shapes, results)), Ok(graph)) => {
            for (&id, shape) in graph.outputs.iter().zip(&shapes) {
                let expected = graph.tensor(id).shape.as_deref();
                if expected != Some(shape) {
                    return Err(format!("tensor {id} has shape {shape:?}, not {expected:?}"));
                }
            }
            if exact && let Some(Ok(expected)) = expected {
                let slack = rounding(&graph, &values);
                for (id, expected) in expected {
                    compare(graph.tensor(id).dtype, &results[&id], &expected, slack)?;
                }
            }
            tally.agree += 1;
        }
    }
    Ok(())
}

/// What graphs have in another form that is for the sizes of the model alone, and cannot refuse others.
fn is_for_its_sizes(op: &Op, change: Change) -> bool {
    let inner = matches!(change, Change::Inner(_));
    match op {
        // States a shape, where graphs have one that follows from the input's.
        Op::TransposeConv(_) => true,
        // The mean of all pixels, where the window is as large as the image.
        Op::AveragePool2d(_) => inner,
        // Padding in numbers, where strides may skip pixels.
        Op::Conv2d(Conv2dOptions { stride_h, stride_w, padding, .. })
        | Op::DepthwiseConv2d(DepthwiseConv2dOptions { stride_h, stride_w, padding, .. }) => {
            inner && *padding == Padding::Same && (*stride_h).max(*stride_w) > 1
        }
        _ => false,
    }
}

/// The model with other dimensions of inputs, whose elements are repeated.
fn resize(case: &Case, change: Change, seed: u64) -> Option<(Subgraph, Values)> {
    let mut random = Random::new(seed);
    let (mut graph, mut values) = (case.graph.clone(), case.inputs.clone());
    let inputs = graph.inputs.clone();
    let one = inputs[random.below(inputs.len())];
    // Gains and the like have no batch.
    let batch = graph.tensor(inputs[0]).shape.as_ref()?.first().copied();
    let has_batch = |shape: &Vec<usize>| {
        shape.first().copied() == batch && (batch > Some(1) || shape.len() > 1)
    };
    for (id, tensor) in graph.tensors.iter_mut().enumerate() {
        if tensor.is_constant() {
            continue;
        }
        if !inputs.contains(&id) {
            tensor.shape = None;
            continue;
        }
        let shape = tensor.shape.as_mut()?;
        let (axis, factor) = match change {
            Change::Batch(_) if !has_batch(shape) => continue,
            Change::Batch(factor) => (0, factor),
            Change::Inner(_) if id != one => continue,
            Change::Inner(factor) => (1 + random.below(shape.len().max(2) - 1), factor),
        };
        // What is 1 may be no dimension of its own any more.
        if axis > 0 && shape.get(axis) == Some(&1) {
            return None;
        }
        *shape.get_mut(axis)? *= factor;
        let bytes = values.get_mut(&id)?;
        *bytes = bytes.repeat(factor);
    }
    Some((graph, values))
}

/// Shapes and elements of the outputs.
fn run(
    program: &Program,
    graph: &Subgraph,
    values: &Values,
) -> Result<(Vec<Vec<usize>>, Values), String> {
    let options = SessionOptions { threads: 1, ..SessionOptions::default() };
    let mut session = Session::new(program, &options).unwrap();
    let dims = graph.inputs.iter().map(|&id| graph.tensor(id).shape.as_deref().unwrap_or_default());
    session.resize_inputs(dims.enumerate()).map_err(|error| error.to_string())?;
    for (position, id) in graph.inputs.iter().enumerate() {
        session.input_mut(position).copy_from_slice(&values[id]);
    }
    session.run().map_err(|error| format!("resized, but: {error}")).unwrap();
    let shapes = session.outputs().iter().map(|output| output.dims.clone()).collect();
    let outputs = graph.outputs.iter().enumerate();
    Ok((shapes, outputs.map(|(at, &id)| (id, session.output(at).to_vec())).collect()))
}
