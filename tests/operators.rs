//! Single operators against LiteRT's reference kernels, in process and through
//! a blob that is written and read again.
//!
//! The cases in `tests/golden/operators` are a sample of those that `cargo xtask golden --operators` makes
//! and tests; `XNN_OPERATOR_CASES` names another folder of such cases.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use common::{Array, Element, distance, numbers, span};
use xnn_delegate::{
    Blob, ConvertOptions, Decision, Delegation, Model, Program, Session, SessionOptions, Source,
    convert,
};
use xnn_model::op::Op;
use xnn_model::{Quantization, Subgraph, Tensor};

/// Quantization steps that an 8-bit result may be from the reference.
const STEPS: f64 = 1.0;
/// The part of the output's range that an fp32 result may be from the reference.
const PART: f64 = 1e-5;

/// A folder with `model.tflite`, `in_<i>.npy`, `out_<i>.npy` and, but in fp32, `real_<i>.npy`.
struct Case {
    folder: PathBuf,
    id: String,
    op: String,
    scheme: String,
    inputs: usize,
    outputs: usize,
}

enum Outcome {
    Passed,
    Left(String),
    Failed(String),
}

#[test]
fn operators_agree_with_the_reference_kernels() {
    let mut claimed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in cases() {
        let count = claimed.entry(format!("{} {}", case.op, case.scheme)).or_default();
        count.1 += 1;
        match case.check() {
            Outcome::Passed => count.0 += 1,
            Outcome::Left(why) => {
                reasons
                    .entry(format!("{} {} {why}", case.op, case.scheme))
                    .or_default()
                    .push(case.id);
            }
            Outcome::Failed(what) => {
                count.0 += 1;
                failures.push(format!("{}: {what}", case.id));
            }
        }
    }
    for (kind, (claimed, all)) in &claimed {
        println!("CLAIMED {claimed} of {all} {kind}");
    }
    for (why, ids) in &reasons {
        println!("LEFT {} {why} (e.g. {})", ids.len(), ids[0]);
    }
    for failure in &failures {
        println!("FAILED {failure}");
    }
    let (yes, all) = claimed.values().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    println!("{yes} of {all} claimed, {} failed", failures.len());
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}

fn cases() -> Vec<Case> {
    let folder = env::var_os("XNN_OPERATOR_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/operators"),
        PathBuf::from,
    );
    let index = fs::read(folder.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let text = |case: &serde_json::Value, key: &str| case[key].as_str().unwrap().to_owned();
    let count = |case: &serde_json::Value, key: &str| case[key].as_u64().unwrap() as usize;
    index["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| Case {
            folder: folder.join(text(case, "id")),
            id: text(case, "id"),
            op: text(case, "op"),
            scheme: text(case, "scheme"),
            inputs: count(case, "inputs"),
            outputs: count(case, "outputs"),
        })
        .collect()
}

impl Case {
    fn check(&self) -> Outcome {
        let model = Model::open(self.folder.join("model.tflite")).unwrap();
        let delegation =
            Delegation::new(model.main().unwrap(), &xnn_delegate::PartitionOptions::default())
                .unwrap();
        if let Some(Decision::Left(why)) = delegation.partitioning().decisions.first() {
            return Outcome::Left(format!("[{}] {why}", why.code()));
        }
        let program = match delegation.whole() {
            Ok(program) => program,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let inputs: Vec<Array> = (0..self.inputs).map(|i| self.array("in", i)).collect();
        let outputs = match run(program, &inputs) {
            Ok(outputs) => outputs,
            Err(error) => return Outcome::Failed(error),
        };
        let blob = match convert(&model, &Source::default(), &ConvertOptions::default()) {
            Ok(blob) => blob,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let again = Blob::from_bytes(blob)
            .map_err(|e| e.to_string())
            .and_then(|blob| run(&Program::from_blob(blob).map_err(|e| e.to_string())?, &inputs));
        match again {
            Ok(again) if again == outputs => {}
            Ok(_) => return Outcome::Failed("the blob computes something else".into()),
            Err(error) => return Outcome::Failed(format!("blob: {error}")),
        }
        if outputs.len() != self.outputs {
            return Outcome::Failed(format!("{} outputs, not {}", outputs.len(), self.outputs));
        }
        let wrong = outputs.iter().enumerate().find_map(|(i, output)| {
            self.compare(i, output, model.main().unwrap(), &inputs)
                .map(|e| format!("output {i}: {e}"))
        });
        wrong.map_or(Outcome::Passed, Outcome::Failed)
    }

    fn array(&self, kind: &str, index: usize) -> Array {
        Array::read(&self.folder.join(format!("{kind}_{index}.npy")))
    }

    /// What is wrong with an output.
    fn compare(
        &self,
        index: usize,
        ours: &[u8],
        graph: &Subgraph,
        inputs: &[Array],
    ) -> Option<String> {
        let reference = self.array("out", index);
        if ours.len() != reference.bytes.len() {
            return Some(format!("{} bytes, not {}", ours.len(), reference.bytes.len()));
        }
        if let Element::Other(_) = reference.element {
            return (ours != reference.bytes).then(|| "differs".into());
        }
        let ours = numbers(reference.element, ours);
        let (expected, most) = if self.scheme == "dynamic" {
            (self.array("real", index).numbers(), dynamic_bound(graph, inputs))
        } else if reference.element == Element::F32 {
            let expected = reference.numbers();
            let most = PART * span(&expected);
            (expected, most)
        } else {
            (reference.numbers(), STEPS)
        };
        let apart = distance(&ours, &expected);
        let far = ours.iter().zip(&expected).filter(|(a, b)| (*a - *b).abs() > most).count();
        (apart > most).then(|| {
            format!("{apart:.3e} away, {most:.3e} is the most; {far} of {} too far", ours.len())
        })
    }
}

fn run(program: &Program, inputs: &[Array]) -> Result<Vec<Vec<u8>>, String> {
    let mut session =
        Session::new(program, &SessionOptions::default()).map_err(|error| error.to_string())?;
    if session.inputs().len() != inputs.len() {
        return Err(format!("{} inputs, not {}", session.inputs().len(), inputs.len()));
    }
    for (index, input) in inputs.iter().enumerate() {
        let dims = &session.inputs()[index].dims;
        if *dims != input.shape {
            return Err(format!("input {index} is {dims:?}, not {:?}", input.shape));
        }
        session.input_mut(index).copy_from_slice(&input.bytes);
    }
    session.run().map_err(|error| error.to_string())?;
    Ok((0..session.outputs().len()).map(|index| session.output(index).to_vec()).collect())
}

/// How far quantizing the input to 8 bits can take a weighted sum from real
/// arithmetic: at most one step of the input for each weight.
fn dynamic_bound(graph: &Subgraph, inputs: &[Array]) -> f64 {
    let operator = &graph.operators[0];
    let weights = graph.tensor(operator.inputs[1].unwrap());
    let depthwise = matches!(operator.op, Op::DepthwiseConv2d { .. });
    let channels = weights.shape.as_ref().unwrap()[if depthwise { 3 } else { 0 }];
    let mut sums = vec![0.0; channels];
    let values = dequantized(weights);
    let per_channel = values.len() / channels;
    for (at, value) in values.iter().enumerate() {
        sums[if depthwise { at % channels } else { at / per_channel }] += value.abs();
    }
    let largest = sums.into_iter().fold(0.0, f64::max);
    let step = span(&inputs[0].numbers()) / 255.0;
    step * largest
}

/// Symmetric weights as real numbers.
fn dequantized(weights: &Tensor) -> Vec<f64> {
    let shape = weights.shape.as_ref().unwrap();
    let steps = weights.data.as_ref().unwrap().iter().map(|byte| f64::from(byte.cast_signed()));
    match weights.quantization.as_ref().unwrap() {
        Quantization::PerTensor { scale, .. } => steps.map(|q| q * f64::from(*scale)).collect(),
        Quantization::PerAxis { scales, axis, .. } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let scale = |at: usize| f64::from(scales[at / inner % scales.len()]);
            steps.enumerate().map(|(at, q)| q * scale(at)).collect()
        }
        other => panic!("{other:?}"),
    }
}
