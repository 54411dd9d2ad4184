//! Opens models: maps the file, detects the format, reads.

use std::path::Path;

use bytes::Bytes;
use xnn_file::MappedFile;

use crate::dialect::{File, circle, tflite};
use crate::error::{Error, ErrorKind};
use crate::graph::{Dialect, Model};
use crate::limits::ModelLimits;

impl Model {
    /// Opens a `.tflite` or `.circle` file with the default [`ModelLimits`].
    ///
    /// The format is detected from the content. The file is mapped and constants are views of the
    /// mapping, so it must not be changed or truncated while the model or a clone of one of its
    /// constants is in use.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), xnn_model::Error> {
    /// let model = xnn_model::Model::open("model.tflite")?;
    /// if let Some(graph) = model.main() {
    ///     for &input in &graph.inputs {
    ///         let tensor = graph.tensor(input);
    ///         println!("{}: {} {:?}", tensor.name, tensor.dtype, tensor.shape);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The file cannot be mapped, is neither a TFLite nor a Circle model, is damaged or invalid, or
    /// exceeds a limit. The error names the file and the place in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &ModelLimits::default())
    }

    /// [`open`](Self::open) with other limits.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, limits: &ModelLimits) -> Result<Self, Error> {
        let path = path.as_ref();
        MappedFile::open(path)
            .map_err(Error::from)
            .and_then(|file| {
                let model = Self::read(file.bytes(), limits, Some(path))?;
                Ok(Self { pages: file.pages(), ..model })
            })
            .inspect(|model| warn_of_extension(path, model.dialect))
            .map_err(|e| e.in_file(path))
    }

    /// Reads a model from memory with the default [`ModelLimits`]. Constants are views of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open), without the name of a file.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &ModelLimits::default())
    }

    /// [`from_bytes`](Self::from_bytes) with other limits.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(bytes: impl Into<Bytes>, limits: &ModelLimits) -> Result<Self, Error> {
        Self::read(bytes.into(), limits, None)
    }

    /// Reads a model and logs diagnostics, with the path if the model comes from a file.
    fn read(bytes: Bytes, limits: &ModelLimits, path: Option<&Path>) -> Result<Self, Error> {
        let read = match sniff(&bytes)? {
            Dialect::Tflite => tflite::read,
            Dialect::Circle => circle::read,
        };
        let file = File::new(bytes);
        let (file, model) = match read(&file, limits) {
            Err(error) if error.is_unaligned() => {
                let shifted = file.shifted();
                let read = shifted.and_then(|file| read(&file, limits).ok().map(|it| (file, it)));
                read.ok_or(error)?
            }
            result => (file, result?),
        };
        model.check(limits)?;
        file.diagnostics().log(path);
        Ok(model)
    }
}

/// Warns of a file extension that belongs to the other dialect.
fn warn_of_extension(path: &Path, dialect: Dialect) {
    let other = match dialect {
        Dialect::Tflite => "circle",
        Dialect::Circle => "tflite",
    };
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(other)) {
        log::warn!("{}: this is a {dialect} model despite its extension", path.display());
    }
}

/// The dialect of the identifier after the root offset. File names are not reliable: models with
/// the wrong extension exist.
fn sniff(bytes: &[u8]) -> Result<Dialect, Error> {
    match bytes.get(4..8).and_then(|id| <[u8; 4]>::try_from(id).ok()) {
        None => Err(ErrorKind::TooShort(bytes.len()).into()),
        Some(id) if id == *b"TFL3" => Ok(Dialect::Tflite),
        Some(id) if id == *b"CIR0" => Ok(Dialect::Circle),
        Some(id) => Err(ErrorKind::Identifier(id).into()),
    }
}
