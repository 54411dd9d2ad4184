//! Delegated operators are compared wherever they run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use xnn_delegate::model::Dialect;
use xnn_delegate::verify::{Deviation, Scale, Verification, Verifier};
use xnn_delegate::{DType, Model, RunnerOptions};
use xnn_model::op::{ArithmeticOptions, FullyConnectedOptions, IfOptions, Op, WhileOptions};
use xnn_testing::{GraphBuilder, ModelBuilder, Random};

/// `(x, 0.75 y)`. With 8-bit weights the reference rounds its input to 127ths of the larger element, and XNNPACK
/// to 255ths of the range.
fn layer(graph: &mut GraphBuilder, input: usize, output: usize, eight_bit: bool) {
    let weights = if eight_bit {
        let weights = graph.constant_i8("weights", &[2, 2], &[64, 0, 0, 48]);
        graph.quantize(weights, 1.0 / 64.0, 0);
        weights
    } else {
        graph.constant_f32("weights", &[2, 2], &[1.0, 0.0, 0.0, 0.75])
    };
    graph.op_with_optional(
        Op::FullyConnected(FullyConnectedOptions::default()),
        &[Some(input), Some(weights), None],
        &[output],
    );
}

/// Three layers in a loop, then one more where `flag` is set.
fn model(eight_bit: bool) -> Model {
    let pair = |graph: &mut GraphBuilder, name: &str| graph.tensor(name, DType::F32, &[1, 2]);
    let mut main = GraphBuilder::new("main");
    let flag = main.input("flag", DType::Bool, &[1]);
    let start = main.input("start", DType::I32, &[1]);
    let x = main.input("x", DType::F32, &[1, 2]);
    let end = main.tensor("end", DType::I32, &[1]);
    let (looped, y) = (pair(&mut main, "looped"), pair(&mut main, "y"));
    let options = WhileOptions { cond_subgraph: 1, body_subgraph: 2 };
    main.op(Op::While(options), &[start, x], &[end, looped]);
    let options = IfOptions { then_subgraph: 3, else_subgraph: 4 };
    main.op(Op::If(options), &[flag, looped], &[y]).output(y);

    let mut condition = GraphBuilder::new("condition");
    let i = condition.input("i", DType::I32, &[1]);
    condition.input("x", DType::F32, &[1, 2]);
    let limit = condition.constant_i32("limit", &[1], &[3]);
    let less = condition.tensor("less", DType::Bool, &[1]);
    condition.op(Op::Less, &[i, limit], &[less]).output(less);

    let mut body = GraphBuilder::new("body");
    let i = body.input("i", DType::I32, &[1]);
    let x = body.input("x", DType::F32, &[1, 2]);
    let one = body.constant_i32("one", &[1], &[1]);
    let next = body.tensor("next", DType::I32, &[1]);
    let y = pair(&mut body, "y");
    body.op(Op::Add(ArithmeticOptions::default()), &[i, one], &[next]);
    layer(&mut body, x, y, eight_bit);
    body.output(next).output(y);

    let mut then = GraphBuilder::new("then");
    let x = then.input("x", DType::F32, &[1, 2]);
    let y = pair(&mut then, "y");
    layer(&mut then, x, y, eight_bit);
    then.output(y);

    let mut otherwise = GraphBuilder::new("otherwise");
    let x = otherwise.input("x", DType::F32, &[1, 2]);
    let y = pair(&mut otherwise, "y");
    otherwise.op(Op::Neg, &[x], &[y]).output(y);

    [main, condition, body, then, otherwise]
        .into_iter()
        .fold(ModelBuilder::new(Dialect::Tflite), ModelBuilder::subgraph)
        .signature("main", 0, &[("flag", flag), ("start", start), ("x", x)], &[("y", y)])
        .signature("layer", 3, &[("x", 0)], &[("y", 1)])
        .build()
}

fn verify(mut verifier: Verifier, inputs: &[&[u8]]) -> Verification {
    for (position, input) in inputs.iter().enumerate() {
        verifier.reference_mut().input_bytes_mut(position).unwrap().copy_from_slice(input);
    }
    verifier.verify().unwrap()
}

fn verify_main(model: &Model, flag: bool) -> Verification {
    let verifier = Verifier::new(model, &RunnerOptions::default()).unwrap();
    verify(verifier, &[&[flag.into()], &[0; 4], &floats([1.0, 38.0 / 127.0])])
}

fn floats(values: [f32; 2]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Subgraph, operator and run of what deviates by more than rounding.
fn deviating(verification: &Verification) -> Vec<(usize, Option<usize>, usize)> {
    let beyond = verification.operators.iter().filter(|it| !it.is_within(1.0, 1e-5));
    beyond.map(|it| (it.subgraph, it.operator, it.run)).collect()
}

#[test]
fn bodies_and_branches_are_compared() {
    let verification = verify_main(&model(true), true);
    // The second iteration begins with 0.75 * 38/127, half way between two 127ths: the reference rounds to 29,
    // XNNPACK to 57 255ths.
    let deviation = verification.operators.iter().find(|it| it.subgraph == 2).unwrap();
    assert_eq!((deviation.operator, deviation.op.as_str()), (Some(1), "FULLY_CONNECTED"));
    assert_eq!((deviation.scale, deviation.run, deviation.element), (Scale::Range, 1, 1));
    let expected = 0.75 * (29.0 / 127.0 - 57.0 / 255.0);
    assert!((deviation.distance - expected).abs() < 1e-6, "{deviation:?}, expected {expected}");
    assert_eq!(deviating(&verification)[0], (2, Some(1), 1));
    assert!(deviation.is_rounding(), "half a step of an input at the most: {deviation:?}");
    assert!(verification.operators.iter().any(|it| it.subgraph == 3));
    let skipped: Vec<_> =
        verification.skipped.iter().map(|it| (it.subgraph, it.operator)).collect();
    assert_eq!(skipped, [(4, 0)], "the other branch");
    assert!(verification.skipped[0].reason.contains("does not run"));
}

#[test]
fn branches_are_compared_where_they_are_taken() {
    let verification = verify_main(&model(true), false);
    let otherwise: Vec<_> = verification.operators.iter().filter(|it| it.subgraph == 4).collect();
    assert_eq!((otherwise.len(), otherwise[0].op.as_str()), (1, "NEG"));
    assert_eq!(otherwise[0].distance, 0.0);
    assert_eq!(deviating(&verification), [(2, Some(1), 1)]);
    assert_eq!(verification.skipped[0].subgraph, 3);
}

#[test]
fn what_rounds_alike_deviates_nowhere() {
    let verification = verify_main(&model(false), true);
    assert_eq!(verification.operators.len(), 2, "{verification:?}");
    assert_eq!(deviating(&verification), []);
}

#[test]
fn sums_that_cancel_deviate_by_rounding() {
    const WIDTH: usize = 512;
    let mut random = Random::new(3);
    let (weights, input) = (random.f32s(WIDTH, -1.0, 1.0), random.f32s(WIDTH, -1.0, 1.0));
    // Every product, and 0.999 of it with the other sign: a thousandth of either sum is left.
    let row: Vec<f32> =
        [1.0, -0.999].iter().flat_map(|f| weights.iter().map(move |it| it * f)).collect();
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 2 * WIDTH]);
    let weights = graph.constant_f32("weights", &[1, 2 * WIDTH], &row);
    let y = graph.tensor("y", DType::F32, &[1, 1]);
    let options = FullyConnectedOptions::default();
    graph.op_with_optional(Op::FullyConnected(options), &[Some(x), Some(weights), None], &[y]);
    graph.output(y);
    let verifier = Verifier::new(&graph.build_model(), &RunnerOptions::default()).unwrap();
    let input: Vec<u8> = input.iter().chain(&input).flat_map(|value| value.to_ne_bytes()).collect();
    let verification = verify(verifier, &[&input]);
    let [deviation] = verification.operators.as_slice() else { panic!("{verification:?}") };
    assert!(!deviation.is_within(1.0, 1e-5) && deviation.is_rounding(), "{deviation:?}");
    let wrong = Deviation { distance: 5.0 * deviation.rounding.unwrap(), ..deviation.clone() };
    assert!(!wrong.is_rounding());
    // A deviation that is not finite is never rounding, even if the reference has the same bound.
    let infinite = f64::INFINITY;
    let wrong = Deviation { distance: infinite, rounding: Some(infinite), ..deviation.clone() };
    assert!(!wrong.is_rounding());
}

#[test]
fn signatures_of_other_subgraphs_are_compared() {
    let options = RunnerOptions::default();
    for (eight_bit, expected) in [(true, vec![(3, Some(0), 0)]), (false, vec![])] {
        let verifier = Verifier::at_signature(&model(eight_bit), "layer", &options).unwrap();
        let verification = verify(verifier, &[&floats([1.0, 0.3])]);
        assert_eq!(deviating(&verification), expected);
        assert_eq!(verification.outputs[0].subgraph, 3);
    }
    assert!(Verifier::at_signature(&model(true), "none", &options).is_err());
}

#[test]
fn limits_hold() {
    let mut options = RunnerOptions::default();
    options.limits.max_loop_iterations = 2;
    let mut verifier = Verifier::new(&model(true), &options).unwrap();
    let error = verifier.verify().unwrap_err().to_string();
    assert!(error.contains("the number of iterations"), "{error}");
}
