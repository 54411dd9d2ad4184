//! Subgraphs that others call, and entry points of their own.

use std::sync::Arc;

use super::{assert_same_surface, outputs, partial, runner};
use xnn_delegate::blob::CUSTOM_OPERATOR;
use xnn_delegate::model::Subgraph;
use xnn_delegate::{ConvertOptions, Converted, DType, Model, RunnerBuilder, Source, convert};
use xnn_model::Dialect;
use xnn_model::op::{IfOptions, Op, WhileOptions};
use xnn_testing::{GraphBuilder, ModelBuilder, files_below, shared_dir};

/// A loop of `x = tanh(x) + 1` while `x[0] < 1.5`, and a branch of `abs` or `neg`.
fn control_flow() -> Model {
    let mut main = GraphBuilder::new("main");
    let flag = main.input("flag", DType::Bool, &[1]);
    let x = main.input("x", DType::F32, &[1]);
    let y = main.tensor("y", DType::F32, &[1]);
    let z = main.tensor("z", DType::F32, &[1]);
    main.op(Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 2 }), &[x], &[y])
        .op(Op::If(IfOptions { then_subgraph: 3, else_subgraph: 4 }), &[flag, y], &[z])
        .output(z);
    let mut condition = GraphBuilder::new("condition");
    let x = condition.input("x", DType::F32, &[1]);
    let limit = condition.constant_f32("limit", &[1], &[1.75]);
    let less = condition.tensor("less", DType::Bool, &[1]);
    condition.op(Op::Less, &[x, limit], &[less]).output(less);
    let mut body = GraphBuilder::new("body");
    let x = body.input("x", DType::F32, &[1]);
    let one = body.constant_f32("one", &[1], &[1.0]);
    let t = body.tensor("t", DType::F32, &[1]);
    let y = body.tensor("y", DType::F32, &[1]);
    body.op(Op::Tanh, &[x], &[t]).op(Op::Add(Default::default()), &[t, one], &[y]).output(y);
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(main)
        .subgraph(condition)
        .subgraph(body)
        .subgraph(unary("then", Op::Abs, 1))
        .subgraph(unary("else", Op::Neg, 1))
        .build()
}

#[test]
fn subgraphs_that_others_call_are_converted_too() {
    let model = control_flow();
    let again = partial(&model);
    let count = |graph: &Subgraph| {
        graph.operators.iter().filter(|o| o.op.name() == CUSTOM_OPERATOR).count()
    };
    let counts: Vec<usize> = again.subgraphs.iter().map(|graph| count(graph)).collect();
    assert_eq!(counts, [0, 0, 1, 1, 1]);
    for flag in [0, 1] {
        let results = [&model, &again].map(|model| {
            let mut runner = runner(model, 1).unwrap();
            runner.input_bytes_mut(0).unwrap().copy_from_slice(&[flag]);
            runner.run().unwrap();
            runner.output_reals(0).unwrap()
        });
        assert_eq!(results[0], results[1]);
        assert!((results[0][0].abs() - (1.0 + 1.0f32.tanh())).abs() < 1e-6, "{results:?}");
    }
}

/// Three rounds of `x = tanh(x)` as a matrix of two rows, where subgraphs leave the size of x open.
fn open_loop() -> Model {
    let mut main = GraphBuilder::new("main");
    let [round, x] = [main.input("round", DType::F32, &[1]), main.input("x", DType::F32, &[4])];
    let [rounds, y] = ["rounds", "y"].map(|name| main.tensor(name, DType::F32, &[1]));
    let options = WhileOptions { cond_subgraph: 1, body_subgraph: 2 };
    main.op(Op::While(options), &[round, x], &[rounds, y]).output(y);
    let mut condition = GraphBuilder::new("condition");
    let round = condition.input("round", DType::F32, &[1]);
    condition.input("x", DType::F32, &[1]);
    let limit = condition.constant_f32("limit", &[1], &[2.5]);
    let less = condition.tensor("less", DType::Bool, &[1]);
    condition.op(Op::Less, &[round, limit], &[less]).output(less);
    let mut body = GraphBuilder::new("body");
    let [round, x] = ["round", "x"].map(|name| body.input(name, DType::F32, &[1]));
    let one = body.constant_f32("one", &[1], &[1.0]);
    let rows = body.constant_i32("rows", &[2], &[2, 2]);
    let flat = body.constant_i32("flat", &[1], &[-1]);
    let [next, y] = ["next", "y"].map(|name| body.tensor(name, DType::F32, &[1]));
    let [r, t] = ["r", "t"].map(|name| body.tensor(name, DType::F32, &[2, 2]));
    body.op(Op::Add(Default::default()), &[round, one], &[next])
        .op(Op::Reshape(Default::default()), &[x, rows], &[r])
        .op(Op::Tanh, &[r], &[t])
        .op(Op::Reshape(Default::default()), &[t, flat], &[y])
        .output(next)
        .output(y);
    let graphs = [main, condition, body].into_iter();
    let mut model = graphs.fold(ModelBuilder::new(Dialect::Tflite), ModelBuilder::subgraph).build();
    for (graph, open) in model.subgraphs.iter_mut().zip([y, x, x]) {
        let graph = Arc::make_mut(graph);
        let open = if graph.name == "main" { graph.outputs[0] } else { open };
        graph.tensors[open].shape_signature = Some(vec![-1]);
    }
    model
}

#[test]
fn called_subgraphs_are_converted_for_the_sizes_that_they_are_called_with() {
    let model = open_loop();
    let again = partial(&model);
    assert_eq!(again.subgraphs[2].operators[0].op.name(), CUSTOM_OPERATOR);
    for model in [&model, &again] {
        let mut runner = runner(model, 1).unwrap();
        runner.input_as_mut::<f32>(1).unwrap().copy_from_slice(&[0.0, 0.5, -1.0, 2.0]);
        runner.run().unwrap();
        let expected = [0.0f32, 0.5, -1.0, 2.0].map(|x| x.tanh().tanh().tanh());
        let found = runner.output_reals(0).unwrap();
        assert_eq!(found.len(), 4);
        let near = found.iter().zip(expected).all(|(found, x)| (found - x).abs() < 1e-5);
        assert!(near, "{found:?} {expected:?}");
    }
}

/// One operator on a vector.
fn unary(name: &str, op: Op, elements: usize) -> GraphBuilder {
    let mut graph = GraphBuilder::new(name);
    let x = graph.input("x", DType::F32, &[elements]);
    let y = graph.tensor("y", DType::F32, &[elements]);
    graph.op(op, &[x], &[y]).output(y);
    graph
}

/// Two entry points, one of them with names of its own.
pub fn two_signatures() -> Model {
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(unary("a", Op::Abs, 2))
        .subgraph(unary("b", Op::Neg, 2))
        .signature("a", 0, &[("x", 0)], &[("y", 1)])
        .signature("b", 1, &[("in", 0)], &[("out", 1)])
        .build()
}

#[test]
fn signatures_keep_their_names() {
    let model = two_signatures();
    for model in [&model, &partial(&model)] {
        let mut runner = RunnerBuilder::from_model(model).signature("b").build().unwrap();
        let mut another = runner.fork().unwrap();
        runner.resize_inputs(&[(0, &[3])]).unwrap();
        for runner in [&mut runner, &mut another] {
            let place = runner.input_index("in").unwrap();
            runner.input_bytes_mut(place).unwrap()[..4].copy_from_slice(&1.0f32.to_le_bytes());
            runner.run().unwrap();
            let reals = runner.output_reals(runner.output_index("out").unwrap()).unwrap();
            assert_eq!(reals[..2], [-1.0, 0.0]);
        }
    }
}

#[test]
fn signatures_of_real_models_run_in_files_as_in_models() {
    let Some(models) = shared_dir("models") else { return };
    for name in [
        "tflite__converter__testdata__multi_signatures",
        "mediapipe__test_two_signature_keys_model",
    ] {
        let paths = files_below(&models.join("small"), &["tflite"]);
        let path = paths.iter().find(|path| path.to_string_lossy().contains(name)).unwrap();
        let model = Model::open(path).unwrap();
        let again = partial(&model);
        assert!(!model.signatures.is_empty());
        for signature in &model.signatures {
            let [expected, actual] = [&model, &again].map(|model| {
                let mut runner =
                    RunnerBuilder::from_model(model).signature(&signature.key).build().unwrap();
                let outputs = outputs(&mut runner).unwrap();
                let all = runner.inputs().iter().chain(runner.outputs());
                (all.map(|spec| spec.name.clone()).collect::<Vec<_>>(), outputs)
            });
            assert_eq!(expected, actual, "{name}: {}", signature.key);
        }
    }
}

#[test]
fn several_entry_points_make_no_blob() {
    let model = two_signatures();
    let again = partial(&model);
    assert_same_surface("two signatures", &model, &again);
    assert!(again.subgraphs.iter().all(|graph| graph.operators[0].op.name() == CUSTOM_OPERATOR));
    let mut options = ConvertOptions::default();
    options.require_full = true;
    let whole = convert(&model, &Source::default(), &options).unwrap();
    assert!(matches!(whole, Converted::Whole(_)));
}
