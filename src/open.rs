//! Opens fully delegated models, and blobs, as programs.

use std::path::Path;
use std::sync::Arc;

use xnn_format::{Blob, ReadOptions};
use xnn_lower::PartitionOptions;
use xnn_model::Model;
use xnn_runtime::{Program, ProgramOptions};

use crate::compile::XnnpackCompiler;
use crate::delegation::{Delegation, main_subgraph};
use crate::error::Error;
use crate::file_kind::is_blob;

/// Opens a model (TFLite or Circle) or a blob as a program. The content tells which of them the file is.
///
/// ```
/// use xnn_delegate::SessionOptions;
/// use xnn_delegate::runtime::{Session, open};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let program = open(path)?;
/// // Sessions share packed weights; each belongs to one thread.
/// let sessions = [0; 2].map(|_| Session::new(&program, &SessionOptions::default()));
/// for session in sessions {
///     session?.run()?;
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The file is of another kind or damaged, or the model is not fully delegated.
pub fn open(path: impl AsRef<Path>) -> Result<Program, Error> {
    open_with(path, &PartitionOptions::default())
}

/// Opens as [`open`], with options for partitioning.
///
/// # Errors
///
/// See [`open`].
pub fn open_with(path: impl AsRef<Path>, options: &PartitionOptions) -> Result<Program, Error> {
    let path = path.as_ref();
    if is_blob(path)? {
        let reading = ReadOptions { limits: options.limits.clone(), constants: None };
        let program =
            ProgramOptions { limits: reading.limits.clone(), ..ProgramOptions::default() };
        return Ok(Program::from_blob_with(Blob::open_with(path, &reading)?, &program)?);
    }
    let model = Model::open(path)?;
    let program = ProgramOptions { pages: model.pages.clone(), ..ProgramOptions::default() };
    let compiler = XnnpackCompiler { program, ..XnnpackCompiler::default() };
    let delegation = Delegation::with(Arc::clone(main_subgraph(&model)?), options, compiler)?;
    Ok(delegation.whole()?.clone())
}
