//! Limits on memory and work that a model may request, and cancellation of runs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use xnn_delegate::blob::Blob;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::model::{Amplification, Demand};
use xnn_delegate::{DType, Model, Runner, RunnerBuilder, RunnerOptions};
use xnn_format::{ConstantFolder, ReadOptions};
use xnn_model::op::{CallOptions, Op};
use xnn_model::{Dialect, Excess, infer_shapes};
use xnn_testing::{GraphBuilder, ModelBuilder, files_below, shared_dir};

fn looping(limit: f32) -> Model {
    ModelBuilder::looping(limit).build()
}

fn error(runner: &mut Runner) -> String {
    runner.run().unwrap_err().to_string()
}

#[test]
fn loops_end_at_the_limit() {
    let mut options = RunnerOptions::default();
    options.limits.max_loop_iterations = 100;
    let mut runner =
        RunnerBuilder::from_model(&looping(2.0)).options(options.clone()).build().unwrap();
    let error = error(&mut runner);
    assert!(error.contains("operator 0 (WHILE)") && error.contains("limit of 100"), "{error}");
    RunnerBuilder::from_model(&looping(0.0))
        .options(options.clone())
        .build()
        .unwrap()
        .run()
        .unwrap();
}

#[test]
fn loops_end_when_they_are_cancelled() {
    let mut runner = Runner::from_model(&looping(2.0)).unwrap();
    let flag = runner.cancel_flag();
    let canceller = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        flag.raise();
    });
    let error = error(&mut runner);
    canceller.join().unwrap();
    assert!(error.ends_with("cancelled"), "{error}");
}

/// `y = tanh(x)`.
fn tanh() -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    graph.op(Op::Tanh, &[x], &[y]).output(y);
    graph.build_model()
}

#[test]
fn whole_models_are_cancelled_before_they_start() {
    let mut runner = Runner::from_model(&tanh()).unwrap();
    assert!(runner.program().is_some());
    runner.cancel_flag().raise();
    assert_eq!(error(&mut runner), "cancelled");
    runner.cancel_flag().lower();
    runner.run().unwrap();
}

#[test]
fn calls_that_call_themselves_are_bounded() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1]);
    let y = graph.tensor("y", DType::F32, &[1]);
    graph.op(Op::Call(CallOptions { subgraph: 0 }), &[x], &[y]).output(y);
    let mut options = RunnerOptions::default();
    options.limits.max_call_depth = 5;
    let mut runner =
        RunnerBuilder::from_model(&graph.build_model()).options(options.clone()).build().unwrap();
    let error = error(&mut runner);
    assert!(error.contains("the nesting of calls is 6, above the limit of 5"), "{error}");
}

#[test]
fn absurd_sizes_are_refused_before_they_are_allocated() {
    // By values that only a run knows.
    let mut graph = GraphBuilder::new("main");
    let dims = graph.input("dims", DType::I32, &[2]);
    let value = graph.constant_f32("value", &[], &[0.0]);
    let y = graph.tensor("y", DType::F32, &[]);
    graph.op(Op::Fill, &[dims, value], &[y]).output(y);
    let mut options = RunnerOptions::default();
    options.limits.max_tensor_bytes = 4000;
    let mut runner =
        RunnerBuilder::from_model(&graph.build_model()).options(options.clone()).build().unwrap();
    for (dims, fits) in [([10i32, 100], true), ([10, 101], false), ([i32::MAX, i32::MAX], false)] {
        runner.input_bytes_mut(0).unwrap().copy_from_slice(&dims.map(i32::to_ne_bytes).concat());
        assert_eq!(runner.run().is_ok(), fits, "{dims:?}");
    }
    // By whoever gives inputs other shapes, in both engines.
    let mut partial = options.clone();
    partial.partition.disable = vec!["TANH".into()];
    for options in [options, partial] {
        let mut runner =
            RunnerBuilder::from_model(&tanh()).options(options.clone()).build().unwrap();
        assert_eq!(runner.program().is_some(), options.partition.disable.is_empty());
        runner.resize_inputs(&[(0, &[250, 4])]).unwrap();
        for dims in [[251, 4], [usize::MAX, 4]] {
            let error = runner.resize_inputs(&[(0, &dims)]).unwrap_err().to_string();
            assert!(error.contains("above the limit of 4000"), "{error}");
        }
    }
}

/// Results of XNNPACK have the same limits as results of reference kernels.
#[test]
fn padding_has_a_limit() {
    let padded = |rows: i32, disable: &[&str]| {
        let mut graph = GraphBuilder::new("main");
        let x = graph.input("x", DType::F32, &[1, 4]);
        let paddings = graph.constant_i32("paddings", &[2, 2], &[0, rows - 1, 0, 0]);
        let y = graph.tensor("y", DType::F32, &[rows as usize, 4]);
        graph.op(Op::Pad, &[x, paddings], &[y]).output(y);
        let mut options = RunnerOptions::default();
        options.limits.max_tensor_bytes = 4000;
        options.partition.disable = disable.iter().map(|&name| name.into()).collect();
        let mut runner =
            RunnerBuilder::from_model(&graph.build_model()).options(options).build()?;
        runner.run().map(|()| runner.program().is_some())
    };
    for disable in [&[][..], &["PAD"]] {
        assert_eq!(padded(250, disable).unwrap(), disable.is_empty());
        let error = padded(251, disable).unwrap_err().to_string();
        assert!(error.contains("limit of 4000"), "{error}");
    }
}

/// A variable that is read, squashed and written, then read again: `y = abs(tanh(v) after writing)`.
fn variable() -> Model {
    let mut main = GraphBuilder::new("main");
    let x = main.input("x", DType::F32, &[1, 4]);
    let handle = main.tensor("handle", DType::Resource, &[1]);
    let [old, sum, new, again, y] =
        ["old", "sum", "new", "again", "y"].map(|name| main.tensor(name, DType::F32, &[1, 4]));
    main.op(Op::CallOnce(CallOptions { subgraph: 1 }), &[], &[]);
    main.op(Op::VarHandle(Default::default()), &[], &[handle]);
    main.op(Op::ReadVariable, &[handle], &[old]);
    main.op(Op::Add(Default::default()), &[old, x], &[sum]).op(Op::Tanh, &[sum], &[new]);
    main.op(Op::AssignVariable, &[handle, new], &[]);
    main.op(Op::ReadVariable, &[handle], &[again]).op(Op::Abs, &[again], &[y]).output(y);
    let mut init = GraphBuilder::new("init");
    let handle = init.tensor("handle", DType::Resource, &[1]);
    let start = init.constant_f32("start", &[1, 4], &[0.0, 1.0, -1.0, 5.0]);
    init.op(Op::VarHandle(Default::default()), &[], &[handle]);
    init.op(Op::AssignVariable, &[handle, start], &[]);
    ModelBuilder::new(Dialect::Tflite).subgraph(main).subgraph(init).build()
}

#[test]
fn partitions_keep_their_place_beside_variables() {
    let model = variable();
    let mut runner = Runner::from_model(&model).unwrap();
    assert_eq!(runner.coverage().partitions, 2, "{}", runner.coverage());
    let mut reference = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).unwrap();
    let input = [0.5f32, -0.25, 0.125, 2.0].map(f32::to_ne_bytes).concat();
    for round in 0..2 {
        runner.reset_variables();
        reference.reset_variables();
        let mut last = Vec::new();
        for _ in 0..3 {
            runner.input_bytes_mut(0).unwrap().copy_from_slice(&input);
            reference.input_mut(0).unwrap().bytes.copy_from_slice(&input);
            runner.run().unwrap();
            reference.run().unwrap();
            let expected = reference.output(0).unwrap().as_slice::<f32>().unwrap().to_vec();
            let output = runner.output_reals(0).unwrap();
            xnn_testing::assert_close(&output, &expected, 1e-6);
            assert_ne!(output, last, "round {round}");
            last = output;
        }
    }
}

/// `y = x` repeated along its rows, `factor` times, and squashed: a few bytes that ask for many.
fn repeated(factor: i32) -> GraphBuilder {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 1024]);
    let times = graph.constant_i32("times", &[2], &[factor, 1]);
    let [many, y] =
        ["many", "y"].map(|name| graph.tensor(name, DType::F32, &[factor as usize, 1024]));
    graph.op(Op::Tile, &[x, times], &[many]).op(Op::Tanh, &[many], &[y]).output(y);
    graph
}

#[test]
fn small_models_ask_for_little() {
    let ask = |factor: i32, disable: &[&str], free_bytes: u64| {
        let mut options = RunnerOptions::default();
        options.limits.amplification.free_bytes = free_bytes;
        options.partition.disable = disable.iter().map(|&name| name.into()).collect();
        RunnerBuilder::from_model(&repeated(factor).build_model())
            .options(options)
            .build()
            .and_then(|mut it| it.run())
    };
    // The input, two results, and how often.
    let bytes = |factor: u64| 4096 + 2 * 4096 * factor + 8;
    for disable in [&[][..], &["TILE", "TANH"]] {
        // The file's own 392 bytes pay for 1.6 MB; more is free.
        ask(1000, disable, bytes(1000)).unwrap();
        let error = ask(1000, disable, bytes(1000) - 1).unwrap_err();
        assert_eq!(error.limit(), Some(Excess::MEMORY), "{error}");
        assert!(!error.is_out_of_memory());
    }
    let reference = |factor| {
        let model = repeated(factor).build_model();
        Interpreter::new(&model, Entry::Main, &InterpOptions::default()).map(drop)
    };
    reference(1000).unwrap();
    let error = reference(400_000).unwrap_err().to_string();
    assert!(error.contains("memory for tensors"), "{error}");
}

#[test]
fn what_a_model_may_ask_for_grows_with_the_inputs_that_it_is_given() {
    // Numbers take as much as they are large where the shape is known to the run alone.
    let mut graph = GraphBuilder::new("main");
    let dims = graph.input("dims", DType::I32, &[1]);
    let value = graph.constant_f32("value", &[], &[1.0]);
    let [y, z] = ["y", "z"].map(|name| graph.tensor(name, DType::F32, &[]));
    graph.op(Op::Fill, &[dims, value], &[y]).op(Op::Cos, &[y], &[z]).output(z);
    let model = graph.build_model();
    let mut options = InterpOptions::default();
    options.limits.amplification.free_bytes = 1 << 20;
    options.limits.amplification.bytes_per_byte = 0;
    let mut interpreter = Interpreter::new(&model, Entry::Main, &options).unwrap();
    let mut run = |count: i32| {
        interpreter.input_mut(0).unwrap().bytes.copy_from_slice(&count.to_ne_bytes());
        interpreter.run().map_err(|error| error.to_string())
    };
    run(1 << 16).unwrap();
    for count in [1 << 18, 1 << 19, 1 << 30] {
        let error = run(count).unwrap_err();
        assert!(error.contains("limit"), "{error}");
    }
    // The limit applies to each run, not to all runs together.
    (0..20).for_each(|_| run(1 << 16).unwrap());

    // A whole model, whose input a caller makes larger.
    let mut options = RunnerOptions::default();
    options.limits.amplification.free_bytes = 1 << 16;
    options.limits.amplification.bytes_per_byte = 256;
    let rows = |options: &RunnerOptions, rows: usize| {
        let mut runner =
            RunnerBuilder::from_model(&tanh()).options(options.clone()).build().unwrap();
        runner.resize_inputs(&[(0, &[rows, 4])]).and_then(|()| runner.run())
    };
    rows(&options, 1 << 16).unwrap();
    options.limits.amplification.bytes_per_byte = 1;
    let error = rows(&options, 1 << 16).unwrap_err();
    assert_eq!(error.limit(), Some(Excess::MEMORY), "{error}");
}

#[test]
fn loops_end_where_their_work_is_too_much() {
    let mut options = RunnerOptions::default();
    options.limits.amplification.work_per_byte = 0;
    options.limits.amplification.free_work = 100_000;
    let mut runner =
        RunnerBuilder::from_model(&looping(2.0)).options(options.clone()).build().unwrap();
    let error = runner.run().unwrap_err();
    assert_eq!(error.limit(), Some(Excess::WORK), "{error}");
    // Each run counts for itself.
    let mut runner =
        RunnerBuilder::from_model(&looping(0.0)).options(options.clone()).build().unwrap();
    (0..1000).for_each(|_| runner.run().unwrap());
}

/// The defaults let every known file through, and leave room for ten times what nearly all ask for. The rest are models for large
/// images in a few hundred kilobytes, and one that was made to be huge.
#[test]
fn known_files_ask_for_less_than_they_may() {
    let mut asked: Vec<(PathBuf, u64, Demand)> = Vec::new();
    for folder in ["models", "circle", "cases", "interop"] {
        let Some(folder) = shared_dir(folder) else { return };
        for path in files_below(&folder, &["tflite", "circle"]) {
            let Ok(model) = Model::open(&path) else { continue };
            let inferred = model.subgraphs.into_iter().filter_map(|graph| infer_shapes(graph).ok());
            asked.extend(inferred.map(|it| (path.clone(), it.stored_bytes(), it.demand())));
        }
        for path in files_below(&folder, &["xnn"]) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let beside = name.replace("_inline", "").replace("payload", "named_data");
            let constants = ConstantFolder::new(path.with_file_name(beside));
            let reading = ReadOptions { constants: Some(&constants), ..ReadOptions::default() };
            let Ok(blob) = Blob::open_with(&path, &reading) else { continue };
            let graph = blob.graph();
            let shapes: Vec<_> = graph.values.iter().map(|value| value.dims.clone()).collect();
            asked.push((path, graph.stored_bytes(), graph.demand(&shapes)));
        }
    }
    let bounds = Amplification::default();
    type Part = fn(&Demand) -> u64;
    let shares: [(&str, Part); 2] =
        [("memory", |demand| demand.bytes), ("work", |demand| demand.work)];
    for (what, of) in shares {
        let share =
            |size: u64, demand: &Demand| of(demand) as f64 / of(&bounds.allowed(size)) as f64;
        asked.sort_by(|a, b| share(b.1, &b.2).total_cmp(&share(a.1, &a.2)));
        for (path, size, demand) in asked.iter().take(8) {
            let (path, asked) = (path.display(), of(demand));
            println!("{:.4} of the {what}: {asked} for {size} bytes: {path}", share(*size, demand));
        }
        let shares = asked.iter().map(|(_, size, demand)| share(*size, demand));
        assert!(shares.clone().all(|share| share < 0.8), "{what}");
        assert!(shares.filter(|&share| share > 0.1).count() <= 6, "{what}");
    }
}
