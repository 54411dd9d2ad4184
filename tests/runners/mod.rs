//! One graph, three runners: the reference kernels, XNNPACK in process, and XNNPACK through a blob.

#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::HashMap;

use xnn_delegate::blob::Blob;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::lower::{Decision, Delegation};
use xnn_delegate::model::Subgraph;
use xnn_delegate::runtime::{Program, Session};
use xnn_delegate::{ConvertOptions, PartitionOptions, SessionOptions};
use xnn_format::WriteOptions;
use xnn_model::op::{
    Activation, Conv2dOptions, DepthwiseConv2dOptions, FullyConnectedOptions, Op,
    TransposeConvOptions,
};
use xnn_model::{DType, Model, Operator, TensorId};
use xnn_testing::le_bytes;

use crate::common::real_numbers;

/// Part of the output's range that an fp32 result may be from the reference.
pub const PART: f32 = xnn_testing::FP32_PART as f32;
/// Steps that an 8-bit result may be from the reference.
pub const STEPS: i32 = xnn_testing::Q8_STEPS as i32;

/// Elements of tensors, little endian.
pub type Values = HashMap<TensorId, Vec<u8>>;

/// Outcome of running a model on XNNPACK.
#[derive(Debug)]
pub enum Outcome {
    Agrees,
    /// Not delegated: code and sentence of the reason.
    Left(&'static str, String),
    /// It runs, but not on the reference kernels, for this reason.
    Refused(String),
}

/// Runs a model on XNNPACK, in process and through a blob: the same bits, and what the reference
/// gives. fp32 results may be further away by `slack`.
pub fn check(
    graph: &Subgraph,
    values: &Values,
    options: &PartitionOptions,
    reference: Result<Values, String>,
    slack: f32,
) -> Result<Outcome, String> {
    let delegation = Delegation::new(&graph.clone().into(), options)
        .map_err(|error| format!("no decisions: {error}"))?;
    for decision in &delegation.partitioning().decisions {
        if let Decision::NotDelegated(why) = decision {
            return Ok(Outcome::Left(why.code(), why.to_string()));
        }
    }
    let program = delegation.whole().map_err(|error| error.to_string())?;
    let results = run(program, &graph.inputs, &graph.outputs, values, 1)?;
    let again = run(&through_blob(program)?, &graph.inputs, &graph.outputs, values, 1)?;
    if again != results {
        return Err("the blob computes something else".into());
    }
    let expected = match reference {
        Ok(expected) => expected,
        Err(error) => return Ok(Outcome::Refused(error)),
    };
    for (id, expected) in expected {
        compare(graph.tensor(id).dtype, &results[&id], &expected, slack)?;
    }
    Ok(Outcome::Agrees)
}

/// The outputs that the reference kernels compute.
pub fn run_reference(graph: &Subgraph, values: &Values) -> Result<Values, String> {
    let model = Model::from(graph.clone());
    let text = |error: xnn_interp::Error| error.to_string();
    let mut interpreter =
        Interpreter::new(&model, Entry::Main, &InterpOptions::default()).map_err(text)?;
    for (position, id) in graph.inputs.iter().enumerate() {
        interpreter.input_mut(position).map_err(text)?.bytes.copy_from_slice(&values[id]);
    }
    interpreter.run().map_err(text)?;
    let outputs = graph.outputs.iter().enumerate();
    outputs
        .map(|(position, &id)| Ok((id, interpreter.output(position).map_err(text)?.bytes.to_vec())))
        .collect()
}

/// The outputs that XNNPACK computes.
pub fn run(
    program: &Program,
    inputs: &[TensorId],
    outputs: &[TensorId],
    values: &Values,
    threads: usize,
) -> Result<Values, String> {
    let options = SessionOptions { threads, threads_by_work: false, ..SessionOptions::default() };
    let mut session =
        Session::new(program, &options).map_err(|error| format!("claimed, but: {error}"))?;
    for (position, id) in inputs.iter().enumerate() {
        session.input_mut(position).copy_from_slice(&values[id]);
    }
    session.run().map_err(|error| format!("claimed, but: {error}"))?;
    let outputs = outputs.iter().enumerate();
    Ok(outputs.map(|(position, &id)| (id, session.output(position).to_vec())).collect())
}

/// The program as it is written to a blob and read again.
pub fn through_blob(program: &Program) -> Result<Program, String> {
    let options = WriteOptions::new(ConvertOptions::default().compat);
    let bytes = xnn_format::write(program.graph(), &options).map_err(|error| error.to_string())?;
    let blob = Blob::from_bytes(bytes).map_err(|error| error.to_string())?;
    Program::from_blob(blob).map_err(|error| error.to_string())
}

/// fp32 results may be further away by `slack`.
pub fn compare(dtype: DType, ours: &[u8], theirs: &[u8], slack: f32) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} bytes, not {}", ours.len(), theirs.len()));
    }
    match dtype {
        DType::F32 => {
            let (a, b) = (floats(ours), floats(theirs));
            // A denormal is as good as 0.
            let most = PART * magnitude(theirs) + slack + f32::MIN_POSITIVE;
            let agree = |a: f32, b: f32| match (a.is_finite(), b.is_finite()) {
                (true, true) => a == b || (a - b).abs() <= most,
                // Interpreters take the largest number for the bound that RELU does not have.
                _ => {
                    a == b
                        || a.is_nan() && b.is_nan()
                        || a.is_infinite() && b == f32::MAX.copysign(a)
                }
            };
            match a.iter().zip(&b).position(|(a, b)| !agree(*a, *b)) {
                None => Ok(()),
                Some(at) => {
                    Err(format!("element {at} is {}, not {} (within {most:e})", a[at], b[at]))
                }
            }
        }
        DType::I8 | DType::U8 => {
            let number = |byte: u8| {
                if dtype == DType::I8 { i32::from(byte.cast_signed()) } else { i32::from(byte) }
            };
            let apart = |(a, b): (&u8, &u8)| (number(*a) - number(*b)).abs();
            match ours.iter().zip(theirs).position(|pair| apart(pair) > STEPS) {
                None => Ok(()),
                Some(at) => {
                    Err(format!("element {at} is {}, not {}", number(ours[at]), number(theirs[at])))
                }
            }
        }
        _ if ours == theirs => Ok(()),
        _ => Err("differs".into()),
    }
}

/// Returns the same operators on the real values that quantized tensors stand for, with the real
/// values of the inputs.
pub fn in_real_numbers(graph: &Subgraph, values: &Values) -> (Subgraph, Values) {
    let mut real = graph.clone();
    let mut inputs = values.clone();
    for (id, tensor) in real.tensors.iter_mut().enumerate() {
        let stored = graph.tensor(id);
        if stored.quantization.is_none() {
            continue;
        }
        let decode =
            |bytes: &[u8]| le_bytes(&real_numbers(stored, bytes), |it| (*it as f32).to_le_bytes());
        tensor.data = stored.data.as_deref().map(|bytes| decode(bytes).into());
        tensor.dtype = DType::F32;
        tensor.quantization = None;
        if let Some(bytes) = inputs.get_mut(&id) {
            *bytes = decode(bytes);
        }
    }
    (real, inputs)
}

/// How much further fp32 results may be from the reference, where their own magnitude does not tell that
/// of what was rounded: in sums that cancel out, and in layers that clamp theirs.
pub fn rounding(graph: &Subgraph, values: &Values) -> f32 {
    graph.operators.iter().map(|operator| added(graph, values, operator)).fold(0.0, f32::max) * PART
}

/// The magnitude of what an operator adds up and does not show.
fn added(graph: &Subgraph, values: &Values, operator: &Operator) -> f32 {
    let largest = |position| operand(graph, values, operator, position).map_or(0.0, magnitude);
    match &operator.op {
        Op::Sum(_) => sums(graph, values, operator).map_or(0.0, |(added, _)| added),
        Op::Mean(_) => sums(graph, values, operator).map_or(0.0, |(added, count)| added / count),
        Op::Conv2d(Conv2dOptions { activation, .. })
        | Op::DepthwiseConv2d(DepthwiseConv2dOptions { activation, .. })
        | Op::FullyConnected(FullyConnectedOptions { activation, .. })
            if clamps(*activation) =>
        {
            largest(0) * largest(1)
        }
        Op::TransposeConv(TransposeConvOptions { activation, .. }) if clamps(*activation) => {
            largest(2) * largest(1)
        }
        _ => 0.0,
    }
}

/// The magnitude of what is added up to each sum along axes, and how many elements that are.
///
/// Where n elements cancel out, partial sums are about sqrt(n) elements large, and n roundings of them,
/// which go either way, about n * 2^-24.5 elements: up to n = 50,000 less than `PART` of sqrt(n)
/// elements. Where they do not cancel out, the result is as large as what was rounded. Only where
/// elements recur all roundings may go the same way, and the reference, which adds one after the other,
/// goes further astray than XNNPACK: how far, its order of additions tells.
fn sums(graph: &Subgraph, values: &Values, operator: &Operator) -> Option<(f32, f32)> {
    let bytes = operand(graph, values, operator, 0)?;
    let shape = graph.tensor(operator.inputs[0]?).shape.as_deref()?;
    let axes = operand(graph, values, operator, 1)?.as_chunks().0.iter();
    let axes: Vec<usize> = axes
        .map(|axis| i32::from_le_bytes(*axis).rem_euclid(shape.len().max(1) as i32) as usize)
        .collect();
    // Where among the sums an element goes.
    let place = |mut at: usize| {
        let (mut place, mut stride) = (0, 1);
        for (axis, &dim) in shape.iter().enumerate().rev() {
            if !axes.contains(&axis) {
                place += at % dim * stride;
                stride *= dim;
            }
            at /= dim;
        }
        place
    };
    let mut sums: HashMap<usize, (f32, f64, usize)> = HashMap::new();
    for (at, element) in floats(bytes).into_iter().enumerate() {
        let (rounded, exact, count) = sums.entry(place(at)).or_default();
        *rounded += element;
        *exact += f64::from(element);
        *count += 1;
    }
    let count = sums.values().next()?.2 as f32;
    let astray =
        sums.values().map(|&(rounded, exact, _)| (f64::from(rounded) - exact).abs() as f32);
    Some((count.sqrt() * magnitude(bytes) + astray.fold(0.0, f32::max) / PART, count))
}

/// The elements of an operand.
fn operand<'a>(
    graph: &'a Subgraph,
    values: &'a Values,
    operator: &Operator,
    position: usize,
) -> Option<&'a [u8]> {
    let id = operator.inputs.get(position).copied().flatten()?;
    values.get(&id).map(Vec::as_slice).or_else(|| graph.tensor(id).data.as_deref())
}

fn clamps(activation: Activation) -> bool {
    matches!(activation, Activation::Relu | Activation::Relu6 | Activation::ReluN1To1)
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// The largest finite magnitude.
pub fn magnitude(bytes: &[u8]) -> f32 {
    let finite = floats(bytes).into_iter().filter(|value| value.is_finite());
    finite.fold(0.0, |most, value| most.max(value.abs()))
}

pub fn describe(graph: &Subgraph) -> String {
    let operators = graph.operators.iter().map(|operator| {
        let tensor = |id: &TensorId| {
            let t = graph.tensor(*id);
            format!(
                "{id}:{}{:?}{:?}",
                t.dtype,
                t.shape.as_deref().unwrap_or_default(),
                t.per_tensor()
            )
        };
        let inputs: Vec<String> = operator.inputs.iter().flatten().map(tensor).collect();
        let outputs: Vec<String> = operator.outputs.iter().map(tensor).collect();
        format!("  {:?} {} -> {}", operator.op, inputs.join(" "), outputs.join(" "))
    });
    operators.collect::<Vec<_>>().join("\n")
}
