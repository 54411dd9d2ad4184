//! `xnn inspect`: what is in a blob or a model file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use xnn_delegate::Blob;

use crate::source::{in_file, open_model};
use crate::{output, summary};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn inspect mobilenet_v2.xnn\n  \
    xnn inspect mobilenet_v2.xnn --json | jq .sizes\n  \
    xnn inspect mobilenet_v2.tflite")]
pub struct Args {
    /// .xnn file or other XN01 graph: all of it; TFLite or Circle model: a summary
    #[arg(value_name = "BLOB|MODEL")]
    path: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.path.as_path();
    if xnn_delegate::is_blob(path).map_err(|error| in_file(path, &error))? {
        let blob = Blob::open(path).map_err(|error| in_file(path, &error.into()))?;
        let summary = summary::blob::Summary::new(&blob);
        if args.json {
            output::write_json(out, &summary)?;
        } else {
            summary.write(out)?;
        }
    } else {
        let summary = summary::model::Summary::new(&open_model(path)?);
        if args.json {
            output::write_json(out, &summary)?;
        } else {
            summary.write(out)?;
        }
    }
    Ok(())
}
