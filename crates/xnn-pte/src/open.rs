//! Opens programs.

use std::path::Path;

use bytes::Bytes;

use crate::decode;
use crate::error::{Error, Result};
use crate::limits::PteLimits;
use crate::program::PteProgram;

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
}

/// Whether a file that starts with these bytes (at least 8) is an ExecuTorch program.
#[must_use]
pub fn is_program(start: &[u8]) -> bool {
    start.get(decode::IDENTIFIER_AT) == Some(decode::IDENTIFIER)
}
