//! An operator as its kernel sees it when it runs.

use smallvec::SmallVec;
use xnn_model::{DType, OutOfMemory};

use crate::error::{Refusal, refuse};
use crate::frame::{Outputs, sized};
use crate::kernels::Scratch;
use crate::node::elements;
use crate::philox::Generators;
use crate::resources::Tables;
use crate::storage::Output;
use crate::strings::{pack, unpack};
use crate::tensor::{Element, TensorView};
use crate::{Dims, INLINE};

/// Inputs up to which a call allocates nothing: those of an LSTM.
const INLINE_INPUTS: usize = 24;

/// Variables with their positions among an operator's inputs; most operators
/// have none.
pub(crate) type States<'a> = SmallVec<[(usize, Output<'a>); 2]>;

/// Integers that come from data: few where they are arguments.
pub(crate) type Ints = SmallVec<[i64; INLINE]>;

/// The tensors of one execution of an operator.
pub(crate) struct Call<'a> {
    /// One per input, `None` where an optional one is left out or is a
    /// variable (see `states`).
    pub(crate) inputs: SmallVec<[Option<TensorView<'a>>; INLINE_INPUTS]>,
    /// One per output. Where shape inference knew the shape they have it.
    pub(crate) outputs: Outputs<'a>,
    /// Inputs that keep their values from run to run, by position.
    pub(crate) states: States<'a>,
    pub(crate) tables: &'a mut Tables,
    pub(crate) generators: &'a mut Generators,
    /// Memory that kernels keep from call to call, until it is taken.
    pub(crate) scratch: Option<&'a mut Scratch>,
    /// Most bytes of an output whose shape the kernel finds.
    pub(crate) max_tensor_bytes: usize,
    /// What there was no memory for.
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

    /// The shape of an input that must have `N` dimensions.
    pub(crate) fn dims<const N: usize>(&self, position: usize) -> Result<[usize; N], Refusal> {
        let shape = self.shape(position)?;
        shape.try_into().map_err(|_| {
            Refusal(format!("input {position} has rank {}, expected {N}", shape.len()))
        })
    }

    pub(crate) fn input<T: Element>(&self, position: usize) -> Result<&'a [T], Refusal> {
        elements(self.tensor(position)?)
    }

    /// The elements of an input that may be left out.
    pub(crate) fn optional_input<T: Element>(
        &self,
        position: usize,
    ) -> Result<Option<&'a [T]>, Refusal> {
        self.optional(position).map(elements).transpose()
    }

    /// A bias that may be left out: one element per output channel.
    pub(crate) fn bias<T: Element>(
        &self,
        position: usize,
        channels: usize,
    ) -> Result<Option<&'a [T]>, Refusal> {
        match self.optional_input::<T>(position)? {
            Some(bias) if bias.len() != channels => {
                refuse(format!("a bias of {} for {channels} output channels", bias.len()))
            }
            bias => Ok(bias),
        }
    }

    /// The strings of an input.
    pub(crate) fn strings(&self, position: usize) -> Result<Vec<&'a [u8]>, Refusal> {
        unpack(self.tensor(position)?)
    }

    /// Gives an output strings, as many as the shape says.
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

    /// The elements of an integer input, widened.
    pub(crate) fn ints(&self, position: usize) -> Result<Ints, Refusal> {
        ints(self.tensor(position)?)
    }

    /// The element of an integer input that must have just one.
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

    /// The shape of an output that must have `N` dimensions.
    pub(crate) fn output_dims<const N: usize>(
        &self,
        position: usize,
    ) -> Result<[usize; N], Refusal> {
        let shape = self.output_shape(position)?;
        shape.as_slice().try_into().map_err(|_| {
            Refusal(format!("output {position} has rank {}, expected {N}", shape.len()))
        })
    }

    pub(crate) fn output<T: Element>(&mut self, position: usize) -> Result<&mut [T], Refusal> {
        match self.outputs.get_mut(position) {
            Some(output) => {
                let dtype = output.dtype();
                output
                    .view_mut()
                    .into_slice()
                    .ok_or_else(|| Refusal(format!("output {position} is {dtype} unexpectedly")))
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

    /// Gives an output its shape, where the shape depends on values.
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

    /// Memory whose contents are those of some call before; it can be taken once.
    pub(crate) fn take_scratch(&mut self) -> Result<&'a mut Scratch, Refusal> {
        self.scratch.take().ok_or_else(|| Refusal("the scratch memory is taken".into()))
    }

    /// The elements of a variable input, to be changed; each can be taken once.
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
        elements
            .ok_or_else(|| Refusal(format!("the state (input {position}) is {dtype} unexpectedly")))
    }
}

/// The elements of an integer or boolean tensor, widened.
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

/// A size or position that comes from data.
pub(crate) fn size(value: i64) -> Result<usize, Refusal> {
    usize::try_from(value).or_else(|_| refuse(format!("{value} is not a size")))
}

/// Axes that come from data: each possibly negative.
pub(crate) fn axis(value: i64, rank: usize) -> Result<usize, Refusal> {
    Ok(xnn_model::infer::axis_in_rank(value, rank)?)
}
