//! `xnn explain`: lists which operators are delegated, and why others are not.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use xnn_delegate::Error;
use xnn_delegate::lower::{Delegation, Report};
use xnn_delegate::model::Subgraph;

use crate::args::Partitioning;
use crate::output;
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_model};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn explain deeplabv3.tflite\n  \
    xnn explain deeplabv3.tflite --json | jq '.nodes[] | select(.reason)'")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// Subgraph whose operators are listed; others are summarized
    #[arg(long, value_name = "INDEX", default_value_t = 0, allow_negative_numbers = true)]
    subgraph: usize,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    partitioning: Partitioning,
}

#[derive(Serialize)]
struct Explanation {
    model: String,
    subgraph: usize,
    #[serde(flatten)]
    report: Report,
    /// Subgraphs of loops, branches, calls and other signatures.
    others: Vec<Other>,
}

/// Summary of another subgraph.
#[derive(Serialize)]
struct Other {
    subgraph: usize,
    name: String,
    /// Summary of the report, or the error.
    summary: String,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.model.as_path();
    let spinner = Spinner::new(format!("partitioning {}", file_name(path)));
    let model = open_model(path)?;
    let options = args.partitioning.options();
    let report = |graph: &Arc<Subgraph>| Ok(Delegation::new(graph, &options)?.report());
    let (mut explained, mut others) = (None, Vec::new());
    for (subgraph, graph) in model.subgraphs.iter().enumerate() {
        let report: Result<Report, Error> = report(graph);
        if subgraph == args.subgraph {
            explained = Some(report.map_err(|error| in_file(path, &error))?);
        } else {
            let summary = report.map_or_else(|error| error.to_string(), |report| report.summary);
            others.push(Other { subgraph, name: graph.name.clone(), summary });
        }
    }
    drop(spinner);
    let report = explained.ok_or_else(|| {
        let count = model.subgraphs.len();
        about(path, format!("no subgraph {}: the model has {count}, from 0", args.subgraph))
    })?;
    let explanation =
        Explanation { model: file_name(path), subgraph: args.subgraph, report, others };
    if args.json {
        output::write_json(out, &explanation)?;
    } else {
        explanation.write(out)?;
    }
    Ok(())
}

impl Explanation {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { report, others, .. } = self;
        write!(out, "{report}")?;
        others.iter().try_for_each(|Other { subgraph, name, summary }| {
            writeln!(
                out,
                "subgraph {subgraph} ({name:?}): {summary} (--subgraph {subgraph} lists its operators)"
            )
        })
    }
}
