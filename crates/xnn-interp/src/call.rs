//! The tensors of an operator during one execution.

use smallvec::SmallVec;
use xnn_model::{DType, OutOfMemory};

use crate::dims::{Dims, INLINE};
use crate::error::{Refusal, refuse};
use crate::philox::Generators;
use crate::resources::Tables;
use crate::scratch::Scratch;
use crate::storage::{Output, Outputs};
use crate::strings::{pack, unpack};
use crate::tensor::{Element, TensorView, sized};

/// Number of inputs up to which a call does not allocate: those of an LSTM.
const INLINE_INPUTS: usize = 24;

/// Variables with their positions among an operator's inputs. Most operators have none.
pub(crate) type States<'a> = SmallVec<[(usize, Output<'a>); 2]>;

/// Integers that are read from a tensor. As arguments they are few.
pub(crate) type Ints = SmallVec<[i64; INLINE]>;

/// The tensors of one execution of an operator.
pub(crate) struct Call<'a> {
    /// One per input; `None` if an optional input is absent or the input is a variable (see
    /// `states`).
    pub(crate) inputs: SmallVec<[Option<TensorView<'a>>; INLINE_INPUTS]>,
    /// One per output. An output whose shape is known by inference already has it.
    pub(crate) outputs: Outputs<'a>,
    /// Inputs that keep their values between runs, by position.
    pub(crate) states: States<'a>,
    pub(crate) tables: &'a mut Tables,
    pub(crate) generators: &'a mut Generators,
    /// Memory that kernels reuse in each call, until it is taken.
    pub(crate) scratch: Option<&'a mut Scratch>,
    /// Limit in bytes for an output whose shape the kernel determines.
    pub(crate) max_tensor_bytes: usize,
    /// The allocation that failed, if one did.
    pub(crate) exhausted: Option<OutOfMemory>,
}

impl<'a> Call<'a> {
    pub(crate) fn tensor(&self, position: usize) -> Result<TensorView<'a>, Refusal> {
        self.optional(position).ok_or_else(|| Refusal(format!("input {position} is missing")))
    }

    pub(crate) fn optional(&self, position: usize) -> Option<TensorView<'a>> {
        self.inputs.get(position).copied().flatten()
    }

    pub(crate) fn shape(&self, position: usize) -> Result<&'a [usize], Refusal> {
        Ok(self.tensor(position)?.shape)
    }

    /// The shape of an input, which must have `N` dimensions.
    pub(crate) fn dims<const N: usize>(&self, position: usize) -> Result<[usize; N], Refusal> {
        let shape = self.shape(position)?;
        shape.try_into().map_err(|_| {
            Refusal(format!("input {position} has rank {}, expected {N}", shape.len()))
        })
    }

    #[inline(never)] // Hundreds of kernels call it, each once in a run.
    pub(crate) fn input<T: Element>(&self, position: usize) -> Result<&'a [T], Refusal> {
        elements(self.tensor(position)?)
    }

    /// The elements of an optional input.
    pub(crate) fn optional_input<T: Element>(
        &self,
        position: usize,
    ) -> Result<Option<&'a [T]>, Refusal> {
        self.optional(position).map(elements).transpose()
    }

    /// The elements of an optional bias, one per output channel.
    pub(crate) fn bias<T: Element>(
        &self,
        position: usize,
        channels: usize,
    ) -> Result<Option<&'a [T]>, Refusal> {
        match self.optional_input::<T>(position)? {
            Some(bias) if bias.len() != channels => {
                refuse(format!("the bias has {} elements, expected {channels}", bias.len()))
            }
            bias => Ok(bias),
        }
    }

    /// The strings of an input.
    pub(crate) fn strings(&self, position: usize) -> Result<Vec<&'a [u8]>, Refusal> {
        let tensor = self.tensor(position)?;
        unpack(tensor.shape, tensor.bytes)
    }

    /// Writes strings to an output. There must be as many as the shape has elements.
    pub(crate) fn put_strings(
        &mut self,
        position: usize,
        shape: &[usize],
        strings: &[&[u8]],
    ) -> Result<(), Refusal> {
        let bytes = pack(strings, self.max_tensor_bytes)?;
        let Some(output) = self.outputs.get_mut(position) else {
            return refuse(format!("output {position} is missing"));
        };
        let value = TensorView { dtype: DType::String, shape, bytes: &bytes };
        if output.assign(value).is_none() {
            let exhausted = self.exhausted.insert(OutOfMemory::new("strings", bytes.len()));
            return Err(Refusal(exhausted.to_string()));
        }
        Ok(())
    }

    /// The elements of an integer input, widened to 64 bits.
    pub(crate) fn ints(&self, position: usize) -> Result<Ints, Refusal> {
        ints(self.tensor(position)?)
    }

    /// The element of an integer input, which must have exactly one.
    pub(crate) fn int(&self, position: usize) -> Result<i64, Refusal> {
        match self.ints(position)?.as_slice() {
            [value] => Ok(*value),
            many => refuse(format!("input {position} has {} elements, expected 1", many.len())),
        }
    }

    pub(crate) fn output_shape(&self, position: usize) -> Result<Dims, Refusal> {
        match self.outputs.get(position) {
            Some(output) => Ok(Dims::from_slice(output.shape())),
            None => refuse(format!("output {position} is missing")),
        }
    }

    /// The shape of an output, which must have `N` dimensions.
    pub(crate) fn output_dims<const N: usize>(
        &self,
        position: usize,
    ) -> Result<[usize; N], Refusal> {
        let shape = self.output_shape(position)?;
        shape.as_slice().try_into().map_err(|_| {
            Refusal(format!("output {position} has rank {}, expected {N}", shape.len()))
        })
    }

    #[inline(never)]
    pub(crate) fn output<T: Element>(&mut self, position: usize) -> Result<&mut [T], Refusal> {
        match self.outputs.get_mut(position) {
            Some(output) => {
                let dtype = output.dtype();
                output.view_mut().into_slice().ok_or_else(|| {
                    Refusal(format!("output {position} has unexpected element type {dtype}"))
                })
            }
            None => refuse(format!("output {position} is missing")),
        }
    }

    pub(crate) fn output_bytes(&mut self, position: usize) -> Result<&mut [u8], Refusal> {
        match self.outputs.get_mut(position) {
            Some(output) => Ok(output.view_mut().bytes),
            None => refuse(format!("output {position} is missing")),
        }
    }

    /// Sets the shape of an output whose shape depends on values.
    pub(crate) fn allocate(&mut self, position: usize, shape: &[usize]) -> Result<(), Refusal> {
        let Some(output) = self.outputs.get_mut(position) else {
            return refuse(format!("output {position} is missing"));
        };
        let bytes = sized(output.dtype(), shape, self.max_tensor_bytes)?;
        output.resize(shape).ok_or_else(|| {
            let exhausted = self.exhausted.insert(OutOfMemory::new("an output", bytes));
            Refusal(exhausted.to_string())
        })
    }

    /// Memory with arbitrary contents. It can be taken once per call.
    pub(crate) fn take_scratch(&mut self) -> Result<&'a mut Scratch, Refusal> {
        self.scratch.take().ok_or_else(|| Refusal("the scratch memory is already taken".into()))
    }

    /// The elements of a variable input, to be changed. Each can be taken once per call.
    pub(crate) fn take_state<T: Element>(
        &mut self,
        position: usize,
    ) -> Result<&'a mut [T], Refusal> {
        let Some(index) = self.states.iter().position(|(at, _)| *at == position) else {
            return refuse(format!("input {position} is not a variable"));
        };
        let (_, state) = self.states.swap_remove(index);
        let dtype = state.dtype();
        let elements = state.into_view_mut().into_slice();
        elements.ok_or_else(|| {
            Refusal(format!("the state (input {position}) has unexpected element type {dtype}"))
        })
    }
}

/// The elements of a view, whose type was checked when the kernel was prepared.
pub(crate) fn elements<'a, T: Element>(view: TensorView<'a>) -> Result<&'a [T], Refusal> {
    view.as_slice()
        .ok_or_else(|| Refusal(format!("a tensor has unexpected element type {}", view.dtype)))
}

/// The elements of an integer or boolean tensor, widened to 64 bits.
pub(crate) fn ints(tensor: TensorView<'_>) -> Result<Ints, Refusal> {
    fn widen<T: Element + Into<i64>>(tensor: TensorView<'_>) -> Result<Ints, Refusal> {
        Ok(elements::<T>(tensor)?.iter().map(|&v| v.into()).collect())
    }
    match tensor.dtype {
        DType::I8 => widen::<i8>(tensor),
        DType::U8 | DType::Bool => widen::<u8>(tensor),
        DType::I16 => widen::<i16>(tensor),
        DType::U16 => widen::<u16>(tensor),
        DType::I32 => widen::<i32>(tensor),
        DType::U32 => widen::<u32>(tensor),
        DType::I64 => widen::<i64>(tensor),
        other => refuse(format!("a tensor is {other}, expected integers")),
    }
}

/// A size or position that is read from a tensor.
pub(crate) fn size(value: i64) -> Result<usize, Refusal> {
    usize::try_from(value).or_else(|_| refuse(format!("{value} is not a size")))
}

/// An axis that is read from a tensor; negative ones count from the end.
pub(crate) fn axis(value: i64, rank: usize) -> Result<usize, Refusal> {
    Ok(xnn_model::infer::axis_in_rank(value, rank)?)
}
