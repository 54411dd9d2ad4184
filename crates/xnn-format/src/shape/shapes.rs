//! Shapes inferred so far.

use crate::error::{Error, Result, require};
use crate::value::ValueId;

/// Dimensions, row-major.
pub(super) type Dims = Vec<usize>;

/// The dimensions of all values as far as they have been inferred.
pub(super) struct Shapes {
    pub(super) dims: Vec<Dims>,
    /// Whether an input has no elements, so that other values may have none.
    pub(super) may_be_empty: bool,
}

impl Shapes {
    pub(super) fn of(&self, id: ValueId) -> Result<&[usize]> {
        let dims = self.dims.get(id.index()).map(Vec::as_slice);
        let dims = dims.ok_or_else(|| Error::invalid(format!("value {} does not exist", id.0)))?;
        require!(
            self.may_be_empty || !dims.contains(&0),
            "value {} has no elements: its shape is {dims:?}",
            id.0
        );
        Ok(dims)
    }

    pub(super) fn rank<const N: usize>(&self, id: ValueId) -> Result<[usize; N]> {
        let dims = self.of(id)?;
        dims.try_into().map_err(|_| {
            Error::invalid(format!(
                "value {} has the shape {dims:?}, expected {N} dimensions",
                id.0
            ))
        })
    }
}
