//! `xnn convert`: converts a model to a `.xnn` file, or to a model that holds such files.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use xnn_delegate::blob::Compat;
use xnn_delegate::{ConvertOptions, Converted, Source};
use xnn_model::Dialect;

use crate::args::Partitioning;
use crate::files::Target;
use crate::progress::Spinner;
use crate::source::{file_name, in_file, open_model};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn convert mobilenet_v2.tflite -o mobilenet_v2.xnn\n  \
    xnn convert ssd_mobilenet.tflite -o ssd_mobilenet.xnn.tflite\n\n\
A fully delegated model becomes a .xnn file. Another model becomes a model of the same format, in which \
    an operator XNNGraph replaces each partition.")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// Output file, replaced if it exists; - for standard output [default: MODEL with the
    /// extension .xnn, or .xnn.tflite or .xnn.circle if it is not fully delegated]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write only nodes that these readers support, and fail if the model is not fully
    /// delegated then
    #[arg(long, value_name = "READERS")]
    compat: Option<Readers>,
    #[command(flatten)]
    partitioning: Partitioning,
    /// Fail, and list the operators that are not delegated, unless all are
    #[arg(long)]
    require_full: bool,
    /// Also store the weights as XNNPACK packs them for this processor. The file is about
    /// twice as large, and loads without packing on such processors
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
    let target = args.output.as_deref().map(|path| Target::new(path, &[model_path])).transpose()?;
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
        (Converted::Whole(_), _) => ("xnn", "fully delegated".into()),
        (Converted::Partial(_), dialect) => {
            let extension = match dialect {
                Dialect::Tflite => "xnn.tflite",
                Dialect::Circle => "xnn.circle",
            };
            let entries = model.signatures.iter().filter(|it| it.subgraph != 0).count();
            let kind = match entries {
                0 => "partially delegated (xnn explain lists the reasons)",
                // A blob has one entry point.
                _ => {
                    "with blobs, because signatures run other subgraphs (xnn explain summarizes them)"
                }
            };
            (extension, format!("{dialect} model, {kind}"))
        }
    };
    let target = match target {
        Some(target) => target,
        None => Target::new(&model_path.with_extension(extension), &[model_path])?,
    };
    drop(spinner);
    target.write(converted.bytes(), format!(", {kind}"), out)
}
