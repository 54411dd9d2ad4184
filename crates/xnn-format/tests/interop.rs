//! Payloads that ExecuTorch 0.5.0 and 1.5.1 wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use xnn_format::{
    Blob, Compat, ConstantFolder, ErrorKind, PADDING, ReadOptions, WriteOptions, readable_behind,
    write,
};
use xnn_testing::{files_below, shared_dir};

fn open(file: &Path) -> Blob {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let folder = stem.replace("_inline", "").replace("payload", "named_data");
    let constants = ConstantFolder::new(file.with_file_name(folder));
    let options = ReadOptions { constants: Some(&constants), ..ReadOptions::default() };
    Blob::open_with(file, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Payloads that ExecuTorch 0.4 readers do not support: node kinds above 37, bf16, scales per
/// image.
const NEWER: [&str; 4] = [
    "et_1.5.1/clone_copy_fp32",
    "et_1.5.1/conv_qd8_qc8w",
    "et_1.5.1/conv_transpose_fp32",
    "et_1.5.1/linear_bf16",
];

#[test]
fn every_payload_reads_and_writes_to_an_equal_graph() {
    let Some(interop) = shared_dir("interop") else { return };
    let mut newer = BTreeSet::new();
    let files = files_below(&interop, &["xnn"]);
    assert!(files.len() >= 80);
    for file in &files {
        let blob = open(file);
        let graph = blob.graph();
        let written = match write(graph, &WriteOptions::new(Compat::Executorch)) {
            Ok(written) => written,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Incompatible(_)), "{error}");
                let case = file.parent().unwrap().strip_prefix(&interop).unwrap();
                newer.insert(case.to_str().unwrap().to_owned());
                write(graph, &WriteOptions::default()).unwrap()
            }
        };
        let again = Blob::from_bytes(written).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.graph(), graph, "{}", file.display());
    }
    assert!(NEWER.iter().all(|&case| newer.contains(case)), "{newer:?}");
    assert!(newer.iter().all(|case| case.starts_with("et_1.5.1")), "{newer:?}");
}

#[test]
fn inline_and_named_constants_give_equal_graphs() {
    let Some(interop) = shared_dir("interop") else { return };
    let mut pairs = 0;
    for inline in files_below(&interop, &["xnn"]) {
        let name = inline.file_name().unwrap().to_str().unwrap();
        let Some(stem) = name.strip_suffix("_inline.xnn") else { continue };
        let named = inline.with_file_name(format!("{stem}.xnn"));
        assert_eq!(open(&inline).graph(), open(&named).graph(), "{}", inline.display());
        let error = Blob::open(&named).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::MissingConstant(_)), "{error}");
        Blob::open(&inline).unwrap();
        pairs += 1;
    }
    assert!(pairs >= 20);
}

#[test]
fn written_constants_are_aligned_and_padded_in_place() {
    let Some(interop) = shared_dir("interop") else { return };
    for file in files_below(&interop, &["xnn"]) {
        let written = write(open(&file).graph(), &WriteOptions::default()).unwrap();
        let blob = Blob::from_bytes(written).unwrap();
        let base = blob.storage().as_ptr().addr();
        for data in blob.graph().values.iter().filter_map(|value| value.data.as_ref()) {
            assert_eq!((data.as_ptr().addr() - base) % 64, 0);
            assert!(readable_behind(data, blob.storage()).unwrap() >= PADDING);
        }
    }
}
