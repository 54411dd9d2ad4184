//! Damaged models, and payloads and programs of ExecuTorch: read, compiled and run, within the default limits.
//!
//! Whatever the damage, the end is an error that says where the trouble is, or a result: no crash, no
//! hang, no leak, no memory beyond the limits. Mutants are made and tried in a child process, which the
//! test watches; it prints the largest memory and the longest time that one of them took.
//! `XNN_MUTANTS=1000000` tries so many (default 3000); mutant `n` is the same in every run,
//! and `XNN_MUTANTS_RANGE=n..m` tries these in the test's own process, for a debugger.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod mutate;
mod supervise;
mod worker;

use std::env;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;
use xnn_delegate::Model;
use xnn_testing::{files_below, shared_dir};

/// Models from here on are left out: there are enough small ones with the same operators, and they run faster.
const LARGE_MODEL: usize = 100_000;

/// A file that mutants are made from.
struct Seed {
    path: PathBuf,
    bytes: Vec<u8>,
    kind: Kind,
}

/// Kind of a file, and the parts of it where damage matters.
enum Kind {
    Graph,
    Program,
    /// Byte ranges outside of large constants.
    Model(Vec<Range<usize>>),
}

impl Seed {
    /// Payloads with constants inside or named, whole programs, and models; sorted by path.
    fn all() -> Option<Vec<Self>> {
        let mut files = files_below(&shared_dir("interop")?, &["xnn", "pte"]);
        assert!(files.len() > 100);
        for folder in ["models", "cases", "circle"] {
            files.extend(files_below(&shared_dir(folder)?, &["tflite", "circle"]));
        }
        let seed = |path: PathBuf| {
            let bytes = std::fs::read(&path).unwrap();
            let kind = match path.extension()?.to_str()? {
                "xnn" => Kind::Graph,
                "pte" => Kind::Program,
                _ if bytes.len() >= LARGE_MODEL => return None,
                _ => Kind::Model(beside_constants(&bytes)?),
            };
            Some(Self { path, bytes, kind })
        };
        let seeds: Vec<Self> = files.into_iter().filter_map(seed).collect();
        assert!(seeds.iter().filter(|seed| matches!(seed.kind, Kind::Model(_))).count() > 50);
        Some(seeds)
    }

    /// The mutant with this number, with what was done.
    fn mutant(seeds: &[Self], number: usize) -> (&Self, Vec<u8>, String) {
        let seed = &seeds[number % seeds.len()];
        let (bytes, what) = mutate::mutant(&seed.bytes, &seed.kind, number as u64);
        (seed, bytes, what)
    }
}

/// The parts of a model's file that are no constants; `None` if it is damaged already.
fn beside_constants(file: &[u8]) -> Option<Vec<Range<usize>>> {
    let bytes = Bytes::copy_from_slice(file);
    let model = Model::from_bytes(bytes.clone()).ok()?;
    let tensors = model.subgraphs.iter().flat_map(|graph| &graph.tensors);
    let place = |data: &Bytes| {
        let start = data.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        (start + data.len() <= file.len()).then_some(start..start + data.len())
    };
    let mut constants: Vec<_> = tensors.filter_map(|tensor| place(tensor.data.as_ref()?)).collect();
    constants.sort_unstable_by_key(|place| place.start);
    let mut parts = Vec::new();
    let mut end = 0;
    for constant in constants {
        // Small ones are axes, shapes and paddings, which matter, too.
        if constant.len() > 64 {
            parts.push(end..constant.start.max(end));
            end = end.max(constant.end);
        }
    }
    parts.push(end..file.len());
    parts.retain(|part| !part.is_empty());
    Some(parts)
}

#[test]
fn mutants_end_in_an_error_or_a_result() {
    let Some(seeds) = Seed::all() else { return };
    match env::var(worker::RANGE) {
        Ok(range) => worker::run(&seeds, &range),
        Err(_) => {
            let count = env::var("XNN_MUTANTS").map_or(3000, |count| count.parse().unwrap());
            supervise::run(&seeds, count);
        }
    }
}
