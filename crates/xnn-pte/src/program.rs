//! Programs, their methods and delegates.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use xnn_format::ConstantSource;

use crate::decode;
use crate::error::{Error, Result};
use crate::limits::PteLimits;

/// ExecuTorch's name of its XNNPACK backend.
pub const XNNPACK_BACKEND: &str = "XnnpackBackend";

/// A verified `.pte` file.
///
/// Payloads and named data are slices of the file's bytes, not copies.
#[derive(Clone, Debug)]
pub struct PteProgram {
    pub(crate) version: u32,
    pub(crate) file_size: usize,
    pub(crate) methods: Vec<Method>,
    pub(crate) named_data: BTreeMap<String, Bytes>,
    pub(crate) limits: PteLimits,
}

/// An entry point of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// Name, `forward` in most programs.
    pub name: String,
    /// Types of the inputs.
    pub inputs: Vec<Argument>,
    /// Types of the outputs.
    pub outputs: Vec<Argument>,
    /// Delegates, the parts that backends run.
    pub delegates: Vec<Delegate>,
    /// Operators that ExecuTorch's own kernels run, sorted by name.
    pub operators: Vec<Operator>,
}

/// An input or output of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A tensor.
    Tensor(TensorType),
    /// A scalar, string or list.
    Other,
}

/// Type of a tensor, with the maximum shape if the shape is dynamic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorType {
    /// ExecuTorch's name of the element type in lower case, such as `float`.
    pub element: String,
    /// Dimensions in PyTorch's order.
    pub dims: Vec<usize>,
    /// Indices of the dimensions from the outermost to the innermost in memory: `[0, 2, 3, 1]` is
    /// an NCHW tensor stored as NHWC.
    pub dim_order: Vec<usize>,
}

/// A part of a method that a backend runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delegate {
    /// Index in the method.
    pub index: usize,
    /// Name of the backend, such as [`XNNPACK_BACKEND`].
    pub backend: String,
    /// Data for the backend: an XN01 graph for XNNPACK.
    pub payload: Bytes,
    /// Options for the backend.
    pub compile_specs: Vec<CompileSpec>,
    /// Number of calls in the method.
    pub calls: usize,
}

/// An option that a delegate was compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileSpec {
    /// Name of the option.
    pub key: String,
    /// Value, in a format defined by the backend.
    pub value: Bytes,
}

/// An operator outside of the delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operator {
    /// Name and overload, such as `aten::cumsum.out`.
    pub name: String,
    /// Number of calls in the method.
    pub calls: usize,
}

impl PteProgram {
    /// Reads a file with the default [`PteLimits`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), xnn_pte::Error> {
    /// let program = xnn_pte::PteProgram::open("model.pte")?;
    /// for method in program.methods() {
    ///     for delegate in method.delegates.iter().filter(|it| it.is_xnnpack()) {
    ///         let graph = program.xnnpack_graph(method, delegate)?;
    ///         println!("{}: {} nodes", method.name, graph.blob.graph().nodes.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`PteProgram::from_bytes`], and a file that cannot be read. Errors name the
    /// file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &PteLimits::default())
    }

    /// [`PteProgram::open`] with other limits.
    ///
    /// # Errors
    /// The errors of [`PteProgram::open`].
    pub fn open_with(path: impl AsRef<Path>, limits: &PteLimits) -> Result<Self> {
        let path = path.as_ref();
        xnn_file::read(path)
            .map_err(Error::from)
            .and_then(|file| Self::from_bytes_with(file, limits))
            .map_err(|error| error.in_file(path))
    }

    /// Reads a program from memory with the default [`PteLimits`].
    ///
    /// # Errors
    /// Another format, a damaged or truncated file, indices or offsets out of range, an exceeded
    /// limit. The error names the method and the delegate.
    pub fn from_bytes(file: impl Into<Bytes>) -> Result<Self> {
        Self::from_bytes_with(file, &PteLimits::default())
    }

    /// [`PteProgram::from_bytes`] with other limits.
    ///
    /// # Errors
    /// The errors of [`PteProgram::from_bytes`].
    pub fn from_bytes_with(file: impl Into<Bytes>, limits: &PteLimits) -> Result<Self> {
        decode::program(&file.into(), limits)
    }

    /// Schema version stated in the file; 0 in all known files.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Size of the file in bytes.
    #[must_use]
    pub fn file_size(&self) -> usize {
        self.file_size
    }

    /// All methods.
    #[must_use]
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Constants that delegates share, by key.
    #[must_use]
    pub fn named_data(&self) -> &BTreeMap<String, Bytes> {
        &self.named_data
    }
}

impl ConstantSource for PteProgram {
    fn get(&self, key: &str) -> Option<Bytes> {
        self.named_data.get(key).cloned()
    }
}

impl Delegate {
    /// Whether the backend is XNNPACK.
    #[must_use]
    pub fn is_xnnpack(&self) -> bool {
        self.backend == XNNPACK_BACKEND
    }
}

/// Whether a file that starts with these bytes (at least 8) is an ExecuTorch program.
#[must_use]
pub fn is_program(start: &[u8]) -> bool {
    start.get(decode::IDENTIFIER_AT) == Some(decode::IDENTIFIER)
}
