//! Tensors of a subgraph: descriptions, present shapes and XNNPACK's ids.

use xnnpack_sys as sys;

use crate::status::{Error, Result};
use crate::value::{Datatype, Quantization, Role, Shape, ValueId};

/// A tensor, with its producer and uses.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) datatype: Datatype,
    pub(crate) quantization: Quantization,
    pub(crate) role: Role,
    /// Index of the node that computes it.
    pub(crate) producer: Option<usize>,
    /// Whether a node reads it.
    pub(crate) consumed: bool,
    /// Pooling window that its elements are positions in, for index outputs.
    pub(crate) indices: Option<[u32; 2]>,
}

/// Values of a subgraph with their present shapes.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) shapes: &'a [Option<Shape>],
    /// Shapes with which the nodes were defined.
    pub(crate) defined: &'a [Option<Shape>],
    /// Whether present shapes differ from the defined ones only in the first dimension, the batch.
    pub(crate) only_batch: bool,
}

impl<'a> Context<'a> {
    fn value(&self, id: ValueId) -> Result<&'a Value> {
        index(id).and_then(|index| self.values.get(index)).ok_or_else(|| unknown(id))
    }

    pub(crate) fn shape(&self, id: ValueId) -> Result<Shape> {
        index(id)
            .and_then(|index| self.shapes.get(index).copied().flatten())
            .ok_or_else(|| Error::invalid(format!("the shape of {id} is unknown")))
    }

    /// Shape of the tensor when its readers were defined.
    pub(crate) fn defined_shape(&self, id: ValueId) -> Option<Shape> {
        index(id).and_then(|index| self.defined.get(index).copied().flatten())
    }

    /// Shape of a tensor that must have four dimensions, such as NHWC.
    pub(crate) fn shape4(&self, id: ValueId) -> Result<[usize; 4]> {
        let shape = self.shape(id)?;
        <[usize; 4]>::try_from(&*shape).map_err(|_| {
            Error::invalid(format!("{id} has shape {shape:?}; expected four dimensions"))
        })
    }

    /// Length of the innermost dimension.
    pub(crate) fn channels(&self, id: ValueId) -> Option<usize> {
        self.shape(id).ok()?.last().copied()
    }

    /// Whether the padding of a convolution stays valid when shapes change from `old`. For an input
    /// quantized at run time, XNNPACK keeps a row of padding per image, and resizes their list too
    /// late or by the wrong count.
    pub(crate) fn keeps_padding_rows(&self, input: ValueId, old: &Self) -> bool {
        self.datatype(input) != Ok(Datatype::Qdint8) || self.shape(input) == old.shape(input)
    }

    pub(crate) fn datatype(&self, id: ValueId) -> Result<Datatype> {
        Ok(self.value(id)?.datatype)
    }

    pub(crate) fn quantization(&self, id: ValueId) -> Result<&'a Quantization> {
        Ok(&self.value(id)?.quantization)
    }

    /// Bytes of a constant; `None` for fp16 weights and tensors that are not constant.
    pub(crate) fn static_bytes(&self, id: ValueId) -> Result<Option<&'a [u8]>> {
        match &self.value(id)?.role {
            Role::Static(data) => Ok(Some(data.bytes())),
            _ => Ok(None),
        }
    }

    pub(crate) fn is_fp16_weights(&self, id: ValueId) -> Result<bool> {
        Ok(matches!(self.value(id)?.role, Role::Fp16Weights(_)))
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
        Err(Error::unsupported(format!("{id} has datatype {datatype}; expected one of {allowed}")))
    }

    /// Refuses a tensor that is not the index output of a pooling with this window.
    pub(crate) fn expect_indices(&self, id: ValueId, pooling: [u32; 2]) -> Result<()> {
        if self.value(id)?.indices == Some(pooling) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{id} is not the index output of an argmax pooling over {pooling:?}"
        )))
    }

    /// Refuses an output whose datatype or quantization differs from that of the input.
    pub(crate) fn expect_same_type(&self, input: ValueId, output: ValueId) -> Result<()> {
        let (from, to) = (self.datatype(input)?, self.datatype(output)?);
        if from != to {
            return Err(Error::invalid(format!(
                "{input} has datatype {from}, but {output} has {to}"
            )));
        }
        if self.quantization(input)? != self.quantization(output)? {
            return Err(Error::invalid(format!(
                "{input} and {output} differ in scale or zero point"
            )));
        }
        Ok(())
    }
}

/// XNNPACK's ids of the values of a subgraph.
#[derive(Clone, Copy)]
pub struct RawIds<'a> {
    pub(crate) ids: &'a [u32],
}

impl RawIds<'_> {
    /// XNNPACK's id of a value; the invalid id, which XNNPACK refuses, for a value that was not
    /// defined.
    pub(crate) fn of(&self, id: ValueId) -> u32 {
        index(id)
            .and_then(|index| self.ids.get(index).copied())
            .unwrap_or(sys::XNN_INVALID_VALUE_ID)
    }

    /// XNNPACK's id of an optional operand; the invalid id if it is absent.
    pub(crate) fn optional(&self, id: Option<ValueId>) -> u32 {
        id.map_or(sys::XNN_INVALID_VALUE_ID, |id| self.of(id))
    }
}

/// Position of a value in the tables of its subgraph.
pub(crate) fn index(id: ValueId) -> Option<usize> {
    usize::try_from(id.index).ok()
}

pub(super) fn unknown(id: ValueId) -> Error {
    Error::invalid(format!("{id} does not belong to this subgraph"))
}
