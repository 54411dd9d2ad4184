//! One tensor of a frame.

use std::mem;
use std::ops::Range;

use xnn_model::{DType, OutOfMemory};

use crate::error::{ErrorKind, Refusal, refuse};
use crate::resources::Variables;
use crate::storage::{Head, Line, Lines, Output, PaddedRef, TensorBuf, is_traded, lines_of};
use crate::tensor::{reserved_size, storage_size};

/// A tensor, or the place for it.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) head: Head,
    pub(super) memory: Memory,
    pub(super) exists: bool,
    /// Whether it belongs into the arena.
    pub(super) is_tenant: bool,
    /// Lines that it needs there, as far as is known; 0 where nothing is.
    pub(super) wanted: usize,
}

#[derive(Debug)]
pub(super) enum Memory {
    Own(Vec<Line>),
    /// Lines of the arena.
    Arena(Range<usize>),
    /// That of the variable with this handle.
    Variable(u64),
}

impl Value {
    /// A tensor with memory of its own.
    pub(super) fn own(TensorBuf { head, lines }: TensorBuf, exists: bool) -> Self {
        Self { head, memory: Memory::Own(lines), exists, is_tenant: false, wanted: 0 }
    }

    /// The tensor in its memory; `arena` has the lines of a place.
    pub(super) fn padded<'a>(
        &'a self,
        variables: &'a Variables,
        arena: impl FnOnce(Range<usize>) -> Option<&'a [Line]>,
    ) -> Option<PaddedRef<'a>> {
        let lines = match &self.memory {
            Memory::Own(lines) => lines,
            Memory::Arena(place) => arena(place.clone())?,
            Memory::Variable(handle) => {
                let TensorBuf { head, lines } = variables.get(*handle).ok()?;
                return Some(PaddedRef { head, lines });
            }
        };
        Some(PaddedRef { head: &self.head, lines })
    }

    /// Takes on the shape in which a step is going to write the tensor; `None`
    /// is for the kernel to tell. Whether its place in the arena does not suit.
    pub(super) fn prepare(
        &mut self,
        dtype: DType,
        shape: Option<&[usize]>,
        limit: usize,
    ) -> Result<bool, ErrorKind> {
        let bytes = match shape {
            Some(shape) => sized(dtype, shape, limit)?,
            None => 0,
        };
        let lines = lines_of(bytes);
        let suits = match &self.memory {
            Memory::Arena(place) => shape.is_some() && lines <= place.len(),
            Memory::Own(_) => shape.is_none() || !self.is_tenant,
            Memory::Variable(_) => false,
        };
        if !suits {
            self.wanted = if shape.is_some() { lines } else { 0 };
            if !matches!(self.memory, Memory::Own(_)) {
                self.memory = Memory::Own(vec![]);
            }
        }
        let Self { head, memory, .. } = self;
        match memory {
            Memory::Arena(_) | Memory::Variable(_) => head.set(dtype, shape.unwrap_or(&[0]), bytes),
            Memory::Own(lines) => Output { head, lines: Lines::Growing(lines) }
                .reshape(dtype, shape.unwrap_or(&[0]))
                .ok_or_else(|| OutOfMemory::new("a tensor", bytes))?,
        }
        Ok(!suits)
    }

    /// Changes memory with a tensor that has memory of its own, if this one does, and is so large that a
    /// copy would take longer. Whether it did; the tensor exists no more then.
    pub(super) fn trade(&mut self, head: &mut Head, lines: &mut Vec<Line>) -> bool {
        let Self { memory: Memory::Own(own), exists, .. } = self else { return false };
        let trades = *exists && is_traded(self.head.bytes());
        if trades {
            mem::swap(&mut self.head, head);
            mem::swap(own, lines);
            *exists = false;
        }
        trades
    }

    /// [`Value::trade`] with another tensor, which then exists.
    pub(super) fn trade_with(&mut self, other: &mut Self) -> bool {
        let Memory::Own(lines) = &mut other.memory else { return false };
        let traded = self.trade(&mut other.head, lines);
        other.exists |= traded;
        traded
    }
}

/// Bytes of a tensor, which must be within the limit. Of strings, the numbers that tell their places must be.
pub(crate) fn sized(dtype: DType, shape: &[usize], limit: usize) -> Result<usize, Refusal> {
    let counted = if dtype == DType::String { DType::I32 } else { dtype };
    match storage_size(counted, shape).zip(reserved_size(dtype, shape)) {
        Some((counted, bytes)) if counted <= limit => Ok(bytes),
        Some((bytes, _)) => {
            refuse(format!("shape {shape:?} takes {bytes} bytes, limit is {limit}"))
        }
        None => refuse(format!("a tensor of {dtype} and shape {shape:?} has no storage")),
    }
}
