//! One tensor of a frame.

use std::mem;
use std::ops::Range;

use xnn_model::{DType, OutOfMemory};

use crate::error::ErrorKind;
use crate::resources::Variables;
use crate::storage::{Handover, Head, Line, Lines, Output, PaddedRef, TensorBuf, lines_of};
use crate::tensor::sized;

/// A tensor, or the place for one.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) head: Head,
    pub(super) memory: Memory,
    pub(super) exists: bool,
    /// Whether the tensor belongs in the arena.
    pub(super) is_tenant: bool,
    /// Number of lines that it needs there, as far as it is known, or 0.
    pub(super) wanted: usize,
}

#[derive(Debug)]
pub(super) enum Memory {
    Own(Vec<Line>),
    /// Lines of the arena.
    Arena(Range<usize>),
    /// The memory of the variable with this handle.
    Variable(u64),
}

impl Value {
    /// A tensor with memory of its own.
    pub(super) fn own(TensorBuf { head, lines }: TensorBuf, exists: bool) -> Self {
        Self { head, memory: Memory::Own(lines), exists, is_tenant: false, wanted: 0 }
    }

    /// The tensor in its memory. `arena` returns the lines of a place.
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

    /// Sets type and shape before a step writes the tensor; with the shape `None`, the kernel sets
    /// it. Returns whether the place in the arena is not sufficient.
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

    /// Exchanges memory with a tensor that has memory of its own, if this one does too and its size
    /// moves. Returns whether it did; the tensor then has no value any more.
    pub(super) fn trade(
        &mut self,
        head: &mut Head,
        lines: &mut Vec<Line>,
        handover: Handover,
    ) -> bool {
        let Self { memory: Memory::Own(own), exists, .. } = self else { return false };
        let trades = *exists && handover.moves(self.head.bytes());
        if trades {
            mem::swap(&mut self.head, head);
            mem::swap(own, lines);
            *exists = false;
        }
        trades
    }

    /// [`Value::trade`] with another tensor, which then has a value.
    pub(super) fn trade_with(&mut self, other: &mut Self, handover: Handover) -> bool {
        let Memory::Own(lines) = &mut other.memory else { return false };
        let traded = self.trade(&mut other.head, lines, handover);
        other.exists |= traded;
        traded
    }
}
