//! Consistency checks: indices are in range, constants have the size of their shape, and tensors
//! are produced before they are read.

use crate::error::{Error, ErrorKind};
use crate::graph::{Model, Operator, Signature, SparseDimension, Sparsity, Subgraph, Tensor};
use crate::limits::ModelLimits;
use crate::op::Op;
use crate::types::{Quantization, TensorId};

type Result<T = ()> = std::result::Result<T, Error>;

impl Model {
    /// Checks the consistency of a model. Readers call it; programs that build a model should, too.
    ///
    /// # Errors
    ///
    /// An index is out of range, a constant has the wrong size, a tensor is read before it is
    /// produced, or a limit is exceeded. The error names the subgraph, operator and tensor.
    pub fn check(&self, limits: &ModelLimits) -> Result {
        if self.subgraphs.is_empty() {
            return Err(Error::invalid("the model has no subgraphs"));
        }
        for (index, graph) in self.subgraphs.iter().enumerate() {
            self.check_subgraph(graph, limits).map_err(|e| e.in_subgraph(index))?;
        }
        self.signatures.iter().try_for_each(|s| self.check_signature(s))
    }

    fn check_subgraph(&self, graph: &Subgraph, limits: &ModelLimits) -> Result {
        for (index, tensor) in graph.tensors.iter().enumerate() {
            check_tensor(tensor, graph, limits).map_err(|e| e.in_tensor(index, &tensor.name))?;
        }
        let bounds = [("input", &graph.inputs), ("output", &graph.outputs)];
        for (what, list) in bounds {
            list.iter().try_for_each(|&id| check_id(graph, what, id))?;
        }
        for (index, operator) in graph.operators.iter().enumerate() {
            self.check_operator(graph, operator)
                .map_err(|e| e.in_operator(index, operator.op.to_string()))?;
        }
        check_order(graph)
    }

    fn check_operator(&self, graph: &Subgraph, operator: &Operator) -> Result {
        let Operator { op, inputs, outputs, intermediates, .. } = operator;
        inputs.iter().flatten().try_for_each(|&id| check_id(graph, "input", id))?;
        outputs.iter().try_for_each(|&id| check_id(graph, "output", id))?;
        intermediates.iter().try_for_each(|&id| check_id(graph, "intermediate", id))?;
        match op {
            Op::Call(o) | Op::CallOnce(o) => self.check_callee(o.subgraph),
            Op::If(o) => {
                self.check_callee(o.then_subgraph)?;
                self.check_callee(o.else_subgraph)
            }
            Op::While(o) => {
                self.check_callee(o.cond_subgraph)?;
                self.check_callee(o.body_subgraph)
            }
            Op::StablehloComposite(o) => self.check_callee(o.decomposition_subgraph),
            _ => Ok(()),
        }
    }

    fn check_callee(&self, subgraph: usize) -> Result {
        if subgraph < self.subgraphs.len() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "it calls subgraph {subgraph}, but the model has {}",
            self.subgraphs.len()
        )))
    }

    fn check_signature(&self, signature: &Signature) -> Result {
        let Signature { key, subgraph, inputs, outputs } = signature;
        let graph = self.subgraphs.get(*subgraph).ok_or_else(|| {
            Error::invalid(format!(
                "signature {key:?} refers to subgraph {subgraph}, but the model has {}",
                self.subgraphs.len()
            ))
        })?;
        for (name, tensor) in inputs.iter().chain(outputs) {
            if *tensor >= graph.tensors.len() {
                return Err(Error::invalid(format!(
                    "signature {key:?}: {name:?} is tensor {tensor}, but the subgraph has {}",
                    graph.tensors.len()
                )));
            }
        }
        Ok(())
    }
}

impl Subgraph {
    /// Marks tensors without elements as constants unless an operator or the caller produces them.
    /// Files store no data for them.
    pub(crate) fn mark_empty_constants(&mut self) {
        let mut produced = vec![false; self.tensors.len()];
        let outputs = self.operators.iter().flat_map(|op| &op.outputs);
        for &id in outputs.chain(&self.inputs) {
            if let Some(mark) = produced.get_mut(id) {
                *mark = true;
            }
        }
        for (tensor, produced) in self.tensors.iter_mut().zip(produced) {
            if !produced && tensor.elements() == Some(0) && tensor.data.is_none() {
                tensor.data = Some(bytes::Bytes::new());
            }
        }
    }
}

fn check_id(graph: &Subgraph, what: &str, id: TensorId) -> Result {
    if id < graph.tensors.len() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "its {what} is tensor {id}, but the subgraph has {}",
        graph.tensors.len()
    )))
}

fn check_tensor(tensor: &Tensor, graph: &Subgraph, limits: &ModelLimits) -> Result {
    let rank = tensor.rank().unwrap_or(0).max(tensor.shape_signature.as_ref().map_or(0, Vec::len));
    check_limit("the number of dimensions", rank, limits.max_rank)?;
    if tensor.shape.is_some() && tensor.dtype.bits().is_some() {
        let bytes = tensor.byte_size().unwrap_or(usize::MAX);
        check_limit("the size in bytes", bytes, limits.max_tensor_bytes)?;
        check_data_size(tensor, bytes)?;
    }
    if let Some(sparsity) = &tensor.sparsity {
        check_sparsity(sparsity, tensor.shape.as_deref())?;
    }
    match &tensor.quantization {
        Some(quantization) => check_quantization(quantization, tensor.shape.as_deref(), graph),
        None => Ok(()),
    }
}

fn check_limit(what: &'static str, value: usize, limit: usize) -> Result {
    if value <= limit {
        return Ok(());
    }
    Err(ErrorKind::Limit { what, value: value as u64, limit: limit as u64 }.into())
}

fn check_data_size(tensor: &Tensor, expected: usize) -> Result {
    let dense = tensor.sparsity.is_none() && tensor.unusable.is_none();
    match &tensor.data {
        Some(data) if dense && data.len() != expected => Err(Error::invalid(format!(
            "its data has {} bytes, but {} of shape {:?} take {expected}",
            data.len(),
            tensor.dtype,
            tensor.shape.as_deref().unwrap_or_default()
        ))),
        _ => Ok(()),
    }
}

fn check_quantization(
    quantization: &Quantization,
    shape: Option<&[usize]>,
    graph: &Subgraph,
) -> Result {
    match quantization {
        Quantization::PerAxis { scales, zero_points, axis } => {
            let fits = shape.is_none_or(|s| s.get(*axis) == Some(&scales.len()));
            if fits && zero_points.fit(scales.len()) {
                return Ok(());
            }
            Err(Error::invalid(format!(
                "{} scales, with their zero points, along dimension {axis} do not fit the shape {:?}",
                scales.len(),
                shape.unwrap_or_default()
            )))
        }
        Quantization::Blockwise { scales, zero_points, block_size } => {
            check_id(graph, "scale", *scales)?;
            zero_points.map_or(Ok(()), |id| check_id(graph, "zero point", id))?;
            if *block_size == 0 {
                return Err(Error::invalid("blockwise quantization with blocks of 0 elements"));
            }
            Ok(())
        }
        Quantization::PerTensor { .. } | Quantization::Other(_) => Ok(()),
    }
}

/// Checks that the sparse dimensions describe a tensor of this shape.
fn check_sparsity(sparsity: &Sparsity, shape: Option<&[usize]>) -> Result {
    let Sparsity { traversal_order, block_map, dimensions } = sparsity;
    let rank = shape.map_or(traversal_order.len().saturating_sub(block_map.len()), <[_]>::len);
    let levels = rank.saturating_add(block_map.len());
    if traversal_order.len() != levels || dimensions.len() != levels {
        return Err(Error::invalid(format!(
            "its sparsity has {} dimensions and a traversal order of {}, expected {levels}",
            dimensions.len(),
            traversal_order.len()
        )));
    }
    if let Some(dimension) = repeated_or_beyond(traversal_order, levels) {
        return Err(Error::invalid(format!(
            "its traversal order has dimension {dimension} of {levels} twice or out of range"
        )));
    }
    // At most one block dimension per dimension limits the number of levels to twice the rank.
    if let Some(dimension) = repeated_or_beyond(block_map, rank) {
        return Err(Error::invalid(format!(
            "its block map has dimension {dimension} of {rank} twice or out of range"
        )));
    }
    dimensions.iter().try_for_each(check_sparse_dimension)
}

/// The first index that is repeated or not below the count.
fn repeated_or_beyond(indices: &[usize], count: usize) -> Option<usize> {
    let mut seen = vec![false; count];
    let mut indices = indices.iter().copied();
    indices.find(|&index| seen.get_mut(index).is_none_or(|seen| std::mem::replace(seen, true)))
}

fn check_sparse_dimension(dimension: &SparseDimension) -> Result {
    let SparseDimension::Csr { segments, indices } = dimension else { return Ok(()) };
    let ascending = segments.is_sorted();
    if ascending && segments.first() == Some(&0) && segments.last() == Some(&indices.len()) {
        return Ok(());
    }
    Err(Error::invalid("the segments of a sparse dimension do not match its indices"))
}

/// Checks that each tensor is produced once, before it is read.
fn check_order(graph: &Subgraph) -> Result {
    let mut ready: Vec<bool> = graph.tensors.iter().map(is_given).collect();
    for &id in &graph.inputs {
        ready[id] = true;
    }
    for (index, operator) in graph.operators.iter().enumerate() {
        let place = |e: Error| e.in_operator(index, operator.op.to_string());
        for &id in operator.inputs.iter().flatten() {
            if !ready[id] {
                return Err(place(unproduced(graph, id, index)));
            }
        }
        for &id in &operator.outputs {
            if std::mem::replace(&mut ready[id], true) {
                let error = Error::invalid(
                    "is written although it is an input, a constant, or written by another operator",
                );
                return Err(place(error.in_tensor(id, &graph.tensor(id).name)));
            }
        }
    }
    match graph.outputs.iter().find(|&&id| !ready[id]) {
        Some(&id) => Err(unproduced(graph, id, graph.operators.len())),
        None => Ok(()),
    }
}

/// Whether a tensor has a value before the first operator runs.
fn is_given(tensor: &Tensor) -> bool {
    tensor.is_constant() || tensor.is_variable || tensor.unusable.is_some()
}

/// The error for tensor `id`, which operator `reader` reads before it is produced.
fn unproduced(graph: &Subgraph, id: TensorId, reader: usize) -> Error {
    let producer = graph.operators.iter().position(|op| op.outputs.contains(&id));
    let error = match producer {
        Some(producer) if producer >= reader => Error::invalid(format!(
            "is read before operator {producer} produces it: the operators are out of order"
        )),
        _ => Error::invalid(
            "is read, but nothing produces it: no input, constant, variable or result",
        ),
    };
    error.in_tensor(id, &graph.tensor(id).name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_have_at_most_one_block_dimension() {
        let sparsity = |block_map: &[usize]| Sparsity {
            traversal_order: (0..2 + block_map.len()).collect(),
            block_map: block_map.to_vec(),
            dimensions: vec![SparseDimension::Dense { size: 1 }; 2 + block_map.len()],
        };
        for allowed in [&[][..], &[1], &[0, 1], &[1, 0]] {
            assert!(check_sparsity(&sparsity(allowed), Some(&[1, 1])).is_ok(), "{allowed:?}");
        }
        for refused in [&[0, 0][..], &[1, 0, 1], &[2]] {
            assert!(check_sparsity(&sparsity(refused), Some(&[1, 1])).is_err(), "{refused:?}");
        }
    }
}
