//! Files of models that go to XNNPACK in part: what they keep, what they compute, and what of them
//! is refused.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use xnn_delegate::{
    Blob, CUSTOM_OPERATOR, Compat, ConvertOptions, Converted, DType, Delegation, Error, Model,
    PartitionOptions, Runner, RunnerOptions, SessionOptions, Source, Subgraph, convert,
};
use xnn_model::op::{CustomOptions, IfOptions, Op, SoftmaxOptions, WhileOptions};
use xnn_model::{Dialect, Operator};
use xnn_testing::{GraphBuilder, ModelBuilder, Random, files_below, shared_dir};

/// Models whose reference kernels take long in this profile.
const SLOW: [&str; 4] = ["conformer", "cartoon_gan", "edsr", "yamnet"];

fn runner(model: &Model, threads: usize) -> Result<Runner, Error> {
    let session = SessionOptions { threads, threads_by_work: false, ..SessionOptions::default() };
    Runner::new(model, &PartitionOptions::default(), &session)
}

fn converted(model: &Model) -> Result<Converted, Error> {
    convert(model, &Source::default(), &ConvertOptions::default())
}

/// What a model becomes that goes in part.
#[track_caller]
fn partial(model: &Model) -> Model {
    match converted(model).unwrap() {
        Converted::Partial(file) => Model::from_bytes(file).unwrap(),
        Converted::Whole(_) => panic!("the model goes whole"),
    }
}

/// Outputs of two runs on random inputs, the second with the state that the first left.
fn outputs(runner: &mut Runner) -> Result<Vec<Vec<u8>>, String> {
    let mut random = Random::new(17);
    let mut all = Vec::new();
    for _ in 0..2 {
        for position in 0..runner.inputs().len() {
            let spec = runner.inputs()[position].clone();
            // Indices and flags stay 0, which is always valid.
            if matches!(spec.dtype, DType::F32 | DType::I8 | DType::U8) {
                let elements = random.tensor(spec.dtype, spec.dims.iter().product());
                runner.input_mut(position).copy_from_slice(&elements);
            }
        }
        runner.run().map_err(|error| error.to_string())?;
        all.extend((0..runner.outputs().len()).map(|at| runner.output(at).to_vec()));
    }
    Ok(all)
}

/// Everything but operators and constants is what it was.
fn assert_same_surface(name: &str, original: &Model, converted: &Model) {
    assert_eq!(converted.dialect, original.dialect, "{name}");
    assert_eq!(converted.metadata, original.metadata, "{name}");
    assert_eq!(converted.description, original.description, "{name}");
    assert_eq!(converted.subgraphs.len(), original.subgraphs.len(), "{name}");
    let tensors = |graph: &Subgraph, ids: &[usize]| -> Vec<_> {
        let tensors = ids.iter().map(|&id| graph.tensor(id));
        let parts = |t: &xnn_model::Tensor| {
            (t.name.clone(), t.dtype, t.quantization.clone(), t.shape_signature.clone())
        };
        tensors.map(parts).collect()
    };
    for (a, b) in original.subgraphs.iter().zip(&converted.subgraphs) {
        assert_eq!(a.name, b.name, "{name}");
        assert_eq!(tensors(a, &a.inputs), tensors(b, &b.inputs), "{name}");
        assert_eq!(tensors(a, &a.outputs), tensors(b, &b.outputs), "{name}");
    }
    assert_eq!(converted.signatures.len(), original.signatures.len(), "{name}");
    for (a, b) in original.signatures.iter().zip(&converted.signatures) {
        assert_eq!((&a.key, a.subgraph), (&b.key, b.subgraph), "{name}");
        let (from, to) = (&original.subgraphs[a.subgraph], &converted.subgraphs[b.subgraph]);
        for (a, b) in a.inputs.iter().zip(&b.inputs).chain(a.outputs.iter().zip(&b.outputs)) {
            assert_eq!(a.0, b.0, "{name}");
            assert_eq!(from.tensor(a.1).name, to.tensor(b.1).name, "{name}");
        }
    }
}

/// How many models were converted in part, run, and gave the same bits.
fn check(paths: &[std::path::PathBuf], dialect: Option<Dialect>) -> usize {
    let mut count = 0;
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(mut model) = Model::open(path) else { continue };
        model.dialect = dialect.unwrap_or(model.dialect);
        let file = match converted(&model) {
            Ok(Converted::Partial(file)) => Bytes::from(file),
            // What goes whole is tested elsewhere; some goes not at all, or has operators that
            // only the other dialect has.
            _ => continue,
        };
        let again = Model::from_bytes(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same_surface(&name, &model, &again);
        // Operators that nobody takes are refused in the file as they are in the model.
        let Ok(mut expected) = runner(&model, 1) else {
            assert!(runner(&again, 1).is_err(), "{name}");
            continue;
        };
        let coverage = expected.coverage();
        let expected = outputs(&mut expected);
        for threads in [1, 2] {
            let mut actual = runner(&again, threads).unwrap_or_else(|e| panic!("{name}: {e}"));
            let stored = actual.coverage();
            assert_eq!(stored.partitions, coverage.partitions, "{name}");
            assert_eq!(
                stored.operators - stored.delegated,
                coverage.operators - coverage.delegated,
                "{name}"
            );
            assert!(outputs(&mut actual) == expected, "{name}: {threads} threads");
        }
        count += usize::from(expected.is_ok());
    }
    count
}

#[test]
fn files_compute_what_their_models_compute() {
    let (Some(models), Some(circle)) = (shared_dir("models"), shared_dir("circle")) else { return };
    let mut paths = files_below(&models, &["tflite", "circle"]);
    paths.extend(files_below(&circle, &["circle"]));
    paths.retain(|path| !SLOW.iter().any(|slow| path.to_string_lossy().contains(slow)));
    let count = check(&paths, None);
    println!("{count} models");
    assert!(count >= 15, "{count}");
}

#[test]
fn circle_files_compute_what_their_models_compute() {
    let Some(models) = shared_dir("models") else { return };
    let names = ["ssd_mobilenet_v1_coco_quant", "mnist_lstm_fp32", "microwakeword_okay_nabu"];
    let paths = names.map(|name| models.join(name).with_extension("tflite"));
    assert_eq!(check(&paths, Some(Dialect::Circle)), 3);
}

/// `x → MUL weights → WHERE`, and `weights → WHERE` if they are shared.
fn mul_and_where(shared: bool) -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let weights = graph.constant_f32("weights", &[1, 4], &[1.0, 0.0, 2.0, 0.0]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", DType::I64, &[]);
    graph.op(Op::Mul(Default::default()), &[x, weights], &[y]).op(Op::Where, &[y], &[z]).output(z);
    if shared {
        let w = graph.tensor("w", DType::I64, &[]);
        graph.op(Op::Where, &[weights], &[w]).output(w);
    }
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(graph)
        .signature("main", 0, &[("in", x)], &[("out", z)])
        .metadata("notes", "kept".as_bytes())
        .build()
}

#[test]
fn constants_stay_where_others_use_them() {
    for shared in [false, true] {
        let model = partial(&mul_and_where(shared));
        let graph = &model.subgraphs[0];
        let names: Vec<&str> = graph.tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names.contains(&"weights"), shared, "{names:?}");
        assert_eq!(graph.operators[0].op.name(), CUSTOM_OPERATOR);
        assert_eq!(graph.operators[1].op, Op::Where);
        assert_eq!(model.metadata[0].data, "kept".as_bytes());
        let blob = Blob::from_bytes(stored(&model).options.clone()).unwrap();
        assert_eq!(blob.graph().origin.input_names, ["x"]);
    }
}

#[test]
fn constants_of_mapped_files_are_aligned() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = converted(&mul_and_where(false)).unwrap().into_bytes();
    std::fs::write(file.path(), bytes).unwrap();
    let model = Model::open(file.path()).unwrap();
    let blob = Blob::from_bytes(stored(&model).options.clone()).unwrap();
    let constants: Vec<&Bytes> =
        blob.graph().values.iter().filter_map(|v| v.data.as_ref()).collect();
    assert_eq!(constants.len(), 1);
    assert!(constants[0].as_ptr().addr().is_multiple_of(64));
}

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
    let branch = |name: &str, op: Op| {
        let mut graph = GraphBuilder::new(name);
        let x = graph.input("x", DType::F32, &[1]);
        let y = graph.tensor("y", DType::F32, &[1]);
        graph.op(op, &[x], &[y]).output(y);
        graph
    };
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(main)
        .subgraph(condition)
        .subgraph(body)
        .subgraph(branch("then", Op::Abs))
        .subgraph(branch("else", Op::Neg))
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
            runner.input_mut(0).copy_from_slice(&[flag]);
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
        runner
            .input_mut(1)
            .copy_from_slice(&[0.0f32, 0.5, -1.0, 2.0].map(f32::to_le_bytes).concat());
        runner.run().unwrap();
        let expected = [0.0f32, 0.5, -1.0, 2.0].map(|x| x.tanh().tanh().tanh());
        let found = runner.output_reals(0).unwrap();
        assert_eq!(found.len(), 4);
        let near = found.iter().zip(expected).all(|(found, x)| (found - x).abs() < 1e-5);
        assert!(near, "{found:?} {expected:?}");
    }
}

/// Two entry points, one of them with names of its own.
fn two_signatures() -> Model {
    let graph = |name: &str, op: Op| {
        let mut graph = GraphBuilder::new(name);
        let x = graph.input("x", DType::F32, &[2]);
        let y = graph.tensor("y", DType::F32, &[2]);
        graph.op(op, &[x], &[y]).output(y);
        graph
    };
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(graph("a", Op::Abs))
        .subgraph(graph("b", Op::Neg))
        .signature("a", 0, &[("x", 0)], &[("y", 1)])
        .signature("b", 1, &[("in", 0)], &[("out", 1)])
        .build()
}

#[test]
fn signatures_keep_their_names() {
    let model = two_signatures();
    for model in [&model, &partial(&model)] {
        let mut runner = Runner::at_signature(model, "b", &RunnerOptions::default()).unwrap();
        let mut another = runner.another(&SessionOptions::default()).unwrap();
        runner.resize_inputs(&[(0, &[3])]).unwrap();
        for runner in [&mut runner, &mut another] {
            let place = runner.input_index("in").unwrap();
            runner.input_mut(place)[..4].copy_from_slice(&1.0f32.to_le_bytes());
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
                let options = RunnerOptions::default();
                let mut runner = Runner::at_signature(model, &signature.key, &options).unwrap();
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

#[test]
fn what_does_not_go_whole_fails_on_request() {
    let mut options = ConvertOptions::default();
    options.require_full = true;
    let error = convert(&mul_and_where(false), &Source::default(), &options).unwrap_err();
    assert!(matches!(error, Error::Incomplete(_)));
    assert!(error.to_string().contains("operator 1 (WHERE)"), "{error}");
    // Where nothing goes there is nothing to write, either.
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4]);
    let y = graph.tensor("y", DType::I64, &[]);
    graph.op(Op::Where, &[x], &[y]).output(y);
    let error = converted(&graph.build_model()).unwrap_err();
    assert!(error.to_string().contains("operator 0 (WHERE)"), "{error}");
}

#[test]
fn other_readers_get_no_models_with_graphs_inside() {
    let mut options = ConvertOptions::default();
    options.compat = Compat::Executorch;
    let convert = |model: &Model| convert(model, &Source::default(), &options);
    let error = convert(&mul_and_where(false)).unwrap_err();
    assert!(matches!(error, Error::Incomplete(_)));
    assert!(error.to_string().contains("operator 1 (WHERE)"), "{error}");
    // Of several entry points they get the first.
    assert!(matches!(convert(&two_signatures()).unwrap(), Converted::Whole(_)));
    // Forms with nodes that they do not know are not chosen.
    let mut graph = GraphBuilder::new("main");
    let (x, y) = (graph.input("x", DType::I8, &[8, 4]), graph.tensor("y", DType::I8, &[8, 4]));
    graph.quantize(x, 0.1, 0).quantize(y, 1.0 / 256.0, -128);
    graph.op(Op::Softmax(SoftmaxOptions { beta: 1.0 }), &[x], &[y]).output(y);
    assert!(matches!(convert(&graph.build_model()).unwrap(), Converted::Whole(_)));
}

#[test]
fn models_that_are_no_graph_say_why() {
    let refusal = |change: fn(&mut GraphBuilder, usize, usize)| {
        let mut graph = GraphBuilder::new("main");
        let (x, y) = (graph.input("x", DType::F32, &[2]), graph.tensor("y", DType::F32, &[2]));
        change(&mut graph, x, y);
        let mut options = ConvertOptions::default();
        options.require_full = true;
        let error = convert(&graph.build_model(), &Source::default(), &options).unwrap_err();
        error.to_string().lines().last().unwrap().trim().to_owned()
    };
    let none = refusal(|graph, x, _| {
        graph.output(x);
    });
    assert_eq!(none, "it has no operators");
    let unread = refusal(|graph, x, y| {
        graph.input("spare", DType::F32, &[2]);
        graph.op(Op::Abs, &[x], &[y]).output(y);
    });
    assert_eq!(unread, "input \"spare\" is read by no operator");
    let through = refusal(|graph, x, y| {
        graph.op(Op::Abs, &[x], &[y]).output(y).output(x);
    });
    assert_eq!(through, "output \"x\" is an input or a constant");
}

#[test]
fn converting_again_changes_nothing() {
    let mut options = ConvertOptions::default();
    options.partition.disable = vec!["MUL".into()];
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4]);
    let [a, b, c] = ["a", "b", "c"].map(|name| graph.tensor(name, DType::F32, &[4]));
    graph.op(Op::Tanh, &[x], &[a]).op(Op::Mul(Default::default()), &[a, a], &[b]);
    graph.op(Op::Abs, &[b], &[c]).output(c);
    let first = convert(&graph.build_model(), &Source::default(), &options).unwrap();
    let first = Model::from_bytes(first.into_bytes()).unwrap();
    let error = convert(&first, &Source::default(), &options).unwrap_err().to_string();
    assert!(error.contains("[disabled]"), "{error}");
    assert!(error.contains("graphs that the model holds already: 2"), "{error}");
    // What was left before goes now, beside the graphs that are there.
    let second = convert(&first, &Source::default(), &ConvertOptions::default()).unwrap();
    let second = Model::from_bytes(second.into_bytes()).unwrap();
    let names: Vec<&str> = second.subgraphs[0].operators.iter().map(|o| o.op.name()).collect();
    assert_eq!(names, [CUSTOM_OPERATOR; 3]);
    assert_eq!(first.subgraphs[0].operators[0], second.subgraphs[0].operators[0]);
    let mut runners = [first, second].map(|model| runner(&model, 1).unwrap());
    assert_eq!(runners.each_ref().map(|r| r.coverage().partitions), [3, 3]);
    let [a, b] = runners.each_mut().map(|runner| outputs(runner).unwrap());
    assert_eq!(a, b);
}

#[test]
fn stored_graphs_tell_how_much_they_compute() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[7, 3]);
    let weights = graph.constant_f32("weights", &[5, 3], &[0.5f32; 15]);
    let y = graph.tensor("y", DType::F32, &[7, 5]);
    let z = graph.tensor("z", DType::I64, &[]);
    graph.op(Op::FullyConnected(Default::default()), &[x, weights], &[y]);
    graph.op(Op::Where, &[y], &[z]).output(z);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    for model in [partial(&model), model] {
        let delegation = Delegation::new(&model.subgraphs[0], &PartitionOptions::default());
        let report = delegation.unwrap().report();
        let macs: Vec<u64> = report.partitions.iter().map(|partition| partition.macs).collect();
        assert_eq!(macs, [7 * 5 * 3]);
        assert_eq!(report.partitions[0].optimization.nodes_after, 1);
    }
}

/// What the first operator, an XNNGraph, holds.
fn stored(model: &Model) -> &CustomOptions {
    match &model.subgraphs[0].operators[0].op {
        Op::Custom(custom) => custom,
        op => panic!("{op}"),
    }
}

/// The model with its first XNNGraph changed.
fn changed(change: impl Fn(&mut Operator, &mut CustomOptions, &mut Subgraph)) -> Model {
    let mut model = partial(&mul_and_where(false));
    let mut custom = stored(&model).clone();
    let graph = Arc::make_mut(&mut model.subgraphs[0]);
    let mut operator = graph.operators[0].clone();
    change(&mut operator, &mut custom, graph);
    operator.op = Op::Custom(custom);
    graph.operators[0] = operator;
    model
}

#[test]
fn graphs_that_cannot_be_used_are_refused_with_their_operator() {
    let refusal = |model: Model| {
        let error = runner(&model, 1).unwrap_err().to_string();
        assert!(error.starts_with("subgraph 0: operator 0 (XNNGraph): "), "{error}");
        let incomplete = converted(&model).unwrap_err().to_string();
        assert!(incomplete.contains("operator 0 (XNNGraph)"), "{incomplete}");
        error
    };
    let options = |options: &[u8]| CustomOptions {
        code: CUSTOM_OPERATOR.into(),
        options: Bytes::copy_from_slice(options),
    };
    // Damage stays damage, whatever else could be converted.
    let damaged = changed(|operator, custom, graph| {
        custom.options.truncate(9);
        let y = graph.tensors.len();
        graph.tensors.push(graph.tensor(operator.outputs[0]).clone());
        graph.operators.push(Operator {
            op: Op::Tanh,
            version: 1,
            inputs: vec![Some(operator.outputs[0])],
            outputs: vec![y],
            intermediates: vec![],
        });
        graph.outputs.push(y);
    });
    refusal(damaged);
    let good = changed(|_, _, _| {});
    assert!(runner(&good, 1).is_ok());
    for garbage in [&b""[..], b"not a blob", &[0; 64]] {
        refusal(changed(|_, custom, _| *custom = options(garbage)));
    }
    let size = Blob::from_bytes(stored(&good).options.clone()).unwrap().info().constants.end;
    for part in 0..8 {
        let end = usize::try_from(size).unwrap() * part / 8;
        refusal(changed(|_, custom, _| custom.options.truncate(end)));
    }
    let error = refusal(changed(|operator, _, _| operator.inputs.clear()));
    assert!(error.contains("the operator has 0 inputs, its graph 1"), "{error}");
    let error = refusal(changed(|operator, _, _| operator.inputs[0] = None));
    assert!(error.contains("an input is left out"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        graph.tensors[operator.inputs[0].unwrap()].dtype = DType::I32;
    }));
    assert!(error.contains("input 0 is fp32 for its graph, but tensor \"x\" is"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        graph.tensors[operator.inputs[0].unwrap()].shape = Some(vec![4, 1]);
    }));
    assert!(error.contains("the dimensions [1, 4] for its graph, but"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        let spare = graph.tensors[operator.outputs[0]].clone();
        graph.tensors.push(spare);
        operator.outputs.push(graph.tensors.len() - 1);
    }));
    assert!(error.contains("2 outputs, its graph 1"), "{error}");
}

#[test]
fn files_can_be_resized_where_their_models_can() {
    let model = mul_and_where(false);
    let results = [&model, &partial(&model)].map(|model| {
        let mut runner = runner(model, 1).unwrap();
        runner.resize_inputs(&[(0, &[3, 4])]).unwrap();
        let input: Vec<u8> = Random::new(2).tensor(DType::F32, 12);
        runner.input_mut(0).copy_from_slice(&input);
        runner.run().unwrap();
        (runner.outputs()[0].dims.clone(), runner.output(0).to_vec())
    });
    assert_eq!(results[0].0, [6, 2]);
    assert_eq!(results[0], results[1]);
}

#[test]
fn files_are_told_apart_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("misnamed.xnn");
    std::fs::write(&path, converted(&mul_and_where(false)).unwrap().bytes()).unwrap();
    let open =
        |path: &Path| Runner::open(path, &PartitionOptions::default(), &SessionOptions::default());
    assert_eq!(open(&path).unwrap().coverage().partitions, 1);
}
