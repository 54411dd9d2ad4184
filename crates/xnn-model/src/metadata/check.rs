//! Whether metadata fits the model that it stands in.

use super::files::AssociatedFiles;
use super::types::{AssociatedFileType, ModelMetadata, TensorMetadata};
use super::version::{NEWEST, Version};
use crate::graph::{Model, Tensor, TensorId};

impl ModelMetadata {
    /// What in the metadata does not fit the model or the files that it
    /// carries along: a sentence for each. Nothing of it keeps the model from
    /// running.
    #[must_use]
    pub fn problems(&self, model: &Model) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(version_problem(&self.min_parser_version));
        let (said, there) = (self.subgraph_metadata.len(), model.subgraphs.len());
        if said > there {
            problems.push(format!("it describes {said} subgraphs, but the model has {there}"));
        }
        for file in self.all_files() {
            if !model.files.contains(&file.name) {
                problems.push(format!("it names the file {:?}, which is not there", file.name));
            }
        }
        for (index, (said, graph)) in
            self.subgraph_metadata.iter().zip(&model.subgraphs).enumerate()
        {
            let roles = [
                ("input", &said.input_tensor_metadata, &graph.inputs),
                ("output", &said.output_tensor_metadata, &graph.outputs),
            ];
            for (role, tensors, ids) in roles {
                if tensors.len() != ids.len() {
                    problems.push(format!(
                        "it describes {} {role}s of subgraph {index}, which has {}",
                        tensors.len(),
                        ids.len()
                    ));
                }
                for (position, (said, id)) in tensors.iter().zip(ids).enumerate() {
                    let place = format!("{role} {position} ({:?})", said.name);
                    let of_tensor = graph
                        .tensors
                        .get::<TensorId>(*id)
                        .map(|tensor| tensor_problems(said, tensor, &model.files));
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
        None => Some(format!("its min_parser_version {version:?} is no version")),
        Some(version) if version > NEWEST => Some(format!(
            "it needs readers of schema {version}; this one knows {NEWEST}, so it may miss something"
        )),
        Some(_) => None,
    }
}

fn tensor_problems(said: &TensorMetadata, tensor: &Tensor, files: &AssociatedFiles) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(normalization) = said.normalization() {
        let (means, stds) = (normalization.mean.len(), normalization.std.len());
        if means == 0 || means != stds {
            problems.push(format!("normalization with {means} means and {stds} deviations"));
        }
        if normalization.std.iter().any(|std| !std.is_normal()) {
            problems.push("normalization divides by what is no ordinary number".to_owned());
        }
    }
    let per_class = [
        (AssociatedFileType::TensorAxisLabels, "labels"),
        (AssociatedFileType::TensorAxisScoreCalibration, "score calibrations"),
    ];
    for file in &said.associated_files {
        let Some((_, what)) = per_class.iter().find(|(kind, _)| *kind == file.r#type) else {
            continue;
        };
        let Some(shape) = tensor.shape.as_deref().filter(|_| files.contains(&file.name)) else {
            continue;
        };
        match files.lines(&file.name) {
            Ok(lines) if shape.contains(&lines.len()) => {}
            Ok(lines) => problems.push(format!(
                "{:?} has {} {what}, which fit no dimension of {shape:?}",
                file.name,
                lines.len()
            )),
            Err(error) => problems.push(error.to_string()),
        }
    }
    problems
}
