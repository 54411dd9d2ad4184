//! Partially delegated models as one file: each partition becomes the custom operator XNNGraph, whose custom options are a
//! blob.

use std::collections::BTreeMap;
use std::sync::Arc;

use xnn_format::CUSTOM_OPERATOR;
use xnn_interp::infer_reachable;
use xnn_lower::{Decision, Partition, WhyNot};
use xnn_model::op::{CustomOptions, Op};
use xnn_model::{
    Dialect, Model, ModelLimits, Operator, Subgraph, SubgraphId, execution_order, write,
};

use super::blob::write_blob;
use super::options::{ConvertOptions, Source};
use crate::delegation::Delegation;
use crate::error::Error;

/// Returns the bytes of `model` with partitions in place of their operators, in all subgraphs. `main` has the decisions for
/// the first subgraph.
pub(super) fn convert(
    model: &Model,
    main: Delegation,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Vec<u8>, Error> {
    let called = called(model)?;
    let others = model.subgraphs.iter().enumerate().skip(1);
    let others = others
        .map(|(id, graph)| Delegation::new(called.get(&id).unwrap_or(graph), &options.partition));
    let delegations = [Ok(main)].into_iter().chain(others).collect::<Result<Vec<_>, _>>()?;
    let damaged = delegations.iter().find(|delegation| {
        let mut decisions = delegation.partitioning().decisions.iter();
        decisions.any(|it| matches!(it, Decision::NotDelegated(WhyNot::EmbeddedGraph { .. })))
    });
    let nothing = delegations.iter().all(|delegation| lowered(delegation).next().is_none());
    if let Some(delegation) = damaged.or(delegations.first().filter(|_| nothing)) {
        return Err(delegation.incomplete().into());
    }
    let mut converted = model.clone();
    for (graph, delegation) in converted.subgraphs.iter_mut().zip(&delegations) {
        *graph = Arc::new(replace_partitions(graph, delegation, source, options)?);
    }
    converted.drop_unused_tensors();
    converted.check(&ModelLimits::default())?;
    Ok(match converted.dialect {
        Dialect::Tflite => write::to_tflite(&converted)?,
        Dialect::Circle => write::to_circle(&converted)?,
    })
}

/// Subgraphs that entry points call, with the shapes of these calls.
fn called(model: &Model) -> Result<BTreeMap<SubgraphId, Arc<Subgraph>>, Error> {
    let mut called = infer_reachable(model, 0)?;
    for signature in &model.signatures {
        for (id, graph) in infer_reachable(model, signature.subgraph)? {
            called.entry(id).or_insert(graph);
        }
    }
    Ok(called)
}

/// Partitions that the model does not hold as blobs already.
fn lowered(delegation: &Delegation) -> impl Iterator<Item = &Partition> {
    delegation.partitioning().partitions.iter().filter(|partition| !partition.is_embedded)
}

/// Returns the subgraph with one operator for each partition.
fn replace_partitions(
    graph: &Subgraph,
    delegation: &Delegation,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Subgraph, Error> {
    let mut replaced = graph.clone();
    let sets = lowered(delegation).map(|partition| partition.operators.as_slice());
    let circle = || xnn_model::ErrorKind::Invalid("its operators depend on each other".into());
    let order = execution_order(graph, sets).ok_or_else(|| xnn_model::Error::from(circle()))?;
    let mut operators = Vec::with_capacity(order.len());
    for first in order {
        match lowered(delegation).find(|partition| partition.operators.first() == Some(&first)) {
            Some(partition) => {
                operators.push(stored(partition, source, options)?);
                // Readers cannot infer the output shapes of the custom operator.
                for &output in &partition.outputs {
                    let shape = &delegation.graph().tensor(output).shape;
                    if let (Some(tensor), Some(shape)) = (replaced.tensors.get_mut(output), shape) {
                        tensor.shape = Some(shape.clone());
                    }
                }
            }
            None => operators.extend(graph.operators.get(first).cloned()),
        }
    }
    replaced.operators = operators;
    Ok(replaced)
}

/// Returns the operator that holds a partition.
fn stored(
    partition: &Partition,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Operator, Error> {
    let blob = write_blob(&partition.graph, source, options)?;
    let custom = CustomOptions { code: CUSTOM_OPERATOR.to_owned(), options: blob.into() };
    Ok(Operator {
        op: Op::Custom(custom),
        version: 1,
        inputs: partition.inputs.iter().copied().map(Some).collect(),
        outputs: partition.outputs.clone(),
        intermediates: Vec::new(),
    })
}
