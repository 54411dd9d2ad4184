//! Opening a model: mapping, sniffing, reading.

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
    /// The file is mapped, not read: constants are views of it. It must not be
    /// changed as long as the model or a clone of one of its constants lives.
    ///
    /// # Errors
    ///
    /// If the file cannot be mapped, is neither a TFLite nor a Circle model,
    /// is damaged, or says something impossible; the error names the file and
    /// the place in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &ModelLimits::default())
    }

    /// Opens a file as [`open`](Self::open) does, with bounds of your own.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and if the file asks for more than `limits`.
    pub fn open_with(path: impl AsRef<Path>, limits: &ModelLimits) -> Result<Self, Error> {
        let path = path.as_ref();
        MappedFile::open(path)
            .map_err(Error::from)
            .and_then(|file| {
                let model = Self::read(file.bytes(), limits, Some(path))?;
                Ok(Self { pages: file.pages(), ..model })
            })
            .inspect(|model| note_name(path, model.dialect))
            .map_err(|e| e.in_file(path))
    }

    /// Reads a model from memory with the default [`ModelLimits`]. Constants are
    /// views of `bytes`.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &ModelLimits::default())
    }

    /// Reads a model from memory with bounds of your own.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn from_bytes_with(bytes: impl Into<Bytes>, limits: &ModelLimits) -> Result<Self, Error> {
        Self::read(bytes.into(), limits, None)
    }

    /// The log says what was odd, with the file's name where it has one.
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
        file.notes().log(path);
        Ok(model)
    }
}

/// Says so where a file's extension is that of the other dialect.
fn note_name(path: &Path, dialect: Dialect) {
    let other = match dialect {
        Dialect::Tflite => "circle",
        Dialect::Circle => "tflite",
    };
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(other)) {
        log::warn!("{}: a {dialect} model, in spite of its name", path.display());
    }
}

/// The dialect that the identifier behind the root offset names. File names
/// say nothing: mis-named models exist.
fn sniff(bytes: &[u8]) -> Result<Dialect, Error> {
    match bytes.get(4..8).and_then(|id| <[u8; 4]>::try_from(id).ok()) {
        None => Err(ErrorKind::TooShort(bytes.len()).into()),
        Some(id) if id == *b"TFL3" => Ok(Dialect::Tflite),
        Some(id) if id == *b"CIR0" => Ok(Dialect::Circle),
        Some(id) => Err(ErrorKind::Identifier(id).into()),
    }
}
