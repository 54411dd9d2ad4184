//! The context in which an operator's kernel is prepared.

use std::num::NonZeroU8;

use xnn_model::{DType, Operator, Subgraph, SubgraphId, Tensor};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::tensor::{Element, TensorView};

/// A prepared kernel: types, quantization and options are settled, shapes and values come with each
/// call. Closures are kernels. `dyn Fn` would add two functions that nothing calls to each of hundreds.
pub(crate) trait Kernel: Send + Sync {
    fn compute(&self, call: &mut Call<'_>) -> Result<(), Refusal>;

    /// Computes the only element of the output from two operands of one element, or returns `None`
    /// if the kernel cannot, or the operands are different. Counters and conditions of loops take
    /// half of the time without a call.
    fn compute_single(&self, _operands: [TensorView<'_>; 2]) -> Option<Single> {
        None
    }
}

/// The bytes of one element, of at most eight: functions return it in registers.
#[derive(Clone, Copy)]
pub(crate) struct Single {
    bytes: [u8; 8],
    size: NonZeroU8,
}

impl Single {
    /// Returns `None` if the element has more bytes.
    pub(crate) fn of<T: Element>(element: T) -> Option<Self> {
        let mut bytes = [0; 8];
        let of_element = bytemuck::bytes_of(&element);
        bytes.get_mut(..of_element.len())?.copy_from_slice(of_element);
        Some(Self { bytes, size: NonZeroU8::new(size_of::<T>() as u8)? })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size.get()).min(self.bytes.len())]
    }
}

impl<F: Fn(&mut Call<'_>) -> Result<(), Refusal> + Send + Sync> Kernel for F {
    fn compute(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        self(call)
    }
}

/// A kernel of any operator.
pub(crate) type Run = Box<dyn Kernel>;

/// Prepares the kernel of an operator, or returns the reason why it cannot.
pub(crate) type Prepare = fn(&OperatorContext<'_>) -> Result<Run, Refusal>;

/// Boxes a kernel. The closure's argument type is inferred here.
pub(crate) fn run(
    kernel: impl Fn(&mut Call<'_>) -> Result<(), Refusal> + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    Ok(Box::new(kernel))
}

/// An operator with its subgraph, from which a kernel reads types, quantization and constants.
#[derive(Clone, Copy)]
pub(crate) struct OperatorContext<'a> {
    pub(crate) subgraph: &'a Subgraph,
    pub(crate) operator: &'a Operator,
    /// Indices of the subgraph and the operator in the model.
    pub(crate) place: (SubgraphId, usize),
}

impl<'a> OperatorContext<'a> {
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

    /// The element type of input 0 and output 0, which must be equal.
    pub(crate) fn common_type(&self) -> Result<DType, Refusal> {
        let (input, output) = (self.input(0)?.dtype, self.output(0)?.dtype);
        if input == output {
            Ok(input)
        } else {
            refuse(format!("the input is {input}, the output {output}; expected one element type"))
        }
    }

    /// Returns an error unless an input has this type.
    pub(crate) fn expect_input(&self, position: usize, dtype: DType) -> Result<(), Refusal> {
        match self.input(position)?.dtype {
            found if found == dtype => Ok(()),
            found => refuse(format!("input {position} is {found}, expected {dtype}")),
        }
    }

    /// Returns an error unless an output has this type.
    pub(crate) fn expect_output(&self, position: usize, dtype: DType) -> Result<(), Refusal> {
        match self.output(position)?.dtype {
            found if found == dtype => Ok(()),
            found => refuse(format!("output {position} is {found}, expected {dtype}")),
        }
    }

    /// Returns an error for an unsupported element type.
    pub(crate) fn unsupported<T>(&self, dtype: DType) -> Result<T, Refusal> {
        refuse(format!("element type {dtype}"))
    }
}

/// A copy of the elements of a constant, or `None` if it has another type.
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
