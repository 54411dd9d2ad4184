//! What a model may ask for, and how a run is stopped.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::thread;
use std::time::Duration;

use xnn_delegate::{DType, Entry, InterpOptions, Interpreter, Model, Runner, RunnerOptions};
use xnn_model::Dialect;
use xnn_model::op::{CallOptions, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

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
    let mut runner = Runner::new_with(&looping(2.0), &options).unwrap();
    let error = error(&mut runner);
    assert!(error.contains("operator 0 (WHILE)") && error.contains("limit of 100"), "{error}");
    Runner::new_with(&looping(0.0), &options).unwrap().run().unwrap();
}

#[test]
fn loops_end_when_they_are_cancelled() {
    let mut runner = Runner::new_with(&looping(2.0), &RunnerOptions::default()).unwrap();
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
    let mut runner = Runner::new_with(&tanh(), &RunnerOptions::default()).unwrap();
    assert!(runner.session().is_some());
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
    let mut runner = Runner::new_with(&graph.build_model(), &options).unwrap();
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
    let mut runner = Runner::new_with(&graph.build_model(), &options).unwrap();
    for (dims, fits) in [([10i32, 100], true), ([10, 101], false), ([i32::MAX, i32::MAX], false)] {
        runner.input_mut(0).copy_from_slice(&dims.map(i32::to_ne_bytes).concat());
        assert_eq!(runner.run().is_ok(), fits, "{dims:?}");
    }
    // By whoever gives inputs other shapes, in both engines.
    let mut partial = options.clone();
    partial.partition.disable = vec!["TANH".into()];
    for options in [options, partial] {
        let mut runner = Runner::new_with(&tanh(), &options).unwrap();
        assert_eq!(runner.session().is_some(), options.partition.disable.is_empty());
        runner.resize_inputs(&[(0, &[250, 4])]).unwrap();
        for dims in [[251, 4], [usize::MAX, 4]] {
            let error = runner.resize_inputs(&[(0, &dims)]).unwrap_err().to_string();
            assert!(error.contains("above the limit of 4000"), "{error}");
        }
    }
}

/// What XNNPACK computes has the same limits as what reference kernels do.
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
        let mut runner = Runner::new_with(&graph.build_model(), &options)?;
        runner.run().map(|()| runner.session().is_some())
    };
    for disable in [&[][..], &["PAD"]] {
        assert_eq!(padded(250, disable).unwrap(), disable.is_empty());
        let error = padded(251, disable).unwrap_err().to_string();
        assert!(error.contains("limit is 4000"), "{error}");
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
    let mut runner = Runner::new_with(&model, &RunnerOptions::default()).unwrap();
    assert_eq!(runner.coverage().partitions, 2, "{}", runner.coverage());
    let mut reference = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).unwrap();
    let input = [0.5f32, -0.25, 0.125, 2.0].map(f32::to_ne_bytes).concat();
    for round in 0..2 {
        runner.reset_variables();
        reference.reset_variables();
        let mut last = Vec::new();
        for _ in 0..3 {
            runner.input_mut(0).copy_from_slice(&input);
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
