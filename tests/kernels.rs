//! Compares the reference kernels of operators that are not delegated with LiteRT's kernels: in
//! several runs, alone and beside XNNPACK.
//!
//! `tests/golden/kernels` has the cases; `cargo xtask golden` makes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::distance;
use npyz::NpyFile;
use xnn_delegate::{Model, Runner};
use xnn_interp::{Entry, InterpOptions, Interpreter, TensorBuf};
use xnn_model::DType;
use xnn_model::op::{CustomOptions, Op, ReshapeOptions};
use xnn_testing::{FP32_PART as PART, GraphBuilder, Q8_STEPS as STEPS};

/// [`PART`] where inputs are quantized during the run, by XNNPACK with a zero point and by LiteRT's kernel without.
const DYNAMIC_PART: f64 = 0.03;

/// An array of a `.npy` file: little-endian elements in C order, strings as TFLite packs them.
struct Array {
    shape: Vec<usize>,
    dtype: DType,
    bytes: Vec<u8>,
}

impl Array {
    fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let npy = NpyFile::new(&file[..]).unwrap();
        let shape: Vec<usize> =
            npy.shape().iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let descr = npy.dtype().descr();
        let descr = descr.trim_matches('\'');
        if let Some(width) = descr.strip_prefix("|S") {
            let strings: Vec<&[u8]> = match width.parse().unwrap() {
                0 => vec![&[]; shape.iter().product()],
                width => npy.into_inner().chunks_exact(width).map(trimmed).collect(),
            };
            let packed = TensorBuf::from_strings(&shape, &strings).unwrap();
            return Self { shape, dtype: DType::String, bytes: packed.view().bytes.to_vec() };
        }
        let dtype = match descr {
            "<f4" => DType::F32,
            "<f8" => DType::F64,
            "<c8" => DType::Complex64,
            "<c16" => DType::Complex128,
            "|b1" => DType::Bool,
            "|i1" => DType::I8,
            "|u1" => DType::U8,
            "<i4" => DType::I32,
            "<i8" => DType::I64,
            other => panic!("{}: elements of type {other}", path.display()),
        };
        Self { shape, dtype, bytes: npy.into_inner().to_vec() }
    }

    fn buffer(&self) -> TensorBuf {
        TensorBuf::from_bytes(self.dtype, &self.shape, &self.bytes).unwrap()
    }
}

/// A string without the zeros that fill it up.
fn trimmed(string: &[u8]) -> &[u8] {
    let end = string.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &string[..end]
}

/// Elements as numbers, complex ones as two.
fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn decode<const N: usize>(bytes: &[u8], number: fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
    }
    match dtype {
        DType::F32 | DType::Complex64 => decode(bytes, |b| f32::from_le_bytes(b).into()),
        DType::F64 | DType::Complex128 => decode(bytes, f64::from_le_bytes),
        DType::I8 => decode(bytes, |b| i8::from_le_bytes(b).into()),
        DType::Bool | DType::U8 | DType::String => decode(bytes, |[byte]| byte.into()),
        DType::I32 => decode(bytes, |b| i32::from_le_bytes(b).into()),
        DType::I64 => decode(bytes, |b| i64::from_le_bytes(b) as f64),
        other => panic!("elements of type {other}"),
    }
}

struct Case {
    folder: PathBuf,
    id: String,
    runs: usize,
    inputs: usize,
    outputs: usize,
}

impl Case {
    fn model(&self) -> Model {
        Model::open(self.folder.join("model.tflite")).unwrap()
    }

    fn array(&self, kind: &str, run: usize, index: usize) -> Array {
        Array::read(&self.folder.join(format!("{kind}_{run}_{index}.npy")))
    }

    fn fed(&self, run: usize) -> Vec<Array> {
        (0..self.inputs).map(|index| self.array("in", run, index)).collect()
    }

    /// Compares an output, in which floats may be off by a part of the largest, and quantized numbers by so many steps.
    fn check(
        &self,
        [run, index]: [usize; 2],
        [part, steps]: [f64; 2],
        shape: &[usize],
        found: &[u8],
    ) {
        let expected = self.array("out", run, index);
        let place = format!("{}: run {run}, output {index}", self.id);
        assert_eq!(shape, expected.shape, "{place}");
        let [found, numbers] = [found, &expected.bytes].map(|bytes| numbers(expected.dtype, bytes));
        let largest = numbers.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        let allowed = match expected.dtype {
            DType::I8 => steps,
            DType::F32 | DType::F64 | DType::Complex64 | DType::Complex128 => part * largest,
            _ => 0.0,
        };
        let apart = distance(&found, &numbers);
        assert!(apart <= allowed, "{place}: {apart} apart, {allowed} is the most");
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/kernels");
    let index = fs::read(folder.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let case = |case: &serde_json::Value| {
        let count = |key: &str| usize::try_from(case[key].as_u64().unwrap()).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        Case {
            folder: folder.join(&id),
            id,
            runs: count("runs"),
            inputs: count("inputs"),
            outputs: count("outputs"),
        }
    };
    index["cases"].as_array().unwrap().iter().map(case).collect()
}

#[test]
fn kernels_agree_with_those_of_litert() {
    for case in cases() {
        let model = case.model();
        let mut interpreter =
            Interpreter::new(&model, Entry::Main, &InterpOptions::default()).unwrap();
        for run in 0..case.runs {
            for (index, input) in case.fed(run).iter().enumerate() {
                interpreter.set_input(index, input.buffer()).unwrap();
            }
            interpreter.run().unwrap_or_else(|error| panic!("{}: {error}", case.id));
            for index in 0..case.outputs {
                let output = interpreter.output(index).unwrap();
                case.check([run, index], [PART, 0.0], output.shape, output.bytes);
            }
        }
    }
}

#[test]
fn so_do_runners_with_xnnpack_beside_them() {
    for case in cases() {
        let mut runner = Runner::from_model(&case.model()).unwrap();
        let part = if case.id.ends_with("dynamic") { DYNAMIC_PART } else { PART };
        for run in 0..case.runs {
            let inputs = case.fed(run);
            let dims: Vec<_> =
                inputs.iter().map(|input| input.shape.as_slice()).enumerate().collect();
            runner.resize_inputs(&dims).unwrap_or_else(|error| panic!("{}: {error}", case.id));
            for (index, input) in inputs.iter().enumerate() {
                match input.buffer().view().strings() {
                    Some(strings) => runner.set_strings(index, &strings).unwrap(),
                    None => runner.input_bytes_mut(index).unwrap().copy_from_slice(&input.bytes),
                }
            }
            runner.run().unwrap_or_else(|error| panic!("{}: {error}", case.id));
            for index in 0..case.outputs {
                let shape = &runner.outputs()[index].dims;
                case.check([run, index], [part, STEPS], shape, runner.output_bytes(index).unwrap());
            }
        }
    }
}

#[test]
fn sparse_weights_go_to_xnnpack() {
    let is_sparse = |case: &Case| case.id.starts_with("sparse") || case.id.starts_with("densify");
    for case in cases().into_iter().filter(is_sparse) {
        let coverage = Runner::from_model(&case.model()).unwrap().coverage();
        assert_eq!(coverage.delegated, coverage.operators, "{}", case.id);
    }
}

#[test]
fn a_missing_operator_is_what_a_model_is_refused_for() {
    // The scalar that files state of what they do not know, and sizes that fit nothing behind.
    for stated in [&[][..], &[7], &[0]] {
        let mut graph = GraphBuilder::new("main");
        let x = graph.input("x", DType::F32, &[1, 6]);
        let features = graph.tensor("features", DType::F32, stated);
        let custom = CustomOptions { code: "Mystery".to_owned(), ..Default::default() };
        graph.op(Op::Custom(custom), &[x], &[features]);
        let rows = graph.tensor("rows", DType::F32, &[2, 3]);
        let options = ReshapeOptions { new_shape: Some(vec![2, 3]) };
        graph.op(Op::Reshape(options), &[features], &[rows]).output(rows);
        let error = Runner::from_model(&graph.build_model()).unwrap_err();
        let expected = "subgraph 0: operator 0 (Mystery): not supported: \
                        no kernel for the custom operator \"Mystery\"";
        assert_eq!(error.to_string(), expected);
    }
}
