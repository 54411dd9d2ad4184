//! The smallest program that runs `.xnn` files: no models, no partitioner, no reference kernels.
//!
//! ```sh
//! cargo build --profile small -p xnn-runtime --example xnn-run
//! target/small/examples/xnn-run model.xnn input.raw > outputs.raw
//! ```
//!
//! Inputs are files of raw elements, in the order of the graph; inputs without a file are zeros. All outputs are written to standard
//! output, one behind the other. Tensors and times are written to standard error. `XNN_THREADS` is the number of threads, 1 by default.

#![allow(clippy::print_stderr, reason = "a command-line program")]

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use xnn_format::Blob;
use xnn_runtime::{Program, Session, SessionOptions, TensorInfo};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let blob = arguments.next().ok_or("usage: xnn-run BLOB [INPUT...] > OUTPUTS")?;
    let threads = env::var("XNN_THREADS").map_or(Ok(1), |threads| threads.parse());
    let threads = threads.map_err(|_| "XNN_THREADS: expected a number of threads")?;

    let start = Instant::now();
    let program = Program::from_blob(Blob::open(&blob)?)?;
    let mut session =
        Session::new(&program, &SessionOptions { threads, ..SessionOptions::default() })?;
    eprintln!("loaded in {:?}", start.elapsed());

    let count = session.inputs().len();
    for (index, file) in arguments.enumerate() {
        if index >= count {
            return Err(format!("expected at most {count} inputs").into());
        }
        let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let input = session.input_mut(index);
        if bytes.len() != input.len() {
            let (file, found, expected) = (file.display(), bytes.len(), input.len());
            return Err(format!("{file}: expected {expected} bytes, found {found}").into());
        }
        input.copy_from_slice(&bytes);
    }
    list("input", session.inputs());
    let start = Instant::now();
    session.run()?;
    eprintln!("ran in {:?}", start.elapsed());
    list("output", session.outputs());
    let mut out = io::stdout().lock();
    for index in 0..session.outputs().len() {
        out.write_all(session.output(index))?;
    }
    Ok(out.flush()?)
}

fn list(kind: &str, tensors: &[TensorInfo]) {
    for (index, TensorInfo { name, datatype, dims, .. }) in tensors.iter().enumerate() {
        eprintln!("{kind} {index} {name:?}: {} {dims:?}", datatype.name());
    }
}
