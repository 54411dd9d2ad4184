//! Model metadata (M001): descriptions of a model, its inputs and outputs, and associated files.
//!
//! The structs mirror the tables of `schemas/tflite_metadata.fbs`, with the schema's field names;
//! absent strings are empty. Models store them in the metadata buffer [`BUFFER_NAME`]. Associated
//! files are entries of a ZIP archive after the model, [`AssociatedFiles`].
//!
//! [`ModelMetadata::to_json`] and [`from_json`](ModelMetadata::from_json) use the format of
//! TensorFlow Lite Support's `MetadataDisplayer`.
//!
//! ```no_run
//! use xnn_model::metadata::{AssociatedFileType, ModelMetadata};
//! use xnn_model::{Model, ModelLimits};
//!
//! # fn main() -> Result<(), xnn_model::Error> {
//! let model = Model::open("classifier.tflite")?;
//! if let Some(metadata) = ModelMetadata::of_model(&model, &ModelLimits::default())? {
//!     let output = metadata.output(0);
//!     if let Some(file) = output.and_then(|it| it.file(AssociatedFileType::TensorAxisLabels)) {
//!         println!("{:?}", model.files.lines(&file.name)?);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod check;
mod files;
mod json;
mod read;
mod serialize;
mod types;
mod version;
mod write;

pub use files::{AssociatedFiles, plain_name};
pub use types::{
    AssociatedFile, AssociatedFileType, AudioProperties, BertTokenizerOptions,
    BoundingBoxProperties, BoundingBoxType, ColorSpaceType, Content, ContentProperties,
    CoordinateType, CustomMetadata, FeatureProperties, ImageProperties, ImageSize, ModelMetadata,
    NormalizationOptions, ProcessUnit, RegexTokenizerOptions, ScoreCalibrationOptions,
    ScoreThresholdingOptions, ScoreTransformationType, SentencePieceTokenizerOptions, Stats,
    SubGraphMetadata, TensorGroup, TensorMetadata, ValueRange,
};

/// Name of the metadata buffer with the M001 flatbuffer.
pub const BUFFER_NAME: &str = "TFLITE_METADATA";

/// Identifier of the flatbuffer, its bytes 4 to 8.
pub const IDENTIFIER: [u8; 4] = *b"M001";

#[cfg(test)]
mod tests;
