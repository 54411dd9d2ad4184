//! Which functions run when models are opened and run: `link/first.ld`, a script that has the linker put them first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{bench, vendor, venv};

#[derive(clap::Args)]
#[command(after_help = "Needs valgrind. Each model takes some seconds.\n\n\
    Examples:\n  cargo xtask layout\n  cargo xtask layout --models my.tflite")]
pub struct Args {
    /// `.tflite` files, or names of shared models [default: those of the benchmark]
    #[arg(long, value_delimiter = ',')]
    models: Vec<PathBuf>,
}

/// Traces `xnn` on each model, and on what it packs of it, and writes the script.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let models = bench::find_models(root, &args.models, &bench::MODELS)?;
    vendor::run(root, &vendor::Args::default())?;
    build(root)?;
    let program = venv::target(root).join("release/xnn");
    let folder = tempfile::tempdir()?;
    let blob = folder.path().join("packed");
    let mut runs = Vec::<BTreeSet<String>>::new();
    for (at, model) in models.iter().enumerate() {
        eprintln!("[{}/{}] {}", at + 1, models.len(), model.display());
        let trace = |arguments: &[&Path]| {
            let file = folder.path().join("trace");
            let mut valgrind = Command::new("valgrind");
            valgrind
                .args(["--tool=callgrind", "--demangle=no"])
                .arg(format!("--callgrind-out-file={}", file.display()))
                .arg(&program)
                .args(arguments);
            bench::quietly(&mut valgrind)?;
            let trace = fs::read_to_string(&file)?;
            anyhow::Ok(functions(&trace, "/xnn").into_iter().map(pattern).collect())
        };
        let [run, convert, pack, output] = ["run", "convert", "--pack", "-o"].map(Path::new);
        runs.push(trace(&[run, model])?);
        bench::quietly(Command::new(&program).args([convert, model, pack, output, &blob]))?;
        runs.push(trace(&[run, &blob])?);
    }
    let path = root.join("link/first.ld");
    let text = script(&runs);
    fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{} patterns in {}", text.matches("*(").count(), path.display());
    Ok(())
}

/// In the linker's own order, as valgrind does not know the functions of a second section.
fn build(root: &Path) -> Result<()> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--package", "xnn-cli"]).current_dir(root);
    venv::run(build.env("XNN_LINK_ORDER", "off"))
}

/// The functions of a program that a trace in callgrind's format tells of. Names are given with a number at first,
/// then by the number alone, and an object stays until there is another.
fn functions<'a>(trace: &'a str, program: &str) -> BTreeSet<&'a str> {
    let mut names: [HashMap<&str, &str>; 2] = Default::default();
    let mut is_program = false;
    let mut found = BTreeSet::new();
    for line in trace.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let kind = match key {
            "ob" | "cob" => 0,
            "fn" | "cfn" => 1,
            _ => continue,
        };
        let (number, name) = value.split_once(' ').unwrap_or((value, ""));
        let name = match names[kind].get(number) {
            Some(name) => name,
            None => *names[kind].entry(number).or_insert(name),
        };
        match key {
            "ob" => is_program = name.ends_with(program),
            "fn" if is_program && is_symbol(name) => _ = found.insert(name),
            _ => {}
        }
    }
    found
}

/// Valgrind also has addresses, and names of its own in parentheses.
fn is_symbol(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
}

/// What the name of a function's section ends with, in this build and in others: hashes of crates and types, and what
/// compilers append to parts and copies, are left open.
fn pattern(name: &str) -> String {
    if let Some((path, hash)) = name.rsplit_once("17h")
        && name.starts_with("_ZN")
        && hash.len() > 16
    {
        return format!("{path}17h*");
    }
    if name.starts_with("_R") {
        return without_crate_hashes(name);
    }
    match name.split_once('.') {
        Some((function, _)) => format!("{function}.*"),
        None => name.to_owned(),
    }
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

/// First what most of the runs need.
fn script(runs: &[BTreeSet<String>]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for pattern in runs.iter().flatten() {
        *counts.entry(pattern).or_default() += 1;
    }
    let mut patterns: Vec<(&str, usize)> = counts.into_iter().collect();
    patterns.sort_by_key(|&(pattern, count)| (Reverse(count), pattern));
    let mut text = String::from(
        "/* Written by `cargo xtask layout`: the functions that run at a start, those of most models first. */\n\
         SECTIONS {\n  .text.first : {\n",
    );
    for (pattern, _) in patterns {
        _ = writeln!(text, "    *(.text*.{pattern})");
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_program_are_found_by_name_and_by_number() {
        let trace = "ob=(1) /lib/libc.so.6\nfn=(1) malloc\n12 3\nob=(2) /target/release/xnn\n\
                     fn=(2) open\n1 1\ncob=(1)\ncfn=(1)\ncalls=1 0\n1 9\ncfn=(3) close\n\
                     calls=1 0\n\nfn=(3)\n1 1\nfn=(5) (below main)\nfn=(6) 0x00001234\n1 1\nob=(1)\nfn=(4) free\n";
        assert_eq!(functions(trace, "/xnn"), BTreeSet::from(["open", "close"]));
    }

    #[test]
    fn patterns_hold_for_other_builds() {
        for (name, expected) in [
            ("_ZN3xnn3run17h0123456789abcdefE", "_ZN3xnn3run17h*"),
            ("_ZN3xnn3run17h0123456789abcdefE.llvm.123", "_ZN3xnn3run17h*"),
            ("_RNvCs6d7GoaNTBIz_3std2iNtCsjk_3xnn1x", "_RNvCs*_3std2iNtCs*_3xnn1x"),
            ("_RINvCs6d7GoaNTBIz_3std4dropmECsjk_3xnn", "_RINvCs*_3std4dropmECs*"),
            ("xnn_create_runtime_v4", "xnn_create_runtime_v4"),
            ("create_operator.isra.0", "create_operator.*"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }

    #[test]
    fn what_most_runs_need_comes_first() {
        let runs = [["a", "b"].as_slice(), &["b", "c"], &["b", "c", "d"]];
        let runs = runs.map(|run| run.iter().map(|&name| name.to_owned()).collect());
        let text = script(&runs);
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("*(.text*.")).collect();
        assert_eq!(names, ["b)", "c)", "a)", "d)"]);
    }
}
