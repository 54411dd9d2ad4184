//! What a model or blob says of itself: metadata M001 and the files that come
//! with it.

use std::path::Path;

use xnn_format::{Blob, Graph};
use xnn_model::metadata::{AssociatedFiles, BUFFER_NAME, ModelMetadata};
use xnn_model::{Model, ModelLimits};

use crate::convert::is_blob;
use crate::error::Error;

/// Name of a blob's entry that has the files, as a ZIP archive.
const FILES: &str = "associated_files.zip";

/// Metadata and the files that it names.
///
/// ```no_run
/// use xnn_delegate::Description;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// if let Some(described) = Description::open("mobilenet.tflite")? {
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
    /// Files that come with the model, named by the metadata or not.
    pub files: AssociatedFiles,
}

impl Description {
    /// What a model (TFLite or Circle) or blob says of itself, `None` if nothing.
    ///
    /// # Errors
    ///
    /// The file is neither; its metadata is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let path = path.as_ref();
        match is_blob(path)? {
            true => Self::of_graph(Blob::open(path)?.graph()),
            false => Self::of_model(&Model::open(path)?),
        }
    }

    /// What a model says of itself, `None` if nothing.
    ///
    /// # Errors
    ///
    /// The metadata is damaged.
    pub fn of_model(model: &Model) -> Result<Option<Self>, Error> {
        let metadata = ModelMetadata::of_model(model, &ModelLimits::default())?;
        Ok(metadata.map(|metadata| Self { metadata, files: model.files.clone() }))
    }

    /// What a blob's model said of itself, `None` if nothing.
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

    /// Lets a blob's graph carry along what `model` says of itself, byte for
    /// byte, and nothing if the model says nothing.
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
