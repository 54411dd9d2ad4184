//! Operators that hold a graph already: the custom operator XNNGraph of files
//! that were converted in part. Each is a partition of its own.

use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{Blob, CUSTOM_OPERATOR, ReadOptions};
use xnn_model::{Op, Operator, OutOfMemory, Subgraph, TensorId};

use super::{
    Compile, CompileError, Decision, Partition, PartitionOptions, Partitioning, Refusal, cost,
};
use crate::lower::natural_type;
use crate::optimize;
use crate::why_not::WhyNot;

/// The blob in an operator that holds a graph; `None` for any other.
#[must_use]
pub fn stored_graph(op: &Op) -> Option<&Bytes> {
    match op {
        Op::Custom(custom) if custom.code == CUSTOM_OPERATOR => Some(&custom.options),
        _ => None,
    }
}

/// Takes all operators that hold a graph, and that no option disables.
pub(super) fn take<C: Compile>(
    graph: &Subgraph,
    options: &PartitionOptions,
    compiler: &mut C,
    partitioning: &mut Partitioning,
    compiled: &mut Vec<C::Output>,
) -> Result<(), OutOfMemory> {
    for (index, operator) in graph.operators.iter().enumerate() {
        let Some(Decision::Left(WhyNot::UnsupportedOperator { .. })) =
            partitioning.decisions.get(index)
        else {
            continue;
        };
        let Some(stored) = stored_graph(&operator.op) else { continue };
        let reading = ReadOptions { limits: options.limits.clone(), constants: None };
        let opened = Blob::from_bytes_with(stored.clone(), &reading)
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
                Decision::Left(WhyNot::StoredGraph { message })
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
    let inputs = inputs.ok_or_else(|| refused("an input is left out"))?;
    check_border(graph, operator, &inputs, blob.graph()).map_err(refused)?;
    let partition = Partition {
        operators: vec![index],
        macs: blob.graph().macs(),
        work: blob.graph().macs(),
        boundary_bytes: cost::bytes(graph, &inputs) + cost::bytes(graph, &operator.outputs),
        inputs,
        outputs: operator.outputs.clone(),
        known: Vec::new(),
        graph: Arc::clone(blob.graph()),
        // Whoever made the graph has done it.
        optimization: optimize::Report::unchanged(blob.graph()),
        is_stored: true,
    };
    let output = compiler.open(blob)?;
    Ok((partition, output))
}

/// The operator's tensors must be what the graph takes them for.
fn check_border(
    graph: &Subgraph,
    operator: &Operator,
    inputs: &[TensorId],
    stored: &xnn_format::Graph,
) -> Result<(), String> {
    let sides = [
        ("input", inputs, &stored.inputs),
        ("output", operator.outputs.as_slice(), &stored.outputs),
    ];
    for (side, tensors, values) in sides {
        if tensors.len() != values.len() {
            let (found, expected) = (tensors.len(), values.len());
            return Err(format!("the operator has {found} {side}s, its graph {expected}"));
        }
        for (position, (&id, &value)) in tensors.iter().zip(values).enumerate() {
            let tensor = graph.tensor(id);
            let value = stored.value(value).ok_or("a value is missing")?;
            let (datatype, quantization) = natural_type(tensor);
            if datatype != value.datatype || quantization != value.quantization {
                return Err(format!(
                    "{side} {position} is {} for its graph, but tensor {:?} is {} or quantized \
                     in another way",
                    value.datatype.name(),
                    tensor.name,
                    tensor.dtype
                ));
            }
            if let Some(shape) = tensor.shape.as_ref().filter(|shape| **shape != value.dims) {
                return Err(format!(
                    "{side} {position} has the dimensions {:?} for its graph, but tensor {:?} \
                     has {shape:?}",
                    value.dims, tensor.name
                ));
            }
        }
    }
    Ok(())
}
