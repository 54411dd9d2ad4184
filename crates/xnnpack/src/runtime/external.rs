//! Inputs and outputs of a runtime, and their memory.

use crate::buffer::{Extent, OutputSlice, PaddedSlice};
use crate::status::{Error, Result};
use crate::subgraph::Subgraph;
use crate::value::{Datatype, ExternalId, Role, Shape};

/// Memory of an external tensor during one run.
#[derive(Debug)]
pub enum Binding<'a> {
    /// Elements of an input, followed by [`EXTRA_BYTES`](crate::EXTRA_BYTES) readable bytes.
    Input(ExternalId, PaddedSlice<'a>),
    /// Memory that the elements of an output are written to.
    Output(ExternalId, OutputSlice<'a>),
}

/// An input or output of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// External id.
    pub id: ExternalId,
    /// Whether it is an input; otherwise it is an output.
    pub is_input: bool,
    /// Element type.
    pub datatype: Datatype,
    /// Present shape.
    pub shape: Shape,
    /// Size of its buffer in bytes.
    pub bytes: usize,
}

/// An external tensor.
pub(super) struct Slot {
    pub(super) external: External,
    /// Index of the value in the subgraph.
    pub(super) value: usize,
    /// XNNPACK's id.
    pub(super) raw_id: u32,
    /// Number of readable bytes that must follow the buffer.
    pub(super) padding: usize,
    /// Shape that the next reshape applies.
    pub(super) pending: Shape,
    /// Whether it is bound in the present run.
    pub(super) bound: bool,
}

/// The external tensors of `subgraph`, sorted by id.
pub(super) fn slots(
    subgraph: &Subgraph,
    shapes: &[Option<Shape>],
    padding: usize,
) -> Result<Vec<Slot>> {
    let mut slots = Vec::new();
    for (raw_id, value) in (0u32..).zip(subgraph.externals()) {
        let description = &subgraph.values()[value];
        let (id, is_input) = match description.role {
            Role::Input(id) => (id, true),
            Role::Output(id) => (id, false),
            Role::Internal | Role::Static(_) | Role::Fp16Weights(_) | Role::Persistent => continue,
        };
        let Some(shape) = shapes[value] else { continue };
        let datatype = description.datatype;
        let bytes = shape.bytes(datatype)?;
        let is_read = is_input || description.consumed;
        slots.push(Slot {
            external: External { id, is_input, datatype, shape, bytes },
            value,
            raw_id,
            padding: if is_read { padding } else { 0 },
            pending: shape,
            bound: false,
        });
    }
    slots.sort_by_key(|slot| slot.external.id);
    Ok(slots)
}

impl Slot {
    /// Refuses memory that does not match the tensor.
    pub(super) fn accept(&self, is_input: bool, extent: Extent) -> Result<()> {
        let External { id, bytes, datatype, .. } = &self.external;
        if is_input != self.external.is_input {
            let actual =
                if is_input { "an output, not an input" } else { "an input, not an output" };
            return Err(Error::invalid(format!("{id} is {actual}")));
        }
        if self.bound {
            return Err(Error::invalid(format!("{id} is bound twice")));
        }
        if extent.len != *bytes {
            return Err(Error::invalid(format!(
                "{id}: expected {bytes} bytes, found {}",
                extent.len
            )));
        }
        if !extent.start.addr().get().is_multiple_of(datatype.alignment()) {
            return Err(Error::invalid(format!("{id}: the buffer is not aligned for {datatype}")));
        }
        if extent.readable_after < self.padding {
            return Err(Error::invalid(format!(
                "{id}: expected {} readable bytes after the buffer, found {}",
                self.padding, extent.readable_after
            )));
        }
        Ok(())
    }
}
