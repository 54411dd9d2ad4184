//! Packed weights on the command line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use support::{FP32, INT8, converted, model, program, refusal, stdout, text};
use tempfile::tempdir;

/// The first output for random inputs.
fn output(source: &Path, options: &[&str]) -> Vec<u8> {
    let folder = tempdir().unwrap();
    let args = ["run", text(source), "--output-dir", text(folder.path())];
    stdout(args.iter().chain(options));
    fs::read(folder.path().join("out_0.npy")).unwrap()
}

/// Log of `xnn -v run`.
fn log(source: &Path, options: &[&str]) -> String {
    let output = program().args(["-v", "run", text(source)]).args(options).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_packed_blob_computes_the_same_and_packs_nothing() {
    for name in [FP32, INT8] {
        let folder = tempdir().unwrap();
        let plain = converted(&model(name), folder.path());
        let [whole, later] = ["whole.xnn", "later.xnn"].map(|name| folder.path().join(name));
        stdout(["convert", "--pack", text(&model(name)), "-o", text(&whole)]);
        stdout(["pack", text(&plain), "-o", text(&later)]);
        assert!(fs::read(&whole).unwrap() == fs::read(&later).unwrap());
        assert!(fs::read(&whole).unwrap().starts_with(&fs::read(&plain).unwrap()));
        assert!(output(&plain, &[]) == output(&whole, &[]), "{name}");
        assert!(log(&whole, &[]).contains("packed weights are used as they are"), "{name}");
        assert!(stdout(["inspect", "--verify", text(&whole)]).contains("\npacked "));
        stdout(["pack", text(&whole), "-o", text(&whole)]);
        assert!(fs::read(&whole).unwrap() == fs::read(&later).unwrap());
    }
}

#[test]
fn weights_for_another_processor_are_packed_anew_and_the_log_says_so() {
    let folder = tempdir().unwrap();
    let blob = folder.path().join("packed.xnn");
    stdout(["convert", "--pack", text(&model(FP32)), "-o", text(&blob)]);
    let expected = output(&blob, &[]);
    let mut bytes = fs::read(&blob).unwrap();
    let arch = std::env::consts::ARCH.as_bytes();
    let at = bytes.windows(arch.len()).rposition(|window| window == arch).unwrap();
    bytes[at..at + 3].copy_from_slice(b"abc");
    fs::write(&blob, bytes).unwrap();
    assert!(output(&blob, &[]) == expected);
    let log = log(&blob, &[]);
    assert!(log.contains("for another processor (abc") && log.contains("packing weights"), "{log}");
}

#[test]
fn changed_weights_are_found_by_verifying() {
    let folder = tempdir().unwrap();
    let blob = folder.path().join("packed.xnn");
    stdout(["convert", "--pack", text(&model(FP32)), "-o", text(&blob)]);
    let mut bytes = fs::read(&blob).unwrap();
    let near_the_end = bytes.len() - 1000;
    bytes[near_the_end] ^= 1;
    fs::write(&blob, bytes).unwrap();
    let refusal = refusal(["inspect", "--verify", text(&blob)]);
    assert!(refusal.contains("packed.xnn: the weights packed for node"), "{refusal}");
    stdout(["inspect", text(&blob)]);
}

#[test]
fn a_folder_of_cached_weights() {
    let folder = tempdir().unwrap();
    let cache = ["--cache-dir", text(folder.path())];
    let (first, second) = (model(FP32), model(INT8));
    for source in [&first, &second] {
        let expected = output(source, &[]);
        assert!(log(source, &cache).contains("packed weights are kept"));
        assert!(log(source, &cache).contains("packed weights are used as they are"));
        assert!(output(source, &cache) == expected);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    stdout(["bench", text(&first), "--runs", "1"].iter().chain(&cache));
}

#[test]
fn weights_packed_inside_of_models_are_verified_too() {
    let folder = tempdir().unwrap();
    let (path, target) = (model(FP32), folder.path().join("m.tflite"));
    stdout(["convert", "--pack", "--disable", "MEAN", text(&path), "-o", text(&target)]);
    let verify = |path: &Path| {
        let output = program().args(["inspect", "--verify", text(path)]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(verify(&path).ends_with("no packed weights to verify\n"));
    let said = verify(&target);
    assert!(said.starts_with(&format!("note: {}: ", text(&target))), "{said}");
    assert!(said.ends_with("nodes are intact\n"), "{said}");

    let mut bytes = fs::read(&target).unwrap();
    let section = bytes.windows(4).position(|window| window == b"XP00").unwrap();
    let size = u64::from_le_bytes(bytes[section + 8..section + 16].try_into().unwrap());
    bytes[section + size as usize - 1000] ^= 1;
    fs::write(&target, bytes).unwrap();
    let refusal = refusal(["inspect", "--verify", text(&target)]);
    assert!(refusal.contains("(XNNGraph): the weights packed for node"), "{refusal}");
    stdout(["inspect", text(&target)]);
}
