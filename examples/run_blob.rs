//! Runs a `.xnn` file with two threads: `cargo run --release --example run_blob -- BLOB`
//!
//! The inputs are zeros. Prints tensors and times.

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Instant;

use anyhow::{Result, bail};
use xnn_delegate::SessionOptions;
use xnn_delegate::blob::Blob;
use xnn_delegate::runtime::{Program, Session, TensorInfo};

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path] = arguments.as_slice() else { bail!("usage: run_blob BLOB") };

    let start = Instant::now();
    // The file is mapped, and its constants are used in place.
    let blob = Blob::open(path)?;
    println!(
        "{path}: {} bytes, made of {:?}",
        blob.info().file_size,
        blob.graph().origin.source_name
    );
    let program = Program::from_blob(blob)?;
    // Threads share a program; each of them has a session of its own.
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    let mut session = Session::new(&program, &options)?;
    println!("loaded in {:?}", start.elapsed());

    print_tensors("input", session.inputs());
    for run in 0..3 {
        let start = Instant::now();
        session.run()?;
        println!("run {run} took {:?}", start.elapsed());
    }
    print_tensors("output", session.outputs());
    for index in 0..session.outputs().len() {
        let start: Vec<u8> = session.output(index).iter().copied().take(16).collect();
        println!("output {index} starts with {start:02x?}");
    }
    Ok(())
}

fn print_tensors(kind: &str, tensors: &[TensorInfo]) {
    for (index, TensorInfo { name, datatype, dims, .. }) in tensors.iter().enumerate() {
        println!("{kind} {index} {name:?}: {} {dims:?}", datatype.name());
    }
}
