//! The public interface of runners: opening, typed tensors, names, arrays.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use xnn_delegate::tensor::{TensorError, View};
use xnn_delegate::{
    ConvertOptions, Converted, DType, Error, Model, PartitionOptions, Runner, RunnerBuilder,
    Source, convert,
};
use xnn_model::op::{ArithmeticOptions, CastOptions, Op};
use xnn_testing::GraphBuilder;

const FP32: &str = "digits_mobilenet_v2_fp32.tflite";

const INT8: &[u8] = include_bytes!("../models/digits_mobilenet_v2_int8.tflite");

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

/// y = a + b, and the sum as booleans.
fn sum() -> Model {
    let mut graph = GraphBuilder::new("main");
    let a = graph.input("a", DType::F32, &[2, 3]);
    let b = graph.input("b", DType::F32, &[2, 3]);
    let y = graph.tensor("y", DType::F32, &[2, 3]);
    let holds = graph.tensor("holds", DType::Bool, &[2, 3]);
    graph.op(Op::Add(ArithmeticOptions::default()), &[a, b], &[y]);
    graph.op(Op::Cast(CastOptions::default()), &[y], &[holds]).output(y).output(holds);
    graph.build_model()
}

/// Runners of [`sum`] with and without XNNPACK.
fn runners() -> [Runner; 2] {
    [&[][..], &["ADD", "CAST"]].map(|disabled: &[&str]| {
        let mut partition = PartitionOptions::default();
        partition.keep_small = true;
        partition.disable = disabled.iter().map(|&name| name.to_owned()).collect();
        RunnerBuilder::from_model(&sum()).partition(partition).build().unwrap()
    })
}

/// Bytes at an address that is odd.
struct Odd(Vec<u8>);

impl AsRef<[u8]> for Odd {
    fn as_ref(&self) -> &[u8] {
        &self.0[1..]
    }
}

fn odd(bytes: &[u8]) -> Odd {
    Odd([&[0], bytes].concat())
}

#[test]
fn models_and_blobs_open_from_files_and_from_memory() {
    let converted = convert(
        &Model::from_bytes(INT8.to_vec()).unwrap(),
        &Source::default(),
        &ConvertOptions::default(),
    );
    let Ok(Converted::Whole(blob)) = converted else { unreachable!("{converted:?}") };
    let mut results = Vec::new();
    for runner in [
        Runner::open(model("digits_mobilenet_v2_int8.tflite")),
        Runner::open_bytes(include_bytes!("../models/digits_mobilenet_v2_int8.tflite")),
        Runner::open_bytes(INT8.to_vec()),
        Runner::open_bytes(odd(INT8)),
        Runner::open_bytes(odd(&blob)),
        Runner::open_bytes(blob),
    ] {
        let mut runner = runner.unwrap();
        runner.input_as_mut::<i8>(0).unwrap().fill(7);
        runner.run().unwrap();
        results.push(runner.output_as::<i8>(0).unwrap().to_vec());
    }
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert!(Runner::open_bytes(b"neither").is_err());
}

#[test]
fn blobs_have_no_signatures() {
    let model = Model::open(model(FP32)).unwrap();
    let converted = convert(&model, &Source::default(), &ConvertOptions::default()).unwrap();
    let blob = RunnerBuilder::from_bytes(converted.into_bytes()).signature("main");
    assert!(blob.build().unwrap_err().to_string().contains("no signatures"));
}

#[test]
fn tensors_have_types_and_names() {
    for mut runner in runners() {
        runner.input_as_mut("a").unwrap().copy_from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        runner.input_as_mut::<f32>(1).unwrap().fill(-1.0);
        runner.run().unwrap();
        assert_eq!(runner.output_as::<f32>("y").unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let holds: &[bool] = runner.output_as("holds").unwrap();
        assert_eq!(holds, [false, true, true, true, true, true]);
        assert_eq!(runner.output_bytes(1).unwrap(), [0, 1, 1, 1, 1, 1]);
        assert_eq!(runner.output_reals("y").unwrap()[5], 5.0);
        runner.input_bytes_mut("b").unwrap().fill(0);
    }
}

#[test]
fn errors_list_the_names_and_types_that_there_are() {
    for mut runner in runners() {
        let error = runner.input_as_mut::<f32>("x").unwrap_err();
        assert_eq!(error.to_string(), r#"no input "x"; the inputs are: 0 "a", 1 "b""#);
        assert!(matches!(error, Error::Tensor(TensorError::Missing { .. })));
        let error = runner.output_bytes(2).unwrap_err().to_string();
        assert_eq!(error, r#"no output 2; the outputs are: 0 "y", 1 "holds""#);
        let error = runner.input_as_mut::<i8>("b").unwrap_err().to_string();
        assert_eq!(error, r#"input 1 "b": expected elements of type f32, found i8"#);
        let error = runner.run_with([("a", &[0.0f32; 5])]).unwrap_err().to_string();
        assert_eq!(error, r#"input 0 "a": expected 24 bytes, found 20"#);
    }
}

#[test]
fn one_call_fills_runs_and_resizes() {
    for mut runner in runners() {
        let (a, b) = ([1.0f32, 2.0, 3.0], vec![0.5f32; 3]);
        let (a, b) = (View::from(&a).with_dims(&[1, 3]), View::from(&b).with_dims(&[1, 3]));
        let result = runner.run_with([("a", a), ("b", b)]).unwrap();
        assert_eq!(result.output_as::<f32>("y").unwrap(), [1.5, 2.5, 3.5]);
        assert_eq!(runner.outputs()[0].dims, [1, 3]);
        runner.resize_inputs(&[("a", &[4, 3]), ("b", &[4, 3])]).unwrap();
        assert_eq!(runner.input_as_mut::<f32>("a").unwrap().len(), 12);
        assert!(runner.resize_input("x", &[1]).is_err());
    }
}

#[test]
fn arrays_view_tensors() {
    for mut runner in runners() {
        runner.input_array_mut::<f32>("a").unwrap()[[1, 2]] = 3.0;
        let b = ndarray::Array2::<f32>::ones((2, 3));
        runner.run_with([("b", View::from_array(&b).unwrap())]).unwrap();
        let y = runner.output_array::<f32>("y").unwrap();
        assert_eq!((y.shape(), y[[1, 2]], y[[0, 0]]), (&[2, 3][..], 4.0, 1.0));
        assert!(runner.output_array::<i8>("y").is_err());
        assert!(View::from_array(&b.t()).is_none());
    }
}

#[test]
fn errors_cross_threads() {
    fn assert_error<T: std::error::Error + Send + Sync + 'static>() {}
    assert_error::<Error>();
}
