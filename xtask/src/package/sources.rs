//! The part of XNNPACK's sources that the package of `xnnpack-sys` holds: files that builds for some processor read, and licences.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../../../crates/xnnpack-sys/build/own.rs"]
mod own;

/// A folder of the slot.
struct Tree {
    name: &'static str,
    /// `(start, end)` of paths in the folder.
    parts: &'static [(&'static str, &'static str)],
    /// Whether upstream's build lists name further files.
    has_lists: bool,
}

const TREES: [Tree; 5] = [
    Tree {
        name: "xnnpack",
        parts: &[
            ("CMakeLists.txt", ""),
            ("LICENSE", ""),
            ("cmake/gen/", MICROKERNELS),
            ("include/", ".h"),
            ("src/", ".h"),
            ("src/", ".inc"),
            // Upstream's CMake lists lack one of them.
            ("src/subgraph/", ".c"),
        ],
        has_lists: true,
    },
    // A thread pool of `xnnpack-sys` implements the header.
    Tree { name: "pthreadpool", parts: &[("LICENSE", ""), ("include/", ".h")], has_lists: false },
    Tree {
        name: "cpuinfo",
        parts: &[("LICENSE", ""), ("include/", ".h"), ("src/", ".h"), ("src/", ".c")],
        has_lists: false,
    },
    Tree { name: "fxdiv", parts: &[("LICENSE", ""), ("include/", ".h")], has_lists: false },
    Tree { name: "fp16", parts: &[("LICENSE", ""), ("include/", ".h")], has_lists: false },
];

/// Ends the names of upstream's lists of microkernels.
const MICROKERNELS: &str = "_microkernels.cmake";
/// Starts the names of lists of microkernels that are compiled.
const PRODUCTION: &str = "PROD_";

/// Replaces the folder `to` by the part of `slot` that a build needs.
pub fn write(slot: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    for tree in &TREES {
        let from = slot.join(tree.name);
        let listed = if tree.has_lists { listed(&from)? } else { BTreeSet::new() };
        let is_needed = |path: &str| {
            let in_part =
                |(start, end): &(&str, &str)| path.starts_with(start) && path.ends_with(end);
            listed.contains(path) || tree.parts.iter().any(in_part)
        };
        copy(&from, &to.join(tree.name), "", &is_needed)?;
    }
    fs::copy(slot.join("PIN"), to.join("PIN"))?;
    Ok(())
}

/// Files that XNNPACK's CMake lists name, without microkernels for tests, and those that this project adds.
fn listed(xnnpack: &Path) -> Result<BTreeSet<String>> {
    let read = |file: &Path| {
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
    };
    let more = own::MORE_KERNELS.iter().flat_map(|(_, files)| *files);
    let mut files: BTreeSet<String> = more.map(|&file| file.to_owned()).collect();
    files.extend(sources(&read(&xnnpack.join("CMakeLists.txt"))?));
    for entry in fs::read_dir(xnnpack.join("cmake/gen"))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(MICROKERNELS) {
            let text = read(&path)?;
            let lists = text.split("SET(").filter(|list| list.starts_with(PRODUCTION));
            files.extend(lists.flat_map(sources));
        }
    }
    Ok(files)
}

fn sources(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c.is_whitespace() || c == ')');
    words.filter(|word| word.starts_with("src/")).map(str::to_owned)
}

/// Copies the files of `from` and its folders whose path, behind `prefix`, is needed.
fn copy(from: &Path, to: &Path, prefix: &str, is_needed: &dyn Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(&name), &format!("{path}/"), is_needed)?;
        } else if is_needed(&path) {
            fs::create_dir_all(to)?;
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_a_list_are_found() {
        let text =
            "SET(PROD_AVX_MICROKERNEL_SRCS\n  src/a/b.c\n  src/c.S)\nSET(X other.c src/d.cc)";
        assert_eq!(sources(text).collect::<Vec<_>>(), ["src/a/b.c", "src/c.S", "src/d.cc"]);
    }

    #[test]
    fn files_that_no_build_reads_are_left_out() -> Result<()> {
        let (slot, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let files = [
            ("xnnpack/CMakeLists.txt", "SET(OPERATOR_SRCS src/operators/a.c)"),
            ("xnnpack/LICENSE", "licence"),
            (
                "xnnpack/cmake/gen/avx_microkernels.cmake",
                "SET(PROD_A src/k.c)\nSET(NON_PROD_A src/n.c)",
            ),
            ("xnnpack/src/operators/a.c", ""),
            ("xnnpack/src/k.c", ""),
            ("xnnpack/src/n.c", ""),
            ("xnnpack/src/xnnpack/a.h", ""),
            ("xnnpack/test/t.h", ""),
            ("pthreadpool/src/a.c", ""),
            ("cpuinfo/src/a.c", ""),
            ("fxdiv/include/fxdiv.h", ""),
            ("fp16/LICENSE", ""),
            ("PIN", "pin"),
        ];
        for (file, text) in files {
            let file = slot.path().join(file);
            fs::create_dir_all(file.parent().context("a folder")?)?;
            fs::write(file, text)?;
        }
        let to = to.path().join("vendor");
        write(slot.path(), &to)?;
        let left_out: Vec<&str> =
            files.iter().map(|one| one.0).filter(|file| !to.join(file).exists()).collect();
        assert_eq!(left_out, ["xnnpack/src/n.c", "xnnpack/test/t.h", "pthreadpool/src/a.c"]);
        Ok(())
    }
}
