//! Model metadata M001: what a model says of itself, its inputs and outputs,
//! and the files that it carries along.
//!
//! The tables of `schemas/tflite_metadata.fbs` as plain data, field for field
//! under the schema's names, absent strings empty. They live in the model's
//! metadata buffer [`BUFFER_NAME`]; the files that they name are entries of a
//! ZIP archive behind the model, [`AssociatedFiles`].
//!
//! [`ModelMetadata::to_json`] and [`from_json`](ModelMetadata::from_json) use the form of
//! TensorFlow Lite Support's `MetadataDisplayer`.

mod check;
mod files;
mod json;
mod read;
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

/// Name of the metadata buffer that holds the flatbuffer.
pub const BUFFER_NAME: &str = "TFLITE_METADATA";

/// What stands at bytes 4 to 8 of the flatbuffer.
pub const IDENTIFIER: [u8; 4] = *b"M001";

#[cfg(test)]
mod tests;
