//! Entry points by index, runs on reference kernels, values of intermediate tensors, and outputs in the caller's memory.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::model::Dialect;
use xnn_delegate::{ConvertOptions, DType, Model, Runner, RunnerBuilder, Source, convert};
use xnn_model::op::Op;
use xnn_testing::{GraphBuilder, ModelBuilder};

/// y = -|x|, and in the second subgraph y = x * x.
fn model() -> Model {
    let mut main = GraphBuilder::new("main");
    let x = main.input("x", DType::F32, &[4]);
    let between = main.tensor("between", DType::F32, &[4]);
    let y = main.tensor("y", DType::F32, &[4]);
    main.op(Op::Abs, &[x], &[between]).op(Op::Neg, &[between], &[y]).output(y);
    let mut square = GraphBuilder::new("square");
    let x = square.input("x", DType::F32, &[4]);
    let y = square.tensor("y", DType::F32, &[4]);
    square.op(Op::Square, &[x], &[y]).output(y);
    ModelBuilder::new(Dialect::Tflite).subgraph(main).subgraph(square).build()
}

const X: [f32; 4] = [1.0, -2.0, 3.0, -4.0];

fn run(runner: &mut Runner) -> Vec<f32> {
    runner.input_as_mut::<f32>(0).unwrap().copy_from_slice(&X);
    runner.run().unwrap();
    runner.output_as::<f32>(0).unwrap().to_vec()
}

#[test]
fn a_subgraph_is_chosen_by_its_index() {
    let builder = RunnerBuilder::from_model(&model());
    assert_eq!(run(&mut builder.clone().build().unwrap()), [-1.0, -2.0, -3.0, -4.0]);
    let mut square = builder.clone().subgraph(1).build().unwrap();
    assert_eq!(run(&mut square), [1.0, 4.0, 9.0, 16.0]);
    assert_eq!(square.subgraph().unwrap().name, "square");
    let error = builder.subgraph(2).build().unwrap_err().to_string();
    assert!(error.contains("no subgraph 2: the model has 2, from 0"), "{error}");
}

#[test]
fn a_model_is_compiled_for_other_dimensions() {
    let builder = RunnerBuilder::from_model(&model()).input_dims([(0, vec![2, 3])]);
    for runner in
        [builder.clone(), builder.clone().reference_kernels(), builder.clone().subgraph(1)]
    {
        let mut runner = runner.build().unwrap();
        assert_eq!(runner.inputs()[0].dims, [2, 3]);
        runner.run().unwrap();
        assert_eq!(runner.outputs()[0].dims, [2, 3]);
        // Later changes begin with these dimensions.
        runner.resize_input(0, &[5]).unwrap();
        runner.run().unwrap();
        assert_eq!(runner.outputs()[0].dims, [5]);
    }
    let error = builder.input_dims([(1, vec![4])]).build().unwrap_err().to_string();
    assert!(error.contains("there is no input 1"), "{error}");
}

#[test]
fn blobs_take_dimensions_too() {
    let options = ConvertOptions::default();
    let converted = convert(&model(), &Source::default(), &options).unwrap();
    let blob = RunnerBuilder::from_bytes(converted.into_bytes()).input_dims([(0, vec![7])]);
    assert_eq!(blob.build().unwrap().outputs()[0].dims, [7]);
}

#[test]
fn intermediate_values_are_kept_if_that_is_requested() {
    let builder = RunnerBuilder::from_model(&model());
    let mut delegated = builder.clone().build().unwrap();
    assert!(delegated.coverage().is_whole());
    run(&mut delegated);
    assert!(delegated.tensor(1).is_none());

    let mut reference = builder.clone().reference_kernels().build().unwrap();
    assert_eq!(reference.coverage().delegated, 0);
    assert_eq!(run(&mut reference), run(&mut delegated));

    let mut keeping = builder.keep_intermediates().reference_kernels().build().unwrap();
    assert_eq!(keeping.coverage().delegated, 0);
    run(&mut keeping);
    let between = keeping.tensor(1).unwrap();
    assert_eq!(between.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert!(keeping.tensor(3).is_none());
}

#[test]
fn outputs_are_written_to_the_callers_memory() {
    let builder = RunnerBuilder::from_model(&model());
    for mut runner in [builder.clone(), builder.reference_kernels()].map(|it| it.build().unwrap()) {
        runner.input_as_mut::<f32>(0).unwrap().copy_from_slice(&X);
        // One of these addresses is not aligned.
        let mut memory = [0u8; 48];
        for start in [0, 1] {
            let output = &mut memory[start..start + 16];
            output.fill(0);
            runner.run_into(&mut [(0, output)]).unwrap();
            let floats = output.as_chunks::<4>().0.iter().map(|it| f32::from_ne_bytes(*it));
            assert_eq!(floats.collect::<Vec<_>>(), [-1.0, -2.0, -3.0, -4.0]);
        }
        runner.run_into(&mut []).unwrap();
    }
}

#[test]
fn memory_must_fit_the_outputs() {
    let builder = RunnerBuilder::from_model(&model());
    for mut runner in [builder.clone(), builder.reference_kernels()].map(|it| it.build().unwrap()) {
        let mut refused =
            |outputs: &mut [(usize, &mut [u8])]| runner.run_into(outputs).unwrap_err().to_string();
        let (mut memory, mut other) = ([0u8; 16], [0u8; 16]);
        assert_eq!(
            refused(&mut [(0, &mut memory[..12])]),
            "output 0 \"y\": expected 16 bytes, found 12"
        );
        let missing = refused(&mut [(1, &mut memory[..])]);
        assert!(missing.starts_with("no output 1; the outputs are: 0 \"y\""), "{missing}");
        let twice = refused(&mut [(0, &mut memory[..]), (0, &mut other[..])]);
        assert_eq!(twice, "output 0 \"y\": it is listed twice");
        runner.cancel_flag().raise();
        assert!(runner.run_into(&mut [(0, &mut memory[..])]).is_err());
    }
}
