//! Delegated operators against reference kernels, tensor by tensor.
//!
//! Rounding differences grow from operator to operator, so that the outputs of
//! a whole model say little about where they come from. Each delegated operator
//! is therefore a partition of its own here, and gets the inputs that it has in
//! a run of the reference kernels: what it gives then is its own doing. How far
//! the differences of all operators together take the model's outputs is told
//! beside it.

use std::collections::BTreeSet;

use serde::Serialize;
use xnn_interp::{Entry, InterpOptions, Interpreter, TensorRef};
use xnn_lower::{Decision, PartitionOptions};
use xnn_model::{DType, Model, Subgraph, TensorId};
use xnn_runtime::{Program, Session, SessionOptions};

use crate::convert::main_subgraph;
use crate::delegation::Delegation;
use crate::error::Error;
use crate::numbers::numbers;
use crate::runner::Runner;

/// A model's main subgraph on reference kernels, beside what XNNPACK takes of it.
#[derive(Debug)]
pub struct Verifier {
    delegation: Delegation,
    reference: Runner,
    delegated: Runner,
    partition: PartitionOptions,
    session: SessionOptions,
}

/// What [`Verifier::verify`] finds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// One for each output of each delegated operator, in the model's order.
    pub operators: Vec<Deviation>,
    /// One for each output of the model, where the deviations of all operators
    /// have come together.
    pub outputs: Vec<Deviation>,
    /// Delegated operators that could not be compared: index, name and reason.
    pub skipped: Vec<(usize, String, String)>,
}

/// How far a tensor is from the reference, at the element that is furthest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Index of the operator that gives the tensor; `None` where none does.
    pub operator: Option<usize>,
    /// The operator's name.
    pub op: String,
    /// Index of the tensor in the subgraph.
    pub tensor: TensorId,
    /// The tensor's name.
    pub name: String,
    /// What `distance` counts.
    pub scale: Scale,
    /// Infinite where only one of two elements is a number, or the shapes differ.
    pub distance: f64,
    /// Position of the element in the dense tensor.
    pub element: usize,
    /// The element in the reference, as it is stored.
    pub expected: f64,
    /// The element that XNNPACK computed.
    pub actual: f64,
}

/// The unit of a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Steps between neighbouring integers.
    Steps,
    /// Floats: parts of the range of the reference tensor, zero included.
    Range,
    /// Indices, flags and the like, which must be the same.
    Exact,
}

impl Verifier {
    /// Prepares a model, all inputs zero.
    ///
    /// # Errors
    ///
    /// An operator has no reference kernel; the operators that hold graphs of a
    /// model that was converted in part are such.
    pub fn new(
        model: &Model,
        partition: &PartitionOptions,
        session: &SessionOptions,
    ) -> Result<Self, Error> {
        let options = InterpOptions { keep_intermediates: true, ..InterpOptions::default() };
        Ok(Self {
            reference: Runner::partial(
                Interpreter::new(model, Entry::Main, &options)?,
                &options.limits,
            ),
            delegated: Runner::new(model, partition, session)?,
            delegation: Delegation::new(main_subgraph(model)?, partition)?,
            partition: partition.clone(),
            session: session.clone(),
        })
    }

    /// The reference, for its inputs to be filled.
    pub fn reference_mut(&mut self) -> &mut Runner {
        &mut self.reference
    }

    /// How many operators XNNPACK takes, and how the model is divided.
    #[must_use]
    pub fn delegation(&self) -> &Delegation {
        &self.delegation
    }

    /// Runs the reference, every delegated operator on the reference's tensors,
    /// and the whole model with XNNPACK.
    ///
    /// # Errors
    ///
    /// A run fails, or XNNPACK does.
    pub fn verify(&mut self) -> Result<Verification, Error> {
        self.run_delegated()?;
        self.reference.run()?;
        let mut verification = Verification { operators: vec![], outputs: vec![], skipped: vec![] };
        let Some(reference) = self.reference.interpreter() else { return Ok(verification) };
        for (index, decision) in self.delegation.partitioning().decisions.iter().enumerate() {
            if matches!(decision, Decision::Left(_)) {
                continue;
            }
            match self.compare_operator(reference, index)? {
                Ok(deviations) => verification.operators.extend(deviations),
                Err(reason) => {
                    let name = reference.subgraph().operators[index].op.to_string();
                    verification.skipped.push((index, name, reason));
                }
            }
        }
        let graph = reference.subgraph();
        for (position, &id) in graph.outputs.iter().enumerate() {
            if let Some(expected) = reference.tensor(id) {
                let producer = graph.operators.iter().position(|o| o.outputs.contains(&id));
                let actual = self.delegated.output(position);
                verification.outputs.push(Deviation::new(graph, producer, id, expected, actual));
            }
        }
        Ok(verification)
    }

    /// Runs the model with XNNPACK on the reference's inputs.
    fn run_delegated(&mut self) -> Result<(), Error> {
        let graph = self.delegation.graph();
        // A model that goes whole has the inputs that its one partition reads.
        let inputs = match self.delegated.session() {
            Some(_) => self.delegation.partitioning().partitions.first().map(|p| &p.inputs),
            None => Some(&graph.inputs),
        };
        let dims = |position: usize| self.reference.inputs()[position].dims.clone();
        let places: Vec<usize> = inputs
            .into_iter()
            .flatten()
            .filter_map(|id| graph.inputs.iter().position(|input| input == id))
            .collect();
        let resized: Vec<(usize, Vec<usize>)> = places
            .iter()
            .enumerate()
            .map(|(to, &from)| (to, dims(from)))
            .filter(|(to, dims)| self.delegated.inputs()[*to].dims != *dims)
            .collect();
        if !resized.is_empty() {
            let resized: Vec<(usize, &[usize])> =
                resized.iter().map(|(to, dims)| (*to, dims.as_slice())).collect();
            self.delegated.resize_inputs(&resized)?;
        }
        for (to, from) in places.into_iter().enumerate() {
            let elements = self.reference.input_mut(from);
            let target = self.delegated.input_mut(to);
            if target.len() == elements.len() {
                target.copy_from_slice(elements);
            }
        }
        self.delegated.run()
    }

    /// One operator alone on what the reference has computed; or why that cannot
    /// be done.
    fn compare_operator(
        &self,
        reference: &Interpreter,
        index: usize,
    ) -> Result<Result<Vec<Deviation>, String>, Error> {
        let Some(alone) = alone(reference, index) else {
            return Ok(Err("it is computed once, from constants".into()));
        };
        let delegation = Delegation::new(&alone, &self.partition)?;
        let program = match delegation.whole() {
            Ok(program) => program,
            Err(incomplete) => return Ok(Err(incomplete.left().join("; "))),
        };
        // What it does not read (a shape, say) is no input of the partition.
        let inputs = delegation.partitioning().partitions.first().map(|p| p.inputs.as_slice());
        let session = run(program, inputs.unwrap_or_default(), reference, &self.session)?;
        let compare = |(position, &id): (usize, &TensorId)| {
            let expected = reference.tensor(id)?;
            let actual = session.output(position);
            Some(Deviation::new(reference.subgraph(), Some(index), id, expected, actual))
        };
        Ok(Ok(alone.outputs.iter().enumerate().filter_map(compare).collect()))
    }
}

/// The subgraph of one operator. What is computed from constants alone is a
/// constant; `None` if that is all that the operator reads.
fn alone(reference: &Interpreter, index: usize) -> Option<Subgraph> {
    let graph = reference.subgraph();
    let operator = graph.operators.get(index)?.clone();
    let mut tensors = graph.tensors.clone();
    let mut constant: BTreeSet<TensorId> =
        (0..tensors.len()).filter(|&id| tensors[id].is_constant()).collect();
    for earlier in graph.operators.iter().take(index) {
        if earlier.inputs.iter().flatten().all(|id| constant.contains(id)) {
            constant.extend(&earlier.outputs);
        }
    }
    let mut inputs: Vec<TensorId> = Vec::new();
    for &id in operator.inputs.iter().flatten() {
        if !constant.contains(&id) && !inputs.contains(&id) {
            inputs.push(id);
        } else if let (None, Some(value)) = (&tensors[id].data, reference.tensor(id)) {
            tensors[id].data = Some(value.bytes.to_vec().into());
        }
    }
    let outputs = operator.outputs.clone();
    let name = String::new();
    (!inputs.is_empty()).then(|| Subgraph {
        name,
        tensors,
        inputs,
        outputs,
        operators: vec![operator],
    })
}

/// A program's session that has run on tensors of the reference.
fn run(
    program: &Program,
    inputs: &[TensorId],
    reference: &Interpreter,
    options: &SessionOptions,
) -> Result<Session, Error> {
    let mut session = Session::new(program, options)?;
    let mut reshaped = false;
    let value = |id: TensorId| reference.tensor(id);
    for (position, &id) in inputs.iter().enumerate() {
        let dims = session.inputs().get(position).map(|info| info.dims.clone());
        if let Some(value) = value(id)
            && dims.is_some_and(|dims| dims != value.shape)
        {
            session.resize(position, value.shape)?;
            reshaped = true;
        }
    }
    if reshaped {
        session.reshape()?;
    }
    for (position, &id) in inputs.iter().enumerate() {
        let memory = session.input_mut(position);
        if let Some(value) = value(id).filter(|value| value.bytes.len() == memory.len()) {
            memory.copy_from_slice(value.bytes);
        }
    }
    session.run()?;
    Ok(session)
}

impl Deviation {
    fn new(
        graph: &Subgraph,
        operator: Option<usize>,
        tensor: TensorId,
        expected: TensorRef<'_>,
        actual: &[u8],
    ) -> Self {
        let scale = match expected.dtype {
            dtype if dtype.is_float() => Scale::Range,
            DType::I8 | DType::U8 | DType::I16 => Scale::Steps,
            _ => Scale::Exact,
        };
        let furthest = furthest(expected.dtype, expected.bytes, actual);
        let Furthest { element, expected: from, actual: to, apart, range } = furthest;
        let distance = match scale {
            Scale::Range if apart > 0.0 && apart.is_finite() => apart / range,
            _ => apart,
        };
        let op = operator.and_then(|index| graph.operators.get(index));
        Self {
            operator,
            op: op.map(|operator| operator.op.to_string()).unwrap_or_default(),
            tensor,
            name: graph.tensor(tensor).name.clone(),
            scale,
            distance,
            element,
            expected: from,
            actual: to,
        }
    }

    /// Whether the distance is at most `steps`, or this part of the `range`.
    #[must_use]
    pub fn is_within(&self, steps: f64, range: f64) -> bool {
        match self.scale {
            Scale::Steps => self.distance <= steps,
            Scale::Range => self.distance <= range,
            Scale::Exact => self.distance <= 0.0,
        }
    }
}

/// The element of two tensors that differs most.
struct Furthest {
    element: usize,
    expected: f64,
    actual: f64,
    apart: f64,
    /// From the smallest to the largest element of the first tensor, and zero.
    range: f64,
}

fn furthest(dtype: DType, expected: &[u8], actual: &[u8]) -> Furthest {
    let nothing = Furthest { element: 0, expected: 0.0, actual: 0.0, apart: 0.0, range: 0.0 };
    let different = if expected == actual { 0.0 } else { f64::INFINITY };
    let (Some(a), Some(b)) = (numbers(dtype, expected), numbers(dtype, actual)) else {
        return Furthest { apart: different, ..nothing };
    };
    if a.len() != b.len() {
        return Furthest { apart: f64::INFINITY, ..nothing };
    }
    let finite = a.iter().filter(|value| value.is_finite());
    let (low, high) = finite.fold((0.0f64, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let mut result = Furthest { range: high - low, ..nothing };
    for (element, (&expected, &actual)) in a.iter().zip(&b).enumerate() {
        let apart = match (expected - actual).abs() {
            _ if expected == actual || (expected.is_nan() && actual.is_nan()) => 0.0,
            apart if apart.is_nan() => f64::INFINITY,
            apart => apart,
        };
        if apart > result.apart {
            result = Furthest { element, expected, actual, apart, ..result };
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_floats(expected: &[f32], actual: &[f32]) -> Furthest {
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let [a, b]: [Vec<u8>; 2] = [bytes(expected), bytes(actual)];
        furthest(DType::F32, &a, &b)
    }

    #[test]
    fn the_furthest_element_is_found() {
        let found = of_floats(&[1.0, -2.0, 4.0], &[1.25, -2.0, 3.5]);
        assert_eq!((found.element, found.expected, found.actual), (2, 4.0, 3.5));
        assert_eq!((found.apart, found.range), (0.5, 6.0));
        assert_eq!(of_floats(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]).apart, 0.0);
        assert_eq!(of_floats(&[1.0], &[f32::NAN]).apart, f64::INFINITY);
        assert_eq!(of_floats(&[1.0, 2.0], &[1.0]).apart, f64::INFINITY);
        let bytes = furthest(DType::I8, &[0x80, 3], &[0x7f, 3]);
        assert_eq!((bytes.element, bytes.apart), (0, 255.0));
    }
}
