//! Writes metadata to a flatbuffer.

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Push, UnionWIPOffset, Vector, WIPOffset};

use super::types::*;
use super::{AssociatedFiles, BUFFER_NAME, version};
use crate::generated::meta as fb;
use crate::graph::{Metadata, Model};

type Builder<'b> = FlatBufferBuilder<'b>;
type Text<'b> = Option<WIPOffset<&'b str>>;
type List<'b, T> = Option<WIPOffset<Vector<'b, T>>>;
type Tables<'b, T> = List<'b, ForwardsUOffset<T>>;

impl ModelMetadata {
    /// Serializes the metadata for a metadata buffer. Ignores
    /// [`min_parser_version`](Self::min_parser_version) and writes the minimum version that
    /// supports all used fields.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let b = &mut FlatBufferBuilder::new();
        let args = fb::ModelMetadataArgs {
            name: text(b, &self.name),
            description: text(b, &self.description),
            version: text(b, &self.version),
            subgraph_metadata: tables(b, &self.subgraph_metadata, subgraph),
            author: text(b, &self.author),
            license: text(b, &self.license),
            associated_files: tables(b, &self.associated_files, associated_file),
            min_parser_version: text(b, &version::minimum(self).to_string()),
        };
        let root = fb::ModelMetadata::create(b, &args);
        fb::finish_model_metadata_buffer(b, root);
        b.finished_data().to_vec()
    }
}

impl Model {
    /// Replaces the metadata and the associated files of the model.
    pub fn set_metadata(&mut self, metadata: &ModelMetadata, files: AssociatedFiles) {
        self.metadata.retain(|entry| entry.name != BUFFER_NAME);
        let data = metadata.to_bytes().into();
        self.metadata.push(Metadata { name: BUFFER_NAME.to_owned(), data });
        self.files = files;
    }
}

fn subgraph<'b>(
    b: &mut Builder<'b>,
    graph: &SubGraphMetadata,
) -> WIPOffset<fb::SubGraphMetadata<'b>> {
    let args = fb::SubGraphMetadataArgs {
        name: text(b, &graph.name),
        description: text(b, &graph.description),
        input_tensor_metadata: tables(b, &graph.input_tensor_metadata, tensor),
        output_tensor_metadata: tables(b, &graph.output_tensor_metadata, tensor),
        associated_files: tables(b, &graph.associated_files, associated_file),
        input_process_units: tables(b, &graph.input_process_units, process_unit),
        output_process_units: tables(b, &graph.output_process_units, process_unit),
        input_tensor_groups: tables(b, &graph.input_tensor_groups, tensor_group),
        output_tensor_groups: tables(b, &graph.output_tensor_groups, tensor_group),
        custom_metadata: tables(b, &graph.custom_metadata, custom_metadata),
    };
    fb::SubGraphMetadata::create(b, &args)
}

fn tensor<'b>(b: &mut Builder<'b>, tensor: &TensorMetadata) -> WIPOffset<fb::TensorMetadata<'b>> {
    let args = fb::TensorMetadataArgs {
        name: text(b, &tensor.name),
        description: text(b, &tensor.description),
        dimension_names: texts(b, &tensor.dimension_names),
        content: tensor.content.as_ref().map(|content| self::content(b, content)),
        process_units: tables(b, &tensor.process_units, process_unit),
        stats: tensor.stats.as_ref().map(|stats| {
            let args = fb::StatsArgs { max: scalars(b, &stats.max), min: scalars(b, &stats.min) };
            fb::Stats::create(b, &args)
        }),
        associated_files: tables(b, &tensor.associated_files, associated_file),
    };
    fb::TensorMetadata::create(b, &args)
}

fn content<'b>(b: &mut Builder<'b>, content: &Content) -> WIPOffset<fb::Content<'b>> {
    let properties = content.content_properties.as_ref();
    let (kind, properties) = properties.map(|properties| content_properties(b, properties)).unzip();
    let args = fb::ContentArgs {
        content_properties_type: kind.unwrap_or_default(),
        content_properties: properties,
        range: content.range.as_ref().map(|range| {
            fb::ValueRange::create(b, &fb::ValueRangeArgs { min: range.min, max: range.max })
        }),
    };
    fb::Content::create(b, &args)
}

fn content_properties(
    b: &mut Builder<'_>,
    properties: &ContentProperties,
) -> (fb::ContentProperties, WIPOffset<UnionWIPOffset>) {
    match properties {
        ContentProperties::FeatureProperties(FeatureProperties {}) => {
            let table = fb::FeatureProperties::create(b, &fb::FeaturePropertiesArgs {});
            (fb::ContentProperties::FeatureProperties, table.as_union_value())
        }
        ContentProperties::ImageProperties(image) => {
            let default_size = image.default_size.as_ref().map(|size| {
                let args = fb::ImageSizeArgs { width: size.width, height: size.height };
                fb::ImageSize::create(b, &args)
            });
            let color_space = fb::ColorSpaceType(image.color_space.code());
            let args = fb::ImagePropertiesArgs { color_space, default_size };
            let table = fb::ImageProperties::create(b, &args);
            (fb::ContentProperties::ImageProperties, table.as_union_value())
        }
        ContentProperties::BoundingBoxProperties(boxes) => {
            let args = fb::BoundingBoxPropertiesArgs {
                index: scalars(b, &boxes.index),
                type_: fb::BoundingBoxType(boxes.r#type.code()),
                coordinate_type: fb::CoordinateType(boxes.coordinate_type.code()),
            };
            let table = fb::BoundingBoxProperties::create(b, &args);
            (fb::ContentProperties::BoundingBoxProperties, table.as_union_value())
        }
        ContentProperties::AudioProperties(audio) => {
            let args = fb::AudioPropertiesArgs {
                sample_rate: audio.sample_rate,
                channels: audio.channels,
            };
            let table = fb::AudioProperties::create(b, &args);
            (fb::ContentProperties::AudioProperties, table.as_union_value())
        }
    }
}

fn process_unit<'b>(b: &mut Builder<'b>, unit: &ProcessUnit) -> WIPOffset<fb::ProcessUnit<'b>> {
    let (options_type, options) = process_unit_options(b, unit);
    fb::ProcessUnit::create(b, &fb::ProcessUnitArgs { options_type, options: Some(options) })
}

fn process_unit_options(
    b: &mut Builder<'_>,
    unit: &ProcessUnit,
) -> (fb::ProcessUnitOptions, WIPOffset<UnionWIPOffset>) {
    match unit {
        ProcessUnit::NormalizationOptions(o) => {
            let args = fb::NormalizationOptionsArgs {
                mean: scalars(b, &o.mean),
                std_: scalars(b, &o.std),
            };
            let table = fb::NormalizationOptions::create(b, &args);
            (fb::ProcessUnitOptions::NormalizationOptions, table.as_union_value())
        }
        ProcessUnit::ScoreCalibrationOptions(o) => {
            let args = fb::ScoreCalibrationOptionsArgs {
                score_transformation: fb::ScoreTransformationType(o.score_transformation.code()),
                default_score: o.default_score,
            };
            let table = fb::ScoreCalibrationOptions::create(b, &args);
            (fb::ProcessUnitOptions::ScoreCalibrationOptions, table.as_union_value())
        }
        ProcessUnit::ScoreThresholdingOptions(o) => {
            let global_score_threshold = o.global_score_threshold;
            let args = fb::ScoreThresholdingOptionsArgs { global_score_threshold };
            let table = fb::ScoreThresholdingOptions::create(b, &args);
            (fb::ProcessUnitOptions::ScoreThresholdingOptions, table.as_union_value())
        }
        ProcessUnit::BertTokenizerOptions(o) => {
            let vocab_file = tables(b, &o.vocab_file, associated_file);
            let args = fb::BertTokenizerOptionsArgs { vocab_file };
            let table = fb::BertTokenizerOptions::create(b, &args);
            (fb::ProcessUnitOptions::BertTokenizerOptions, table.as_union_value())
        }
        ProcessUnit::SentencePieceTokenizerOptions(o) => {
            let args = fb::SentencePieceTokenizerOptionsArgs {
                sentencePiece_model: tables(b, &o.sentence_piece_model, associated_file),
                vocab_file: tables(b, &o.vocab_file, associated_file),
            };
            let table = fb::SentencePieceTokenizerOptions::create(b, &args);
            (fb::ProcessUnitOptions::SentencePieceTokenizerOptions, table.as_union_value())
        }
        ProcessUnit::RegexTokenizerOptions(o) => {
            let args = fb::RegexTokenizerOptionsArgs {
                delim_regex_pattern: text(b, &o.delim_regex_pattern),
                vocab_file: tables(b, &o.vocab_file, associated_file),
            };
            let table = fb::RegexTokenizerOptions::create(b, &args);
            (fb::ProcessUnitOptions::RegexTokenizerOptions, table.as_union_value())
        }
    }
}

fn associated_file<'b>(
    b: &mut Builder<'b>,
    file: &AssociatedFile,
) -> WIPOffset<fb::AssociatedFile<'b>> {
    let args = fb::AssociatedFileArgs {
        name: text(b, &file.name),
        description: text(b, &file.description),
        type_: fb::AssociatedFileType(file.r#type.code()),
        locale: text(b, &file.locale),
        version: text(b, &file.version),
    };
    fb::AssociatedFile::create(b, &args)
}

fn tensor_group<'b>(b: &mut Builder<'b>, group: &TensorGroup) -> WIPOffset<fb::TensorGroup<'b>> {
    let args = fb::TensorGroupArgs {
        name: text(b, &group.name),
        tensor_names: texts(b, &group.tensor_names),
    };
    fb::TensorGroup::create(b, &args)
}

fn custom_metadata<'b>(
    b: &mut Builder<'b>,
    custom: &CustomMetadata,
) -> WIPOffset<fb::CustomMetadata<'b>> {
    let args =
        fb::CustomMetadataArgs { name: text(b, &custom.name), data: scalars(b, &custom.data) };
    fb::CustomMetadata::create(b, &args)
}

/// Writes a string; omits an empty one.
fn text<'b>(b: &mut Builder<'b>, text: &str) -> Text<'b> {
    (!text.is_empty()).then(|| b.create_string(text))
}

fn texts<'b>(b: &mut Builder<'b>, list: &[String]) -> Tables<'b, &'b str> {
    let list: Vec<_> = list.iter().map(|text| b.create_string(text)).collect();
    (!list.is_empty()).then(|| b.create_vector(&list))
}

fn tables<'b, T, U: 'b>(
    b: &mut Builder<'b>,
    list: &[T],
    write: impl Fn(&mut Builder<'b>, &T) -> WIPOffset<U>,
) -> Tables<'b, U> {
    let list: Vec<_> = list.iter().map(|item| write(b, item)).collect();
    (!list.is_empty()).then(|| b.create_vector(&list))
}

fn scalars<'b, T: Push<Output = T> + Copy>(b: &mut Builder<'b>, list: &[T]) -> List<'b, T> {
    (!list.is_empty()).then(|| b.create_vector(list))
}
