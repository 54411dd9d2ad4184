//! `xnn extract`: writes the XNNPACK graphs of an ExecuTorch program as `.xnn` files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use xnn_delegate::{Source, build};
use xnn_format::WriteOptions;
use xnn_pte::{Delegate, Method, PteLimits, PteProgram};

use crate::args::Allowance;
use crate::source::{about, in_file};
use crate::{files, output};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn extract model.pte -o parts\n  \
    xnn run parts/forward_delegate0.xnn")]
pub struct Args {
    /// ExecuTorch program (.pte)
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Folder for METHOD_delegateN.xnn, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    allowance: Allowance,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.program.as_path();
    let mut limits = PteLimits::default();
    limits.graph = args.allowance.graph_limits();
    let program = PteProgram::open_with(path, &limits).map_err(|error| anyhow!("{error}"))?;
    let source = Source::of_file(path).map_err(|error| in_file(path, &error))?;
    let parts = parts(path, &program).map_err(|error| about(path, error))?;
    // No file is written if one delegate is invalid. Each is created twice, because delegates may share bytes, so that all
    // together may be many times as large as the program.
    for part in &parts {
        extract(&program, part, &source).map_err(|error| about(path, error))?;
    }
    let folder = args.output.as_path();
    fs::create_dir_all(folder)
        .map_err(|error| about(folder, format!("cannot be created: {error}")))?;
    for part in &parts {
        let Extract { bytes, nodes } =
            extract(&program, part, &source).map_err(|error| about(path, error))?;
        let target = folder.join(&part.name);
        files::write_atomic(&target, &bytes)?;
        let size = output::bytes(bytes.len() as u64);
        let nodes = output::count(nodes, "node");
        writeln!(out, "{}: {size}, {nodes}", target.display())?;
    }
    Ok(())
}

/// A delegate and the name of its file.
struct Part<'a> {
    method: &'a Method,
    delegate: &'a Delegate,
    name: String,
}

/// A delegate as a self-contained file.
struct Extract {
    bytes: Vec<u8>,
    nodes: usize,
}

/// All XNNPACK delegates.
fn parts<'a>(path: &Path, program: &'a PteProgram) -> Result<Vec<Part<'a>>> {
    let mut parts = Vec::new();
    let mut names = BTreeSet::new();
    for method in program.methods() {
        for delegate in &method.delegates {
            if !delegate.is_xnnpack() {
                let (method, index, backend) = (&method.name, delegate.index, &delegate.backend);
                let path = path.display();
                log::warn!(
                    "{path}: method {method:?}: delegate {index} is skipped: its backend is {backend:?}"
                );
                continue;
            }
            let name = format!("{}_delegate{}.xnn", file_name(&method.name), delegate.index);
            if !names.insert(name.clone()) {
                return Err(anyhow!("two delegates would be written to {name}"));
            }
            parts.push(Part { method, delegate, name });
        }
    }
    if parts.is_empty() {
        return Err(anyhow!("the program has no XNNPACK delegate"));
    }
    Ok(parts)
}

fn extract(program: &PteProgram, part: &Part<'_>, source: &Source) -> Result<Extract> {
    let Part { method, delegate, .. } = part;
    let mut graph = program.xnnpack_graph(method, delegate)?.blob.into_graph();
    graph.origin.producer = format!("xnn-delegate {}", build::VERSION);
    graph.origin.source_name.clone_from(&source.name);
    graph.origin.source_sha256 = source.sha256;
    graph.origin.signature.clone_from(&method.name);
    Ok(Extract {
        bytes: xnn_format::write(&graph, &WriteOptions::default())?,
        nodes: graph.nodes.len(),
    })
}

/// A method's name without characters that have a meaning in paths.
fn file_name(method: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    method.chars().map(plain).collect()
}
