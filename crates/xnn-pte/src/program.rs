//! Programs, their methods and delegates.

use std::collections::BTreeMap;

use bytes::Bytes;
use xnn_format::ConstantSource;

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
