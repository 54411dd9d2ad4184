//! Memory of the caller in place of a session's.

use std::ptr::NonNull;
use std::slice;

use xnn_delegate::tensor::{BINDING_PADDING, Binding, Side};
use xnn_delegate::{DType, TensorSpec};

/// Number of bytes after the elements of an input that is bound, which XNNPACK reads but does not use.
pub const XNND_PADDING: usize = 64;

const _: () = assert!(XNND_PADDING == BINDING_PADDING);

/// Memory of the caller for a tensor.
pub(crate) struct Bound {
    /// The tensor: its side, and its index there.
    place: (Side, usize),
    data: NonNull<u8>,
    /// Number of bytes that belong to the binding.
    size: usize,
}

// SAFETY: the caller of `xnnd_tensor_bind` allows the session's thread to use the memory, whichever thread that is.
unsafe impl Send for Bound {}

impl Bound {
    /// Checks memory of `size` bytes for a tensor whose elements have `bytes` bytes.
    pub(crate) fn new(
        place: (Side, usize),
        spec: &TensorSpec,
        bytes: usize,
        data: NonNull<u8>,
        size: usize,
    ) -> Result<Self, String> {
        let (needed, padding) = match place.0 {
            Side::Input => {
                (bytes.saturating_add(XNND_PADDING), " and XNND_PADDING readable bytes after them")
            }
            Side::Output => (bytes, ""),
        };
        if size < needed {
            return Err(format!("expected memory for {bytes} bytes{padding}, found {size} bytes"));
        }
        let alignment = alignment(spec.dtype);
        if !data.addr().get().is_multiple_of(alignment) {
            return Err(format!(
                "the memory is not aligned: expected a multiple of {alignment} bytes"
            ));
        }
        // Inputs may be next to each other, with the second as padding of the first.
        let size = if place.0 == Side::Input { needed } else { size };
        Ok(Self { place, data, size })
    }

    /// Adds the memory in place of the tensor's earlier one.
    pub(crate) fn replace_in(self, bindings: &mut Vec<Self>) -> Result<(), String> {
        let mut others = bindings.iter().filter(|other| !other.is_of(self.place));
        let clashes = |other: &&Self| {
            let is_written = [self.place.0, other.place.0].contains(&Side::Output);
            is_written && self.overlaps(other)
        };
        if let Some(Self { place: (side, index), .. }) = others.find(clashes) {
            return Err(format!("the memory overlaps that of {side} {index}"));
        }
        bindings.retain(|other| !other.is_of(self.place));
        bindings.push(self);
        Ok(())
    }

    /// The memory, for a run.
    ///
    /// # Safety
    ///
    /// The memory exists for `'a`, and nothing else writes an input or uses an output.
    pub(crate) unsafe fn binding<'a>(&self) -> Binding<'a> {
        let Self { place: (side, index), data, size } = *self;
        let data = data.as_ptr();
        match side {
            // SAFETY: as the caller of this function guarantees.
            Side::Input => Binding::Input(index, unsafe { slice::from_raw_parts(data, size) }),
            Side::Output => {
                // SAFETY: as the caller of this function guarantees.
                Binding::Output(index, unsafe { slice::from_raw_parts_mut(data, size) })
            }
        }
    }

    pub(crate) fn data(&self) -> NonNull<u8> {
        self.data
    }

    pub(crate) fn is_of(&self, place: (Side, usize)) -> bool {
        self.place == place
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.data.addr().get(), other.data.addr().get());
        a < b.saturating_add(other.size) && b < a.saturating_add(self.size)
    }
}

/// Alignment of elements in bytes.
fn alignment(dtype: DType) -> usize {
    match dtype {
        DType::Complex64 => 4,
        DType::Complex128 => 8,
        _ => dtype.bits().map_or(1, |bits| bits.div_ceil(8)),
    }
}
