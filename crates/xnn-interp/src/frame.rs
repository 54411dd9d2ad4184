//! The tensors of one activation of a subgraph.

mod shapes;
mod sources;
mod value;

use std::mem;

use smallvec::SmallVec;
use xnn_model::{DType, Excess, TensorId};

use crate::arena::{Arena, Block, place};
use crate::arena_use::ArenaUse;
use crate::dims::{INLINE, are_equal};
use crate::error::{Error, ErrorKind};
use crate::execution_plan::{Step, SubgraphPlan};
use crate::resources::Variables;
use crate::storage::{Handover, Head, LINE, Lines, Output, Outputs, TensorBuf, lines_of};
use crate::tensor::{TensorView, TensorViewMut, sized};
use value::{Memory, Value};

pub(crate) use shapes::{Basis, Shapes};
pub(crate) use sources::Sources;

/// Tensors by index.
///
/// Intermediate tensors share an arena, where each has a place for its lifetime. A tensor that
/// grows beyond its place has memory of its own until the run ends; then the arena is planned again
/// for such tensors. Outside of the arena are inputs, outputs, variables, and tensors whose size
/// only their kernel knows.
#[derive(Debug)]
pub(crate) struct Frame {
    values: Vec<Value>,
    arena: Arena,
    /// Whether some tensors need new places.
    outgrown: bool,
    /// Total size in bytes when memory was last counted, and of the tensors whose shapes were set
    /// since then.
    grown: u64,
    /// Shapes by step of the subgraph.
    pub(crate) shapes: Vec<Shapes>,
}

impl Frame {
    /// Creates a frame without memory; [`Frame::begin`] allocates it.
    pub(crate) fn new(graph: &SubgraphPlan, limit: usize) -> Self {
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

    /// Finds places in the arena for the tensors without a sufficient one.
    pub(crate) fn begin(&mut self, graph: &SubgraphPlan) -> Result<(), Error> {
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
            // The new arena moves all tensors anyway.
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

    /// Counts tensors whose shapes were set, and returns an error if all together exceed `limit`
    /// bytes.
    pub(crate) fn grow(&mut self, tensors: &[TensorId], limit: u64) -> Result<(), ErrorKind> {
        let values = tensors.iter().filter_map(|&id| self.values.get(id));
        self.grown += values.map(|value| value.head.bytes() as u64).sum::<u64>();
        // Most of the memory may have been moved or released since then.
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

    /// Total size of these tensors in bytes, as far as it is known.
    pub(crate) fn bytes_of(&self, tensors: &[TensorId]) -> usize {
        let values = tensors.iter().filter_map(|&id| self.values.get(id));
        values.map(|value| value.head.bytes()).fold(0, usize::saturating_add)
    }

    /// Releases the memory of tensors that are too large, so that no places are planned for them.
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

    /// Memory of all tensors in bytes.
    pub(crate) fn bytes(&self) -> u64 {
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

    /// Resets variable tensors to zero, or to the zero point.
    pub(crate) fn reset_variables(&mut self, graph: &SubgraphPlan) {
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

    /// A tensor of the frame, or a constant of the subgraph.
    pub(crate) fn tensor<'a>(
        &'a self,
        graph: &'a SubgraphPlan,
        id: TensorId,
        variables: &'a Variables,
    ) -> Option<TensorView<'a>> {
        let Some(value) = self.values.get(id).filter(|value| value.exists) else {
            return graph.constant(id);
        };
        Some(value.padded(variables, |place| self.arena.get(place))?.view())
    }

    /// Element type of a tensor of the frame, or of a constant of the subgraph.
    pub(crate) fn dtype(&self, graph: &SubgraphPlan, id: TensorId) -> Option<DType> {
        match self.values.get(id).filter(|value| value.exists) {
            Some(value) => Some(value.head.dtype),
            None => graph.constant(id).map(|constant| constant.dtype),
        }
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

    /// A tensor outside of the arena, to be written.
    pub(crate) fn view_mut(&mut self, id: TensorId) -> Option<TensorViewMut<'_>> {
        let Value { head, memory, exists: true, .. } = self.values.get_mut(id)? else {
            return None;
        };
        match memory {
            Memory::Own(lines) => Some(head.view_mut(lines)),
            Memory::Arena(_) | Memory::Variable(_) => None,
        }
    }

    /// Moves a tensor out of the frame. It must be outside of the arena, as inputs and outputs are.
    pub(crate) fn take(&mut self, id: TensorId) -> Option<TensorBuf> {
        let value = self.values.get_mut(id).filter(|value| value.exists)?;
        let Memory::Own(lines) = &mut value.memory else { return None };
        value.exists = false;
        let empty = Head::empty(value.head.dtype);
        Some(TensorBuf { head: mem::replace(&mut value.head, empty), lines: mem::take(lines) })
    }

    /// Moves a tensor into the frame, outside of the arena.
    pub(crate) fn put(&mut self, id: TensorId, tensor: TensorBuf) {
        if let Some(value) = self.values.get_mut(id) {
            *value = Value::own(tensor, true);
        }
    }

    /// Ends the life of a tensor. Memory of its own is freed if it belongs in the arena.
    pub(crate) fn release(&mut self, id: TensorId) {
        let Some(value) = self.values.get_mut(id) else { return };
        value.exists = false;
        if value.wanted > 0
            && let Memory::Own(lines) = &mut value.memory
        {
            *lines = vec![];
        }
    }

    /// Sets the type and, where it is known, the shape of a tensor before a step writes it.
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

    /// Whether a tensor already has this type and shape and can be written.
    pub(crate) fn is_prepared(&self, id: TensorId, dtype: DType, shape: &[usize]) -> bool {
        self.values.get(id).is_some_and(|Value { head, memory, .. }| {
            let is_lent = matches!(memory, Memory::Variable(_));
            head.dtype == dtype && are_equal(&head.shape, shape) && !is_lent
        })
    }

    /// Makes a tensor use a variable's memory. The variable must not change while the tensor is
    /// needed.
    pub(crate) fn lend(&mut self, id: TensorId, handle: u64, variable: &TensorBuf) {
        let Some(value) = self.values.get_mut(id) else { return };
        value.memory = Memory::Variable(handle);
        value.exists = true;
        let Head { dtype, shape, .. } = &value.head;
        if (*dtype, shape.as_slice()) != (variable.dtype(), variable.shape()) {
            value.head.set(variable.dtype(), variable.shape(), variable.head.bytes());
        }
    }

    /// Copies a value into a tensor.
    pub(crate) fn copy_in(
        &mut self,
        id: TensorId,
        source: TensorView<'_>,
        limit: usize,
    ) -> Result<(), ErrorKind> {
        if source.dtype == DType::String {
            self.prepare(id, source.dtype, Some(source.shape), limit)?;
            if let Some(Value { head, memory: Memory::Own(lines), exists, .. }) =
                self.values.get_mut(id)
            {
                // Only the strings determine their size.
                let mut output = Output { head, lines: Lines::Growing(lines) };
                *exists = output.assign(source).is_some();
            }
            return Ok(());
        }
        let is_prepared = self.is_prepared(id, source.dtype, source.shape);
        if !is_prepared || !self.fill(id, source.bytes) {
            self.prepare(id, source.dtype, Some(source.shape), limit)?;
            self.fill(id, source.bytes);
        }
        Ok(())
    }

    /// Writes all elements of a tensor, except for strings. Returns whether it has memory of this
    /// size.
    pub(crate) fn fill(&mut self, id: TensorId, bytes: &[u8]) -> bool {
        let Some(Value { head, memory, exists, .. }) = self.values.get_mut(id) else {
            return false;
        };
        let lines = match memory {
            Memory::Own(lines) => lines,
            Memory::Arena(place) => {
                self.arena.lines_mut().get_mut(place.clone()).unwrap_or_default()
            }
            Memory::Variable(_) => return false,
        };
        let target = head.view_mut(lines).bytes;
        let fits = target.len() == bytes.len();
        if fits {
            target.copy_from_slice(bytes);
            *exists = true;
        }
        fits
    }

    /// Exchanges memory with another tensor that has memory of its own; see [`Value::trade`].
    pub(crate) fn trade(&mut self, id: TensorId, other: &mut TensorBuf) -> bool {
        let value = self.values.get_mut(id);
        let large = Handover::MoveLarge;
        value.is_some_and(|value| value.trade(&mut other.head, &mut other.lines, large))
    }

    /// [`Frame::trade`] with a tensor of another frame, which then has a value.
    pub(crate) fn trade_with(
        &mut self,
        id: TensorId,
        frame: &mut Self,
        other: TensorId,
        handover: Handover,
    ) -> bool {
        match (self.values.get_mut(id), frame.values.get_mut(other)) {
            (Some(value), Some(other)) => value.trade_with(other, handover),
            _ => false,
        }
    }

    /// [`Frame::trade`] of two tensors, the second of which then has a value.
    pub(crate) fn trade_within(&mut self, id: TensorId, other: TensorId) -> bool {
        let pair = self.values.get_disjoint_mut([id, other]);
        pair.is_ok_and(|[value, other]| value.trade_with(other, Handover::MoveLarge))
    }

    /// Borrows the memory of the tensors that a step writes, in the order of [`Step::written`], and
    /// all other tensors to be read. Returns `None` if a tensor would be written twice at once.
    /// `sources` and `outputs` must be empty.
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
                // Tensors that are written do not use a variable's memory.
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

    /// Marks the outputs of a step as existing or not.
    pub(crate) fn close(&mut self, outputs: &[TensorId], exist: bool) {
        for &id in outputs {
            if let Some(value) = self.values.get_mut(id) {
                value.exists = exist;
            }
        }
    }
}
