//! Ids of values in the file.

use std::collections::HashMap;

use crate::error::{Error, Result, require};
use crate::graph::ValueId;
use crate::wire::NO_VALUE;

/// From the ids that a file gives its values to their indices.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<u32, ValueId>);

impl Ids {
    /// Notes that `value` goes by `id`.
    pub(super) fn define(&mut self, id: u32, value: ValueId) -> Result<()> {
        require!(id != NO_VALUE, "its id is missing");
        require!(self.0.insert(id, value).is_none(), "its id {id} is another value's too");
        Ok(())
    }

    /// From now on `id` means another value.
    pub(super) fn redefine(&mut self, id: u32, value: ValueId) {
        self.0.insert(id, value);
    }

    /// The value that goes by `id`.
    pub(super) fn value(&self, id: u32) -> Result<ValueId> {
        self.0.get(&id).copied().ok_or_else(|| match id {
            NO_VALUE => Error::invalid("the id of an operand is missing"),
            id => Error::invalid(format!("no value has the id {id}")),
        })
    }

    /// The same for a value that may be left out.
    pub(super) fn optional(&self, id: u32) -> Result<Option<ValueId>> {
        (id != NO_VALUE).then(|| self.value(id)).transpose()
    }
}
