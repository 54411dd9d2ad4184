//! The tables of the schema as plain data.

use serde::{Deserialize, Serialize};

use super::json::{enumerations, is_default, tagged};

enumerations! {
    /// What an associated file holds.
    AssociatedFileType {
        /// Nothing that is known.
        Unknown = 0, "UNKNOWN";
        /// Text for people.
        Descriptions = 1, "DESCRIPTIONS";
        /// A label a line for the indices of an output.
        TensorAxisLabels = 2, "TENSOR_AXIS_LABELS";
        /// A label a line for the values of an output.
        TensorValueLabels = 3, "TENSOR_VALUE_LABELS";
        /// A line `scale,slope,offset[,min_score]`, or an empty one, for each
        /// index of an output.
        TensorAxisScoreCalibration = 4, "TENSOR_AXIS_SCORE_CALIBRATION";
        /// A word a line. Since 1.0.1.
        Vocabulary = 5, "VOCABULARY";
        /// An index of ScaNN. Since 1.4.0.
        ScannIndexFile = 6, "SCANN_INDEX_FILE";
    }
    /// Channels of an image.
    ColorSpaceType {
        /// Not stated.
        Unknown = 0, "UNKNOWN";
        /// Red, green, blue.
        Rgb = 1, "RGB";
        /// One channel.
        Grayscale = 2, "GRAYSCALE";
    }
    /// How four numbers make a box.
    BoundingBoxType {
        /// Not stated.
        Unknown = 0, "UNKNOWN";
        /// Left, top, right, bottom.
        Boundaries = 1, "BOUNDARIES";
        /// Left, top, width, height.
        UpperLeft = 2, "UPPER_LEFT";
        /// Centre x, centre y, width, height.
        Center = 3, "CENTER";
    }
    /// Unit of a box's numbers.
    CoordinateType {
        /// Of the image's width or height.
        Ratio = 0, "RATIO";
        /// Pixels.
        Pixel = 1, "PIXEL";
    }
    /// What is done to a score before its calibration.
    ScoreTransformationType {
        /// `x`.
        Identity = 0, "IDENTITY";
        /// `ln x`.
        Log = 1, "LOG";
        /// `ln x - ln(1 - x)`.
        InverseLogistic = 2, "INVERSE_LOGISTIC";
    }
}

/// Writes structs whose fields are the schema's; JSON leaves out what is empty.
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
    /// A whole model.
    ModelMetadata {
        /// Name for people.
        name: String,
        /// What the model does.
        description: String,
        /// Version of the model, as its author counts.
        version: String,
        /// One for each subgraph; the format's own tools want exactly one.
        subgraph_metadata: Vec<SubGraphMetadata>,
        /// Who made it.
        author: String,
        /// Terms of use.
        license: String,
        /// Files that concern all of the model.
        associated_files: Vec<AssociatedFile>,
        /// Oldest version of the metadata schema whose readers understand this.
        min_parser_version: String,
    }
    /// A subgraph.
    SubGraphMetadata {
        /// Name for people.
        name: String,
        /// What it does.
        description: String,
        /// One for each input, in the subgraph's order.
        input_tensor_metadata: Vec<TensorMetadata>,
        /// One for each output, in the subgraph's order.
        output_tensor_metadata: Vec<TensorMetadata>,
        /// Files that concern the subgraph.
        associated_files: Vec<AssociatedFile>,
        /// What is done to all inputs together. Since 1.1.0.
        input_process_units: Vec<ProcessUnit>,
        /// What is done to all outputs together. Since 1.1.0.
        output_process_units: Vec<ProcessUnit>,
        /// Inputs that belong together. Since 1.2.0.
        input_tensor_groups: Vec<TensorGroup>,
        /// Outputs that belong together. Since 1.2.0.
        output_tensor_groups: Vec<TensorGroup>,
        /// Data of other authors' schemas. Since 1.5.0.
        custom_metadata: Vec<CustomMetadata>,
    }
    /// An input or output.
    TensorMetadata {
        /// Name for people; not necessarily the tensor's.
        name: String,
        /// What it holds.
        description: String,
        /// A name for each dimension.
        dimension_names: Vec<String>,
        /// What kind of thing it holds.
        content: Option<Content>,
        /// What is done before an input, or behind an output, in order.
        process_units: Vec<ProcessUnit>,
        /// Least and largest values.
        stats: Option<Stats>,
        /// Labels and other files.
        associated_files: Vec<AssociatedFile>,
    }
    /// A file in the archive behind the model.
    AssociatedFile {
        /// Name of the archive's entry.
        name: String,
        /// What it holds, for people.
        description: String,
        /// What it holds.
        r#type: AssociatedFileType,
        /// Language of its text, as `en` or `en-US`; empty if it has none.
        locale: String,
        /// Version, as its author counts. Since 1.4.1.
        version: String,
    }
    /// An image.
    ImageProperties {
        /// Its channels.
        color_space: ColorSpaceType,
        /// Size to assume where the tensor leaves it open.
        default_size: Option<ImageSize>,
    }
    /// Size in pixels.
    ImageSize {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    }
    /// Numbers without more meaning.
    FeatureProperties {}
    /// Boxes around things in an image.
    BoundingBoxProperties {
        /// Where each number of the box is in the last dimension; in order if empty.
        index: Vec<u32>,
        /// What the numbers are.
        r#type: BoundingBoxType,
        /// Their unit.
        coordinate_type: CoordinateType,
    }
    /// Sound.
    AudioProperties {
        /// Samples of a second.
        sample_rate: u32,
        /// Channels.
        channels: u32,
    }
    /// Least and largest, both included.
    ValueRange {
        /// The least.
        min: i32,
        /// The largest.
        max: i32,
    }
    /// `(value - mean) / std`, one entry for each channel or one for all.
    NormalizationOptions {
        /// Subtracted.
        mean: Vec<f32>,
        /// Divided by.
        std: Vec<f32>,
    }
    /// Scores become `scale / (1 + exp(-(slope * transform(score) + offset)))`, with the three
    /// parameters of each index from a file of [`AssociatedFileType::TensorAxisScoreCalibration`].
    ScoreCalibrationOptions {
        /// The transform.
        score_transformation: ScoreTransformationType,
        /// Result for scores below their `min_score` and indices without parameters.
        default_score: f32,
    }
    /// Scores below the threshold are left out.
    ScoreThresholdingOptions {
        /// The threshold.
        global_score_threshold: f32,
    }
    /// BERT's tokenizer. Since 1.1.0.
    BertTokenizerOptions {
        /// Its vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// SentencePiece. Since 1.1.0.
    SentencePieceTokenizerOptions {
        /// The model.
        #[serde(rename = "sentencePiece_model")]
        sentence_piece_model: Vec<AssociatedFile>,
        /// The vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// A tokenizer that splits at a regular expression. Since 1.2.1.
    RegexTokenizerOptions {
        /// What separates tokens.
        delim_regex_pattern: String,
        /// The vocabulary.
        vocab_file: Vec<AssociatedFile>,
    }
    /// Least and largest values of a tensor, one for each channel or one for all.
    Stats {
        /// The largest.
        max: Vec<f32>,
        /// The least.
        min: Vec<f32>,
    }
    /// Tensors that belong together.
    TensorGroup {
        /// Name of the group.
        name: String,
        /// [`TensorMetadata::name`] of its members.
        tensor_names: Vec<String>,
    }
    /// Data of another author's schema.
    CustomMetadata {
        /// Whose.
        name: String,
        /// The data.
        data: Vec<u8>,
    }
}

/// What a tensor holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// What kind of thing it is.
    #[serde(flatten, deserialize_with = "tagged")]
    pub content_properties: Option<ContentProperties>,
    /// Which values it may have.
    #[serde(skip_serializing_if = "is_default")]
    pub range: Option<ValueRange>,
}

/// What kind of thing a tensor holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "content_properties_type", content = "content_properties", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the tables say it")]
pub enum ContentProperties {
    FeatureProperties(FeatureProperties),
    ImageProperties(ImageProperties),
    BoundingBoxProperties(BoundingBoxProperties),
    AudioProperties(AudioProperties),
}

/// A step of what is done to a tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "options_type", content = "options", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the tables say it")]
pub enum ProcessUnit {
    NormalizationOptions(NormalizationOptions),
    ScoreCalibrationOptions(ScoreCalibrationOptions),
    ScoreThresholdingOptions(ScoreThresholdingOptions),
    BertTokenizerOptions(BertTokenizerOptions),
    SentencePieceTokenizerOptions(SentencePieceTokenizerOptions),
    RegexTokenizerOptions(RegexTokenizerOptions),
}

impl ProcessUnit {
    /// Files that the step needs.
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
    /// Subtracted and divided by, where the metadata says.
    #[must_use]
    pub fn normalization(&self) -> Option<&NormalizationOptions> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::NormalizationOptions(options) => Some(options),
            _ => None,
        })
    }

    /// How scores are calibrated, where the metadata says.
    #[must_use]
    pub fn score_calibration(&self) -> Option<&ScoreCalibrationOptions> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::ScoreCalibrationOptions(options) => Some(options),
            _ => None,
        })
    }

    /// Which scores are left out, where the metadata says.
    #[must_use]
    pub fn score_threshold(&self) -> Option<f32> {
        self.process_units.iter().find_map(|unit| match unit {
            ProcessUnit::ScoreThresholdingOptions(options) => Some(options.global_score_threshold),
            _ => None,
        })
    }

    /// The image that the tensor holds, where the metadata says so.
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

    /// The file of this kind for a locale: of that very one, else of its
    /// language, else without any, else the first.
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
    /// Every file that is named, the model's own first.
    pub fn all_files(&self) -> impl Iterator<Item = &AssociatedFile> {
        self.associated_files
            .iter()
            .chain(self.subgraph_metadata.iter().flat_map(SubGraphMetadata::all_files))
    }

    /// What is said of the main subgraph's input at this position.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&TensorMetadata> {
        self.subgraph_metadata.first()?.input_tensor_metadata.get(index)
    }

    /// What is said of the main subgraph's output at this position.
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
