//! Licences of third-party code that releases and wheels contain: of crates, XNNPACK and its dependencies, and Rust's standard library.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::metadata::{Metadata, Package};

/// A component in C, with the folder of the slot `vendor/XNNPACK`.
pub struct Native {
    pub folder: &'static str,
    pub name: &'static str,
    pub licence: &'static str,
}

pub const NATIVE: [Native; 5] = [
    Native { folder: "xnnpack", name: "XNNPACK", licence: "BSD-3-Clause" },
    Native { folder: "pthreadpool", name: "pthreadpool (header)", licence: "BSD-2-Clause" },
    Native { folder: "cpuinfo", name: "cpuinfo", licence: "BSD-2-Clause" },
    Native { folder: "fxdiv", name: "FXdiv", licence: "MIT" },
    Native { folder: "fp16", name: "FP16", licence: "MIT" },
];

/// Beginnings of the names of files with licences, in lower case.
const FILES: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicense", "ofl"];

/// Returns a list of the third-party components of `packages`, which are packages of the workspace, then every licence text once,
/// with the components that have it. The text begins with `title`.
pub fn text(root: &Path, metadata: &Metadata, packages: &[&str], title: &str) -> Result<String> {
    let mut list = String::new();
    let mut texts = Texts::default();
    for Native { folder, name, licence } in NATIVE {
        writeln!(list, "{name}: {licence}")?;
        texts.add(name.to_owned(), &root.join("vendor/XNNPACK").join(folder).join("LICENSE"))?;
    }
    let linked = metadata.linked(packages).into_iter();
    for package in linked.filter(|package| package.source.is_some()) {
        let Package { name, version, license, .. } = package;
        let licence = license.as_deref().unwrap_or("see below");
        writeln!(list, "{name} {version}: {licence}")?;
        let files = licence_files(package.folder())?;
        if files.is_empty() {
            let component = format!("{name} {version}, whose package contains no text");
            texts.add_text(component, &usual_text(root, package)?);
        }
        for file in files {
            texts.add(format!("{name} {version}"), &file)?;
        }
    }
    writeln!(
        list,
        "Rust's standard library: MIT OR Apache-2.0 (see COPYRIGHT-library.html of Rust)"
    )?;
    Ok(format!("{title}\n\n{list}{}", texts.finish()?))
}

/// Licence texts without repetition.
#[derive(Default)]
struct Texts {
    /// By the text without differences in white space: the text, and who has it.
    by_words: BTreeMap<String, (String, Vec<String>)>,
}

impl Texts {
    fn add(&mut self, component: String, file: &Path) -> Result<()> {
        let bytes = fs::read(file).with_context(|| file.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        ensure!(!text.trim().is_empty(), "{} is empty", file.display());
        self.add_text(component, &text);
        Ok(())
    }

    fn add_text(&mut self, component: String, text: &str) {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, components) =
            self.by_words.entry(words).or_insert_with(|| (text.trim().replace('\r', ""), vec![]));
        components.push(component);
    }

    fn finish(self) -> Result<String> {
        let mut all: Vec<_> = self.by_words.into_values().collect();
        all.sort_by(|one, other| one.1.cmp(&other.1));
        let mut out = String::new();
        for (text, components) in all {
            write!(out, "\n{}\n{}\n\n{text}\n", "=".repeat(80), components.join(", "))?;
        }
        Ok(out)
    }
}

/// The text that a licence usually has, for packages without one.
fn usual_text(root: &Path, package: &Package) -> Result<String> {
    let Package { name, version, license, authors, .. } = package;
    let licence = license.as_deref().unwrap_or_default();
    let read = |file: &str| fs::read_to_string(root.join(file)).with_context(|| file.to_owned());
    if licence.contains("Apache-2.0") {
        return read("LICENSE-APACHE");
    }
    ensure!(
        licence.contains("MIT"),
        "{name} {version} contains no text of its licence {licence:?}"
    );
    let text = read("LICENSE-MIT")?;
    let lines = text.lines().map(|line| match line.starts_with("Copyright") {
        true => format!("Copyright (c) {}\n", authors.join(", ")),
        false => format!("{line}\n"),
    });
    Ok(lines.collect())
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && FILES.iter().any(|start| name.starts_with(start)) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The notices of Rust's standard library, if the toolchain has them.
pub fn standard_library() -> Result<Option<PathBuf>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let file = sysroot.join("share/doc/rust/COPYRIGHT-library.html");
    Ok(file.is_file().then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_printed_once() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let file = folder.path().join(name);
            fs::write(&file, text)?;
            Ok(file)
        };
        let mut texts = Texts::default();
        texts.add("a 1.0".into(), &write("LICENSE-A", "Permission is\r\n  granted")?)?;
        texts.add("b 2.0".into(), &write("LICENSE-B", "Permission is granted\n")?)?;
        texts.add("c 3.0".into(), &write("COPYING", "Another")?)?;
        assert!(texts.add("d 4.0".into(), &write("NOTICE", " \n")?).is_err());
        let text = texts.finish()?;
        assert_eq!(text.matches("granted").count(), 1);
        assert!(text.contains("a 1.0, b 2.0\n\nPermission is\n  granted\n"), "{text}");
        assert!(text.contains("c 3.0\n\nAnother\n"), "{text}");
        assert_eq!(licence_files(folder.path())?.len(), 4);
        Ok(())
    }
}
