//! What every kind of node provides: links, checks, shape inference and its definition in XNNPACK.

use std::fmt::Debug;

use smallvec::SmallVec;
use xnnpack_sys as sys;

use super::{OutputRange, Subgraph, Value};
use crate::status::{Error, Result};
use crate::value::{Datatype, Quantization, Role, Shape, ValueId};

/// A node that [`Subgraph::define`](super::Subgraph::define) takes. Implemented by the parameter
/// structures of this crate and by nothing else.
pub trait Node: Operator + 'static {}

impl<T: Operator + 'static> Node for T {}

/// Tensors that a node reads and writes. They are asked for many times while a runtime is made: few take no memory of their own.
#[derive(Debug, Default)]
pub struct Links {
    pub(crate) inputs: SmallVec<[ValueId; 3]>,
    pub(crate) outputs: SmallVec<[ValueId; 1]>,
    /// Those inputs that XNNPACK, where they are constant, reads only once, to pack them, and never
    /// beyond their end (`csrc/packing/within_rows.c` of `xnnpack-sys`).
    pub(crate) packed: SmallVec<[ValueId; 2]>,
    /// The one of these that XNNPACK asks a weights cache for before it reads it.
    pub(crate) looked_up: Option<ValueId>,
}

impl Links {
    pub(crate) fn new(
        inputs: impl IntoIterator<Item = ValueId>,
        outputs: impl IntoIterator<Item = ValueId>,
    ) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            packed: SmallVec::new(),
            looked_up: None,
        }
    }

    pub(crate) fn packing(mut self, operands: impl IntoIterator<Item = ValueId>) -> Self {
        self.packed.extend(operands);
        self
    }

    pub(crate) fn looking_up(self, operand: Option<ValueId>) -> Self {
        Self { looked_up: operand, ..self }
    }
}

/// The part that a node plays when XNNPACK fuses nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fusion {
    /// None.
    None,
    /// Bounds its output, and takes the bounds of a clamp behind it, too.
    Bounds(OutputRange),
    /// The same, and has padding where those bounds are written to.
    BoundsAndPads(OutputRange),
    /// A clamp, which takes the bounds of one behind it, too.
    Clamp(OutputRange),
    /// A constant pad, which can become the padding of a convolution.
    Pad,
    /// Writes an output that nothing may leave out.
    NeedsAllOutputs,
}

/// How a kind of node is checked and handed to XNNPACK.
///
/// XNNPACK trusts what it is given in many places, so `check` and `infer` together refuse
/// everything that would make it read or write out of bounds, divide by zero or reach unreachable
/// code, for the shapes at hand. `infer` runs again before every reshape.
pub trait Operator: Debug + Send + Sync {
    /// Kind of the node, as XNNPACK's functions name it.
    fn kind(&self) -> &'static str;

    /// Tensors that it reads and writes.
    fn links(&self) -> Links;

    /// Checks parameters, datatypes, quantization and constant operands.
    fn check(&self, cx: &Context<'_>) -> Result<()>;

    /// Shapes of the outputs, from those of the inputs.
    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>>;

    /// Whether XNNPACK can go from the shapes `old` to the shapes `new` without a new runtime.
    /// `peaks` are the most bytes that each tensor has had so far: XNNPACK plans memory anew when
    /// a tensor grows beyond.
    fn reshapes_in_place(&self, _old: &Context<'_>, _new: &Context<'_>, _peaks: &[usize]) -> bool {
        true
    }

    /// The filter that stays in fp16 when it is packed.
    fn half_filter(&self) -> Option<ValueId> {
        None
    }

    /// Whether it runs sparse kernels, which read further behind tensors and change their weights.
    fn is_sparse(&self) -> bool {
        false
    }

    /// The part that it plays when XNNPACK fuses nodes.
    fn fusion(&self) -> Fusion {
        Fusion::None
    }

    /// Whether XNNPACK can run it in channels-first layout, which it may choose for sparse kernels.
    fn runs_channels_first(&self) -> bool {
        true
    }

    /// An output whose elements are positions in a pooling window, and the window.
    fn indices(&self) -> Option<(ValueId, [u32; 2])> {
        None
    }

    /// Defines the node.
    ///
    /// # Safety
    /// `graph` must be a live subgraph in which all values of `ids` have been defined with the
    /// shapes that `infer` gave, and `check` and `infer` must have succeeded for them.
    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status;
}

/// Values of a subgraph together with the shapes that they have at the moment.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) shapes: &'a [Option<Shape>],
    /// The shapes in which the nodes were defined.
    pub(crate) defined: &'a [Option<Shape>],
    /// Whether tensors have other shapes than those in nothing but their first dimension, the batch.
    pub(crate) only_batch: bool,
}

impl<'a> Context<'a> {
    fn value(&self, id: ValueId) -> Result<&'a Value> {
        index(id).and_then(|index| self.values.get(index)).ok_or_else(|| unknown(id))
    }

    pub(crate) fn shape(&self, id: ValueId) -> Result<Shape> {
        index(id)
            .and_then(|index| self.shapes.get(index).copied().flatten())
            .ok_or_else(|| Error::invalid(format!("the shape of {id} is not known")))
    }

    /// The shape that the tensor had when its readers were defined.
    pub(crate) fn defined_shape(&self, id: ValueId) -> Option<Shape> {
        index(id).and_then(|index| self.defined.get(index).copied().flatten())
    }

    /// Shape of a tensor that must have four dimensions, NHWC or as the operator says.
    pub(crate) fn shape4(&self, id: ValueId) -> Result<[usize; 4]> {
        let shape = self.shape(id)?;
        <[usize; 4]>::try_from(&*shape).map_err(|_| {
            Error::invalid(format!("{id} has shape {shape:?}; four dimensions are needed"))
        })
    }

    /// Innermost dimension.
    pub(crate) fn channels(&self, id: ValueId) -> Option<usize> {
        self.shape(id).ok()?.last().copied()
    }

    /// Whether the padding of a convolution survives the change from `old` shapes. XNNPACK keeps a
    /// row of it per image of a dynamically quantized input, and resizes their list late or by the
    /// wrong count.
    pub(crate) fn keeps_padding_rows(&self, input: ValueId, old: &Self) -> bool {
        self.datatype(input) != Ok(Datatype::Qdint8) || self.shape(input) == old.shape(input)
    }

    pub(crate) fn datatype(&self, id: ValueId) -> Result<Datatype> {
        Ok(self.value(id)?.datatype)
    }

    pub(crate) fn quantization(&self, id: ValueId) -> Result<&'a Quantization> {
        Ok(&self.value(id)?.quantization)
    }

    /// A constant's bytes, but for one of fp16 that becomes fp32.
    pub(crate) fn static_bytes(&self, id: ValueId) -> Result<Option<&'a [u8]>> {
        match &self.value(id)?.role {
            Role::Static(data) => Ok(Some(data.bytes())),
            _ => Ok(None),
        }
    }

    pub(crate) fn is_kept_in_halves(&self, id: ValueId) -> Result<bool> {
        Ok(matches!(self.value(id)?.role, Role::Halves(_)))
    }

    pub(crate) fn is_static(&self, id: ValueId) -> Result<bool> {
        Ok(self.value(id)?.role.is_constant())
    }

    /// Refuses datatypes outside `allowed`.
    pub(crate) fn expect_datatype(&self, id: ValueId, allowed: &[Datatype]) -> Result<Datatype> {
        let datatype = self.datatype(id)?;
        if allowed.contains(&datatype) {
            return Ok(datatype);
        }
        let allowed = allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(Error::unsupported(format!("{id} is {datatype}; possible are {allowed}")))
    }

    /// Refuses a tensor whose elements are not known to be positions in a window of this size.
    pub(crate) fn expect_indices(&self, id: ValueId, pooling: [u32; 2]) -> Result<()> {
        if self.value(id)?.indices == Some(pooling) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{id} is not the index output of an argmax pooling over {pooling:?}"
        )))
    }

    /// Refuses an output whose datatype or per-tensor quantization differs from the input's.
    pub(crate) fn expect_same_type(&self, input: ValueId, output: ValueId) -> Result<()> {
        let (from, to) = (self.datatype(input)?, self.datatype(output)?);
        if from != to {
            return Err(Error::invalid(format!("{input} is {from}, but {output} is {to}")));
        }
        if self.quantization(input)? != self.quantization(output)? {
            return Err(Error::invalid(format!(
                "{input} and {output} differ in scale or zero point"
            )));
        }
        Ok(())
    }
}

/// Ids that XNNPACK gave to the values of a subgraph.
#[derive(Clone, Copy)]
pub struct RawIds<'a> {
    pub(crate) ids: &'a [u32],
}

impl RawIds<'_> {
    /// XNNPACK's id; an invalid one, which XNNPACK refuses, for a value that was not defined.
    pub(crate) fn of(&self, id: ValueId) -> u32 {
        index(id)
            .and_then(|index| self.ids.get(index).copied())
            .unwrap_or(sys::XNN_INVALID_VALUE_ID)
    }

    /// XNNPACK's id, or the invalid one that stands for an operand left out.
    pub(crate) fn optional(&self, id: Option<ValueId>) -> u32 {
        id.map_or(sys::XNN_INVALID_VALUE_ID, |id| self.of(id))
    }
}

/// Position of a value in the tables of its subgraph.
pub(crate) fn index(id: ValueId) -> Option<usize> {
    usize::try_from(id.index).ok()
}

fn unknown(id: ValueId) -> Error {
    Error::invalid(format!("{id} does not belong to this subgraph"))
}

impl Subgraph {
    /// Refuses ids of other subgraphs.
    pub(super) fn own(&self, id: ValueId) -> Result<usize> {
        index(id)
            .filter(|&index| id.subgraph == self.token && index < self.values.len())
            .ok_or_else(|| unknown(id))
    }
}
