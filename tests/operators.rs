//! Single operators against LiteRT's reference kernels, in process and through
//! a blob that is written and read again.
//!
//! `tests/golden/operators` has one case for each operator and scheme; `XNN_OPERATOR_CASES` names
//! another folder of cases. `cargo xtask golden --operators COUNT` makes and tests any number of them, with
//! `--special` such with NaN, infinities and the like among the inputs, on our reference kernels, too.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cases;
mod common;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use cases::{CASES, Case, cases, dynamic_bound};
use common::{Array, Element, distance, numbers, span};
use xnn_delegate::blob::Blob;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::lower::{Decision, Delegation};
use xnn_delegate::runtime::{Program, Session};
use xnn_delegate::verify::why_undefined;
use xnn_delegate::{ConvertOptions, Model, PartitionOptions, SessionOptions, Source, convert};
use xnn_model::Subgraph;
use xnn_testing::{FP32_PART as PART, Q8_STEPS as STEPS, assert_golden};

const LEAST_NORMAL: f64 = f32::MIN_POSITIVE as f64;

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
        if let Some(Decision::NotDelegated(why)) = delegation.partitioning().decisions.first() {
            return Outcome::Left(format!("[{}] {why}", why.code()));
        }
        if self.is_special && self.is_undefined(graph) {
            return Outcome::Left("nobody defines the result".into());
        }
        let agrees = || {
            if self.is_special {
                let outputs = self.interpret(&model).context("our reference kernels")?;
                self.compare(graph, &outputs).context("our reference kernels")?;
            }
            self.compare(graph, &self.compute(&model, &delegation)?)
        };
        match agrees() {
            Ok(()) => Outcome::Agrees,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn is_undefined(&self, graph: &Subgraph) -> bool {
        let operands: Vec<f32> = self
            .inputs()
            .iter()
            .filter(|array| array.element == Element::F32)
            .flat_map(Array::numbers)
            .map(|number| number as f32)
            .collect();
        why_undefined(graph, &graph.operators[0], operands.iter().copied()).is_some()
    }

    /// The outputs of our reference kernels.
    fn interpret(&self, model: &Model) -> Result<Vec<Vec<u8>>> {
        let mut interpreter = Interpreter::new(model, Entry::Main, &InterpOptions::default())?;
        for (position, input) in self.inputs().iter().enumerate() {
            interpreter.input_mut(position)?.bytes.copy_from_slice(&input.bytes);
        }
        interpreter.run()?;
        (0..self.outputs).map(|position| Ok(interpreter.output(position)?.bytes.to_vec())).collect()
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
                // A denormal is as good as 0.
                Element::F32 => {
                    (reference.numbers(), PART * span(&reference.numbers()) + LEAST_NORMAL)
                }
                Element::I8 | Element::U8 => (reference.numbers(), STEPS),
            };
            let found = numbers(reference.element, output);
            let expected = if self.is_special { unbounded(&found, expected) } else { expected };
            let apart = distance(&found, &expected);
            ensure!(apart <= most, "output {index}: {apart:.3e} away, {most:.3e} is the most");
        }
        Ok(())
    }
}

/// Expected values, where infinities that were found replace the largest finite value: in places,
/// interpreters return this value instead of an infinity.
fn unbounded(found: &[f64], expected: Vec<f64>) -> Vec<f64> {
    let largest = f64::from(f32::MAX);
    let is_bound =
        |found: f64, expected| found.is_infinite() && expected == largest.copysign(found);
    let pairs = found.iter().zip(expected);
    pairs
        .map(|(&found, expected)| if is_bound(found, expected) { found } else { expected })
        .collect()
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
