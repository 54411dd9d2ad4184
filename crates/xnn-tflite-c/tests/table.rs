//! The table of functions in `docs/tflite-c-api.md` is that of the sources.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The name at the beginning of a text, if it is one of TFLite's.
fn name(text: &str) -> Option<&str> {
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(text.len());
    let name = text.get(..end)?;
    (name.starts_with("TfLite") && name.len() > "TfLite".len()).then_some(name)
}

/// Functions of the sources: written out, or made by a macro from a list of names.
fn exported() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates/xnn-tflite-c/src")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let mut is_list = false;
        for line in fs::read_to_string(path).unwrap().lines() {
            let list = line.ends_with("! {") && !line.starts_with(' ') && line != "c_struct! {";
            is_list = (is_list || (list && !line.starts_with("macro_rules"))) && line != "}";
            if let Some((_, function)) = line.split_once("extern \"C\" fn ") {
                names.extend(name(function).map(str::to_owned));
            } else if is_list && !line.trim_start().starts_with("//") && !line.contains("=> {") {
                let listed = line.split([',', ';']).filter_map(|part| name(part.trim()));
                // Arguments of a function that takes several lines begin in lower case or with `*`.
                names.extend(listed.filter(|it| !it.ends_with("Builder")).map(str::to_owned));
            }
        }
    }
    names
}

/// Functions in the first column of the document's tables, each once.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/tflite-c-api.md")).unwrap();
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `TfLite")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(["done", "stub", "refused"].contains(&cells[2]), "{line}");
        for name in cells[1].split(", ") {
            let name = name.trim_matches('`').to_owned();
            assert!(names.insert(name.clone()), "{name} is listed twice");
        }
    }
    names
}

#[test]
fn the_document_lists_all_functions() {
    let (exported, documented) = (exported(), documented());
    let missing: Vec<_> = exported.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&exported).collect();
    assert!(missing.is_empty() && gone.is_empty(), "missing: {missing:?}\nnot exported: {gone:?}");
    assert!(exported.len() > 200, "{}", exported.len());
}
