//! Payloads written by ExecuTorch, compared with the outputs of its own runtime.
//!
//! ExecuTorch 0.5.0 uses the same revision of XNNPACK, so outputs must be the same bits. For
//! blockwise int4 weights, a kernel of that revision is wrong, and the expected output is that of
//! 1.5.1, which has a newer revision. A program may have several payloads with operators between
//! them. If these only change shapes, the next payload gets the output of the previous one;
//! `cumsum` is computed here. After other operators, payloads only have to compile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use npyz::NpyFile;
use serde_json::Value as Json;
use xnn_format::{
    Blob, ConstantFolder, Datatype, Graph, NodeOp, Quantization, ReadOptions, UnaryOp,
};
use xnn_runtime::{Program, Session, SessionOptions};
use xnnpack::has_half_precision;

#[test]
fn executorch_0_5_0_bit_for_bit() {
    let Some(folder) = xnn_testing::shared_dir("interop/et_0.5.0") else { return };
    run_all(&folder, |graph| {
        // On AVX512, sums have another order.
        let absolute = if has_narrow_linear_layer(graph) { 1e-7 } else { 0.0 };
        Tolerance { absolute, ..Tolerance::exact(graph) }
    });
}

#[test]
fn executorch_1_5_1_within_a_step() {
    let Some(folder) = xnn_testing::shared_dir("interop/et_1.5.1") else { return };
    run_all(&folder, |graph| Tolerance { absolute: 1e-5, steps: 1.0, ..Tolerance::exact(graph) });
}

/// Whether a linear fp32 layer has so few outputs that `xnnpack-sys` uses another tile for it.
fn has_narrow_linear_layer(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| match node.op {
        NodeOp::FullyConnected { filter, .. } => {
            let filter = &graph.values[filter.index()];
            filter.datatype == Datatype::F32 && (8..32).contains(&filter.dims[0])
        }
        _ => false,
    })
}

/// Tolerance for differences from ExecuTorch's results.
struct Tolerance {
    absolute: f32,
    /// Additional tolerance, in units of `step`.
    steps: f32,
    step: Step,
}

/// Rounding of a graph's results.
enum Step {
    /// fp32.
    Fine,
    /// Multiples of a scale.
    Scale(f32),
    /// This number of mantissa bits.
    Mantissa(i32),
}

impl Tolerance {
    fn exact(graph: &Graph) -> Self {
        Self { absolute: 0.0, steps: 0.0, step: Step::of(graph) }
    }

    /// The outputs are from x86-64, where sums are fp32. XNNPACK's microkernels for ARM add in
    /// other orders, and fp16 values in half precision.
    fn on_this_processor(self) -> Self {
        if cfg!(target_arch = "x86_64") {
            return self;
        }
        // Sums of about 1 that may cancel, and are rounded to 2^-11 of their size about ten times.
        let absolute = if matches!(self.step, Step::Mantissa(_)) { 2f32.powi(-8) } else { 1e-5 };
        Self { absolute: self.absolute.max(absolute), steps: self.steps.max(1.0), ..self }
    }

    fn allows(&self, got: f32, expected: f32) -> bool {
        let step = match self.step {
            Step::Fine => 0.0,
            Step::Scale(scale) => scale,
            Step::Mantissa(bits) => expected.abs() * 2f32.powi(-bits),
        };
        // A rounding error in addition to a whole step is ignored.
        (got - expected).abs() <= self.absolute + self.steps * step * 1.0001
    }
}

impl Step {
    fn of(graph: &Graph) -> Self {
        let output = graph.outputs[0];
        let converted = graph.nodes.iter().find_map(|node| match node.op {
            NodeOp::Unary { op: UnaryOp::Convert, input, output: to } if to == output => {
                Some(input)
            }
            _ => None,
        });
        match graph.value(converted.unwrap_or(output)).unwrap() {
            value if value.datatype == Datatype::F16 => Self::Mantissa(10),
            value if value.datatype == Datatype::Bf16 => Self::Mantissa(7),
            value => match value.quantization {
                Quantization::PerTensor { scale, .. } => Self::Scale(scale),
                _ => Self::Fine,
            },
        }
    }
}

/// A tensor of an `.npy` file; fp16 is converted to fp32.
#[derive(Clone)]
struct Tensor {
    dims: Vec<usize>,
    elements: Vec<f32>,
}

fn run_all(folder: &Path, tolerance: impl Fn(&Graph) -> Tolerance) {
    let mut compared = 0;
    let mut infos = xnn_testing::files_below(folder, &["json"]);
    infos.retain(|path| path.ends_with("info.json"));
    assert!(!infos.is_empty(), "no case in {}", folder.display());
    for info in infos {
        let case = Case::read(info.parent().unwrap());
        for set in 0..case.sets {
            for named in [true, false] {
                compared += case.run(set, named, &tolerance);
            }
        }
    }
    assert!(compared > 0, "no output was compared in {}", folder.display());
}

struct Case {
    folder: PathBuf,
    name: String,
    calls: Vec<Json>,
    /// Operators between the payloads.
    outside: Vec<String>,
    /// Sets of inputs; all but the first have a prefix.
    sets: usize,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let info: Json =
            serde_json::from_reader(File::open(folder.join("info.json")).unwrap()).unwrap();
        let array = |key: &str| info[key].as_array().cloned().unwrap_or_default();
        Self {
            folder: folder.to_owned(),
            name: info["case"].as_str().unwrap().to_owned(),
            calls: array("delegate_calls"),
            outside: array("non_delegated").iter().map(ToString::to_string).collect(),
            sets: array("sets").len().max(1),
        }
    }

    /// Runs all payloads in call order. Returns the number of compared outputs.
    fn run(&self, set: usize, named: bool, tolerance: &impl Fn(&Graph) -> Tolerance) -> usize {
        let mut compared = 0;
        let mut known: HashMap<String, Tensor> = HashMap::new();
        let mut last = None;
        for (index, call) in self.calls.iter().enumerate() {
            let program = Program::from_blob(self.payload(index, named)).unwrap();
            let is_half = matches!(Step::of(program.graph()), Step::Mantissa(10));
            if is_half && !has_half_precision() {
                program.check_compiles().expect_err("the processor has no such arithmetic");
                return compared;
            }
            program.check_compiles().unwrap();
            let arguments: Option<Vec<Tensor>> = names(&call["args"])
                .map(|name| match name.strip_prefix("node:") {
                    None => Some(self.tensor(name, set)),
                    Some(node) => known.get(node).cloned().or_else(|| self.outside(last.as_ref()?)),
                })
                .collect();
            let Some(arguments) = arguments else { continue };
            let results = run(&program, &arguments);
            let names: Vec<&str> = names(&call["outs"]).collect();
            assert_eq!(names.len(), results.len(), "{}: outputs", self.name);
            let tolerance = tolerance(program.graph()).on_this_processor();
            for (name, result) in names.iter().zip(&results) {
                match name.strip_prefix("node:") {
                    Some(node) => drop(known.insert(node.to_owned(), result.clone())),
                    None => {
                        self.compare(name, result, &self.tensor(name, set), &tolerance);
                        compared += 1;
                    }
                }
            }
            last = results.into_iter().next();
        }
        compared
    }

    /// The payload of a call, with its constants inside, or from their folder if ExecuTorch stores
    /// them separately.
    fn payload(&self, index: usize, named: bool) -> Blob {
        let number = if self.calls.len() > 1 { format!("_{index}") } else { String::new() };
        let inline = self.folder.join(format!("payload{number}_inline.xnn"));
        if !named && inline.exists() {
            return Blob::open(inline).unwrap();
        }
        let constants = ConstantFolder::new(self.folder.join(format!("named_data{number}")));
        let options = ReadOptions { constants: Some(&constants), ..ReadOptions::default() };
        Blob::open_with(self.folder.join(format!("payload{number}.xnn")), &options).unwrap()
    }

    fn tensor(&self, name: &str, set: usize) -> Tensor {
        let prefixed = match set {
            0 => name.to_owned(),
            set => format!("s{set}_{name}"),
        };
        let path = self.folder.join(prefixed);
        let file = || NpyFile::new(BufReader::new(File::open(&path).unwrap())).unwrap();
        let dims = file().shape().iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let elements = match file().dtype().descr().trim_matches('\'') {
            "<f2" => file().into_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect(),
            _ => file().into_vec::<f32>().unwrap(),
        };
        Tensor { dims, elements }
    }

    /// Result of the program's operators on a payload's output, if known.
    fn outside(&self, result: &Tensor) -> Option<Tensor> {
        let all = |names: &[&str]| {
            self.outside.iter().all(|outside| names.iter().any(|name| outside.contains(name)))
        };
        if all(&["view_copy", "clone"]) {
            return Some(result.clone());
        }
        all(&["cumsum"]).then(|| {
            let mut sums = result.clone();
            for row in sums.elements.chunks_mut(*result.dims.last().unwrap_or(&1)) {
                for at in 1..row.len() {
                    row[at] += row[at - 1];
                }
            }
            sums
        })
    }

    fn compare(&self, name: &str, got: &Tensor, expected: &Tensor, tolerance: &Tolerance) {
        assert_eq!(got.dims, expected.dims, "{}: shape of {name}", self.name);
        for (index, (&got, &expected)) in got.elements.iter().zip(&expected.elements).enumerate() {
            assert!(
                tolerance.allows(got, expected),
                "{}: {name}[{index}] is {got}, not {expected}",
                self.name
            );
        }
    }
}

fn names(list: &Json) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str)
}

fn run(program: &Program, arguments: &[Tensor]) -> Vec<Tensor> {
    let mut session = Session::new(program, &SessionOptions::default()).unwrap();
    assert_eq!(session.inputs().len(), arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let info = &session.inputs()[index];
        // The input is correct if operators only changed the shape of the previous payload's
        // output.
        if info.dims.iter().product::<usize>() != argument.elements.len() {
            session.resize(index, &argument.dims).unwrap();
        }
    }
    session.reshape().unwrap();
    for (index, argument) in arguments.iter().enumerate() {
        match session.inputs()[index].datatype {
            Datatype::F32 => {
                session.input_as_mut(index).unwrap().copy_from_slice(&argument.elements);
            }
            datatype => {
                let bits: Vec<u16> =
                    argument.elements.iter().map(|&element| narrow(datatype, element)).collect();
                session.input_as_mut(index).unwrap().copy_from_slice(&bits);
            }
        }
    }
    session.run().unwrap();
    let outputs = session.outputs().iter().enumerate();
    outputs
        .map(|(index, info)| Tensor {
            dims: info.dims.clone(),
            elements: match info.datatype {
                Datatype::F32 => session.output_as(index).unwrap().to_vec(),
                datatype => session
                    .output_as::<u16>(index)
                    .unwrap()
                    .iter()
                    .map(|&bits| widen(datatype, bits))
                    .collect(),
            },
        })
        .collect()
}

fn narrow(datatype: Datatype, element: f32) -> u16 {
    match datatype {
        Datatype::F16 => f16::from_f32(element).to_bits(),
        Datatype::Bf16 => bf16::from_f32(element).to_bits(),
        other => panic!("a payload takes {}", other.name()),
    }
}

fn widen(datatype: Datatype, bits: u16) -> f32 {
    match datatype {
        Datatype::F16 => f16::from_bits(bits).to_f32(),
        Datatype::Bf16 => bf16::from_bits(bits).to_f32(),
        other => panic!("a payload gives {}", other.name()),
    }
}
