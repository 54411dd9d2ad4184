//! Constant folding: the kernels compute once what depends only on constants.

use std::collections::HashMap;

use bytes::Bytes;
use half::f16;
use xnn_model::{
    DType, Inferred, Op, Operator, OutOfMemory, Quantization, Subgraph, Tensor, TensorId,
    fp16_weights, memory,
};

use crate::constants::{constant_operators, sum};
use crate::error::{Error, ErrorKind};
use crate::interpreter::Interpreter;
use crate::options::{Entry, InterpOptions};
use crate::storage::TensorBuf;

/// Adds the results of operators that read only constants to the inferred values.
///
/// The kernels compute the results, so they are identical to those of every run. Not folded are
/// operators with state or random numbers, outputs of the subgraph, which an operator must write,
/// and results that are much larger than their operands. fp16 weights are left to the partitioner.
///
/// # Errors
///
/// Memory is exhausted.
pub fn fold_constants(inferred: &mut Inferred) -> Result<(), OutOfMemory> {
    fold_constants_again(inferred, &[])
}

/// [`fold_constants`] of a subgraph that was folded before with other input shapes, on which
/// constants do not depend. Values in `earlier`, indexed by tensor, are reused.
///
/// # Errors
///
/// Memory is exhausted.
pub fn fold_constants_again(
    inferred: &mut Inferred,
    earlier: &[Option<Bytes>],
) -> Result<(), OutOfMemory> {
    let Inferred { subgraph, values } = inferred;
    values.resize(subgraph.tensors.len(), None);
    // The last operator with these inputs: exporters repeat operators.
    let mut last: HashMap<&[Option<TensorId>], &Operator> = HashMap::new();
    let is_constant = constant_operators(subgraph).into_iter().zip(fp16_weights(subgraph));
    for (operator, (is_constant, is_half)) in subgraph.operators.iter().zip(is_constant) {
        if !is_constant || is_half {
            continue;
        }
        let known = |operator: &Operator| {
            operator.outputs.iter().map(|&id| values[id].clone()).collect::<Option<Vec<_>>>()
        };
        let was_known = |&id: &TensorId| {
            let fits = |value: &&Bytes| Some(value.len()) == subgraph.tensor(id).byte_size();
            earlier.get(id)?.as_ref().filter(fits).cloned()
        };
        let were_known = || operator.outputs.iter().map(was_known).collect();
        let twin = last.insert(&operator.inputs, operator);
        let twin = twin.filter(|twin| repeats(subgraph, operator, twin));
        let results = known(operator).or_else(were_known).or_else(|| known(twin?));
        let results = match results {
            Some(results) => Some(results),
            None => compute(subgraph, values, operator)?,
        };
        for (&output, result) in operator.outputs.iter().zip(results.into_iter().flatten()) {
            values[output] = Some(result);
        }
    }
    Ok(())
}

/// Whether an operator computes the same as an earlier one with the same inputs.
fn repeats(graph: &Subgraph, operator: &Operator, earlier: &Operator) -> bool {
    let types = |operator: &Operator| {
        let tensor = |&id: &TensorId| {
            let Tensor { dtype, shape, quantization, .. } = graph.tensor(id);
            (*dtype, shape, quantization)
        };
        operator.outputs.iter().map(tensor).collect::<Vec<_>>()
    };
    earlier.op == operator.op && types(earlier) == types(operator)
}

/// Size in bytes from which a result counts as large.
const LARGE: usize = 1 << 16;

/// The results of an operator, or `None` if they cannot be computed.
fn compute(
    graph: &Subgraph,
    values: &[Option<Bytes>],
    operator: &Operator,
) -> Result<Option<Vec<Bytes>>, OutOfMemory> {
    // An operand may be unknown although it could be computed.
    let is_known = |&id: &TensorId| values[id].is_some() || graph.tensor(id).is_constant();
    if !operator.inputs.iter().flatten().all(is_known) {
        return Ok(None);
    }
    let bytes = sum(graph, &operator.outputs, Tensor::byte_size).unwrap_or(0);
    if bytes >= LARGE {
        memory::ensure(bytes, "a folded constant")?;
    }
    match widen(graph, values, operator) {
        Some(results) => Ok(Some(results)),
        None => run(graph, values, operator),
    }
}

/// Turns an error into `None`, except for lack of memory, which aborts folding.
fn unless_exhausted<T>(computed: Result<T, Error>) -> Result<Option<T>, OutOfMemory> {
    match computed {
        Ok(computed) => Ok(Some(computed)),
        Err(error) => match error.kind() {
            ErrorKind::OutOfMemory(exhausted) => Err(exhausted.clone()),
            _ => Ok(None),
        },
    }
}

/// Converts fp16 weights to fp32. A model has dozens of these operators, for which an interpreter
/// is not needed.
fn widen(graph: &Subgraph, values: &[Option<Bytes>], operator: &Operator) -> Option<Vec<Bytes>> {
    let (Op::Dequantize, &[Some(input)], &[output]) =
        (&operator.op, operator.inputs.as_slice(), operator.outputs.as_slice())
    else {
        return None;
    };
    let (halves, floats) = (graph.tensor(input), graph.tensor(output));
    let has_elements =
        (halves.dtype, floats.dtype) == (DType::F16, DType::F32) && halves.shape == floats.shape;
    let data = values[input].as_ref().or(halves.data.as_ref()).filter(|_| has_elements)?;
    if Some(data.len()) != halves.byte_size() {
        return None;
    }
    let float = |bytes: &[u8; 2]| f16::from_le_bytes(*bytes).to_f32().to_le_bytes();
    Some(vec![data.as_chunks().0.iter().flat_map(float).collect::<Vec<u8>>().into()])
}

/// Runs the operator in a model of its own.
fn run(
    graph: &Subgraph,
    values: &[Option<Bytes>],
    operator: &Operator,
) -> Result<Option<Vec<Bytes>>, OutOfMemory> {
    let Some(alone) = alone(graph, values, operator) else { return Ok(None) };
    let expected: Vec<Tensor> = alone.outputs.iter().map(|&id| alone.tensor(id).clone()).collect();
    let options = InterpOptions::default();
    let computed = Interpreter::new(&alone.into(), Entry::Main, &options);
    let computed = computed.and_then(|mut interpreter| {
        interpreter.run()?;
        Ok(interpreter)
    });
    let result = |(result, expected): (TensorBuf, &Tensor)| {
        let is_expected = result.dtype() == expected.dtype
            && Some(result.shape()) == expected.shape.as_deref()
            && Some(result.view().bytes.len()) == expected.byte_size();
        is_expected.then(|| Bytes::from_owner(Elements(result)))
    };
    let outputs = unless_exhausted(computed)?.and_then(Interpreter::into_outputs);
    Ok(outputs.and_then(|outputs| outputs.into_iter().zip(&expected).map(result).collect()))
}

/// A subgraph with this operator alone, on dense constants.
fn alone(graph: &Subgraph, values: &[Option<Bytes>], operator: &Operator) -> Option<Subgraph> {
    let mut alone = Subgraph::default();
    let mut add = |id: TensorId| {
        let tensor = graph.tensor(id);
        let data = values[id].clone().or_else(|| tensor.data.clone());
        let is_whole = !matches!(tensor.quantization, Some(Quantization::Blockwise { .. }));
        alone.tensors.push(Tensor { data, ..tensor.clone() });
        is_whole.then_some(alone.tensors.len() - 1)
    };
    let inputs = operator.inputs.iter().map(|id| id.map(|id| add(id).ok_or(())).transpose());
    let inputs = inputs.collect::<Result<_, ()>>().ok()?;
    let outputs = operator.outputs.iter().map(|&id| add(id)).collect::<Option<Vec<_>>>()?;
    alone.outputs.clone_from(&outputs);
    let op = operator.op.clone();
    let intermediates = Vec::new();
    let operator = Operator { op, version: operator.version, inputs, outputs, intermediates };
    alone.operators.push(operator);
    Some(alone)
}

/// The bytes of a tensor's elements.
struct Elements(TensorBuf);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.view().bytes
    }
}
