//! `xnn extract`: the XNNPACK delegates of an ExecuTorch program as `.xnn` files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use xnn_delegate::{Source, build};
use xnn_format::WriteOptions;
use xnn_pte::{Delegate, Method, Program};

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
    /// Folder for METHOD_delegateN.xnn, made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.program.as_path();
    let program = Program::open(path).map_err(|error| anyhow!("{error}"))?;
    let source = Source::of_file(path).map_err(|error| in_file(path, &error))?;
    let blobs = blobs(path, &program, &source).map_err(|error| about(path, error))?;
    let folder = args.output.as_path();
    fs::create_dir_all(folder)
        .map_err(|error| about(folder, format!("cannot be made: {error}")))?;
    for Extract { name, bytes, nodes } in blobs {
        let target = folder.join(name);
        files::write_atomic(&target, &bytes)?;
        let size = output::bytes(bytes.len() as u64);
        let nodes = output::count(nodes, "node");
        writeln!(out, "{}: {size}, {nodes}", target.display())?;
    }
    Ok(())
}

/// A delegate as a file that needs no other.
struct Extract {
    name: String,
    bytes: Vec<u8>,
    nodes: usize,
}

/// All XNNPACK delegates, so that no file is written if one cannot be.
fn blobs(path: &Path, program: &Program, source: &Source) -> Result<Vec<Extract>> {
    let mut blobs = Vec::new();
    let mut names = BTreeSet::new();
    for method in program.methods() {
        for delegate in &method.delegates {
            if !delegate.is_xnnpack() {
                let (method, index, backend) = (&method.name, delegate.index, &delegate.backend);
                let program = path.display();
                log::warn!(
                    "{program}: method {method:?}: delegate {index} is for {backend:?}: left out"
                );
                continue;
            }
            let extract = extract(program, method, delegate, source)?;
            if !names.insert(extract.name.clone()) {
                return Err(anyhow!("two delegates would be written to {}", extract.name));
            }
            blobs.push(extract);
        }
    }
    if blobs.is_empty() {
        return Err(anyhow!("no delegate of this program is for XNNPACK"));
    }
    Ok(blobs)
}

fn extract(
    program: &Program,
    method: &Method,
    delegate: &Delegate,
    source: &Source,
) -> Result<Extract> {
    let mut graph = program.xnnpack_graph(method, delegate)?.blob.into_graph();
    graph.origin.producer = format!("xnn-delegate {}", build::VERSION);
    graph.origin.source_name.clone_from(&source.name);
    graph.origin.source_sha256 = source.sha256;
    graph.origin.signature.clone_from(&method.name);
    Ok(Extract {
        name: format!("{}_delegate{}.xnn", file_name(&method.name), delegate.index),
        bytes: xnn_format::write(&graph, &WriteOptions::default())?,
        nodes: graph.nodes.len(),
    })
}

/// A method's name with nothing in it that means something in paths.
fn file_name(method: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    method.chars().map(plain).collect()
}
