//! `xnn metadata`: shows, extracts and writes the metadata of a model.

use std::fs;
use std::io::Write;
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use xnn_delegate::Model;
use xnn_delegate::metadata::Description;
use xnn_delegate::metadata::{
    AssociatedFile, AssociatedFileType, AssociatedFiles, ModelMetadata, SubGraphMetadata,
    TensorMetadata, plain_name,
};
use xnn_delegate::model::{Dialect, to_circle, to_tflite};
use xnn_model::{ModelLimits, TensorId};

use crate::files::Target;
use crate::source::{self, about, in_file, open_model, read_text};
use crate::summary::description::DescriptionEntry;
use crate::{files, output};

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    xnn metadata mobilenet_v2.tflite\n  \
    xnn metadata mobilenet_v2.tflite --extract folder\n  \
    xnn metadata mobilenet_v2.tflite --json > metadata.json\n  \
    xnn metadata add plain.tflite --json metadata.json --labels labels.txt -o described.tflite"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    show: Show,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Add metadata to a model
    Add(Add),
}

#[derive(clap::Args)]
struct Show {
    /// TFLite or Circle model, or .xnn file
    #[arg(value_name = "MODEL|BLOB", required = true)]
    path: Option<PathBuf>,
    /// Write only the metadata, as JSON that `xnn metadata add` reads
    #[arg(long)]
    json: bool,
    /// Extract the associated files to this folder, created if it does not exist
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    xnn metadata add plain.tflite --labels labels.txt -o described.tflite")]
struct Add {
    /// TFLite or Circle model
    model: PathBuf,
    /// Metadata as JSON [default: that of the model, otherwise the names of inputs and outputs]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// File with the names of the first output's classes, one on each line; may be
    /// repeated for several locales, which the JSON lists
    #[arg(long, value_name = "FILE")]
    labels: Vec<PathBuf>,
    /// Another associated file, which the metadata names
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Output file, replaced if it exists; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    match (&args.action, &args.show.path) {
        (Some(Action::Add(add)), _) => run_add(add, out),
        (None, Some(path)) => run_show(&args.show, path, out),
        (None, None) => Ok(()),
    }
}

fn run_show(args: &Show, path: &Path, out: &mut dyn Write) -> Result<()> {
    let is_blob = xnn_delegate::blob::is_blob(path).map_err(|error| in_file(path, &error))?;
    let described = if is_blob {
        Description::open(path)
    } else {
        let model = open_model(path)?;
        // Blobs have no tensors to compare the metadata with.
        Description::of_model(&model).inspect(|described| {
            let problems = described.iter().flat_map(|said| said.metadata.problems(&model));
            problems.for_each(|problem| log::warn!("{}: metadata: {problem}", path.display()));
        })
    };
    let how = match is_blob {
        true => "add some to the model with xnn metadata add, and convert it again",
        false => "add some with xnn metadata add",
    };
    let described = described
        .map_err(|error| in_file(path, &error))?
        .ok_or_else(|| about(path, format!("it has no metadata; {how}")))?;
    if let Some(folder) = &args.extract {
        extract(&described.files, path, folder, out)?;
    } else if args.json {
        writeln!(out, "{}", described.metadata.to_json())?;
    } else {
        DescriptionEntry::new(&described).write(out)?;
    }
    Ok(())
}

/// Writes all files to `folder`, or none if the name of one is not a file name.
fn extract(
    files: &AssociatedFiles,
    model: &Path,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<()> {
    let mut contents = Vec::new();
    for (name, content) in files.read_all().map_err(|error| about(model, error))? {
        let plain = plain_name(name).ok_or_else(|| {
            about(model, format!("associated file {name:?}: expected a file name without folders"))
        })?;
        contents.push((folder.join(plain), content));
    }
    fs::create_dir_all(folder)
        .map_err(|error| about(folder, format!("cannot be created: {error}")))?;
    for (target, content) in contents {
        files::write_atomic(&target, &content)?;
        writeln!(out, "{}: {}", target.display(), output::bytes(content.len() as u64))?;
    }
    Ok(())
}

fn run_add(args: &Add, out: &mut dyn Write) -> Result<()> {
    let path = args.model.as_path();
    let others = args.json.iter().chain(&args.labels).chain(&args.file).map(PathBuf::as_path);
    let target = Target::new(&args.output, &iter::once(path).chain(others).collect::<Vec<_>>())?;
    let mut model = open_model(path)?;
    let mut metadata = match &args.json {
        Some(json) => {
            let text = read_text(json)?;
            ModelMetadata::from_json(&text).map_err(|error| about(json, error))?
        }
        None => ModelMetadata::of_model(&model, &ModelLimits::default())
            .map_err(|error| about(path, error))?
            .unwrap_or_else(|| names_only(&model)),
    };
    let mut added = Vec::new();
    for file in &args.labels {
        let (name, content) = read(file)?;
        name_labels(&mut metadata, &name).map_err(|error| about(file, error))?;
        added.push((name, content));
    }
    for file in &args.file {
        added.push(read(file)?);
    }
    let added: Vec<(&str, &[u8])> =
        added.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    let files = model.files.with(&added).map_err(|error| about(path, error))?;
    model.set_metadata(&metadata, files);
    let problems = metadata.problems(&model);
    if let Some(problem) = problems.first() {
        return Err(about(path, format!("the metadata does not fit the model: {problem}")));
    }
    let write = match model.dialect {
        Dialect::Tflite => to_tflite,
        Dialect::Circle => to_circle,
    };
    let file = write(&model).map_err(|error| about(path, error))?;
    let count = model.files.iter().count();
    target.write(&file, format!(", {}", output::count(count, "associated file")), out)
}

/// Name of a file without folders, and its content.
fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(plain_name);
    let name = name.ok_or_else(|| about(path, "its name is not valid in an archive"))?;
    Ok((name.to_owned(), source::read(path)?))
}

/// Adds a file as labels of the first output, unless the metadata names it already.
fn name_labels(metadata: &mut ModelMetadata, name: &str) -> Result<()> {
    if metadata.all_files().any(|file| file.name == name) {
        return Ok(());
    }
    let graph = metadata.subgraph_metadata.first_mut();
    let output = graph.and_then(|graph| graph.output_tensor_metadata.first_mut());
    let output = output.ok_or_else(|| {
        anyhow!("the metadata describes no output, so that labels cannot be added")
    })?;
    output.associated_files.push(AssociatedFile {
        name: name.to_owned(),
        description: "Names of the classes.".to_owned(),
        r#type: AssociatedFileType::TensorAxisLabels,
        ..AssociatedFile::default()
    });
    Ok(())
}

/// Metadata with the names of inputs and outputs.
fn names_only(model: &Model) -> ModelMetadata {
    let Some(graph) = model.main() else { return ModelMetadata::default() };
    let tensors = |ids: &[TensorId]| {
        let tensor = |&id| TensorMetadata {
            name: graph.tensor(id).name.clone(),
            ..TensorMetadata::default()
        };
        ids.iter().map(tensor).collect()
    };
    let main = SubGraphMetadata {
        input_tensor_metadata: tensors(&graph.inputs),
        output_tensor_metadata: tensors(&graph.outputs),
        ..SubGraphMetadata::default()
    };
    ModelMetadata { subgraph_metadata: vec![main], ..ModelMetadata::default() }
}
