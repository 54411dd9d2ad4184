//! The tables of the metadata schema.

use serde::{Deserialize, Serialize};

use super::serialize::{enumerations, is_default, tagged};

enumerations! {
    /// Kind of an associated file.
    AssociatedFileType {
        /// Unknown.
        Unknown = 0, "UNKNOWN";
        /// Descriptions, as text.
        Descriptions = 1, "DESCRIPTIONS";
        /// Labels of the indices of an output, one per line.
        TensorAxisLabels = 2, "TENSOR_AXIS_LABELS";
        /// Labels of the values of an output, one per line.
        TensorValueLabels = 3, "TENSOR_VALUE_LABELS";
        /// A line `scale,slope,offset[,min_score]`, or an empty line, for each index of an output.
        TensorAxisScoreCalibration = 4, "TENSOR_AXIS_SCORE_CALIBRATION";
        /// A vocabulary, one word per line. Since 1.0.1.
        Vocabulary = 5, "VOCABULARY";
        /// A ScaNN index. Since 1.4.0.
        ScannIndexFile = 6, "SCANN_INDEX_FILE";
    }
    /// Color channels of an image.
    ColorSpaceType {
        /// Unknown.
        Unknown = 0, "UNKNOWN";
        /// Red, green, blue.
        Rgb = 1, "RGB";
        /// One channel.
        Grayscale = 2, "GRAYSCALE";
    }
    /// Meaning of the four values of a box.
    BoundingBoxType {
        /// Unknown.
        Unknown = 0, "UNKNOWN";
        /// Left, top, right, bottom.
        Boundaries = 1, "BOUNDARIES";
        /// Left, top, width, height.
        UpperLeft = 2, "UPPER_LEFT";
        /// Centre x, centre y, width, height.
        Center = 3, "CENTER";
    }
    /// Unit of the values of a box.
    CoordinateType {
        /// Relative to the image's width or height.
        Ratio = 0, "RATIO";
        /// Pixels.
        Pixel = 1, "PIXEL";
    }
    /// Transformation of a score before calibration.
    ScoreTransformationType {
        /// `x`.
        Identity = 0, "IDENTITY";
        /// `ln x`.
        Log = 1, "LOG";
        /// `ln x - ln(1 - x)`.
        InverseLogistic = 2, "INVERSE_LOGISTIC";
    }
}

/// Defines structs with the fields of the schema. JSON omits empty fields.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])*
            #[serde(skip_serializing_if = "is_default")]
            pub $field: $ty,)*
        }
    )*};
}

tables! {
    /// Metadata of a model.
    ModelMetadata {
        /// Display name.
        name: String,
        /// Description of the model.
        description: String,
        /// Version of the model, in the author's format.
        version: String,
        /// Metadata of the subgraphs. TensorFlow Lite Support requires exactly one.
        subgraph_metadata: Vec<SubGraphMetadata>,
        /// Author of the model.
        author: String,
        /// License of the model.
        license: String,
        /// Files of the whole model.
        associated_files: Vec<AssociatedFile>,
        /// Minimum version of the metadata schema that readers must support.
        min_parser_version: String,
    }
    /// Metadata of a subgraph.
    SubGraphMetadata {
        /// Display name.
        name: String,
        /// Description of the subgraph.
        description: String,
        /// Metadata of the inputs, in the subgraph's order.
        input_tensor_metadata: Vec<TensorMetadata>,
        /// Metadata of the outputs, in the subgraph's order.
        output_tensor_metadata: Vec<TensorMetadata>,
        /// Files of the subgraph.
        associated_files: Vec<AssociatedFile>,
        /// Preprocessing of all inputs together. Since 1.1.0.
        input_process_units: Vec<ProcessUnit>,
        /// Postprocessing of all outputs together. Since 1.1.0.
        output_process_units: Vec<ProcessUnit>,
        /// Groups of inputs. Since 1.2.0.
        input_tensor_groups: Vec<TensorGroup>,
        /// Groups of outputs. Since 1.2.0.
        output_tensor_groups: Vec<TensorGroup>,
        /// Data in other schemas. Since 1.5.0.
        custom_metadata: Vec<CustomMetadata>,
    }
    /// Metadata of an input or output.
    TensorMetadata {
        /// Display name, not necessarily the name of the tensor.
        name: String,
        /// Description of the tensor.
        description: String,
        /// Names of the dimensions.
        dimension_names: Vec<String>,
        /// Kind of the content.
        content: Option<Content>,
        /// Preprocessing of an input, or postprocessing of an output, in order.
        process_units: Vec<ProcessUnit>,
        /// Minimum and maximum values.
        stats: Option<Stats>,
        /// Files of the tensor, such as labels.
        associated_files: Vec<AssociatedFile>,
    }
    /// An associated file.
    AssociatedFile {
        /// Name of the entry in the archive.
        name: String,
        /// Description of the file.
        description: String,
        /// Kind of the file.
        r#type: AssociatedFileType,
        /// Language of the text, such as `en` or `en-US`; may be empty.
        locale: String,
        /// Version of the file, in the author's format. Since 1.4.1.
        version: String,
    }
    /// The tensor is an image.
    ImageProperties {
        /// Color channels.
        color_space: ColorSpaceType,
        /// Size to use if the shape of the tensor varies.
        default_size: Option<ImageSize>,
    }
    /// Size in pixels.
    ImageSize {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    }
    /// The tensor is a feature without further description.
    FeatureProperties {}
    /// The tensor is bounding boxes.
    BoundingBoxProperties {
        /// Position in the last dimension of each value of a box; in order if empty.
        index: Vec<u32>,
        /// Meaning of the values.
        r#type: BoundingBoxType,
        /// Unit of the values.
        coordinate_type: CoordinateType,
    }
    /// The tensor is audio.
    AudioProperties {
        /// Samples per second.
        sample_rate: u32,
        /// Number of channels.
        channels: u32,
    }
    /// An inclusive range.
    ValueRange {
        /// Minimum.
        min: i32,
        /// Maximum.
        max: i32,
    }
    /// Normalization `(value - mean) / std`, with one entry per channel or one for all.
    NormalizationOptions {
        /// Means.
        mean: Vec<f32>,
        /// Standard deviations.
        std: Vec<f32>,
    }
    /// Calibration of scores to `scale / (1 + exp(-(slope * transform(score) + offset)))`. The
    /// parameters of each index are in a file of
    /// [`AssociatedFileType::TensorAxisScoreCalibration`].
    ScoreCalibrationOptions {
        /// The transformation `transform`.
        score_transformation: ScoreTransformationType,
        /// Result for scores below `min_score` and for indices without parameters.
        default_score: f32,
    }
    /// Removal of scores below a threshold.
    ScoreThresholdingOptions {
        /// The threshold.
        global_score_threshold: f32,
    }
    /// The BERT tokenizer. Since 1.1.0.
    BertTokenizerOptions {
        /// The vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// The SentencePiece tokenizer. Since 1.1.0.
    SentencePieceTokenizerOptions {
        /// The model.
        #[serde(rename = "sentencePiece_model")]
        sentence_piece_model: Vec<AssociatedFile>,
        /// The vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// A tokenizer that splits at a regular expression. Since 1.2.1.
    RegexTokenizerOptions {
        /// Regular expression of the separator between tokens.
        delim_regex_pattern: String,
        /// The vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// Minimum and maximum values of a tensor, one per channel or one for all.
    Stats {
        /// Maximum values.
        max: Vec<f32>,
        /// Minimum values.
        min: Vec<f32>,
    }
    /// A group of tensors.
    TensorGroup {
        /// Name of the group.
        name: String,
        /// [`TensorMetadata::name`] of the members.
        tensor_names: Vec<String>,
    }
    /// Data in another schema.
    CustomMetadata {
        /// Name of the data.
        name: String,
        /// The data.
        data: Vec<u8>,
    }
}

/// Content of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Kind of the content.
    #[serde(flatten, deserialize_with = "tagged")]
    pub content_properties: Option<ContentProperties>,
    /// Range of the values.
    #[serde(skip_serializing_if = "is_default")]
    pub range: Option<ValueRange>,
}

/// Kind of the content of a tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "content_properties_type", content = "content_properties", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs, reason = "documented at the structs")]
pub enum ContentProperties {
    FeatureProperties(FeatureProperties),
    ImageProperties(ImageProperties),
    BoundingBoxProperties(BoundingBoxProperties),
    AudioProperties(AudioProperties),
}

/// A step of preprocessing or postprocessing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "options_type", content = "options", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs, reason = "documented at the structs")]
pub enum ProcessUnit {
    NormalizationOptions(NormalizationOptions),
    ScoreCalibrationOptions(ScoreCalibrationOptions),
    ScoreThresholdingOptions(ScoreThresholdingOptions),
    BertTokenizerOptions(BertTokenizerOptions),
    SentencePieceTokenizerOptions(SentencePieceTokenizerOptions),
    RegexTokenizerOptions(RegexTokenizerOptions),
}

impl ProcessUnit {
    /// Associated files of the step.
    pub fn associated_files(&self) -> impl Iterator<Item = &AssociatedFile> {
        let (first, second): (&[_], &[_]) = match self {
            Self::BertTokenizerOptions(o) => (&o.vocab_file, &[]),
            Self::SentencePieceTokenizerOptions(o) => (&o.sentence_piece_model, &o.vocab_file),
            Self::RegexTokenizerOptions(o) => (&o.vocab_file, &[]),
            Self::NormalizationOptions(_)
            | Self::ScoreCalibrationOptions(_)
            | Self::ScoreThresholdingOptions(_) => (&[], &[]),
        };
        first.iter().chain(second)
    }
}

impl TensorMetadata {
    /// The first normalization step.
    #[must_use]
    pub fn normalization(&self) -> Option<&NormalizationOptions> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::NormalizationOptions(options) => Some(options),
            _ => None,
        })
    }

    /// The first score calibration step.
    #[must_use]
    pub fn score_calibration(&self) -> Option<&ScoreCalibrationOptions> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::ScoreCalibrationOptions(options) => Some(options),
            _ => None,
        })
    }

    /// The threshold of the first thresholding step.
    #[must_use]
    pub fn score_threshold(&self) -> Option<f32> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::ScoreThresholdingOptions(options) => Some(options.global_score_threshold),
            _ => None,
        })
    }

    /// Properties of the image, if the content is an image.
    #[must_use]
    pub fn image(&self) -> Option<&ImageProperties> {
        match self.content.as_ref()?.content_properties.as_ref()? {
            ContentProperties::ImageProperties(image) => Some(image),
            _ => None,
        }
    }

    /// The first file of this kind.
    #[must_use]
    pub fn file(&self, kind: AssociatedFileType) -> Option<&AssociatedFile> {
        self.associated_files.iter().find(|file| file.r#type == kind)
    }

    /// The file of this kind for a locale: the first with the same locale, otherwise with the same
    /// language, otherwise without a locale, otherwise of any locale.
    #[must_use]
    pub fn file_for(&self, kind: AssociatedFileType, locale: &str) -> Option<&AssociatedFile> {
        let language =
            |locale: &str| locale.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        let files = || self.associated_files.iter().filter(|file| file.r#type == kind);
        files()
            .find(|file| file.locale.eq_ignore_ascii_case(locale))
            .or_else(|| files().find(|file| language(&file.locale) == language(locale)))
            .or_else(|| files().find(|file| file.locale.is_empty()))
            .or_else(|| files().next())
    }
}

impl ModelMetadata {
    /// All files that the metadata refer to, those of the whole model first.
    pub fn all_files(&self) -> impl Iterator<Item = &AssociatedFile> {
        self.associated_files
            .iter()
            .chain(self.subgraph_metadata.iter().flat_map(SubGraphMetadata::all_files))
    }

    /// Metadata of the main subgraph's input at this position.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&TensorMetadata> {
        self.subgraph_metadata.first()?.input_tensor_metadata.get(index)
    }

    /// Metadata of the main subgraph's output at this position.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<&TensorMetadata> {
        self.subgraph_metadata.first()?.output_tensor_metadata.get(index)
    }
}

impl SubGraphMetadata {
    fn all_files(&self) -> impl Iterator<Item = &AssociatedFile> {
        let tensors = self.input_tensor_metadata.iter().chain(&self.output_tensor_metadata);
        let of_tensors = tensors.flat_map(|tensor| {
            let units = tensor.process_units.iter().flat_map(ProcessUnit::associated_files);
            tensor.associated_files.iter().chain(units)
        });
        let units = self.input_process_units.iter().chain(&self.output_process_units);
        let of_units = units.flat_map(ProcessUnit::associated_files);
        self.associated_files.iter().chain(of_tensors).chain(of_units)
    }
}
