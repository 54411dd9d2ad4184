//! Reads source lists from upstream's CMake files.

use std::fs;
use std::path::Path;

use crate::Result;

/// Returns upstream's list `list` in `file` (a path in the XNNPACK tree): paths of C, C++ and assembly files in the XNNPACK tree, in
/// upstream's order.
///
/// Entries that CMake generates (`"${...}/build_identifier.c"`) are left out.
pub fn source_list(xnnpack: &Path, file: &str, list: &str) -> Result<Vec<String>> {
    let path = xnnpack.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&text, list).ok_or_else(|| {
        format!(
            "{} has no list {list}: is this the revision of XNNPACK that vendor/XNNPACK/PIN names?",
            path.display()
        )
        .into()
    })
}

fn parse(text: &str, list: &str) -> Option<Vec<String>> {
    let body = text.split("SET(").skip(1).find_map(|command| {
        let rest = command.strip_prefix(list)?;
        let (body, _) = rest.split_once(')')?;
        rest.starts_with([' ', '\n', '\r', ')']).then_some(body)
    })?;
    Some(
        body.split_whitespace()
            .filter(|word| word.starts_with("src/"))
            .map(str::to_owned)
            .collect(),
    )
}
