//! Edits of XNNPACK's sources apply exactly as often as they state, or fail with their names.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[path = "../build/edits/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of the build script")]
mod edits;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use edits::{Edit, Edited, Files};

const SOURCE: &str = "min(a1, vmax); min(b, vmax); min(vmax, c); min(d + 1, vmax);";

/// Writes two sources to a folder of a test's `name`, and returns what `edits` make of the first.
fn edited(name: &str, edits: &[Edit]) -> Result<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("edits").join(name);
    let root = folder.join("sources");
    fs::create_dir_all(root.join("src"))?;
    for file in ["src/a.c", "src/b.c"] {
        fs::write(root.join(file), SOURCE)?;
    }
    let edited = Edited::write(&root, folder.join("copies"), &["src/a.c".to_owned()], edits)?;
    assert_eq!(fs::read_to_string(root.join("src/a.c"))?, SOURCE, "a source was changed");
    assert_eq!(edited.path("src/b.c"), root.join("src/b.c"), "a copy without changes");
    Ok(fs::read_to_string(edited.path("src/a.c"))?)
}

const fn edit(files: Files, changes: &'static [edits::Change]) -> Edit {
    Edit { name: "bounds first", why: "NaN", files, changes }
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
fn another_count_fails_with_the_name_of_the_edit() {
    for (name, change, counts) in [
        ("seldom", &[("min({}, vmax)", "", 3)], "expected 3, found 2"),
        ("often", &[("min({}, vmax)", "", 1)], "expected 1, found 2"),
        ("never", &[("max({}, vmin)", "", 1)], "expected 1, found 0"),
        ("first", &[("{}, vmax", "", 3)], "expected 3, found 0"),
    ] as [(&str, &'static [edits::Change], &str); 4]
    {
        let error = edited(name, &[edit(Files::These(&["src/a.c"]), change)]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("\"bounds first\""), "{error}");
        assert!(error.contains(&format!("src/a.c: {counts}")), "{error}");
    }
}

#[test]
fn missing_files_fail_with_the_name_of_the_edit() {
    let error = edited("missing", &[edit(Files::These(&["src/c.c"]), &[])]).unwrap_err();
    assert!(error.to_string().contains("\"bounds first\""), "{error}");
}

#[test]
fn all_edits_that_do_not_apply_are_listed() {
    let first = edit(Files::These(&["src/a.c"]), &[("min({}, vmax)", "", 3), ("max({})", "", 1)]);
    let applies = edit(Files::These(&["src/a.c"]), &[("d + 1", "d", 1)]);
    let second = Edit { name: "gone", ..edit(Files::These(&["src/c.c"]), &[]) };
    let error = edited("several", &[first, applies, second]).unwrap_err().to_string();
    let expected = [
        "\"bounds first\" does not apply",
        "src/a.c: expected 3, found 2",
        "src/a.c: expected 1, found 0",
        "\"gone\" does not apply",
        "src/c.c: ",
    ];
    let positions: Vec<Option<usize>> = expected.iter().map(|part| error.find(part)).collect();
    assert!(positions.is_sorted() && positions.iter().all(Option::is_some), "{error}");
    assert_eq!(error.matches("does not apply").count(), 2, "{error}");
}

#[test]
fn files_beside_the_folder_of_a_changed_header_include_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("edits/header");
    let root = folder.join("sources");
    for (file, text) in
        [("src/b.c", "b"), ("src/xnnpack/a.h", "int a;"), ("src/operators/c.c", "c")]
    {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let change = edit(Files::These(&["src/xnnpack/a.h"]), &[("int", "long", 1)]);
    let copies = folder.join("copies");
    let edited = Edited::write(&root, copies.clone(), &[], &[change]).unwrap();
    assert_eq!(edited.path("src/b.c"), copies.join("src/b.c"));
    assert_eq!(edited.path("src/operators/c.c"), root.join("src/operators/c.c"));
    assert_eq!(edited.headers()[0], copies.join("src"));
}

#[test]
fn edits_have_names_of_their_own() {
    let names: Vec<&str> = edits::TOPICS.into_iter().flatten().map(|edit| edit.name).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len());
}
