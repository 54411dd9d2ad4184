//! Runs in the caller's memory, and files that are opened once for several runners.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::tensor::{BINDING_PADDING, Binding};
use xnn_delegate::{
    ConvertOptions, Model, ModelFile, PartitionOptions, Runner, RunnerOptions, Source,
};
use xnn_model::DType;
use xnn_model::op::{ArithmeticOptions, Op};
use xnn_testing::GraphBuilder;

const ELEMENTS: usize = 6;

/// Adds two inputs.
fn model() -> Model {
    let mut graph = GraphBuilder::new("main");
    let [a, b] = ["a", "b"].map(|name| graph.input(name, DType::F32, &[2, 3]));
    let sum = graph.tensor("sum", DType::F32, &[2, 3]);
    graph.op(Op::Add(ArithmeticOptions::default()), &[a, b], &[sum]).output(sum);
    graph.build_model()
}

/// Runners of the model that XNNPACK runs, and that reference kernels run.
fn runners() -> [Runner; 2] {
    [&[][..], &["ADD"]].map(|disabled| {
        let mut partition = PartitionOptions::default();
        partition.keep_small = true;
        partition.disable = disabled.iter().map(|&name| name.to_owned()).collect();
        let file = ModelFile::Model(model());
        let runner = file.runner().partition(partition).build().unwrap();
        assert_eq!(runner.program().is_some(), disabled.is_empty());
        runner
    })
}

/// Elements in memory that is aligned and has padding.
fn padded(elements: [f32; ELEMENTS]) -> Vec<f32> {
    elements.into_iter().chain([f32::NAN; BINDING_PADDING / 4]).collect()
}

#[test]
fn inputs_and_outputs_are_in_the_callers_memory() {
    for mut runner in runners() {
        let (a, b) = (padded([1.0; ELEMENTS]), padded([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]));
        let mut sum = [0f32; ELEMENTS + 1];
        let expected = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5];
        runner
            .run_bound([
                Binding::Input(1, bytemuck::cast_slice(&b)),
                Binding::Output(0, bytemuck::cast_slice_mut(&mut sum)),
                Binding::Input(0, bytemuck::cast_slice(&a)),
            ])
            .unwrap();
        assert_eq!((&sum[..ELEMENTS], sum[ELEMENTS]), (&expected[..], 0.0));

        // Others use the runner's memory.
        runner.input_as_mut::<f32>(0).unwrap().fill(2.0);
        runner.run_bound([Binding::Input(1, bytemuck::cast_slice(&b))]).unwrap();
        assert_eq!(runner.output_as::<f32>(0).unwrap(), [2.5, 3.5, 4.5, 5.5, 6.5, 7.5]);
        runner.input_as_mut::<f32>(1).unwrap().fill(3.0);
        runner.run_bound([]).unwrap();
        assert_eq!(runner.output_as::<f32>(0).unwrap(), [5.0; ELEMENTS]);
    }
}

#[test]
fn unsuitable_memory_is_refused() {
    for mut runner in runners() {
        let a = padded([1.0; ELEMENTS]);
        let a: &[u8] = bytemuck::cast_slice(&a);
        let (mut sum, mut other) = ([0f32; ELEMENTS], [0f32; ELEMENTS]);
        let error = |runner: &mut Runner, bindings: Vec<Binding<'_>>| {
            runner.run_bound(bindings).unwrap_err().to_string()
        };
        let short = error(&mut runner, vec![Binding::Input(0, &a[..a.len() - 1])]);
        assert_eq!(short, "input 0 \"a\": expected 88 bytes, found 87");
        let short: &mut [u8] = bytemuck::cast_slice_mut(&mut sum[..ELEMENTS - 1]);
        let short = error(&mut runner, vec![Binding::Output(0, short)]);
        assert_eq!(short, "output 0 \"sum\": expected 24 bytes, found 20");
        let missing = error(&mut runner, vec![Binding::Input(2, a)]);
        assert!(missing.starts_with("no input 2; the inputs are: "), "{missing}");
        let twice = error(&mut runner, vec![Binding::Input(1, a), Binding::Input(1, a)]);
        assert!(twice.contains("bound twice"), "{twice}");
        let [sum, other] = [&mut sum, &mut other].map(|it| bytemuck::cast_slice_mut(it));
        let twice = error(&mut runner, vec![Binding::Output(0, sum), Binding::Output(0, other)]);
        assert!(twice.contains("bound twice"), "{twice}");
        runner.cancel_flag().raise();
        assert_eq!(error(&mut runner, vec![Binding::Input(1, a)]), "cancelled");
    }
}

#[test]
fn a_file_is_opened_once_for_several_runners() {
    let options = RunnerOptions::default();
    let model = model();
    let blob = xnn_delegate::convert(&model, &Source::default(), &ConvertOptions::default());
    let tflite = xnn_delegate::model::to_tflite(&model).unwrap();
    for (bytes, is_blob) in [(tflite, false), (blob.unwrap().into_bytes(), true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        for file in [ModelFile::open(&path, &options), ModelFile::from_bytes(bytes, &options)] {
            let file = file.unwrap();
            assert_eq!(matches!(file, ModelFile::Blob(_)), is_blob);
            for mut runner in [file.runner().build().unwrap(), file.runner().build().unwrap()] {
                runner.input_as_mut::<f32>("a").unwrap().fill(1.0);
                runner.input_as_mut::<f32>("b").unwrap().fill(2.0);
                runner.run().unwrap();
                assert_eq!(runner.output_as::<f32>("sum").unwrap(), [3.0; ELEMENTS]);
            }
        }
    }
}
