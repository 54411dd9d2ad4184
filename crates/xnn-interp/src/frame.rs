//! The tensors of one activation of a subgraph.

use xnn_model::{DType, TensorId};

use crate::program::Graph;
use crate::shapes::Shapes;
use crate::tensor::{TensorBuf, TensorRef};

/// Tensors by index, those that exist at the moment.
///
/// Tensors share buffers from a pool, one after the other. Every run goes the
/// same way, so a tensor finds in its place the buffer that it had last time.
#[derive(Debug)]
pub(crate) struct Frame {
    values: Vec<Option<TensorBuf>>,
    /// Buffers, `None` while a tensor has them.
    pool: Vec<Option<TensorBuf>>,
    /// By tensor, the place in the pool of its buffer.
    places: Vec<Option<usize>>,
    /// By step of the graph.
    pub(crate) shapes: Vec<Shapes>,
}

impl Frame {
    pub(crate) fn new(graph: &Graph) -> Self {
        let tensors = graph.subgraph.tensors.len();
        let mut frame = Self {
            values: vec![None; tensors],
            pool: vec![],
            places: vec![None; tensors],
            shapes: graph.steps.iter().map(|_| Shapes::default()).collect(),
        };
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

    /// A tensor of the frame.
    pub(crate) fn value(&self, id: TensorId) -> Option<&TensorBuf> {
        self.values.get(id)?.as_ref()
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

    /// Ends a tensor; its buffer is for others if it comes from the pool.
    pub(crate) fn release(&mut self, id: TensorId) {
        if let Some(value) = self.take(id)
            && let Some(Some(place)) = self.places.get(id)
            && let Some(slot) = self.pool.get_mut(*place)
        {
            *slot = Some(value);
        }
    }

    /// A buffer for a tensor of `bytes`: the one that it has, or had last time,
    /// or one that fits.
    pub(crate) fn buffer(&mut self, id: TensorId, dtype: DType, bytes: usize) -> TensorBuf {
        if let Some(value) = self.take(id) {
            return value;
        }
        let last = self.places.get(id).copied().flatten();
        let free = last.filter(|&place| matches!(self.pool.get(place), Some(Some(_))));
        let place = free.or_else(|| self.best_fit(bytes)).unwrap_or_else(|| {
            self.pool.push(None);
            self.pool.len() - 1
        });
        if let Some(last) = self.places.get_mut(id) {
            *last = Some(place);
        }
        let pooled = self.pool.get_mut(place).and_then(Option::take);
        pooled.unwrap_or_else(|| TensorBuf::empty(dtype))
    }

    /// The smallest buffer in the pool that holds `bytes`, else the largest.
    fn best_fit(&self, bytes: usize) -> Option<usize> {
        let free = self.pool.iter().enumerate();
        let capacities = free.filter_map(|(place, buf)| Some((place, buf.as_ref()?.capacity())));
        let best = capacities.min_by_key(|&(_, capacity)| match capacity.checked_sub(bytes) {
            Some(surplus) => (0, surplus),
            None => (1, usize::MAX - capacity),
        });
        best.map(|(place, _)| place)
    }
}
