//! One XNNPACK delegate for several interpreters.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use log::{LevelFilter, Log, Metadata, Record};
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter, XnnpackDelegate};
use xnn_delegate::{Model, PartitionOptions, SessionOptions};

thread_local! {
    /// How often operators were created on this thread.
    static CREATED: Cell<usize> = const { Cell::new(0) };
}

/// Counts messages about operators that were created.
struct Counter;

impl Log for Counter {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.args().to_string().starts_with("created the operators") {
            CREATED.set(CREATED.get() + 1);
        }
    }

    fn flush(&self) {}
}

#[test]
fn each_interpreter_creates_the_operators_of_its_partitions_once() {
    log::set_logger(&Counter).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits_mobilenet_v2_fp32.tflite");
    let model = Model::open(path).unwrap();
    let mut partition = PartitionOptions::default();
    partition.disable.push("MEAN".to_owned());
    for threads in [1, 2] {
        let session = SessionOptions { threads, ..SessionOptions::default() };
        let delegate = Arc::new(XnnpackDelegate::new(partition.clone(), session).unwrap());
        let mut options = InterpOptions::default();
        options.delegates.push(delegate);
        let load = || {
            CREATED.set(0);
            let interpreter = Interpreter::new(&model, Entry::Main, &options).unwrap();
            (interpreter, CREATED.get())
        };
        let [(mut first, created), (mut second, again)] = [load(), load()];
        assert_eq!(first.delegated_partitions(), 2);
        assert_eq!([created, again], [2, 2]);
        let [one, other] = [&mut first, &mut second].map(|interpreter| {
            interpreter.run().unwrap();
            interpreter.output(0).unwrap().bytes.to_vec()
        });
        assert_eq!(one, other);
        // A fork shares programs, and creates operators of its own.
        CREATED.set(0);
        let mut fork = first.fork().unwrap();
        fork.run().unwrap();
        assert_eq!(CREATED.get(), 2);
        assert_eq!(fork.output(0).unwrap().bytes, one);
    }
}
