//! Graphs that are lowered once, as in files, in other sizes than those of their model, and back: they compute
//! what the model does in these sizes, or refuse them. Models are lowered anew, and refuse what reference kernels refuse.
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
use xnn_delegate::lower::{Decision, Delegation, target_features};
use xnn_delegate::model::Subgraph;
use xnn_delegate::runtime::Session;
use xnn_delegate::{PartitionOptions, Runner, SessionOptions};
use xnn_model::op::{
    Conv2dOptions, DepthwiseConv2dOptions, GatherOptions, Op, PackOptions, Padding, ReducerOptions,
    ReshapeOptions, ShapeOptions, StridedSliceOptions,
};
use xnn_model::{DType, Model, TensorId, infer_shapes};
use xnn_testing::{GraphBuilder, Random};

/// Cases of each operator and type, or models of several operators for each of them.
const SEEDS: u64 = 12;

/// Cases of each operator and type for models that are lowered anew.
const MODEL_SEEDS: u64 = 2;

/// Counts of outcomes at other sizes.
#[derive(Default)]
struct Tally {
    agree: usize,
    /// Refused by the graph, not by the model.
    refused: usize,
    /// Refused by the model: graphs may be more generous.
    senseless: usize,
    /// Not delegated, without the dimension to change, or for the sizes of the model alone.
    skipped: usize,
}

/// How many times as many elements a dimension gets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// The first dimension of all inputs.
    Batch(usize),
    /// A dimension of an input, which is not the first.
    Inner(usize),
}

const CHANGES: [Change; 4] =
    [Change::Batch(3), Change::Batch(0), Change::Inner(2), Change::Inner(0)];

/// Cases of operators that each change skips, and cases of models that all of them skip. What is delegated depends on the
/// processor: these are the numbers of processors with AVX512-VNNI.
const SKIPPED: [usize; CHANGES.len()] = [2, 2, 905, 917];
const SKIPPED_MODELS: usize = 612;

#[test]
fn operators_in_other_sizes() {
    let seeds = env::var("XNN_RESIZED_SEEDS").map_or(SEEDS, |n| n.parse().unwrap());
    let mut tallies: BTreeMap<&str, [Tally; CHANGES.len()]> = BTreeMap::new();
    let mut failures = Vec::new();
    for family in families() {
        for &scheme in family.schemes {
            for seed in 0..seeds {
                let case = Generator::case(family, scheme, seed);
                let exact = !scheme.is_dynamic();
                for (change, tally) in
                    CHANGES.into_iter().zip(tallies.entry(family.op).or_default())
                {
                    let checked = check(&case, change, exact, seed, tally)
                        .and_then(|()| check_model(&case, change, exact, seed));
                    if let Err(error) = checked {
                        let graph = describe(&case.graph);
                        failures.push(format!("{} {seed} {change:?}: {error}\n{graph}", family.op));
                    }
                }
            }
        }
    }
    let of = |change: usize| tallies.iter().map(move |(&op, all)| (op, &all[change]));
    for (position, change) in CHANGES.iter().enumerate() {
        for (op, Tally { agree, refused, senseless, skipped }) in of(position) {
            println!(
                "{change:?}: {op}: {agree} agree, {refused} refused, {senseless} senseless, {skipped} skipped"
            );
        }
        let operators = of(position).filter(|(_, tally)| tally.agree > 0).count();
        let least = if matches!(change, Change::Batch(_)) { 80 } else { 60 };
        assert!(operators > least, "{operators} operators follow {change:?}");
        let (agree, refused) = of(position)
            .fold((0, 0), |(agree, refused), (_, it)| (agree + it.agree, refused + it.refused));
        assert!(agree > refused, "{change:?}: {agree} agree, {refused} refused");
        if seeds == SEEDS && target_features().has_fast_uint8 {
            let skipped: usize = of(position).map(|(_, tally)| tally.skipped).sum();
            assert_eq!(skipped, SKIPPED[position], "skipped by {change:?}");
        }
    }
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
        for change in CHANGES {
            if let Err(error) = check(&case, change, false, seed, &mut tally) {
                failures.push(format!("{seed} {change:?}: {error}\n{}", describe(&case.graph)));
            }
        }
    }
    println!("{} agree, {} refused, {} skipped", tally.agree, tally.refused, tally.skipped);
    assert!(tally.agree > tally.refused, "most models follow");
    if target_features().has_fast_uint8 {
        assert_eq!(tally.skipped, SKIPPED_MODELS);
    }
    assert!(failures.is_empty(), "{} models failed:\n{}", failures.len(), failures.join("\n"));
}

/// Shapes computed as TensorFlow does for a dense layer whose input has more than two dimensions.
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

/// An image that RESHAPE gives this shape. The first number of it may be computed, the image's batch, and not a constant.
fn reshape_to(target: &[i32], is_computed: bool) -> Case {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 2, 2, 3]);
    let asked = if is_computed {
        with_batch(&mut g, x, target)
    } else {
        g.constant_i32("asked", &[target.len()], target)
    };
    let y = g.tensor("y", DType::F32, &[]);
    g.op(Op::Reshape(ReshapeOptions::default()), &[x, asked], &[y]).output(y);
    let inputs = Values::from([(x, Random::new(1).tensor(DType::F32, 12))]);
    Case { graph: infer_shapes(g.build().into()).unwrap().as_ref().clone(), inputs }
}

/// The numbers as one tensor, the first of which is the first dimension of `x`.
fn with_batch(g: &mut GraphBuilder, x: TensorId, numbers: &[i32]) -> TensorId {
    let shape = g.tensor("shape", DType::I32, &[4]);
    let [begin, end, strides] = [("begin", 0), ("end", 1), ("strides", 1)]
        .map(|(name, number)| g.constant_i32(name, &[1], &[number]));
    let mut parts = vec![g.tensor("batch", DType::I32, &[])];
    let first = StridedSliceOptions { shrink_axis_mask: 1, ..StridedSliceOptions::default() };
    g.op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[x], &[shape]).op(
        Op::StridedSlice(first),
        &[shape, begin, end, strides],
        &parts,
    );
    parts.extend(numbers[1..].iter().map(|&number| g.constant_i32("number", &[], &[number])));
    let packed = g.tensor("packed", DType::I32, &[numbers.len()]);
    g.op(Op::Pack(PackOptions { values_count: numbers.len() as i32, axis: 0 }), &parts, &[packed]);
    packed
}

/// Where the model leaves one dimension open, a file follows whatever the dimension stands for; where it computes others,
/// it follows the batch.
#[test]
fn reshapes_with_an_open_dimension() {
    let batches = &CHANGES[..2];
    for (target, is_computed, followed) in [
        (&[1, -1, 3][..], false, &CHANGES[..]),
        (&[-1, 3], false, &CHANGES),
        (&[-1, 1, 3], false, &CHANGES),
        (&[1, 1, -1, 1], false, &CHANGES),
        (&[2, -1, 3], false, &CHANGES),
        (&[-1], false, &CHANGES),
        (&[1, -1, 3], true, batches),
        (&[1, 4, -1], true, batches),
    ] {
        let case = reshape_to(target, is_computed);
        for change in CHANGES {
            for seed in 0..8 {
                let mut tally = Tally::default();
                let checked = check(&case, change, true, seed, &mut tally);
                checked.unwrap_or_else(|error| panic!("{target:?} {change:?}: {error}"));
                let must = followed.contains(&change) && tally.senseless + tally.skipped == 0;
                assert!(!must || tally.agree == 1, "{target:?} {is_computed} {change:?} {seed}");
            }
        }
    }
}

/// A model that is lowered anew computes what reference kernels do, or refuses what they refuse; then it computes what it
/// did at first.
fn check_model(case: &Case, change: Change, exact: bool, seed: u64) -> Result<(), String> {
    let Some((resized, values)) = resize(case, change, seed).filter(|_| seed < MODEL_SEEDS) else {
        return Ok(());
    };
    // Some types have no reference kernels.
    if run_reference(&case.graph, &case.inputs).is_err() {
        return Ok(());
    }
    let text = |error: xnn_delegate::Error| error.to_string();
    let model = Model::from(case.graph.clone());
    let mut runner = Runner::from_model(&model).map_err(text)?;
    let before = run_model(&mut runner, &case.graph, &case.inputs)?;
    let ours = run_model(&mut runner, &resized, &values);
    let theirs = infer_shapes(resized.clone().into()).map_err(|error| error.to_string());
    let theirs = theirs.and_then(|graph| Ok((run_reference(&graph, &values)?, graph)));
    match (ours, theirs) {
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => return Err(format!("only reference kernels refuse: {error}")),
        (Err(error), Ok(_)) => return Err(format!("only the runner refuses: {error}")),
        (Ok(results), Ok((expected, graph))) if exact => {
            let slack = rounding(&graph, &values);
            for (id, expected) in expected {
                compare(graph.tensor(id).dtype, &results[&id], &expected, slack)?;
            }
        }
        (Ok(_), Ok(_)) => {}
    }
    match run_model(&mut runner, &case.graph, &case.inputs)? == before {
        true => Ok(()),
        false => Err("the former sizes do not give the former results".into()),
    }
}

/// The outputs of a model whose inputs have the sizes of this graph.
fn run_model(runner: &mut Runner, graph: &Subgraph, values: &Values) -> Result<Values, String> {
    let text = |error: xnn_delegate::Error| error.to_string();
    let dims = graph.inputs.iter().map(|&id| graph.tensor(id).shape.as_deref().unwrap_or_default());
    runner.resize_inputs(&dims.enumerate().collect::<Vec<_>>()).map_err(text)?;
    for (position, id) in graph.inputs.iter().enumerate() {
        runner.input_bytes_mut(position).unwrap().copy_from_slice(&values[id]);
    }
    runner.run().map_err(text)?;
    let outputs = graph.outputs.iter().enumerate();
    Ok(outputs
        .map(|(position, &id)| (id, runner.output_bytes(position).unwrap().to_vec()))
        .collect())
}

fn check(
    case: &Case,
    change: Change,
    exact: bool,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    let is_fixed = case.graph.operators.iter().any(|it| is_for_its_sizes(&it.op, change));
    let Some((resized, values)) = resize(case, change, seed).filter(|_| !is_fixed) else {
        tally.skipped += 1;
        return Ok(());
    };
    let delegation = Delegation::new(&case.graph.clone().into(), &PartitionOptions::default())
        .map_err(|error| format!("no decisions: {error}"))?;
    let decisions = &delegation.partitioning().decisions;
    if decisions.iter().any(|decision| matches!(decision, Decision::NotDelegated(_))) {
        tally.skipped += 1;
        return Ok(());
    }
    let program = through_blob(delegation.whole().map_err(|error| error.to_string())?)?;
    let options = SessionOptions { threads: 1, ..SessionOptions::default() };
    let mut session = Session::new(&program, &options).unwrap();
    let before = run(&mut session, &case.graph, &case.inputs)?;
    let ours = run(&mut session, &resized, &values);
    if run(&mut session, &case.graph, &case.inputs)? != before {
        return Err("the former sizes do not give the former results".into());
    }
    let theirs = infer_shapes(resized.clone().into()).map_err(|error| error.to_string());
    let expected = theirs.as_ref().ok().map(|graph| run_reference(graph, &values));
    match (ours, theirs) {
        (_, Err(_)) => tally.senseless += 1,
        _ if matches!(expected, Some(Err(_))) => tally.senseless += 1,
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

/// Whether the graph has a form that is valid only for the sizes of the model, but cannot refuse
/// other sizes.
fn is_for_its_sizes(op: &Op, change: Change) -> bool {
    let inner = matches!(change, Change::Inner(_));
    match op {
        // An update that is as long as the operand, and becomes shorter alone: it is the result.
        Op::DynamicUpdateSlice => change == Change::Inner(0),
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
        // A dimension of 1 may no longer be a separate dimension of the graph.
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
    session: &mut Session,
    graph: &Subgraph,
    values: &Values,
) -> Result<(Vec<Vec<usize>>, Values), String> {
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
