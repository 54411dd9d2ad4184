//! `xnn convert`: a model becomes a self-contained `.xnn` file, or a model with such files inside.

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
A model that does not go to XNNPACK whole stays a model of its own format, with an operator \
    XNNGraph in the place of each partition.")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// File to write, replaced if it exists; - for standard output [default: MODEL with the
    /// extension .xnn, or .xnn.tflite or .xnn.circle if it does not go whole]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use only what these readers know, too, and fail if that is not all of
    /// the model
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
        (Converted::Whole(_), _) => ("xnn", "all of the model".into()),
        (Converted::Partial(_), dialect) => {
            let extension = match dialect {
                Dialect::Tflite => "xnn.tflite",
                Dialect::Circle => "xnn.circle",
            };
            let entries = model.signatures.iter().filter(|it| it.subgraph != 0).count();
            let kind = match entries {
                0 => "in part on XNNPACK (xnn explain says why)",
                // A blob has one, whatever XNNPACK takes.
                _ => {
                    "with graphs for XNNPACK, since signatures run other subgraphs (xnn explain sums them up)"
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
