//! Metadata as JSON, in the format of flatbuffers' text generator: the schema's names, enumerations
//! by name, unions as `..._type` and value.

use super::types::ModelMetadata;
use crate::error::Error;

impl ModelMetadata {
    /// Serializes the metadata as indented JSON without empty fields.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serialization cannot fail: maps have string keys.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads metadata from JSON in the format of [`to_json`](Self::to_json), in any order of
    /// fields.
    ///
    /// # Errors
    ///
    /// The text is not valid JSON, or does not match the schema. The error names the field and its
    /// line.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| Error::invalid(error.to_string()))
    }
}
