//! Which functions run when models are opened and run: `link/first.ld`, a script that has the linker put them first.

mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{bench, trace, vendor, venv};
use order::Run;

#[derive(clap::Args)]
#[command(
    after_help = "Needs Linux on x86-64, and a shell. Functions in C that other processors need stay in the list.\n\n\
    Examples:\n  cargo xtask layout\n  cargo xtask layout --models my.tflite"
)]
pub struct Args {
    /// `.tflite` files, or names of shared models [default: those of the benchmark]
    #[arg(long, value_delimiter = ',')]
    models: Vec<PathBuf>,
}

/// Traces `xnn` and the benchmark's program on each model, and on what `xnn` packs of it, and writes the script.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let models = bench::find_models(root, &args.models, &bench::MODELS)?;
    vendor::run(root, &vendor::Args::default())?;
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--package", "xnn-cli", "--package", "xnn-bench"]);
    venv::run(build.current_dir(root))?;
    let release = venv::target(root).join("release");
    let (program, peer) = (release.join("xnn"), release.join("xnn-bench-peer"));
    let folder = tempfile::tempdir()?;
    let blob = folder.path().join("packed");
    let [run, convert, pack, output] = ["run", "convert", "--pack", "-o"].map(Path::new);
    let [model_is, inputs_in] = ["--model", "--inputs"].map(Path::new);
    // Generic functions are others in each program, and what is inlined is. The benchmark's is nearest to those of users.
    let [mut runs, mut runs_of_peer] = [const { Vec::<Run>::new() }; 2];
    let mut trace = |model: &Path| {
        runs.push(by_pattern(trace::functions(&program, &[run, model])?));
        let arguments = [model_is, model, inputs_in, folder.path()];
        runs_of_peer.push(by_pattern(trace::functions(&peer, &arguments)?));
        anyhow::Ok(())
    };
    for (at, model) in models.iter().enumerate() {
        eprintln!("[{}/{}] {}", at + 1, models.len(), model.display());
        bench::Files::new(model, folder.path()).write_no_inputs()?;
        trace(model)?;
        let mut packing = Command::new(&program);
        bench::tools::quietly(packing.args([convert, model, pack, output, &blob]))?;
        trace(&blob)?;
    }
    let path = root.join("link/first.ld");
    let known = fs::read_to_string(&path).unwrap_or_default();
    // On other processors other microkernels run, and what belongs to them.
    let known: BTreeSet<&str> = patterns(&known).collect();
    let mut elsewhere = by_pattern(trace::all_functions(&program)?);
    elsewhere.retain(|it, _| is_c(it) && known.contains(&**it));
    elsewhere.retain(|it, _| !runs.iter().any(|run| run.contains_key(it)));
    runs.push(elsewhere);
    let text = script(&[runs, runs_of_peer]);
    fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{} patterns in {}", patterns(&text).count(), path.display());
    Ok(())
}

/// Bytes of functions whose sections have the same pattern.
fn by_pattern(functions: BTreeMap<String, u64>) -> Run {
    let mut sum = Run::new();
    for (name, bytes) in functions {
        *sum.entry(pattern(&name)).or_default() += bytes;
    }
    sum
}

/// What is behind `.text` in the name of a function's section, in this build and in others: hashes of crates and types are
/// left open, and so is what compilers append to parts and copies. Rust's functions may be marked as unlikely, where C's
/// have unlikely parts, which stay out.
fn pattern(name: &str) -> String {
    let function = name.split_once('.').map_or(name, |(function, _)| function);
    match function.rsplit_once("17h") {
        Some((path, hash)) if name.starts_with("_ZN") && hash.len() > 16 => {
            format!("*.{path}17h*")
        }
        _ if name.starts_with("_R") => {
            format!("*.{}*", without_crate_hashes(function).trim_end_matches('*'))
        }
        _ if name == function => format!(".{name}"),
        _ => format!(".{function}.*"),
    }
}

/// Whether a pattern is of a function in C.
fn is_c(pattern: &str) -> bool {
    !pattern.starts_with('*')
}

/// In the newer mangling a crate is `C`, `s`, a number in letters and digits, `_`, and its name. One at the end is the crate
/// that a generic function was compiled for, which is another one in each program.
fn without_crate_hashes(name: &str) -> String {
    let mut parts = name.split("Cs");
    let mut pattern = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        pattern.push_str("Cs");
        match part.split_once('_') {
            Some((number, rest)) if number.chars().all(char::is_alphanumeric) => {
                pattern.push('*');
                if !is_identifier(rest) {
                    _ = write!(pattern, "_{rest}");
                }
            }
            _ => pattern.push_str(part),
        }
    }
    pattern
}

/// Whether it is a length, an underscore where that is needed, and as many characters.
fn is_identifier(text: &str) -> bool {
    let name = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let length = text[..text.len() - name.len()].parse();
    length.is_ok_and(|length: usize| [length, length + 1].contains(&name.len()))
}

/// The script: code comes into memory some pages at a time, so what the same runs need is side by side.
fn script(programs: &[Vec<Run>]) -> String {
    let mut text = String::from(
        "/* Written by `cargo xtask layout`: the functions that run at a start, those of the same models side by side. */\n\
         SECTIONS {\n  .text.first : {\n",
    );
    for pattern in order::order(programs) {
        _ = writeln!(text, "    {BEGIN}{pattern}{END}");
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

/// Around a pattern in the script.
const BEGIN: &str = "*(.text";
const END: &str = ")";

/// Those in a script.
fn patterns(script: &str) -> impl Iterator<Item = &str> {
    script.lines().filter_map(|line| line.trim().strip_prefix(BEGIN)?.strip_suffix(END))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_hold_for_other_builds() {
        for (name, expected) in [
            ("_ZN3xnn3run17h0123456789abcdefE", "*._ZN3xnn3run17h*"),
            ("_ZN3xnn3run17h0123456789abcdefE.llvm.123", "*._ZN3xnn3run17h*"),
            ("_RNvCs6d7GoaNTBIz_3std2iNtCsjk_3xnn1x", "*._RNvCs*_3std2iNtCs*_3xnn1x*"),
            ("_RINvCs6d7GoaNTBIz_3std4dropmECsjk_3xnn", "*._RINvCs*_3std4dropmECs*"),
            ("_RNvCs6d7GoaNTBIz_3std4open.llvm.123", "*._RNvCs*_3std4open*"),
            ("xnn_create_runtime_v4", ".xnn_create_runtime_v4"),
            ("create_operator.isra.0", ".create_operator.*"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }

    #[test]
    fn a_script_is_read_again() {
        let run: Run = [".a", ".b"].map(|name| (name.to_owned(), 1)).into();
        let text = script(&[vec![run]]);
        assert!(text.contains("\n    *(.text.b)\n"), "{text}");
        assert_eq!(patterns(&text).collect::<Vec<_>>(), [".a", ".b"]);
    }
}
