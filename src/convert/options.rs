//! Options and results of a conversion.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use xnn_format::Compat;
use xnn_lower::{DynamicRange, PartitionOptions};

use crate::error::Error;

/// Options of [`convert`](crate::convert()).
///
/// ```
/// use xnn_delegate::{ConvertOptions, Converted, Model, Source, convert};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// // Fail rather than write a model that holds blobs.
/// let options = ConvertOptions::default().with_require_full(true);
/// let converted = convert(&Model::open(path)?, &Source::default(), &options)?;
/// assert!(matches!(converted, Converted::Whole(_)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// Readers that must understand the blob. Readers other than this project's read blobs only, so that they imply
    /// `require_full`.
    pub compat: Compat,
    /// Operators and partitions that are delegated.
    pub partition: PartitionOptions,
    /// Fail if the model is not fully delegated.
    pub require_full: bool,
    /// Also store the weights of blobs as XNNPACK packs them for this processor.
    pub pack: bool,
}

impl ConvertOptions {
    /// Sets the readers that must understand the blob.
    #[must_use]
    pub fn with_compat(self, compat: Compat) -> Self {
        Self { compat, ..self }
    }

    /// Sets the options for partitioning.
    #[must_use]
    pub fn with_partition(self, partition: PartitionOptions) -> Self {
        Self { partition, ..self }
    }

    /// Sets whether a model must be fully delegated.
    #[must_use]
    pub fn with_require_full(self, require_full: bool) -> Self {
        Self { require_full, ..self }
    }

    /// Sets whether blobs have packed weights.
    #[must_use]
    pub fn with_pack(self, pack: bool) -> Self {
        Self { pack, ..self }
    }

    /// The options with the consequences of `compat`.
    pub(super) fn for_readers(&self) -> Self {
        let mut options = self.clone();
        if options.compat != Compat::Own {
            // Other readers cannot read models that hold blobs, ...
            options.require_full = true;
            options.partition.widely_known = true;
            // ... or depthwise convolutions with dynamic-range quantization.
            if options.partition.dynamic_range == DynamicRange::Auto {
                options.partition.dynamic_range = DynamicRange::Rows;
            }
        }
        options
    }
}

/// A converted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Converted {
    /// Bytes of an `.xnn` file that computes the main subgraph.
    Whole(Vec<u8>),
    /// Bytes of a model in the original's format, in which an operator XNNGraph replaces each partition.
    Partial(Vec<u8>),
}

impl Converted {
    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::Partial(bytes) => bytes,
        }
    }

    /// Bytes of the file, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Whole(bytes) | Self::Partial(bytes) => bytes,
        }
    }
}

/// The model file that a blob records as its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// File name without folders.
    pub name: String,
    /// SHA-256 of the file.
    pub sha256: Option<[u8; 32]>,
}

impl Source {
    /// Names and hashes a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let hash = || -> std::io::Result<[u8; 32]> {
            let mut hasher = Sha256::new();
            let mut file = xnn_file::open(path)?;
            let mut chunk = vec![0; 1 << 16];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(hasher.finalize().into()),
                    count => hasher.update(chunk.get(..count).unwrap_or_default()),
                }
            }
        };
        let sha256 = hash().map_err(|error| Error::Io { path: path.to_owned(), error })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_default(), sha256: Some(sha256) })
    }
}
