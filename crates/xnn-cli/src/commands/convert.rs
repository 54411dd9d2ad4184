//! `xnn convert`: a model becomes a self-contained `.xnn` file, or a model with such files inside.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use xnn_delegate::{Compat, ConvertOptions, Converted, Source};
use xnn_model::Dialect;

use crate::args::Partitioning;
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_model};
use crate::{files, output};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn convert mobilenet_v2.tflite -o mobilenet_v2.xnn\n  \
    xnn convert ssd_mobilenet.tflite -o ssd_mobilenet.xnn.tflite\n\n\
A model that does not go to XNNPACK whole stays a model of its own format, with an operator\n\
XNNGraph in the place of each partition.")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// File to write, replaced if it exists [default: MODEL with the extension .xnn, or
    /// .xnn.tflite or .xnn.circle if it does not go whole]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use only what these readers know, too
    #[arg(long, value_name = "READERS")]
    compat: Option<Readers>,
    #[command(flatten)]
    partitioning: Partitioning,
    /// Fail, with the reasons, if not all of the model goes to XNNPACK
    #[arg(long)]
    require_full: bool,
    /// Store the weights as XNNPACK packs them on this processor, too: they take
    /// about twice the room, and start at once on processors like this one
    #[arg(long)]
    pack: bool,
}

/// Other programs that read XN01 graphs.
#[derive(Clone, Copy, ValueEnum)]
enum Readers {
    /// ExecuTorch's XNNPACK backend, 0.4 and later
    Executorch,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let model_path = args.model.as_path();
    let spinner = Spinner::new(format!("converting {}", file_name(model_path)));
    let model = open_model(model_path)?;
    let source = Source::of_file(model_path).map_err(|error| in_file(model_path, &error))?;
    let mut options = ConvertOptions::default();
    options.partition = args.partitioning.options();
    options.require_full = args.require_full;
    options.pack = args.pack;
    options.compat = match args.compat {
        Some(Readers::Executorch) => Compat::Executorch,
        None => Compat::Own,
    };
    let converted = xnn_delegate::convert(&model, &source, &options)
        .map_err(|error| in_file(model_path, &error))?;
    let (extension, kind) = match (&converted, model.dialect) {
        (Converted::Whole(_), _) => ("xnn", "all of the model".into()),
        (Converted::Partial(_), dialect) => {
            let extension = match dialect {
                Dialect::Tflite => "xnn.tflite",
                Dialect::Circle => "xnn.circle",
            };
            (extension, format!("{dialect} model, in part on XNNPACK (xnn explain says why)"))
        }
    };
    let target = args.output.clone().unwrap_or_else(|| model_path.with_extension(extension));
    if is_same_file(model_path, &target) {
        return Err(about(&target, "would be overwritten by its own conversion"));
    }
    let bytes = converted.bytes();
    files::write_atomic(&target, bytes)?;
    drop(spinner);
    writeln!(out, "{}: {}, {kind}", target.display(), output::bytes(bytes.len() as u64))?;
    Ok(())
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
