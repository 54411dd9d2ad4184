//! The repository's text: links of documents lead somewhere, and comments and documents keep to the style.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod english;
mod links;

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose text is not written here: build outputs, third-party sources, generated code and test data.
const SKIPPED: [&str; 7] =
    ["target", "vendor", "generated", "seeds", "golden", "node_modules", "__pycache__"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of the repository with one of these extensions, in order.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                let is_hidden = name.starts_with('.') && name != ".github";
                if !is_hidden && !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| extensions.iter().any(|&own| it == own)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Path below the repository's root.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}
