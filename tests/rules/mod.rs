//! Both sides of each constraint in the partitioner, as data: what just goes, and what just does not.

mod checks;
mod layers;
mod moves;
mod others;
mod partition;

use std::collections::HashMap;

use bytes::Bytes;
use xnn_delegate::PartitionOptions;
use xnn_delegate::model::Subgraph;
use xnn_model::op::Op;
use xnn_model::{DType, Operator, Quantization, Tensor, ZeroPoints};
use xnn_testing::{Random, le_bytes};

use crate::runners::Values;

/// A place where the partitioner says no, and a model on either side of it.
pub struct Constraint {
    /// File and function, as in `rules`.
    pub at: &'static str,
    /// Code of the reason.
    pub code: &'static str,
    /// Part of the reason's message.
    pub says: &'static str,
    /// Fully delegated.
    pub inside: Model,
    /// The first operator that is not delegated falls back for this reason.
    pub outside: Model,
    /// No file leads to the outside: shape inference finds the contradiction first. The partitioner
    /// is asked without it.
    pub is_stated: bool,
}

/// A model with what it takes.
pub struct Model {
    pub graph: Subgraph,
    pub inputs: Values,
    pub options: PartitionOptions,
}

/// Reasons that no model leads to, where they are given, and why.
pub const UNREACHABLE: &[(&str, &str, &str)] = &[
    ("checks::dim", "shape", "dimensions of weights above 2^32 need as many bytes"),
    ("slice::strided_slice", "empty", "the output is without elements too, which is found first"),
    ("view::output", "output-count", "every rule asks for the number of outputs first"),
    (
        "partition::partition_grouped",
        "compile-failed",
        "the rules know what XNNPACK refuses; crates/xnn-lower/tests/rules.rs has a compiler that refuses more",
    ),
    ("partition::decide", "compile-failed", "readers refuse operators that read what comes later"),
];

pub fn constraints() -> Vec<Constraint> {
    [
        checks::constraints(),
        layers::constraints(),
        moves::constraints(),
        others::constraints(),
        partition::constraints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A constraint whose models `build` makes: delegated with `inside`, and not with `outside`.
fn row<T>(
    at: &'static str,
    code: &'static str,
    says: &'static str,
    build: impl Fn(T) -> Model,
    inside: T,
    outside: T,
) -> Constraint {
    let (inside, outside) = (build(inside), build(outside));
    Constraint { at, code, says, inside, outside, is_stated: false }
}

/// [`row`] of lists, which differ in length.
fn list<T>(
    at: &'static str,
    code: &'static str,
    says: &'static str,
    build: impl Fn(&[T]) -> Model,
    inside: &[T],
    outside: &[T],
) -> Constraint {
    row(at, code, says, build, inside, outside)
}

impl Constraint {
    fn stated(self) -> Self {
        Self { is_stated: true, ..self }
    }
}

impl Model {
    fn new(graph: Subgraph) -> Self {
        let mut random = Random::new(7);
        let mut data = |id: usize| {
            let tensor: &Tensor = graph.tensor(id);
            random.tensor(tensor.dtype, tensor.shape.iter().flatten().product())
        };
        let inputs: HashMap<_, _> = graph.inputs.iter().map(|&id| (id, data(id))).collect();
        Self { graph, inputs, options: PartitionOptions::default() }
    }
}

/// A model of one operator. Tensors without data are inputs.
fn one<I: Into<Option<Tensor>>>(
    op: Op,
    inputs: impl IntoIterator<Item = I>,
    outputs: impl IntoIterator<Item = Tensor>,
) -> Model {
    let mut graph = Subgraph::default();
    let mut add = |tensor: Tensor| {
        graph.tensors.push(tensor);
        graph.tensors.len() - 1
    };
    let inputs: Vec<Option<usize>> =
        inputs.into_iter().map(|tensor| tensor.into().map(&mut add)).collect();
    let outputs: Vec<usize> = outputs.into_iter().map(add).collect();
    let is_input = |&id: &usize| !graph.tensors[id].is_constant();
    graph.inputs = inputs.iter().flatten().copied().filter(is_input).collect();
    graph.outputs.clone_from(&outputs);
    graph.operators = vec![Operator { op, version: 1, inputs, outputs, intermediates: vec![] }];
    Model::new(graph)
}

fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::new("t", dtype, shape)
}

fn f32s(shape: &[usize]) -> Tensor {
    tensor(DType::F32, shape)
}

/// A tensor of type i8, in steps of 1/2.
fn i8s(shape: &[usize]) -> Tensor {
    quantized(tensor(DType::I8, shape), 0.5, 0)
}

fn quantized(tensor: Tensor, scale: f32, zero_point: i64) -> Tensor {
    with(tensor, Quantization::PerTensor { scale, zero_point })
}

fn with(tensor: Tensor, quantization: Quantization) -> Tensor {
    Tensor { quantization: Some(quantization), ..tensor }
}

fn per_axis(tensor: Tensor, count: usize, axis: usize) -> Tensor {
    let (scales, zero_points) = (vec![0.5; count].into(), ZeroPoints::default());
    with(tensor, Quantization::PerAxis { scales, zero_points, axis })
}

/// With elements.
fn constant(tensor: Tensor) -> Tensor {
    let data = Random::new(5).tensor(tensor.dtype, tensor.shape.iter().flatten().product());
    holding(tensor, data)
}

fn holding(tensor: Tensor, data: impl Into<Bytes>) -> Tensor {
    Tensor { data: Some(data.into()), ..tensor }
}

fn numbers(values: &[f32]) -> Tensor {
    holding(f32s(&[values.len()]), le_bytes(values, |value| value.to_le_bytes()))
}

fn ints(values: &[i32]) -> Tensor {
    holding(tensor(DType::I32, &[values.len()]), le_bytes(values, |value| value.to_le_bytes()))
}

fn int(value: i32) -> Tensor {
    Tensor { shape: Some(vec![]), ..ints(&[value]) }
}
