//! The process that tries mutants, and may die of one.

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use xnn_delegate::blob::CUSTOM_OPERATOR;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::{DType, Model, Runner};
use xnn_format::{Blob, ConstantFolder, Datatype, ErrorKind, Quantization, ReadOptions, ValueId};
use xnn_model::op::CustomOptions;
use xnn_model::{Op, TensorId};
use xnn_runtime::{Program, Session, SessionOptions};
use xnn_testing::GraphBuilder;

use crate::{Kind, Seed};

/// Which mutants to try, `first..end`; makes the test a worker.
pub const RANGE: &str = "XNN_MUTANTS_RANGE";

/// How a mutant ended.
pub enum Outcome {
    /// With outputs.
    Ran,
    /// Header, identifier or flatbuffer is damaged.
    Container,
    /// Refused, with node or value.
    Named,
    /// Refused for what is the whole graph's.
    Graph(String),
}

/// Tries mutants, with a line before and one after each.
pub fn run(seeds: &[Seed], range: &str) {
    let (first, end) = range.split_once("..").unwrap();
    for number in first.parse().unwrap()..end.parse::<usize>().unwrap() {
        let (seed, bytes, what) = Seed::mutant(seeds, number);
        say(&format!("begin {number} {}: {what}", seed.path.display()));
        // From here on the peak is this mutant's, where the system lets it be set back.
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = resident_kb("VmRSS:");
        let start = Instant::now();
        let (outcome, reason) = match attempt(seed, bytes) {
            Outcome::Ran => ("ran", String::new()),
            Outcome::Container => ("container", String::new()),
            Outcome::Named => ("named", String::new()),
            Outcome::Graph(reason) => ("graph", reason),
        };
        let (time, memory) = (start.elapsed().as_millis(), resident_kb("VmRSS:"));
        let taken = resident_kb("VmHWM:").saturating_sub(before);
        say(&format!("end {outcome} {time} {memory} {taken} {reason}"));
    }
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn attempt(seed: &Seed, bytes: Vec<u8>) -> Outcome {
    match seed.kind {
        Kind::Graph => {}
        Kind::Program => return attempt_program(bytes),
        Kind::Model(_) => return attempt_model(bytes),
    }
    let name = seed.path.file_stem().unwrap().to_str().unwrap();
    let folder = name.replace("_inline", "").replace("payload", "named_data");
    let constants = ConstantFolder::new(seed.path.with_file_name(folder));
    let options = ReadOptions { constants: Some(&constants), ..ReadOptions::default() };
    attempt_inside(seed, &bytes);
    match Blob::from_bytes_with(bytes, &options) {
        Ok(blob) => run_blob(blob),
        Err(error) => refused(&error),
    }
}

/// The payload as an operator of a model: refused with the operator, or run.
fn attempt_inside(seed: &Seed, bytes: &[u8]) {
    // Constants elsewhere are nothing that a model has.
    let Ok(undamaged) = Blob::from_bytes(seed.bytes.clone()) else { return };
    let undamaged = undamaged.graph();
    let mut graph = GraphBuilder::new("main");
    let mut tensors = |values: &[ValueId]| -> Vec<TensorId> {
        let tensors = values.iter().map(|&id| {
            let value = undamaged.value(id).unwrap();
            let (dtype, quantization) = match value.datatype {
                Datatype::F32 => (DType::F32, None),
                Datatype::F16 => (DType::F16, None),
                Datatype::QInt8 => (DType::I8, Some(&value.quantization)),
                Datatype::QUint8 => (DType::U8, Some(&value.quantization)),
                _ => (DType::I32, None),
            };
            let tensor = graph.tensor("", dtype, &value.dims);
            if let Some(&Quantization::PerTensor { scale, zero_point }) = quantization {
                graph.quantize(tensor, scale, zero_point.into());
            }
            tensor
        });
        tensors.collect()
    };
    let (inputs, outputs) = (tensors(&undamaged.inputs), tensors(&undamaged.outputs));
    let options = bytes.to_vec().into();
    let custom = CustomOptions { code: CUSTOM_OPERATOR.into(), options };
    graph.op(Op::Custom(custom), &inputs, &outputs);
    let mut main = graph.build();
    (main.inputs, main.outputs) = (inputs, outputs);
    let model = Model::from(main);
    match Runner::from_model(&model) {
        // An error, or a result.
        Ok(mut runner) => drop(run_once(&mut runner)),
        Err(error) => assert!(error.to_string().contains("operator 0 (XNNGraph)"), "{error}"),
    }
}

/// The first delegate that is refused, or the last one's end.
fn attempt_program(bytes: Vec<u8>) -> Outcome {
    let Ok(program) = xnn_pte::PteProgram::from_bytes(bytes) else { return Outcome::Container };
    let mut outcome = Outcome::Ran;
    for method in program.methods() {
        for delegate in &method.delegates {
            outcome = match program.xnnpack_graph(method, delegate) {
                Ok(graph) => run_blob(graph.blob),
                Err(error) => match error.kind() {
                    xnn_pte::ErrorKind::Graph(error) => refused(error),
                    _ => Outcome::Container,
                },
            };
            if !matches!(outcome, Outcome::Ran) {
                return outcome;
            }
        }
    }
    outcome
}

/// A model on XNNPACK and on reference kernels alone.
fn attempt_model(bytes: Vec<u8>) -> Outcome {
    let Ok(model) = Model::from_bytes(bytes) else { return Outcome::Container };
    let kernels_alone = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).and_then(
        |mut interpreter| {
            for index in 0..interpreter.inputs() {
                if let Ok(input) = interpreter.input_mut(index) {
                    input.bytes.fill(0x3c);
                }
            }
            interpreter.run()
        },
    );
    let runner = Runner::from_model(&model);
    let ran = runner.and_then(|mut runner| run_once(&mut runner));
    match (kernels_alone, ran) {
        (Ok(()), Ok(())) => Outcome::Ran,
        _ => Outcome::Named,
    }
}

fn run_once(runner: &mut Runner) -> Result<(), xnn_delegate::Error> {
    for index in 0..runner.inputs().len() {
        if let Ok(input) = runner.input_bytes_mut(index) {
            input.fill(0x3c);
        }
    }
    runner.run()
}

fn run_blob(blob: Blob) -> Outcome {
    let result = Program::from_blob(blob).and_then(|program| {
        let mut session = Session::new(&program, &SessionOptions::default())?;
        for index in 0..session.inputs().len() {
            session.input_mut(index).fill(0x3c);
        }
        session.run()
    });
    match result {
        Ok(()) => Outcome::Ran,
        Err(error) if error.node().is_some() => Outcome::Named,
        Err(error) => Outcome::Graph(error.to_string()),
    }
}

fn refused(error: &xnn_format::Error) -> Outcome {
    let place = error.place();
    match error.kind() {
        _ if place.node.is_some() || place.value.is_some() => Outcome::Named,
        ErrorKind::TooShort(_)
        | ErrorKind::Identifier(_)
        | ErrorKind::Header(_)
        | ErrorKind::Flatbuffer(_) => Outcome::Container,
        other => Outcome::Graph(other.to_string()),
    }
}

/// A size in `/proc/self/status` on Linux, in kB; 0 on other systems.
fn resident_kb(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
