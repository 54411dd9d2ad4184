//! Reads metadata from the flatbuffer.

use flatbuffers::{Follow, Vector};

use super::types::*;
use super::{BUFFER_NAME, IDENTIFIER};
use crate::error::{Error, ErrorKind};
use crate::generated::meta as fb;
use crate::graph::Model;
use crate::limits::ModelLimits;

impl ModelMetadata {
    /// Reads the metadata of a model; `None` if the model does not have the buffer [`BUFFER_NAME`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_bytes`](Self::from_bytes).
    pub fn of_model(model: &Model, limits: &ModelLimits) -> Result<Option<Self>, Error> {
        let entry = model.metadata.iter().find(|entry| entry.name == BUFFER_NAME);
        entry.map(|entry| Self::from_bytes(&entry.data, limits)).transpose()
    }

    /// Reads metadata from the bytes of a metadata buffer.
    ///
    /// # Errors
    ///
    /// The identifier is not `M001`, the flatbuffer is damaged, or a limit is exceeded.
    pub fn from_bytes(bytes: &[u8], limits: &ModelLimits) -> Result<Self, Error> {
        let identifier = bytes.get(4..8).unwrap_or_default();
        if identifier != IDENTIFIER {
            return Err(Error::invalid(format!(
                "{BUFFER_NAME}: found \"{}\" where the identifier {} should be",
                identifier.escape_ascii(),
                IDENTIFIER.escape_ascii()
            )));
        }
        let root = fb::root_as_model_metadata_with_opts(&limits.verifier(bytes.len()), bytes)
            .map_err(|error| {
                let damage = ErrorKind::from(error);
                Error::invalid(format!("{BUFFER_NAME}: {damage}"))
            })?;
        Ok(model(&root))
    }
}

fn model(table: &fb::ModelMetadata<'_>) -> ModelMetadata {
    ModelMetadata {
        name: text(table.name()),
        description: text(table.description()),
        version: text(table.version()),
        subgraph_metadata: all(table.subgraph_metadata(), subgraph),
        author: text(table.author()),
        license: text(table.license()),
        associated_files: all(table.associated_files(), associated_file),
        min_parser_version: text(table.min_parser_version()),
    }
}

fn subgraph(table: fb::SubGraphMetadata<'_>) -> SubGraphMetadata {
    SubGraphMetadata {
        name: text(table.name()),
        description: text(table.description()),
        input_tensor_metadata: all(table.input_tensor_metadata(), tensor),
        output_tensor_metadata: all(table.output_tensor_metadata(), tensor),
        associated_files: all(table.associated_files(), associated_file),
        input_process_units: process_units(table.input_process_units()),
        output_process_units: process_units(table.output_process_units()),
        input_tensor_groups: all(table.input_tensor_groups(), tensor_group),
        output_tensor_groups: all(table.output_tensor_groups(), tensor_group),
        custom_metadata: all(table.custom_metadata(), |custom| CustomMetadata {
            name: text(custom.name()),
            data: scalars(custom.data()),
        }),
    }
}

fn tensor(table: fb::TensorMetadata<'_>) -> TensorMetadata {
    TensorMetadata {
        name: text(table.name()),
        description: text(table.description()),
        dimension_names: all(table.dimension_names(), str::to_owned),
        content: table.content().map(|content| Content {
            content_properties: content_properties(&content),
            range: content.range().map(|range| ValueRange { min: range.min(), max: range.max() }),
        }),
        process_units: process_units(table.process_units()),
        stats: table
            .stats()
            .map(|stats| Stats { max: scalars(stats.max()), min: scalars(stats.min()) }),
        associated_files: all(table.associated_files(), associated_file),
    }
}

fn content_properties(content: &fb::Content<'_>) -> Option<ContentProperties> {
    if content.content_properties_as_feature_properties().is_some() {
        return Some(ContentProperties::FeatureProperties(FeatureProperties {}));
    }
    if let Some(image) = content.content_properties_as_image_properties() {
        return Some(ContentProperties::ImageProperties(ImageProperties {
            color_space: ColorSpaceType::from_code(image.color_space().0),
            default_size: image
                .default_size()
                .map(|size| ImageSize { width: size.width(), height: size.height() }),
        }));
    }
    if let Some(boxes) = content.content_properties_as_bounding_box_properties() {
        return Some(ContentProperties::BoundingBoxProperties(BoundingBoxProperties {
            index: scalars(boxes.index()),
            r#type: BoundingBoxType::from_code(boxes.type_().0),
            coordinate_type: CoordinateType::from_code(boxes.coordinate_type().0),
        }));
    }
    if let Some(audio) = content.content_properties_as_audio_properties() {
        return Some(ContentProperties::AudioProperties(AudioProperties {
            sample_rate: audio.sample_rate(),
            channels: audio.channels(),
        }));
    }
    warn_unknown("content properties", content.content_properties_type().0);
    None
}

fn process_units(
    units: Option<Vector<'_, flatbuffers::ForwardsUOffset<fb::ProcessUnit<'_>>>>,
) -> Vec<ProcessUnit> {
    units.unwrap_or_default().iter().filter_map(|unit| process_unit(&unit)).collect()
}

fn process_unit(unit: &fb::ProcessUnit<'_>) -> Option<ProcessUnit> {
    if let Some(options) = unit.options_as_normalization_options() {
        return Some(ProcessUnit::NormalizationOptions(NormalizationOptions {
            mean: scalars(options.mean()),
            std: scalars(options.std_()),
        }));
    }
    if let Some(options) = unit.options_as_score_calibration_options() {
        let transformation = options.score_transformation().0;
        return Some(ProcessUnit::ScoreCalibrationOptions(ScoreCalibrationOptions {
            score_transformation: ScoreTransformationType::from_code(transformation),
            default_score: options.default_score(),
        }));
    }
    if let Some(options) = unit.options_as_score_thresholding_options() {
        return Some(ProcessUnit::ScoreThresholdingOptions(ScoreThresholdingOptions {
            global_score_threshold: options.global_score_threshold(),
        }));
    }
    if let Some(options) = unit.options_as_bert_tokenizer_options() {
        return Some(ProcessUnit::BertTokenizerOptions(BertTokenizerOptions {
            vocab_file: all(options.vocab_file(), associated_file),
        }));
    }
    if let Some(options) = unit.options_as_sentence_piece_tokenizer_options() {
        return Some(ProcessUnit::SentencePieceTokenizerOptions(SentencePieceTokenizerOptions {
            sentence_piece_model: all(options.sentencePiece_model(), associated_file),
            vocab_file: all(options.vocab_file(), associated_file),
        }));
    }
    if let Some(options) = unit.options_as_regex_tokenizer_options() {
        return Some(ProcessUnit::RegexTokenizerOptions(RegexTokenizerOptions {
            delim_regex_pattern: text(options.delim_regex_pattern()),
            vocab_file: all(options.vocab_file(), associated_file),
        }));
    }
    warn_unknown("process unit", unit.options_type().0);
    None
}

fn associated_file(file: fb::AssociatedFile<'_>) -> AssociatedFile {
    AssociatedFile {
        name: text(file.name()),
        description: text(file.description()),
        r#type: AssociatedFileType::from_code(file.type_().0),
        locale: text(file.locale()),
        version: text(file.version()),
    }
}

fn tensor_group(group: fb::TensorGroup<'_>) -> TensorGroup {
    TensorGroup { name: text(group.name()), tensor_names: all(group.tensor_names(), str::to_owned) }
}

fn warn_unknown(what: &str, tag: u8) {
    if tag != 0 {
        log::warn!("{BUFFER_NAME}: ignoring {what} of the unknown kind {tag}");
    }
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn all<'a, T: Follow<'a> + 'a, U>(
    vector: Option<Vector<'a, T>>,
    read: impl Fn(T::Inner) -> U,
) -> Vec<U> {
    vector.unwrap_or_default().iter().map(read).collect()
}

fn scalars<'a, T: Follow<'a, Inner = T> + 'a>(vector: Option<Vector<'a, T>>) -> Vec<T> {
    all(vector, |scalar| scalar)
}
