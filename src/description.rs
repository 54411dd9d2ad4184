//! The documentation that a model or blob carries: metadata M001 and associated files.

use std::path::Path;

use xnn_format::{Blob, Graph};
use xnn_model::metadata::{AssociatedFiles, BUFFER_NAME, ModelMetadata};
use xnn_model::{Model, ModelLimits};

use crate::error::Error;
use crate::file_kind::is_blob;

/// Name of a blob's metadata entry with the associated files, a ZIP archive.
const FILES: &str = "associated_files.zip";

/// Metadata of a model, and the files associated with it.
///
/// ```
/// use xnn_delegate::metadata::Description;
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// if let Some(described) = Description::open(path)? {
///     println!("{}", described.metadata.description);
///     for (name, bytes) in described.files.iter() {
///         println!("{name}: {bytes} bytes");
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The metadata.
    pub metadata: ModelMetadata,
    /// Associated files, whether or not the metadata names them.
    pub files: AssociatedFiles,
}

impl Description {
    /// Reads the description of a model (TFLite or Circle) or blob; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The file is of another kind, or its metadata is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let path = path.as_ref();
        match is_blob(path)? {
            true => Self::of_graph(Blob::open(path)?.graph()),
            false => Self::of_model(&Model::open(path)?),
        }
    }

    /// Reads the description of a model; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The metadata is damaged.
    pub fn of_model(model: &Model) -> Result<Option<Self>, Error> {
        let metadata = ModelMetadata::of_model(model, &ModelLimits::default())?;
        Ok(metadata.map(|metadata| Self { metadata, files: model.files.clone() }))
    }

    /// Reads the description in a blob's graph; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The metadata or the archive of files is damaged.
    pub fn of_graph(graph: &Graph) -> Result<Option<Self>, Error> {
        let entry = |wanted: &str| {
            let entries = graph.origin.metadata.iter();
            entries.into_iter().find(|(name, _)| name == wanted).map(|(_, data)| data)
        };
        let limits = ModelLimits::default();
        let Some(metadata) = entry(BUFFER_NAME) else { return Ok(None) };
        let metadata = ModelMetadata::from_bytes(metadata, &limits)?;
        let files = entry(FILES).map(|archive| AssociatedFiles::at_end_of(archive, &limits));
        Ok(Some(Self { metadata, files: files.transpose()?.unwrap_or_default() }))
    }

    /// Copies the description of `model` into a blob's graph, byte for byte, if it has one.
    ///
    /// # Errors
    ///
    /// The archive of files is damaged.
    pub fn attach(model: &Model, graph: &mut Graph) -> Result<(), Error> {
        let Some(entry) = model.metadata.iter().find(|entry| entry.name == BUFFER_NAME) else {
            return Ok(());
        };
        let carried = &mut graph.origin.metadata;
        carried.retain(|(name, _)| name != BUFFER_NAME && name != FILES);
        carried.push((BUFFER_NAME.to_owned(), entry.data.clone()));
        if !model.files.is_empty() {
            carried.push((FILES.to_owned(), model.files.to_zip()?.into()));
        }
        Ok(())
    }
}
