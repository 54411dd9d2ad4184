//! Programs as they are handed out.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use xnn_format::ConstantSource;

use crate::decode;
use crate::error::{Error, Result};
use crate::limits::PteLimits;

/// What ExecuTorch calls its XNNPACK backend.
pub const XNNPACK_BACKEND: &str = "XnnpackBackend";

/// A `.pte` file, verified, with everything in it checked that is handed out.
///
/// Payloads and named data are slices of the file's bytes, never copies.
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
    /// Its name, `forward` in most programs.
    pub name: String,
    /// What it is called with.
    pub inputs: Vec<Argument>,
    /// What it gives.
    pub outputs: Vec<Argument>,
    /// The parts that backends run, by index.
    pub delegates: Vec<Delegate>,
    /// The kernels that ExecuTorch itself runs, by name.
    pub operators: Vec<Operator>,
}

/// An input or output of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A tensor.
    Tensor(TensorType),
    /// A number, a text or a list.
    Other,
}

/// A tensor's type; of one with dynamic shape, the largest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorType {
    /// ExecuTorch's name of the element type, in small letters.
    pub element: String,
    /// Dimensions in the order that PyTorch sees.
    pub dims: Vec<usize>,
    /// Dimensions from the outermost in memory to the innermost: `[0, 2, 3, 1]`
    /// is an NCHW tensor stored as NHWC.
    pub dim_order: Vec<usize>,
}

/// A part of a method that a backend runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delegate {
    /// Index in its method.
    pub index: usize,
    /// The backend, [`XNNPACK_BACKEND`] for instance.
    pub backend: String,
    /// What the backend gets: for XNNPACK an XN01 graph.
    pub payload: Bytes,
    /// Options for the backend.
    pub compile_specs: Vec<CompileSpec>,
    /// How often the method calls it.
    pub calls: usize,
}

/// An option that a delegate was compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileSpec {
    /// Its name.
    pub key: String,
    /// Its value, in a form that the backend knows.
    pub value: Bytes,
}

/// A kernel outside of the delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operator {
    /// Name and overload, such as `aten::cumsum.out`.
    pub name: String,
    /// How often the method calls it.
    pub calls: usize,
}

impl PteProgram {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`PteProgram::from_bytes`]; and if the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &PteLimits::default())
    }

    /// [`PteProgram::open`] with bounds of your own.
    ///
    /// # Errors
    /// As [`PteProgram::open`], and if the file asks for more than `limits`.
    pub fn open_with(path: impl AsRef<Path>, limits: &PteLimits) -> Result<Self> {
        let path = path.as_ref();
        xnn_file::read(path)
            .map_err(Error::from)
            .and_then(|file| Self::from_bytes_with(file, limits))
            .map_err(|error| error.in_file(path))
    }

    /// Reads a program that is in memory.
    ///
    /// # Errors
    /// Another format, a damaged or truncated file, an index or a place that
    /// is not in it. The error names method and delegate.
    pub fn from_bytes(file: impl Into<Bytes>) -> Result<Self> {
        Self::from_bytes_with(file, &PteLimits::default())
    }

    /// [`PteProgram::from_bytes`] with bounds of your own.
    ///
    /// # Errors
    /// As [`PteProgram::from_bytes`], and if the file asks for more than `limits`.
    pub fn from_bytes_with(file: impl Into<Bytes>, limits: &PteLimits) -> Result<Self> {
        decode::program(&file.into(), limits)
    }

    /// Version of the schema, as the file has it; 0 in all known files.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of the file.
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
    /// Whether it is the XNNPACK backend's.
    #[must_use]
    pub fn is_xnnpack(&self) -> bool {
        self.backend == XNNPACK_BACKEND
    }
}

/// Whether a file that starts with these bytes (8 are enough) is an ExecuTorch
/// program.
#[must_use]
pub fn is_program(start: &[u8]) -> bool {
    start.get(decode::IDENTIFIER_AT) == Some(decode::IDENTIFIER)
}
