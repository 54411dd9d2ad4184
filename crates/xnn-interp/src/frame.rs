//! The tensors of one activation of a subgraph.

use xnn_model::{DType, TensorId};

use crate::program::Graph;
use crate::tensor::{TensorBuf, TensorRef};

/// Tensors by index, those that exist at the moment, and the buffers of those
/// that do not any more.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    values: Vec<Option<TensorBuf>>,
    spare: Vec<TensorBuf>,
}

impl Frame {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut frame = Self { values: vec![None; graph.subgraph.tensors.len()], spare: vec![] };
        frame.reset_variables(graph);
        frame
    }

    /// Brings the state of recurrent operators to its beginning: zero, or the
    /// integer that stands for it.
    pub(crate) fn reset_variables(&mut self, graph: &Graph) {
        for (tensor, slot) in graph.subgraph.tensors.iter().zip(&mut self.values) {
            if !tensor.is_variable {
                continue;
            }
            *slot = tensor.shape.as_deref().and_then(|shape| {
                let mut state = TensorBuf::zeros(tensor.dtype, shape)?;
                if tensor.dtype == DType::I8
                    && let Some((_, zero_point)) = tensor.per_tensor()
                {
                    state.view_mut().bytes.fill(zero_point as u8);
                }
                Some(state)
            });
        }
    }

    /// A tensor of the frame, or a constant of the graph.
    pub(crate) fn get<'a>(&'a self, graph: &'a Graph, id: TensorId) -> Option<TensorRef<'a>> {
        match self.values.get(id) {
            Some(Some(value)) => Some(value.view()),
            _ => graph.constant(id),
        }
    }

    pub(crate) fn value_mut(&mut self, id: TensorId) -> Option<&mut TensorBuf> {
        self.values.get_mut(id)?.as_mut()
    }

    pub(crate) fn take(&mut self, id: TensorId) -> Option<TensorBuf> {
        self.values.get_mut(id)?.take()
    }

    pub(crate) fn put(&mut self, id: TensorId, value: TensorBuf) {
        if let Some(slot) = self.values.get_mut(id) {
            *slot = Some(value);
        }
    }

    /// Keeps a tensor's buffer for another.
    pub(crate) fn release(&mut self, id: TensorId) {
        if let Some(value) = self.take(id) {
            self.spare.push(value);
        }
    }

    /// The smallest spare buffer that holds `bytes`, else the largest.
    pub(crate) fn spare(&mut self, bytes: usize) -> Option<TensorBuf> {
        let capacities = self.spare.iter().map(TensorBuf::capacity).enumerate();
        let best = capacities.min_by_key(|&(_, capacity)| match capacity.checked_sub(bytes) {
            Some(surplus) => (0, surplus),
            None => (1, usize::MAX - capacity),
        });
        best.map(|(index, _)| self.spare.swap_remove(index))
    }
}
