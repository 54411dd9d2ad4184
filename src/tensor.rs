//! Inputs and outputs of runners: keys, element types, views.

use std::fmt;

use bytemuck::{CheckedBitPattern, NoUninit};
pub use half::{bf16, f16};
use xnn_model::DType;

use crate::tensor_spec::TensorSpec;

/// An input or output, by position or by name.
///
/// Methods take `impl Into<TensorKey>`: a `usize` or a `&str`.
///
/// ```
/// use xnn_delegate::Runner;
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let mut runner = Runner::open(path)?;
/// let name = runner.inputs()[0].name.clone();
/// runner.input_as_mut::<f32>(name.as_str())?.fill(0.5);
/// assert_eq!(runner.input_as_mut::<f32>(0)?[0], 0.5);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKey<'a> {
    /// Position in [`Runner::inputs`](crate::Runner::inputs) or [`Runner::outputs`](crate::Runner::outputs).
    Index(usize),
    /// Name in the model, or in the signature that is run.
    Name(&'a str),
}

impl From<usize> for TensorKey<'_> {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl<'a> From<&'a str> for TensorKey<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for TensorKey<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

impl fmt::Display for TensorKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Name(name) => fmt::Debug::fmt(name, f),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type of tensor elements.
pub trait Element: CheckedBitPattern + NoUninit + fmt::Debug + sealed::Sealed {
    /// Element type of the tensors that can be viewed as slices of this type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty: $dtype:ident,)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    f32: F32,
    f64: F64,
    f16: F16,
    bf16: BF16,
    i8: I8,
    i16: I16,
    i32: I32,
    i64: I64,
    u8: U8,
    u16: U16,
    u32: U32,
    u64: U64,
    bool: Bool,
}

/// Elements for an input, with or without a shape.
///
/// ```
/// use xnn_delegate::tensor::View;
///
/// let pixels = [0.5f32; 6];
/// let view = View::from(&pixels).with_dims(&[2, 3]);
/// # let _ = view;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: &'a [u8],
    pub(crate) dims: Option<&'a [usize]>,
}

impl<'a> View<'a> {
    /// Returns a view of these elements with a shape. The input is resized to this shape.
    #[must_use]
    pub fn with_dims(self, dims: &'a [usize]) -> Self {
        Self { dims: Some(dims), ..self }
    }
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    fn from(elements: &'a [T]) -> Self {
        Self { dtype: T::DTYPE, bytes: bytemuck::cast_slice(elements), dims: None }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for View<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for View<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        elements.as_slice().into()
    }
}

/// Memory of the caller for one input or output, for [`Runner::run_bound`](crate::Runner::run_bound).
///
/// The elements are at the start of the slice, dense, row-major and in native byte order, and the slice is aligned for
/// them. XNNPACK reads, but does not use, bytes after the elements of an input, so that the slice is
/// [`BINDING_PADDING`] bytes longer. Other slices may be longer, too.
#[derive(Debug)]
pub enum Binding<'a> {
    /// Position of an input, and its elements.
    Input(usize, &'a [u8]),
    /// Position of an output, and memory for its elements.
    Output(usize, &'a mut [u8]),
}

/// Number of bytes after the elements of an input that is bound.
pub const BINDING_PADDING: usize = 64;

/// Whether a tensor is an input or an output of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// An input.
    Input,
    /// An output.
    Output,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// An access to an input or output that does not fit the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The model has no such tensor.
    #[error("no {side} {key}; the {side}s are: {known}")]
    Missing {
        /// Whether an input or an output was asked for.
        side: Side,
        /// Position or name, as the caller gave it.
        key: String,
        /// Positions and names of the tensors that the model has.
        known: String,
    },
    /// The elements are of another type.
    #[error("{side} {tensor}: expected elements of type {expected}, found {found}")]
    Type {
        /// Whether it is an input or an output.
        side: Side,
        /// Position and name.
        tensor: String,
        /// Type of the tensor's elements.
        expected: DType,
        /// Type that the caller gave or asked for.
        found: DType,
    },
    /// The caller's elements are more or fewer than the tensor's.
    #[error("{side} {tensor}: expected {expected} bytes, found {found}")]
    Size {
        /// Whether it is an input or an output.
        side: Side,
        /// Position and name.
        tensor: String,
        /// Bytes of the tensor.
        expected: usize,
        /// Bytes that the caller gave.
        found: usize,
    },
    /// The elements cannot be read or written this way.
    #[error("{side} {tensor}: {why}")]
    Elements {
        /// Whether it is an input or an output.
        side: Side,
        /// Position and name.
        tensor: String,
        /// The reason.
        why: String,
    },
}

/// Inputs or outputs, to find one of them by its key.
#[derive(Clone, Copy)]
pub(crate) struct Tensors<'a> {
    pub side: Side,
    pub specs: &'a [TensorSpec],
}

impl<'a> Tensors<'a> {
    /// Position and description of the tensor.
    pub fn find(self, key: TensorKey<'_>) -> Result<(usize, &'a TensorSpec), TensorError> {
        let index = match key {
            TensorKey::Index(index) => Some(index),
            TensorKey::Name(name) => self.position(name),
        };
        let found = index.and_then(|index| Some((index, self.specs.get(index)?)));
        found.ok_or_else(|| {
            let labels: Vec<String> =
                (0..self.specs.len()).map(|index| self.label(index)).collect();
            let known = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
            TensorError::Missing { side: self.side, key: key.to_string(), known }
        })
    }

    /// [`Tensors::find`] for elements of one type.
    pub fn find_typed(self, key: TensorKey<'_>, found: DType) -> Result<usize, TensorError> {
        let (index, spec) = self.find(key)?;
        if spec.dtype == found {
            return Ok(index);
        }
        let (side, tensor, expected) = (self.side, self.label(index), spec.dtype);
        Err(TensorError::Type { side, tensor, expected, found })
    }

    /// Position of the tensor with this name.
    pub fn position(self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name && !name.is_empty())
    }

    pub fn elements_error(self, index: usize, why: impl Into<String>) -> TensorError {
        TensorError::Elements { side: self.side, tensor: self.label(index), why: why.into() }
    }

    /// Position, and name if there is one.
    pub fn label(self, index: usize) -> String {
        match self.specs.get(index) {
            Some(TensorSpec { name, .. }) if !name.is_empty() => format!("{index} {name:?}"),
            _ => index.to_string(),
        }
    }
}
