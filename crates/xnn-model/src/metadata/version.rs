//! Versions of the metadata schema.

use std::fmt;

use super::types::{
    AssociatedFileType, ContentProperties, ModelMetadata, ProcessUnit, SubGraphMetadata,
};

/// A version `major.minor.patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

/// The newest schema version that is fully supported.
pub(super) const NEWEST: Version = Version([1, 5, 0]);

impl Version {
    /// Parses a version; omitted parts are 0.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let version = [0; 3].map(|_: u32| parts.next().unwrap_or(Some(0)));
        match (version, parts.next()) {
            ([Some(major), Some(minor), Some(patch)], None) => Some(Self([major, minor, patch])),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Minimum schema version that readers of the metadata must support, by the rules of TensorFlow
/// Lite Support's `metadata_version.cc`. It has no rules for ScaNN files and file versions, which
/// older readers ignore.
pub(super) fn minimum(metadata: &ModelMetadata) -> Version {
    let files = metadata.all_files().any(|file| file.r#type == AssociatedFileType::Vocabulary);
    let of_files = if files { Version([1, 0, 1]) } else { Version([1, 0, 0]) };
    metadata.subgraph_metadata.iter().map(of_subgraph).fold(of_files, Version::max)
}

fn of_subgraph(graph: &SubGraphMetadata) -> Version {
    let tensors = || graph.input_tensor_metadata.iter().chain(&graph.output_tensor_metadata);
    let of_tensors = tensors().flat_map(|tensor| &tensor.process_units);
    let of_graph = graph.input_process_units.iter().chain(&graph.output_process_units);
    let units = of_tensors.chain(of_graph).map(|unit| match unit {
        ProcessUnit::RegexTokenizerOptions(_) => Version([1, 2, 1]),
        ProcessUnit::BertTokenizerOptions(_) | ProcessUnit::SentencePieceTokenizerOptions(_) => {
            Version([1, 1, 0])
        }
        _ => Version([1, 0, 0]),
    });
    let is_audio = tensors()
        .filter_map(|tensor| tensor.content.as_ref()?.content_properties.as_ref())
        .any(|content| matches!(content, ContentProperties::AudioProperties(_)));
    let groups = !graph.input_tensor_groups.is_empty() || !graph.output_tensor_groups.is_empty();
    let graph_units =
        !graph.input_process_units.is_empty() || !graph.output_process_units.is_empty();
    let parts = [
        (graph_units, Version([1, 1, 0])),
        (groups, Version([1, 2, 0])),
        (is_audio, Version([1, 3, 0])),
        (!graph.custom_metadata.is_empty(), Version([1, 5, 0])),
    ];
    let parts = parts.into_iter().filter(|(used, _)| *used).map(|(_, version)| version);
    units.chain(parts).fold(Version([1, 0, 0]), Version::max)
}
