//! Single operators against LiteRT's reference kernels, in process and through
//! a blob that is written and read again.
//!
//! `tests/golden/operators` has one case for each operator and scheme; `XNN_OPERATOR_CASES` names
//! another folder of cases. `cargo xtask golden --operators COUNT` makes and tests any number of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cases;
mod common;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, ensure};
use cases::{CASES, Case, cases, dynamic_bound};
use common::{Array, Element, distance, numbers, span};
use xnn_delegate::{
    Blob, ConvertOptions, Decision, Delegation, Model, PartitionOptions, Program, Session,
    SessionOptions, Source, convert,
};
use xnn_model::Subgraph;
use xnn_testing::assert_golden;

/// Quantization steps that an 8-bit result may be from the reference.
const STEPS: f64 = 1.0;
/// The part of the output's range that an fp32 result may be from the reference.
const PART: f64 = 1e-5;

enum Outcome {
    Agrees,
    /// Not delegated, for this reason.
    Left(String),
    Failed(String),
}

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
                _ if self.scheme == "dynamic" => (
                    self.array("real", index).numbers(),
                    dynamic_bound(graph, &self.array("in", 0).numbers()),
                ),
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
