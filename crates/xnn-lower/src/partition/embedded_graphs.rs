//! Operators that embed a graph: the custom operator XNNGraph of partially delegated models. Each
//! is a partition of its own.

use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{Blob, CUSTOM_OPERATOR, ReadOptions};
use xnn_model::{Op, Operator, OutOfMemory, Subgraph, TensorId};

use super::compile::{Compile, CompileError, Refusal};
use super::cost;
use super::decision::{Decision, Partition, Partitioning};
use super::options::PartitionOptions;
use crate::lower::natural_type;
use crate::optimize;
use crate::why_not::WhyNot;

/// The blob that an operator embeds; `None` for operators of any other kind.
#[must_use]
pub fn embedded_graph(op: &Op) -> Option<&Bytes> {
    match op {
        Op::Custom(custom) if custom.code == CUSTOM_OPERATOR => Some(&custom.options),
        _ => None,
    }
}

/// Delegates all operators that embed a graph and that no option disables.
pub(super) fn delegate<C: Compile>(
    graph: &Subgraph,
    options: &PartitionOptions,
    compiler: &mut C,
    partitioning: &mut Partitioning,
    compiled: &mut Vec<C::Output>,
) -> Result<(), OutOfMemory> {
    for (index, operator) in graph.operators.iter().enumerate() {
        let Some(Decision::NotDelegated(WhyNot::UnsupportedOperator { .. })) =
            partitioning.decisions.get(index)
        else {
            continue;
        };
        let Some(embedded) = embedded_graph(&operator.op) else { continue };
        let reading = ReadOptions { limits: options.limits.clone(), constants: None };
        let opened = Blob::from_bytes_with(embedded.clone(), &reading)
            .map_err(|error| refused(error.to_string()))
            .and_then(|blob| open(graph, index, blob, compiler));
        partitioning.decisions[index] = match opened {
            Ok((partition, output)) => {
                partitioning.partitions.push(partition);
                compiled.push(output);
                Decision::Delegated { partition: partitioning.partitions.len() - 1 }
            }
            Err(CompileError::OutOfMemory(exhausted)) => return Err(exhausted),
            Err(CompileError::Refused(Refusal { message, .. })) => {
                Decision::NotDelegated(WhyNot::EmbeddedGraph { message })
            }
        };
    }
    Ok(())
}

fn refused(message: impl Into<String>) -> CompileError {
    Refusal { operator: None, message: message.into() }.into()
}

fn open<C: Compile>(
    graph: &Subgraph,
    index: usize,
    blob: Blob,
    compiler: &mut C,
) -> Result<(Partition, C::Output), CompileError> {
    let operator = &graph.operators[index];
    let inputs: Option<Vec<TensorId>> = operator.inputs.iter().copied().collect();
    let inputs = inputs.ok_or_else(|| refused("an input is missing"))?;
    check_boundary(graph, operator, &inputs, blob.graph()).map_err(refused)?;
    let partition = Partition {
        operators: vec![index],
        macs: blob.graph().macs(),
        work: blob.graph().macs(),
        boundary_bytes: cost::bytes(graph, &inputs) + cost::bytes(graph, &operator.outputs),
        inputs,
        outputs: operator.outputs.clone(),
        known: Vec::new(),
        graph: Arc::clone(blob.graph()),
        // The graph was optimized when it was made.
        optimization: optimize::Report::unchanged(blob.graph()),
        is_embedded: true,
    };
    let output = compiler.open(blob)?;
    Ok((partition, output))
}

/// Checks that the operator's tensors have the types and shapes of the graph's inputs and outputs.
fn check_boundary(
    graph: &Subgraph,
    operator: &Operator,
    inputs: &[TensorId],
    embedded: &xnn_format::Graph,
) -> Result<(), String> {
    let sides = [
        ("input", inputs, &embedded.inputs),
        ("output", operator.outputs.as_slice(), &embedded.outputs),
    ];
    for (side, tensors, values) in sides {
        if tensors.len() != values.len() {
            let (found, expected) = (tensors.len(), values.len());
            return Err(format!("{side}s: expected {expected} as in the graph, found {found}"));
        }
        for (position, (&id, &value)) in tensors.iter().zip(values).enumerate() {
            let tensor = graph.tensor(id);
            let value = embedded.value(value).ok_or("a value is missing")?;
            let (datatype, quantization) = natural_type(tensor);
            if datatype != value.datatype || quantization != value.quantization {
                return Err(format!(
                    "{side} {position} of the graph is {}, but tensor {:?} is {} or has another \
                     quantization",
                    value.datatype.name(),
                    tensor.name,
                    tensor.dtype
                ));
            }
            if let Some(shape) = tensor.shape.as_ref().filter(|shape| **shape != value.dims) {
                return Err(format!(
                    "{side} {position} of the graph has the shape {:?}, but tensor {:?} has \
                     {shape:?}",
                    value.dims, tensor.name
                ));
            }
        }
    }
    Ok(())
}
