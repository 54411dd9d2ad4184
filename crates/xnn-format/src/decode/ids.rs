//! Maps value ids of a file to values.

use std::collections::HashMap;

use crate::error::{Error, Result, require};
use crate::value::ValueId;
use crate::wire::NO_VALUE;

/// Values by their ids in the file.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<u32, ValueId>);

impl Ids {
    /// Assigns `id` to `value`.
    pub(super) fn define(&mut self, id: u32, value: ValueId) -> Result<()> {
        require!(id != NO_VALUE, "its id is missing");
        require!(self.0.insert(id, value).is_none(), "its id {id} is also used by another value");
        Ok(())
    }

    /// Reassigns `id` to another value.
    pub(super) fn redefine(&mut self, id: u32, value: ValueId) {
        self.0.insert(id, value);
    }

    /// The value with this id.
    pub(super) fn value(&self, id: u32) -> Result<ValueId> {
        self.0.get(&id).copied().ok_or_else(|| match id {
            NO_VALUE => Error::invalid("the id of an operand is missing"),
            id => Error::invalid(format!("no value has the id {id}")),
        })
    }

    /// The value with this id; `None` if it is omitted.
    pub(super) fn optional(&self, id: u32) -> Result<Option<ValueId>> {
        (id != NO_VALUE).then(|| self.value(id)).transpose()
    }
}
