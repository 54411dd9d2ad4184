//! Changes of XNNPACK's sources are found as often as they say, or fail with the edit's name.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[path = "../build/edits.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of the build script")]
mod edits;

use std::fs;
use std::path::PathBuf;

use edits::{Edit, Edited, Files};

const SOURCE: &str = "min(a1, vmax); min(b, vmax); min(vmax, c); min(d + 1, vmax);";

/// A folder with one source, and what `edits` make of it.
fn edited(name: &str, edits: &[Edit]) -> Result<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("edits").join(name);
    let root = folder.join("sources");
    fs::create_dir_all(root.join("src"))?;
    for file in ["src/a.c", "src/b.c"] {
        fs::write(root.join(file), SOURCE)?;
    }
    let edited = Edited::write(&root, folder.join("copies"), &["src/a.c".to_owned()], edits)?;
    assert_eq!(fs::read_to_string(root.join("src/a.c"))?, SOURCE, "sources stay as they are");
    assert_eq!(edited.path("src/b.c"), root.join("src/b.c"), "nothing was changed there");
    Ok(fs::read_to_string(edited.path("src/a.c"))?)
}

const fn edit(files: Files, changes: &'static [edits::Change]) -> Edit {
    Edit { name: "bounds first", files, changes }
}

#[test]
fn names_are_found_in_all_files() {
    let swap = edit(Files::X86Microkernels, &[("min({}, vmax)", "min(vmax, {})", 2)]);
    let rename = edit(Files::These(&["src/a.c"]), &[("d + 1", "d", 1)]);
    assert_eq!(
        edited("found", &[swap, rename]).unwrap(),
        "min(vmax, a1); min(vmax, b); min(vmax, c); min(d, vmax);"
    );
}

#[test]
fn what_is_found_too_often_or_too_seldom_fails() {
    for (name, change) in [
        ("seldom", &[("min({}, vmax)", "", 3)]),
        ("often", &[("min({}, vmax)", "", 1)]),
        ("never", &[("max({}, vmin)", "", 1)]),
    ] as [(&str, &'static [edits::Change]); 3]
    {
        let error = edited(name, &[edit(Files::These(&["src/a.c"]), change)]).unwrap_err();
        assert!(error.to_string().contains("'bounds first'"), "{error}");
    }
}

#[test]
fn missing_files_fail() {
    assert!(edited("missing", &[edit(Files::These(&["src/c.c"]), &[])]).is_err());
}
