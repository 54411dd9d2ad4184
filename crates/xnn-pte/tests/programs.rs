//! Programs written by ExecuTorch 0.5.0 and 1.5.1, compared with their known content.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::Value as Json;
use xnn_format::{Blob, ConstantFolder, ReadOptions};
use xnn_pte::{Argument, Delegate, ErrorKind, Method, PteProgram};
use xnn_testing::{files_below, shared_dir};

/// Each program with its folder; `None` if they are not available.
fn programs() -> Option<Vec<(PathBuf, PteProgram)>> {
    let files = files_below(&shared_dir("interop")?, &["pte"]);
    assert!(files.len() >= 50);
    let open = |file: PathBuf| {
        let program = PteProgram::open(&file).unwrap_or_else(|error| panic!("{error}"));
        (file.parent().unwrap().to_owned(), program)
    };
    Some(files.into_iter().map(open).collect())
}

fn forward(program: &PteProgram) -> &Method {
    let [method] = program.methods() else { panic!("{} methods", program.methods().len()) };
    assert_eq!(method.name, "forward");
    method
}

/// Path of a file of a delegate in the folder of the program.
fn file(folder: &Path, kind: &str, method: &Method, delegate: &Delegate) -> PathBuf {
    match method.delegates.len() {
        1 => folder.join(kind),
        _ => folder.join(kind.replacen('.', &format!("_{}.", delegate.index), 1)),
    }
}

fn info(folder: &Path) -> Json {
    serde_json::from_slice(&fs::read(folder.join("info.json")).unwrap()).unwrap()
}

#[test]
fn payloads_are_those_of_the_backend() {
    for (folder, program) in programs().unwrap_or_default() {
        let method = forward(&program);
        let count = info(&folder)["n_delegates"].as_u64().unwrap();
        assert_eq!(method.delegates.len() as u64, count, "{}", folder.display());
        for delegate in &method.delegates {
            assert!(delegate.is_xnnpack());
            assert_eq!(delegate.calls, 1);
            let payload = fs::read(file(&folder, "payload.xnn", method, delegate)).unwrap();
            assert!(delegate.payload == payload, "{}", folder.display());
        }
    }
}

#[test]
fn graphs_use_the_named_data_of_programs() {
    for (folder, program) in programs().unwrap_or_default() {
        let method = forward(&program);
        let info = info(&folder);
        for delegate in &method.delegates {
            let graph = program.xnnpack_graph(method, delegate).unwrap();
            let named = file(&folder, "named_data.", method, delegate);
            let named = named.to_str().unwrap().trim_end_matches('.').to_owned();
            let constants = ConstantFolder::new(&named);
            let options = ReadOptions { constants: Some(&constants), ..ReadOptions::default() };
            let expected =
                Blob::open_with(file(&folder, "payload.xnn", method, delegate), &options).unwrap();
            assert_eq!(graph.blob.graph(), expected.graph(), "{}", folder.display());

            let expected = &info["payloads"][delegate.index]["named_data"];
            let expected: BTreeSet<(&str, u64)> = expected
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, entry)| (key.as_str(), entry["size"].as_u64().unwrap()))
                .collect();
            let found = graph.named.iter().map(|entry| (entry.key.as_str(), entry.size as u64));
            assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{}", folder.display());
        }
    }
}

#[test]
fn operators_outside_of_delegates_match_the_exporter() {
    let mut outside = 0;
    for (folder, program) in programs().unwrap_or_default() {
        let info = info(&folder);
        let expected = info["non_delegated"].as_array().unwrap().len();
        let found: usize = forward(&program).operators.iter().map(|entry| entry.calls).sum();
        assert_eq!(found, expected, "{}: {:?}", folder.display(), forward(&program).operators);
        outside += found;
    }
    assert!(outside > 0 || programs().is_none());
}

#[test]
fn arguments_have_shapes() {
    for (folder, program) in programs().unwrap_or_default() {
        let method = forward(&program);
        for argument in method.inputs.iter().chain(&method.outputs) {
            let Argument::Tensor(tensor) = argument else { panic!("{}", folder.display()) };
            assert!(tensor.dims.iter().all(|&dim| dim > 0), "{}", folder.display());
        }
    }
}

#[test]
fn truncated_programs_are_refused() {
    for (folder, _) in programs().unwrap_or_default() {
        let file = Bytes::from(fs::read(folder.join("model.pte")).unwrap());
        if file.len() > 8192 {
            continue;
        }
        for end in 0..needed(&file) {
            let Ok(program) = PteProgram::from_bytes(file.slice(..end)) else { continue };
            let method = forward(&program);
            let graphs = method.delegates.iter();
            let mut graphs = graphs.map(|delegate| program.xnnpack_graph(method, delegate));
            assert!(graphs.any(|graph| graph.is_err()), "{}: cut at {end}", folder.display());
        }
    }
}

/// End of the last payload or named data in the file.
fn needed(file: &Bytes) -> usize {
    let program = PteProgram::from_bytes(file.clone()).unwrap();
    let payloads = forward(&program).delegates.iter().map(|delegate| &delegate.payload);
    let ends = payloads.chain(program.named_data().values()).map(|part| part.as_ptr_range().end);
    ends.max().map_or(0, |end| end.addr() - file.as_ptr().addr())
}

#[test]
fn errors_name_missing_files() {
    let error = PteProgram::open("no/such.pte").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)));
    assert!(error.to_string().starts_with("no/such.pte: "), "{error}");
}
