//! Checks metadata against their model.

use super::files::AssociatedFiles;
use super::types::{AssociatedFileType, ModelMetadata, TensorMetadata};
use super::version::{NEWEST, Version};
use crate::graph::{Model, Tensor};
use crate::types::TensorId;

impl ModelMetadata {
    /// Lists mismatches between the metadata and the model or its associated files, one sentence
    /// each. The model can run in spite of them.
    #[must_use]
    pub fn problems(&self, model: &Model) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(version_problem(&self.min_parser_version));
        let (described, actual) = (self.subgraph_metadata.len(), model.subgraphs.len());
        if described > actual {
            problems
                .push(format!("it describes {described} subgraphs, but the model has {actual}"));
        }
        for file in self.all_files() {
            if !model.files.contains(&file.name) {
                problems.push(format!(
                    "it refers to the file {:?}, which the model does not have",
                    file.name
                ));
            }
        }
        for (index, (described, graph)) in
            self.subgraph_metadata.iter().zip(&model.subgraphs).enumerate()
        {
            let roles = [
                ("input", &described.input_tensor_metadata, &graph.inputs),
                ("output", &described.output_tensor_metadata, &graph.outputs),
            ];
            for (role, tensors, ids) in roles {
                if tensors.len() != ids.len() {
                    problems.push(format!(
                        "it describes {} {role}s of subgraph {index}, which has {}",
                        tensors.len(),
                        ids.len()
                    ));
                }
                for (position, (described, id)) in tensors.iter().zip(ids).enumerate() {
                    let place = format!("{role} {position} ({:?})", described.name);
                    let of_tensor = graph
                        .tensors
                        .get::<TensorId>(*id)
                        .map(|tensor| tensor_problems(described, tensor, &model.files));
                    let of_tensor = of_tensor.into_iter().flatten();
                    problems.extend(of_tensor.map(|problem| format!("{place}: {problem}")));
                }
            }
        }
        problems
    }
}

fn version_problem(version: &str) -> Option<String> {
    if version.is_empty() {
        return None;
    }
    match Version::parse(version) {
        None => Some(format!("its min_parser_version {version:?} is not a version")),
        Some(version) if version > NEWEST => Some(format!(
            "it requires schema version {version}; this reader supports {NEWEST} and may ignore fields"
        )),
        Some(_) => None,
    }
}

fn tensor_problems(
    described: &TensorMetadata,
    tensor: &Tensor,
    files: &AssociatedFiles,
) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(normalization) = described.normalization() {
        let (means, stds) = (normalization.mean.len(), normalization.std.len());
        if means == 0 || means != stds {
            problems
                .push(format!("normalization has {means} means and {stds} standard deviations"));
        }
        if normalization.std.iter().any(|std| !std.is_normal()) {
            problems.push(
                "a standard deviation of the normalization is zero, subnormal, infinite or NaN"
                    .to_owned(),
            );
        }
    }
    let per_class = [
        (AssociatedFileType::TensorAxisLabels, "labels"),
        (AssociatedFileType::TensorAxisScoreCalibration, "score calibrations"),
    ];
    for file in &described.associated_files {
        let Some((_, what)) = per_class.iter().find(|(kind, _)| *kind == file.r#type) else {
            continue;
        };
        let Some(shape) = tensor.shape.as_deref().filter(|_| files.contains(&file.name)) else {
            continue;
        };
        match files.lines(&file.name) {
            Ok(lines) if shape.contains(&lines.len()) => {}
            Ok(lines) => problems.push(format!(
                "{:?} has {} {what}, which match no dimension of {shape:?}",
                file.name,
                lines.len()
            )),
            Err(error) => problems.push(error.to_string()),
        }
    }
    problems
}
