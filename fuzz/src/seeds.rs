//! Writes the seed corpus for fuzzing.
//!
//! `seeds MODELS OUT` reads the `.tflite` files below the folder `MODELS` and writes a folder of
//! seeds for each format below `OUT`: the models in both dialects (`model`), their blobs (`graph`),
//! and the blobs in ExecuTorch programs (`program`).

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use flatbuffers::FlatBufferBuilder;
use xnn_delegate::lower::Delegation;
use xnn_delegate::model::to_circle;
use xnn_delegate::{Model, PartitionOptions};
use xnn_format::WriteOptions;

#[allow(warnings, clippy::all, reason = "generated")]
#[rustfmt::skip]
#[path = "../../crates/xnn-pte/src/generated/executorch_program.rs"]
mod executorch_program;

use executorch_program::executorch_flatbuffer as fb;

/// Maximum size of a model in bytes. Larger models run slower, and most of their bytes are weights,
/// which do not affect control flow.
const MAX_BYTES: usize = 3000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(models), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: seeds MODELS OUT".into());
    };
    let mut files = Vec::new();
    tflite_files(&models, &mut files)?;
    files.sort();
    for file in files {
        let bytes = fs::read(&file)?;
        if bytes.len() <= MAX_BYTES {
            write_seeds(&name(&models, &file), &bytes, &out)
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

fn tflite_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            tflite_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "tflite") {
            files.push(path);
        }
    }
    Ok(())
}

/// The path of the file below `models`, since all test models have the same file name.
fn name(models: &Path, file: &Path) -> String {
    let path = file.strip_prefix(models).unwrap_or(file).with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("_")
}

fn write_seeds(name: &str, bytes: &[u8], out: &Path) -> Result<(), Box<dyn Error>> {
    let put = |format: &str, extension: &str, bytes: &[u8]| -> std::io::Result<()> {
        fs::create_dir_all(out.join(format))?;
        fs::write(out.join(format).join(name).with_added_extension(extension), bytes)
    };
    let model = Model::from_bytes(bytes.to_vec())?;
    put("model", "tflite", bytes)?;
    if let Ok(circle) = to_circle(&model) {
        put("model", "circle", &circle)?;
    }
    let subgraph = model.subgraphs.first().ok_or("no subgraph")?;
    let delegation = Delegation::new(subgraph, &PartitionOptions::default())?;
    if let Ok(whole) = delegation.whole() {
        let blob = xnn_format::write(whole.graph(), &WriteOptions::default())?;
        put("graph", "xnn", &blob)?;
        put("program", "pte", &program(&blob))?;
    }
    Ok(())
}

/// An ExecuTorch program with one method that calls one XNNPACK delegate.
fn program(payload: &[u8]) -> Vec<u8> {
    let builder = &mut FlatBufferBuilder::new();
    let id = Some(builder.create_string("XnnpackBackend"));
    let processed = Some(fb::BackendDelegateDataReference::create(
        builder,
        &fb::BackendDelegateDataReferenceArgs { location: fb::DataLocation::INLINE, index: 0 },
    ));
    let compile_specs = Some(builder.create_vector::<flatbuffers::WIPOffset<fb::CompileSpec>>(&[]));
    let delegate = fb::BackendDelegate::create(
        builder,
        &fb::BackendDelegateArgs { id, processed, compile_specs },
    );
    let delegates = Some(builder.create_vector(&[delegate]));
    let name = Some(builder.create_string("forward"));
    let plan = fb::ExecutionPlan::create(
        builder,
        &fb::ExecutionPlanArgs { name, delegates, ..Default::default() },
    );
    let data = Some(builder.create_vector(payload));
    let data =
        fb::BackendDelegateInlineData::create(builder, &fb::BackendDelegateInlineDataArgs { data });
    let (plans, data) = (builder.create_vector(&[plan]), builder.create_vector(&[data]));
    let program = fb::Program::create(
        builder,
        &fb::ProgramArgs {
            execution_plan: Some(plans),
            backend_delegate_data: Some(data),
            ..Default::default()
        },
    );
    builder.finish(program, Some("ET12"));
    builder.finished_data().to_vec()
}
