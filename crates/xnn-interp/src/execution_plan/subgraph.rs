//! The plan of one subgraph.

use std::sync::Arc;

use xnn_model::{DType, Operator, Subgraph, SubgraphId, Tensor, TensorId};

use super::step::Step;
use crate::arena::Lifetime;
use crate::error::Error;
use crate::storage::{Handover, TensorBuf};
use crate::tensor::{TensorView, storage_size};

/// A subgraph with its steps.
pub(crate) struct SubgraphPlan {
    pub(crate) id: SubgraphId,
    pub(crate) subgraph: Arc<Subgraph>,
    pub(crate) steps: Vec<Step>,
    /// Intermediate tensors in the arena, with their lifetimes.
    pub(crate) tenants: Vec<(TensorId, Lifetime)>,
    /// For each input, how a value that its owner does not need any more reaches it; `None` if
    /// nothing reads it.
    pub(crate) takes: Vec<Option<Handover>>,
    /// For each input, whether a run leaves it unchanged.
    pub(crate) keeps: Vec<bool>,
    /// For each output, how its value reaches the caller. Memory that the next run does not compute
    /// anew stays.
    pub(crate) gives: Vec<Handover>,
    /// Handles from VAR_HANDLE and HASHTABLE, which are the same in every run.
    pub(crate) handles: Vec<(TensorId, u64)>,
    /// Constants by tensor.
    constants: Vec<Constant>,
}

/// The memory of a constant.
enum Constant {
    /// The tensor is not constant.
    Absent,
    /// In the file, with this number of bytes.
    File(usize),
    /// In a copy, because the file does not align the elements for their type.
    Copy(TensorBuf),
}

impl SubgraphPlan {
    /// Creates the plan of a subgraph. Its constants must have the size that their shape needs.
    pub(crate) fn new(
        id: SubgraphId,
        subgraph: Arc<Subgraph>,
        steps: Vec<Step>,
        handles: Vec<(TensorId, u64)>,
    ) -> Result<Self, Error> {
        let constants = subgraph.tensors.iter().enumerate();
        let constants =
            constants.map(|(id, tensor)| Constant::of(id, tensor)).collect::<Result<_, _>>()?;
        Ok(Self {
            id,
            subgraph,
            steps,
            tenants: vec![],
            takes: vec![],
            keeps: vec![],
            gives: vec![],
            handles,
            constants,
        })
    }

    pub(crate) fn operator(&self, index: usize) -> &Operator {
        &self.subgraph.operators[index]
    }

    /// The elements of a constant.
    pub(crate) fn constant(&self, id: TensorId) -> Option<TensorView<'_>> {
        match self.constants.get(id)? {
            Constant::Absent => None,
            Constant::File(size) => {
                let tensor = self.subgraph.tensors.get(id)?;
                let bytes = tensor.data.as_deref()?.get(..*size)?;
                Some(TensorView { dtype: tensor.dtype, shape: tensor.shape.as_deref()?, bytes })
            }
            Constant::Copy(copy) => Some(copy.view()),
        }
    }

    /// Adds an operator to an error.
    pub(crate) fn locate(&self, index: usize, error: Error) -> Error {
        let name = self.subgraph.operators.get(index).map_or("", |o| o.op.name());
        error.at(self.id, index, name)
    }
}

impl Constant {
    /// Checks the size of a constant, and copies it if it is not aligned.
    fn of(id: TensorId, tensor: &Tensor) -> Result<Self, Error> {
        if tensor.unusable.is_some() || tensor.is_variable {
            return Ok(Self::Absent);
        }
        let (Some(data), Some(shape)) = (&tensor.data, &tensor.shape) else {
            return Ok(Self::Absent);
        };
        // DENSIFY reads sparse constants from the file, and packed strings contain their own count.
        if tensor.sparsity.is_some() || tensor.dtype == DType::String {
            return Ok(Self::File(data.len()));
        }
        let Some(size) = storage_size(tensor.dtype, shape) else { return Ok(Self::Absent) };
        let Some(dense) = data.get(..size) else {
            return Err(Error::invalid(format!(
                "tensor {id} ({:?}) has {} bytes, but its shape needs {size}",
                tensor.name,
                data.len()
            )));
        };
        let alignment = tensor.dtype.bits().unwrap_or(8).div_ceil(8).min(8);
        if dense.as_ptr().align_offset(alignment) == 0 {
            return Ok(Self::File(size));
        }
        let copy = TensorBuf::from_bytes(tensor.dtype, shape, dense);
        Ok(copy.map_or(Self::File(size), Self::Copy))
    }
}
