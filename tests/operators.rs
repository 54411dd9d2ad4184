//! Single operators against LiteRT's reference kernels, in process and through
//! a blob that is written and read again.
//!
//! `tests/golden/operators` has one case for each operator and scheme; `XNN_OPERATOR_CASES` names
//! another folder of cases. `cargo xtask golden --operators COUNT` makes and tests any number of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Result, ensure};
use common::{Array, Element, dequantized, distance, numbers, span};
use xnn_delegate::{
    Blob, ConvertOptions, Decision, Delegation, Model, PartitionOptions, Program, Session,
    SessionOptions, Source, convert,
};
use xnn_model::Subgraph;
use xnn_model::op::Op;
use xnn_testing::assert_golden;

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
    Agrees,
    /// Not delegated, for this reason.
    Left(String),
    Failed(String),
}

/// Names another folder of cases than the one in the repository.
const CASES: &str = "XNN_OPERATOR_CASES";

#[test]
fn operators_agree_with_the_reference_kernels() {
    let cases = cases();
    let mut claimed = 0;
    let mut left: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in &cases {
        match case.check() {
            Outcome::Agrees => claimed += 1,
            Outcome::Left(why) => {
                left.entry(format!("{} {}: {why}", case.op, case.scheme))
                    .or_default()
                    .push(case.id.clone());
            }
            Outcome::Failed(what) => failures.push(format!("{}: {what}", case.id)),
        }
    }
    let mut report = format!("{claimed} of {} cases delegated; left:\n", cases.len());
    for (why, ids) in &left {
        writeln!(report, "{why} ({})", ids.join(", ")).unwrap();
    }
    print!("{report}");
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
    if env::var_os(CASES).is_none() {
        assert_golden(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/operators.txt"),
            &report,
        );
    }
}

fn cases() -> Vec<Case> {
    let folder = env::var_os(CASES).map_or_else(
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
        let graph = model.main().unwrap();
        let delegation = Delegation::new(graph, &PartitionOptions::default()).unwrap();
        if let Some(Decision::Left(why)) = delegation.partitioning().decisions.first() {
            return Outcome::Left(format!("[{}] {why}", why.code()));
        }
        match self.compute(&model, &delegation).and_then(|outputs| self.compare(graph, &outputs)) {
            Ok(()) => Outcome::Agrees,
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    /// The outputs, which program and blob agree on.
    fn compute(&self, model: &Model, delegation: &Delegation) -> Result<Vec<Vec<u8>>> {
        let inputs = self.inputs();
        let outputs = run(delegation.whole()?, &inputs)?;
        let blob = convert(model, &Source::default(), &ConvertOptions::default())?.into_bytes();
        let again = run(&Program::from_blob(Blob::from_bytes(blob)?)?, &inputs)?;
        ensure!(again == outputs, "the blob computes something else");
        Ok(outputs)
    }

    fn inputs(&self) -> Vec<Array> {
        (0..self.inputs).map(|index| self.array("in", index)).collect()
    }

    fn array(&self, kind: &str, index: usize) -> Array {
        Array::read(&self.folder.join(format!("{kind}_{index}.npy")))
    }

    fn compare(&self, graph: &Subgraph, outputs: &[Vec<u8>]) -> Result<()> {
        ensure!(outputs.len() == self.outputs, "{} outputs, not {}", outputs.len(), self.outputs);
        for (index, output) in outputs.iter().enumerate() {
            let reference = self.array("out", index);
            ensure!(output.len() == reference.bytes.len(), "output {index} has another size");
            let (expected, most) = match reference.element {
                _ if self.scheme == "dynamic" => {
                    (self.array("real", index).numbers(), dynamic_bound(graph, &self.inputs()))
                }
                Element::F32 => (reference.numbers(), PART * span(&reference.numbers())),
                Element::I8 | Element::U8 => (reference.numbers(), STEPS),
            };
            let apart = distance(&numbers(reference.element, output), &expected);
            ensure!(apart <= most, "output {index}: {apart:.3e} away, {most:.3e} is the most");
        }
        Ok(())
    }
}

fn run(program: &Program, inputs: &[Array]) -> Result<Vec<Vec<u8>>> {
    let mut session = Session::new(program, &SessionOptions::default())?;
    ensure!(session.inputs().len() == inputs.len(), "{} inputs", session.inputs().len());
    for (index, input) in inputs.iter().enumerate() {
        let dims = &session.inputs()[index].dims;
        ensure!(*dims == input.shape, "input {index} is {dims:?}, not {:?}", input.shape);
        session.input_mut(index).copy_from_slice(&input.bytes);
    }
    session.run()?;
    Ok((0..session.outputs().len()).map(|index| session.output(index).to_vec()).collect())
}

/// How far quantizing the input to 8 bits can take a weighted sum from real
/// arithmetic: at most half a step of the input for each weight.
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
    step * largest / 2.0
}
