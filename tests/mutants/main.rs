//! Damaged payloads and programs of ExecuTorch: read, compiled and run.
//!
//! Whatever the damage, the end is an error that says where the trouble is, or a result: no crash, no
//! hang, no leak, no memory beyond the limits. Mutants are made and tried in a child process, which the
//! test watches. `XNN_MUTANTS=100000` tries so many (default 3000); mutant `n` is the same in every run,
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
use std::path::PathBuf;

use xnn_testing::{files_below, shared_dir};

/// What mutants are made of.
struct Seed {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Seed {
    /// Payloads with constants inside or named, and whole programs; sorted by path.
    fn all() -> Option<Vec<Self>> {
        let files = files_below(&shared_dir("interop")?, &["xnn", "pte"]);
        assert!(files.len() > 100);
        let read = |path: PathBuf| Self { bytes: std::fs::read(&path).unwrap(), path };
        Some(files.into_iter().map(read).collect())
    }

    fn is_program(&self) -> bool {
        xnn_pte::is_program(&self.bytes)
    }

    /// The mutant with this number, with what was done.
    fn mutant(seeds: &[Self], number: usize) -> (&Self, Vec<u8>, String) {
        let seed = &seeds[number % seeds.len()];
        let (bytes, what) = mutate::mutant(&seed.bytes, seed.is_program(), number as u64);
        (seed, bytes, what)
    }
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
