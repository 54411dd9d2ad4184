//! Memory of tensors: cache lines, with padding after the last.

use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;
use xnn_model::{DType, element_count};

use crate::dims::{INLINE, are_equal};
use crate::strings::pack;
use crate::tensor::{Element, TensorView, TensorViewMut, reserved_size, storage_size};

/// One cache line. A vector of lines is aligned for every element type and for vector instructions.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE]);

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Lines after the last byte that vectorized readers may touch.
const PADDING_LINES: usize = 2;

/// How the value of a tensor is handed to a tensor of another subgraph or to a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// The old tensor keeps its value.
    Copy,
    /// The memory moves if it is large. Copying less is faster than what engines do when a tensor's
    /// address changes.
    MoveLarge,
    /// The memory moves: no engine knows its address.
    Move,
}

impl Handover {
    /// Whether the memory of a tensor of this size moves.
    pub(crate) fn moves(self, bytes: usize) -> bool {
        match self {
            Self::Copy => false,
            Self::MoveLarge => bytes >= 16 << 10,
            Self::Move => true,
        }
    }
}

/// Lines of a tensor of this size, padding included.
pub(crate) fn lines_of(bytes: usize) -> usize {
    bytes.div_ceil(LINE) + PADDING_LINES
}

/// Type, shape and size of a tensor, without its memory.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    bytes: usize,
}

impl Head {
    pub(crate) fn empty(dtype: DType) -> Self {
        Self { dtype, shape: vec![], bytes: 0 }
    }

    /// Bytes of the elements.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The tensor in its memory, to be written.
    pub(crate) fn view_mut<'a>(&'a self, lines: &'a mut [Line]) -> TensorViewMut<'a> {
        let bytes = bytemuck::cast_slice_mut(lines).get_mut(..self.bytes).unwrap_or(&mut []);
        TensorViewMut { dtype: self.dtype, shape: &self.shape, bytes }
    }

    /// Sets type and shape of a tensor that has `bytes`.
    pub(crate) fn set(&mut self, dtype: DType, shape: &[usize], bytes: usize) {
        self.dtype = dtype;
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        self.bytes = bytes;
    }
}

/// A tensor with the padding after it.
#[derive(Clone, Copy, Debug)]
pub struct PaddedRef<'a> {
    pub(crate) head: &'a Head,
    pub(crate) lines: &'a [Line],
}

impl<'a> PaddedRef<'a> {
    /// Dimensions, row-major.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        &self.head.shape
    }

    /// A view of the tensor.
    #[must_use]
    pub fn view(&self) -> TensorView<'a> {
        let Head { dtype, shape, bytes } = self.head;
        let bytes = self.padded().get(..*bytes).unwrap_or(&[]);
        TensorView { dtype: *dtype, shape, bytes }
    }

    /// The bytes of the elements, which begin on a 64-byte boundary, and at least 128 arbitrary
    /// bytes after them, for engines that read beyond the end.
    #[must_use]
    pub fn padded(&self) -> &'a [u8] {
        bytemuck::cast_slice(self.lines)
    }
}

/// A tensor to be written, in memory of its own or in its part of an arena.
#[derive(Debug)]
pub struct Output<'a> {
    pub(crate) head: &'a mut Head,
    pub(crate) lines: Lines<'a>,
}

/// The outputs of a step.
pub(crate) type Outputs<'a> = SmallVec<[Output<'a>; INLINE]>;

/// The memory of an [`Output`].
#[derive(Debug)]
pub(crate) enum Lines<'a> {
    Growing(&'a mut Vec<Line>),
    Fixed(&'a mut [Line]),
}

impl Lines<'_> {
    fn as_slice(&self) -> &[Line] {
        match self {
            Lines::Growing(lines) => lines,
            Lines::Fixed(lines) => lines,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Line] {
        match self {
            Lines::Growing(lines) => lines,
            Lines::Fixed(lines) => lines,
        }
    }
}

impl<'a> Output<'a> {
    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.head.dtype
    }

    /// Dimensions, row-major.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.head.shape
    }

    /// The elements, to be written.
    #[must_use]
    pub fn view_mut(&mut self) -> TensorViewMut<'_> {
        self.head.view_mut(self.lines.as_mut_slice())
    }

    /// Borrows the output for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Output<'_> {
        let lines = match &mut self.lines {
            Lines::Growing(lines) => Lines::Growing(lines),
            Lines::Fixed(lines) => Lines::Fixed(lines),
        };
        Output { head: &mut *self.head, lines }
    }

    /// [`Output::view_mut`] for the lifetime of the borrowed memory.
    pub(crate) fn into_view_mut(self) -> TensorViewMut<'a> {
        let lines = match self.lines {
            Lines::Growing(lines) => lines.as_mut_slice(),
            Lines::Fixed(lines) => lines,
        };
        self.head.view_mut(lines)
    }

    /// The bytes of the elements and of the padding; see [`PaddedRef::padded`].
    #[must_use]
    pub fn padded_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.lines.as_mut_slice())
    }

    /// Sets the shape. The elements are arbitrary afterwards.
    ///
    /// Returns `None` and changes nothing if there is no memory: the size overflows, or exceeds the
    /// size that shape inference has found.
    pub fn resize(&mut self, shape: &[usize]) -> Option<()> {
        self.reshape(self.head.dtype, shape)
    }

    pub(crate) fn reshape(&mut self, dtype: DType, shape: &[usize]) -> Option<()> {
        let Head { dtype: present, shape: dims, bytes } = &*self.head;
        // Most outputs of small partitions keep their shape.
        if dtype != DType::String
            && *present == dtype
            && are_equal(dims, shape)
            && lines_of(*bytes) <= self.lines.as_slice().len()
        {
            return Some(());
        }
        let bytes = reserved_size(dtype, shape)?;
        self.reserve(bytes)?;
        self.head.set(dtype, shape, bytes);
        Some(())
    }

    /// Copies type, shape and elements of a tensor.
    pub(crate) fn assign(&mut self, value: TensorView<'_>) -> Option<()> {
        self.reserve(value.bytes.len())?;
        self.head.set(value.dtype, value.shape, value.bytes.len());
        self.view_mut().bytes.copy_from_slice(value.bytes);
        Some(())
    }

    fn reserve(&mut self, bytes: usize) -> Option<()> {
        let needed = lines_of(bytes);
        match &mut self.lines {
            Lines::Growing(lines) if needed > lines.len() => {
                lines.try_reserve_exact(needed - lines.len()).ok()?;
                lines.resize(needed, Line([0; LINE]));
            }
            Lines::Fixed(lines) if needed > lines.len() => return None,
            _ => {}
        }
        Some(())
    }
}

/// A tensor that owns its elements. They begin on a 64-byte boundary, and at least 128 readable
/// bytes follow the last.
#[derive(Debug)]
pub struct TensorBuf {
    pub(crate) head: Head,
    pub(crate) lines: Vec<Line>,
}

impl TensorBuf {
    /// A tensor of zeros, or `None` if the type has no fixed element size, the size overflows, or
    /// memory is exhausted.
    #[must_use]
    pub fn zeros(dtype: DType, shape: &[usize]) -> Option<Self> {
        let mut buf = Self::empty(dtype);
        buf.output().reshape(dtype, shape)?;
        Some(buf)
    }

    /// A tensor with these elements, or `None` if their number does not match the shape or memory
    /// is exhausted.
    #[must_use]
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Option<Self> {
        let dtype = *T::DTYPES.first()?;
        let value = TensorView { dtype, shape, bytes: bytemuck::cast_slice(elements) };
        (element_count(shape)? == elements.len()).then_some(value).and_then(Self::try_copy)
    }

    /// A tensor of strings, or `None` if their number does not match the shape, they exceed 2 GB
    /// together, or memory is exhausted.
    #[must_use]
    pub fn from_strings<S: AsRef<[u8]>>(shape: &[usize], strings: &[S]) -> Option<Self> {
        let strings: Vec<&[u8]> = strings.iter().map(AsRef::as_ref).collect();
        Self::from_bytes(DType::String, shape, &pack(&strings, usize::MAX).ok()?)
    }

    /// A tensor with these bytes, or `None` if their number does not match the shape, they are not
    /// valid packed strings for a string tensor, or memory is exhausted.
    #[must_use]
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Option<Self> {
        let value = TensorView { dtype, shape, bytes };
        let fits = match dtype {
            DType::String => value.strings().is_some(),
            _ => storage_size(dtype, shape)? == bytes.len(),
        };
        fits.then_some(value).and_then(Self::try_copy)
    }

    /// A copy, or `None` if memory is exhausted.
    fn try_copy(value: TensorView<'_>) -> Option<Self> {
        let mut copy = Self::empty(value.dtype);
        copy.output().assign(value)?;
        Some(copy)
    }

    /// A tensor without elements and without allocation.
    pub(crate) fn empty(dtype: DType) -> Self {
        let mut head = Head::empty(dtype);
        head.shape.push(0);
        Self { head, lines: vec![] }
    }

    /// The tensor, to be written, including its shape.
    pub(crate) fn output(&mut self) -> Output<'_> {
        Output { head: &mut self.head, lines: Lines::Growing(&mut self.lines) }
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.head.dtype
    }

    /// Dimensions, row-major.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.head.shape
    }

    /// A view.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        PaddedRef { head: &self.head, lines: &self.lines }.view()
    }

    /// A mutable view.
    #[must_use]
    pub fn view_mut(&mut self) -> TensorViewMut<'_> {
        self.head.view_mut(&mut self.lines)
    }
}

impl TensorView<'_> {
    /// A copy that owns its elements.
    #[must_use]
    pub fn to_buf(&self) -> TensorBuf {
        let mut copy = TensorBuf::empty(self.dtype);
        // The size of an existing tensor does not overflow.
        let _ = copy.output().assign(*self);
        copy
    }
}

impl Clone for TensorBuf {
    fn clone(&self) -> Self {
        self.view().to_buf()
    }
}
