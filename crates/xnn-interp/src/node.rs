//! An operator as its kernel sees it when the model is loaded.

use xnn_model::{DType, Operator, Subgraph, SubgraphId, Tensor};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::tensor::{Element, TensorView};

/// A kernel that is ready to run: types, quantization and options are settled,
/// shapes and values come with each call.
pub(crate) type Run = Box<dyn Fn(&mut Call<'_>) -> Result<(), Refusal> + Send + Sync>;

/// Makes a [`Run`] of an operator, or says why there is none for it.
pub(crate) type Prepare = fn(&Node<'_>) -> Result<Run, Refusal>;

/// Boxes a kernel; the closure's argument type is inferred here.
pub(crate) fn run(
    kernel: impl Fn(&mut Call<'_>) -> Result<(), Refusal> + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    Ok(Box::new(kernel))
}

/// An operator of a subgraph.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) subgraph: &'a Subgraph,
    pub(crate) operator: &'a Operator,
    /// The subgraph and the operator by their indices in the model.
    pub(crate) place: (SubgraphId, usize),
}

impl<'a> Node<'a> {
    pub(crate) fn input(&self, position: usize) -> Result<&'a Tensor, Refusal> {
        self.optional(position).ok_or_else(|| Refusal(format!("input {position} is missing")))
    }

    pub(crate) fn optional(&self, position: usize) -> Option<&'a Tensor> {
        self.subgraph.tensors.get(self.operator.input(position)?)
    }

    pub(crate) fn output(&self, position: usize) -> Result<&'a Tensor, Refusal> {
        self.operator
            .outputs
            .get(position)
            .and_then(|&id| self.subgraph.tensors.get(id))
            .ok_or_else(|| Refusal(format!("output {position} is missing")))
    }

    pub(crate) fn intermediate(&self, position: usize) -> Option<&'a Tensor> {
        self.subgraph.tensors.get(*self.operator.intermediates.get(position)?)
    }

    /// The element type that input 0 and output 0 share.
    pub(crate) fn common_type(&self) -> Result<DType, Refusal> {
        let (input, output) = (self.input(0)?.dtype, self.output(0)?.dtype);
        if input == output {
            Ok(input)
        } else {
            refuse(format!("input is {input}, output is {output}"))
        }
    }

    /// Refuses unless an input has the type.
    pub(crate) fn expect_input(&self, position: usize, dtype: DType) -> Result<(), Refusal> {
        match self.input(position)?.dtype {
            found if found == dtype => Ok(()),
            found => refuse(format!("input {position} is {found}, expected {dtype}")),
        }
    }

    /// Refuses unless an output has the type.
    pub(crate) fn expect_output(&self, position: usize, dtype: DType) -> Result<(), Refusal> {
        match self.output(position)?.dtype {
            found if found == dtype => Ok(()),
            found => refuse(format!("output {position} is {found}, expected {dtype}")),
        }
    }

    /// Refuses this type.
    pub(crate) fn unsupported<T>(&self, dtype: DType) -> Result<T, Refusal> {
        refuse(format!("element type {dtype}"))
    }
}

/// The elements of a constant, copied if the file does not align them.
pub(crate) fn constant<T: Element>(tensor: &Tensor) -> Option<Vec<T>> {
    if !T::DTYPES.contains(&tensor.dtype) {
        return None;
    }
    let data = tensor.data.as_deref()?;
    let elements = tensor.elements()?;
    let mut copy = vec![T::default(); elements];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut copy);
    bytes.copy_from_slice(data.get(..bytes.len())?);
    Some(copy)
}

/// Whether a tensor's elements are the same in every run.
pub(crate) fn is_fixed(tensor: &Tensor) -> bool {
    tensor.is_constant() && !tensor.is_variable
}

/// The elements of a view; a kernel has checked the type when it was prepared.
pub(crate) fn elements<'a, T: Element>(view: TensorView<'a>) -> Result<&'a [T], Refusal> {
    view.as_slice().ok_or_else(|| Refusal(format!("a tensor is {} unexpectedly", view.dtype)))
}
