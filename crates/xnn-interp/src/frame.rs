//! The tensors of one activation of a subgraph.

mod value;

use std::mem;

use smallvec::SmallVec;
use xnn_model::{DType, Excess, TensorId};

use crate::INLINE;
use crate::arena::{Arena, Block, Parts, place};
use crate::error::{Error, ErrorKind};
use crate::interpreter::ArenaUse;
use crate::program::{Graph, Step};
use crate::resources::Variables;
use crate::shapes::{Shapes, are_equal};
use crate::storage::{Head, LINE, Line, Lines, Output, PaddedRef, TensorBuf, lines_of};
use crate::tensor::{TensorView, TensorViewMut};
use value::{Memory, Value};

pub(crate) use value::sized;

/// Tensors by index, those that exist at the moment.
///
/// Intermediates share an arena, where each has the place that it needs for its
/// lifetime. One that turns out to be larger than its place has memory of its own
/// until the run ends; then places are found for those alone. Inputs, outputs,
/// variables, and what only a kernel knows the size of stay outside.
#[derive(Debug)]
pub(crate) struct Frame {
    values: Vec<Value>,
    arena: Arena,
    /// Whether tensors need other places than they have.
    outgrown: bool,
    /// Bytes of tensors that have been given a shape since memory was last counted, and what it was then.
    grown: u64,
    /// By step of the graph.
    pub(crate) shapes: Vec<Shapes>,
}

impl Frame {
    /// A frame without memory; [`Frame::begin`] gives it some.
    pub(crate) fn new(graph: &Graph, limit: usize) -> Self {
        let tensors = &graph.subgraph.tensors;
        let mut frame = Self {
            values: tensors.iter().map(|t| Value::own(TensorBuf::empty(t.dtype), false)).collect(),
            arena: Arena::default(),
            outgrown: !graph.tenants.is_empty(),
            grown: 0,
            shapes: graph.steps.iter().map(|_| Shapes::default()).collect(),
        };
        for (id, _) in &graph.tenants {
            if let (Some(value), Some(tensor)) = (frame.values.get_mut(*id), tensors.get(*id)) {
                value.is_tenant = true;
                let shape = tensor.shape.as_deref();
                let bytes = shape.and_then(|shape| sized(tensor.dtype, shape, limit).ok());
                value.wanted = bytes.map_or(0, lines_of);
            }
        }
        for &(id, handle) in &graph.handles {
            let bytes = handle.to_ne_bytes();
            if let Some(handle) = TensorBuf::from_bytes(DType::Resource, &[1], &bytes) {
                frame.put(id, handle);
            }
        }
        frame.reset_variables(graph);
        frame
    }

    /// Finds places in the arena for the tensors that have none that suits.
    pub(crate) fn begin(&mut self, graph: &Graph) -> Result<(), Error> {
        if !self.outgrown {
            return Ok(());
        }
        let known = graph.tenants.iter().filter(|(id, _)| self.values[*id].wanted > 0);
        let mut blocks = Vec::new();
        let mut ids = Vec::new();
        for &(id, lifetime) in known {
            let Value { memory, wanted, .. } = &self.values[id];
            let (lines, start) = match memory {
                Memory::Arena(place) => (place.len(), Some(place.start)),
                Memory::Own(_) | Memory::Variable(_) => (*wanted, None),
            };
            ids.push(id);
            blocks.push(Block { lifetime, lines, start });
        }
        let mut lines = place(&mut blocks);
        if lines > self.arena.lines() {
            // All of it moves anyway.
            blocks.iter_mut().for_each(|block| block.start = None);
            lines = place(&mut blocks);
        }
        self.arena.reserve(lines)?;
        for (id, block) in ids.into_iter().zip(&blocks) {
            let value = &mut self.values[id];
            value.exists = false;
            if let Some(place) = block.place() {
                value.memory = Memory::Arena(place);
            }
        }
        self.outgrown = false;
        Ok(())
    }

    /// Takes note of tensors that have been given a shape, and refuses them if all together have more than `limit` bytes.
    pub(crate) fn grow(&mut self, tensors: &[TensorId], limit: u64) -> Result<(), ErrorKind> {
        let values = tensors.iter().filter_map(|&id| self.values.get(id));
        self.grown += values.map(|value| value.head.bytes() as u64).sum::<u64>();
        // Most of it may have gone to others' memory, or been given back.
        if self.grown > limit {
            self.grown = self.bytes();
        }
        if self.grown > limit {
            let excess = Excess { what: Excess::MEMORY, value: self.grown, limit };
            self.forget(tensors);
            return Err(excess.into());
        }
        Ok(())
    }

    /// Bytes of these tensors, as far as they are known.
    pub(crate) fn bytes_of(&self, tensors: &[TensorId]) -> usize {
        let values = tensors.iter().filter_map(|&id| self.values.get(id));
        values.map(|value| value.head.bytes()).fold(0, usize::saturating_add)
    }

    /// Gives back the memory of tensors that are too large, and has no place made for them.
    fn forget(&mut self, tensors: &[TensorId]) {
        for &id in tensors {
            let Some(value) = self.values.get_mut(id) else { continue };
            value.wanted = 0;
            value.exists = false;
            if matches!(value.memory, Memory::Own(_)) {
                value.head = Head::empty(value.head.dtype);
                value.memory = Memory::Own(vec![]);
            }
        }
    }

    /// Memory of all tensors, in bytes.
    fn bytes(&self) -> u64 {
        let own = self.values.iter().map(|value| match &value.memory {
            Memory::Own(lines) => lines.len(),
            Memory::Arena(_) | Memory::Variable(_) => 0,
        });
        (own.sum::<usize>() + self.arena.lines()) as u64 * LINE as u64
    }

    pub(crate) fn memory(&self) -> ArenaUse {
        let places = self.values.iter().map(|value| match &value.memory {
            Memory::Arena(place) => place.len() * LINE,
            Memory::Own(_) | Memory::Variable(_) => 0,
        });
        ArenaUse { arena_bytes: self.arena.lines() * LINE, tensor_bytes: places.sum() }
    }

    /// Brings the state of recurrent operators to its beginning: zero, or the
    /// integer that stands for it.
    pub(crate) fn reset_variables(&mut self, graph: &Graph) {
        for (id, tensor) in graph.subgraph.tensors.iter().enumerate() {
            if !tensor.is_variable {
                continue;
            }
            let state = tensor.shape.as_deref().and_then(|shape| {
                let mut state = TensorBuf::zeros(tensor.dtype, shape)?;
                if tensor.dtype == DType::I8
                    && let Some((_, zero_point)) = tensor.per_tensor()
                {
                    state.view_mut().bytes.fill(zero_point as u8);
                }
                Some(state)
            });
            match state {
                Some(state) => self.put(id, state),
                None => self.release(id),
            }
        }
    }

    /// A tensor of the frame, or a constant of the graph, to be read.
    pub(crate) fn tensor<'a>(
        &'a self,
        graph: &'a Graph,
        id: TensorId,
        variables: &'a Variables,
    ) -> Option<TensorView<'a>> {
        let Some(value) = self.values.get(id).filter(|value| value.exists) else {
            return graph.constant(id);
        };
        Some(value.padded(variables, |place| self.arena.get(place))?.view())
    }

    /// Whether a tensor of the frame has a value.
    pub(crate) fn exists(&self, id: TensorId) -> bool {
        self.values.get(id).is_some_and(|value| value.exists)
    }

    /// Dimensions of a tensor of the frame.
    pub(crate) fn shape(&self, id: TensorId) -> Option<&[usize]> {
        let value = self.values.get(id).filter(|value| value.exists)?;
        Some(&value.head.shape)
    }

    /// A tensor outside of the arena.
    pub(crate) fn view_mut(&mut self, id: TensorId) -> Option<TensorViewMut<'_>> {
        let Value { head, memory, exists: true, .. } = self.values.get_mut(id)? else {
            return None;
        };
        match memory {
            Memory::Own(lines) => Some(head.view_mut(lines)),
            Memory::Arena(_) | Memory::Variable(_) => None,
        }
    }

    /// Takes a tensor that is outside of the arena, as inputs and outputs are.
    pub(crate) fn take(&mut self, id: TensorId) -> Option<TensorBuf> {
        let value = self.values.get_mut(id).filter(|value| value.exists)?;
        let Memory::Own(lines) = &mut value.memory else { return None };
        value.exists = false;
        let empty = Head::empty(value.head.dtype);
        Some(TensorBuf { head: mem::replace(&mut value.head, empty), lines: mem::take(lines) })
    }

    /// Puts a tensor outside of the arena.
    pub(crate) fn put(&mut self, id: TensorId, tensor: TensorBuf) {
        if let Some(value) = self.values.get_mut(id) {
            *value = Value::own(tensor, true);
        }
    }

    /// Ends a tensor. What waits for a place in the arena gives its own memory
    /// back.
    pub(crate) fn release(&mut self, id: TensorId) {
        let Some(value) = self.values.get_mut(id) else { return };
        value.exists = false;
        if value.wanted > 0
            && let Memory::Own(lines) = &mut value.memory
        {
            *lines = vec![];
        }
    }

    /// Gives a tensor that a step is going to write its type and, where it is
    /// known, its shape.
    pub(crate) fn prepare(
        &mut self,
        id: TensorId,
        dtype: DType,
        shape: Option<&[usize]>,
        limit: usize,
    ) -> Result<(), ErrorKind> {
        if let Some(value) = self.values.get_mut(id) {
            self.outgrown |= value.prepare(dtype, shape, limit)?;
        }
        Ok(())
    }

    /// Whether a tensor that a step is going to write has this type and shape
    /// already.
    pub(crate) fn is_prepared(&self, id: TensorId, dtype: DType, shape: &[usize]) -> bool {
        self.values.get(id).is_some_and(|Value { head, memory, .. }| {
            let is_lent = matches!(memory, Memory::Variable(_));
            head.dtype == dtype && are_equal(&head.shape, shape) && !is_lent
        })
    }

    /// Gives a tensor a variable's value in the variable's own memory, which must stay as it is until nothing
    /// needs the tensor any more.
    pub(crate) fn lend(&mut self, id: TensorId, handle: u64, variable: &TensorBuf) {
        let Some(value) = self.values.get_mut(id) else { return };
        value.memory = Memory::Variable(handle);
        value.exists = true;
        let Head { dtype, shape, .. } = &value.head;
        if (*dtype, shape.as_slice()) != (variable.dtype(), variable.shape()) {
            value.head.set(variable.dtype(), variable.shape(), variable.head.bytes());
        }
    }

    /// Gives a tensor a copy of a value.
    pub(crate) fn copy_in(
        &mut self,
        id: TensorId,
        source: TensorView<'_>,
        limit: usize,
    ) -> Result<(), ErrorKind> {
        self.prepare(id, source.dtype, Some(source.shape), limit)?;
        let Some(Value { head, memory, exists, .. }) = self.values.get_mut(id) else {
            return Ok(());
        };
        let mut copy = |lines: &mut [Line]| {
            let target = head.view_mut(lines).bytes;
            // The size follows from type and shape.
            if target.len() == source.bytes.len() {
                target.copy_from_slice(source.bytes);
                *exists = true;
            }
        };
        match memory {
            // Only they tell how much memory they take.
            Memory::Own(lines) if source.dtype == DType::String => {
                let mut output = Output { head, lines: Lines::Growing(lines) };
                *exists = output.assign(source).is_some();
            }
            Memory::Own(lines) => copy(lines),
            Memory::Arena(place) => {
                self.arena.lines_mut().get_mut(place.clone()).into_iter().for_each(copy);
            }
            Memory::Variable(_) => {}
        }
        Ok(())
    }

    /// Changes memory with another tensor that has memory of its own; see [`Value::trade`].
    pub(crate) fn trade(&mut self, id: TensorId, other: &mut TensorBuf) -> bool {
        let value = self.values.get_mut(id);
        value.is_some_and(|value| value.trade(&mut other.head, &mut other.lines))
    }

    /// [`Frame::trade`] with a tensor of another frame, which then exists.
    pub(crate) fn trade_with(&mut self, id: TensorId, frame: &mut Self, other: TensorId) -> bool {
        match (self.values.get_mut(id), frame.values.get_mut(other)) {
            (Some(value), Some(other)) => value.trade_with(other),
            _ => false,
        }
    }

    /// [`Frame::trade`] of two tensors, the second of which then exists.
    pub(crate) fn trade_within(&mut self, id: TensorId, other: TensorId) -> bool {
        let pair = self.values.get_disjoint_mut([id, other]);
        pair.is_ok_and(|[value, other]| value.trade_with(other))
    }

    /// Finds the memory of what a step writes, in the order of [`Step::written`], and everything else to be read;
    /// `None` if a tensor is to be written twice at once. Both come empty: see [`Parts::cut`].
    pub(crate) fn open<'a>(
        &'a mut self,
        step: &Step,
        sources: &mut Sources<'a>,
        outputs: &mut Outputs<'a>,
    ) -> Option<()> {
        let mut written: SmallVec<[(usize, &'a mut Value); INLINE]> = SmallVec::new();
        let mut order = step.written.iter();
        let places = step.written.iter().map(|&(id, _)| id..id + 1);
        sources.values.cut(&mut self.values, places, |cut| {
            let values = cut.iter_mut().zip(order.by_ref());
            written.extend(values.map(|(value, &(_, position))| (position, value)));
        })?;
        written.sort_unstable_by_key(|&(position, _)| position);
        let mut places: SmallVec<[(usize, usize, usize); INLINE]> = SmallVec::new();
        for (position, Value { head, memory, .. }) in written {
            let lines = match memory {
                Memory::Own(lines) => Lines::Growing(lines),
                Memory::Arena(place) => {
                    places.push((place.start, place.end, position));
                    Lines::Fixed(&mut [])
                }
                // Nothing that is written has been lent.
                Memory::Variable(_) => Lines::Fixed(&mut []),
            };
            outputs.push(Output { head, lines });
        }
        places.sort_unstable();
        let mut positions = places.iter();
        let places = places.iter().map(|&(start, end, _)| start..end);
        sources.lines.cut(self.arena.lines_mut(), places, |lines| {
            let output = positions.next().and_then(|&(.., position)| outputs.get_mut(position));
            if let Some(output) = output {
                output.lines = Lines::Fixed(lines);
            }
        })
    }

    /// Says whether a step has computed what it writes.
    pub(crate) fn close(&mut self, outputs: &[TensorId], exist: bool) {
        for &id in outputs {
            if let Some(value) = self.values.get_mut(id) {
                value.exists = exist;
            }
        }
    }
}

/// What a step writes.
pub(crate) type Outputs<'a> = SmallVec<[Output<'a>; INLINE]>;

/// The tensors that a step can read.
pub(crate) struct Sources<'a> {
    values: Parts<'a, Value>,
    lines: Parts<'a, Line>,
    variables: &'a Variables,
}

impl<'a> Sources<'a> {
    /// None, until a frame is opened.
    pub(crate) fn new(variables: &'a Variables) -> Self {
        Self { values: Parts::new(), lines: Parts::new(), variables }
    }

    /// A tensor of the frame.
    pub(crate) fn padded(&self, id: TensorId) -> Option<PaddedRef<'a>> {
        let value = self.values.get(id..id + 1)?.first().filter(|value| value.exists)?;
        value.padded(self.variables, |place| self.lines.get(place))
    }

    /// A tensor of the frame, or a constant of the graph.
    pub(crate) fn tensor(&self, graph: &'a Graph, id: TensorId) -> Option<TensorView<'a>> {
        match self.padded(id) {
            Some(value) => Some(value.view()),
            None => graph.constant(id),
        }
    }
}
