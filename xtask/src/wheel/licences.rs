//! Licences of everything that is linked into a wheel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// C libraries: folders of `vendor/XNNPACK` with a file `LICENSE`.
const C_LIBRARIES: [&str; 5] = ["xnnpack", "pthreadpool", "cpuinfo", "fp16", "fxdiv"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

/// The text of `THIRD-PARTY.txt`: each licence once, with the libraries under it.
pub fn third_party(root: &Path, crates: &[&str]) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for library in C_LIBRARIES {
        let path = root.join("vendor/XNNPACK").join(library).join("LICENSE");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        texts.entry(text).or_default().insert(library.to_owned());
    }
    let mut index = String::from("Libraries in this package, and their licences:\n\n");
    let linked = linked(root, crates)?;
    let metadata = cargo(root, &["metadata", "--format-version", "1"])?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    for Package { name, version, license, source, manifest_path } in metadata.packages {
        // Crates of this repository have no source.
        if source.is_none() || !linked.contains(&format!("{name} v{version}")) {
            continue;
        }
        let label = format!("{name} {version}");
        writeln!(index, "- {label}: {}", license.unwrap_or_else(|| "see below".into()))?;
        let folder = manifest_path.parent().context("a manifest without a folder")?;
        for text in licence_files(folder)? {
            texts.entry(text).or_default().insert(label.clone());
        }
    }
    for (text, libraries) in texts {
        let libraries: Vec<String> = libraries.into_iter().collect();
        let line = "=".repeat(80);
        write!(index, "\n{line}\n{}\n{line}\n\n{}\n", libraries.join(", "), text.trim_end())?;
    }
    Ok(index)
}

/// Names and versions of the crates that are linked.
fn linked(root: &Path, crates: &[&str]) -> Result<BTreeSet<String>> {
    let mut arguments = vec!["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    arguments.extend(crates.iter().flat_map(|name| ["--package", name]));
    let tree = cargo(root, &arguments)?;
    let first_words = tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?))
    });
    Ok(first_words.collect())
}

fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if is_licence && path.is_file() {
            texts.push(fs::read_to_string(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(texts)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(arguments).arg("--locked").current_dir(root).output();
    let output = output.context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
