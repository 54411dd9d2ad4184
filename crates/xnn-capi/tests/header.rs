//! The committed header and list of symbols are those of the sources.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Sources in the order of the header; others follow.
const ORDER: [&str; 10] = [
    "version.rs",
    "error.rs",
    "bytes.rs",
    "options.rs",
    "memory.rs",
    "model.rs",
    "convert.rs",
    "explain.rs",
    "session.rs",
    "tensor.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header that cbindgen generates.
fn generated() -> String {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    let about = config.after_includes.take().unwrap();
    config.after_includes = Some(about.replace("@VERSION@", env!("CARGO_PKG_VERSION")));
    let mut sources: Vec<PathBuf> =
        fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The root names the others, which would be read twice.
    sources.retain(|path| !path.ends_with("lib.rs") && !path.ends_with("tests.rs"));
    let place = |path: &PathBuf| ORDER.iter().position(|name| path.ends_with(name));
    sources.sort_by_key(|path| (place(path).unwrap_or(ORDER.len()), path.clone()));
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources.iter().fold(builder, |builder, source| builder.with_src(source));
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// Names of the functions that a header declares.
fn functions(header: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let names = code.filter_map(|line| line.split_once('(')?.0.rsplit(|c| !is_name(c)).next());
    names.filter(|name| name.starts_with("xnnd_")).map(str::to_owned).collect()
}

/// Compares a committed file, or replaces it if `XNN_BLESS` is 1.
fn check(path: &Path, generated: &str) {
    if env::var("XNN_BLESS").as_deref() == Ok("1") {
        fs::write(path, generated).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is not up to date; XNN_BLESS=1 cargo test -p xnn-capi writes it",
        path.display()
    );
}

#[test]
fn the_header_is_that_of_the_sources() {
    check(&root().join("include/xnn.h"), &generated());
}

#[test]
fn the_version_script_has_the_functions_of_the_header() {
    let header = generated();
    let script = fs::read_to_string(root().join("libxnn.map")).unwrap();
    let versioned: BTreeSet<String> = (script.lines().map(str::trim))
        .filter_map(|line| line.strip_suffix(';'))
        .filter(|name| name.starts_with("xnnd_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(versioned, functions(&header));
    assert!(versioned.len() > 40, "{versioned:?}");
}

fn is_declaration(line: &str, name: &str) -> bool {
    line.contains(&format!("{name}(")) && !line.trim_start().starts_with(['*', '/'])
}

#[test]
fn every_function_is_documented() {
    let header = generated();
    let lines: Vec<&str> = header.lines().collect();
    for name in functions(&header) {
        let at = lines.iter().position(|line| is_declaration(line, &name)).unwrap();
        // The type may be on lines of its own.
        let before = lines[..at].iter().rposition(|line| line.trim().is_empty()).unwrap();
        assert_eq!(lines[before + 1].trim(), "/**", "{name}");
    }
}
