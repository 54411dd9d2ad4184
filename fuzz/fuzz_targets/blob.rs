//! Reads bytes as a blob. Every accepted graph must round-trip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_format::{Blob, WriteOptions, write};

fuzz_target!(|bytes: &[u8]| {
    let Ok(blob) = Blob::from_bytes(bytes.to_vec()) else { return };
    let written = write(blob.graph(), &WriteOptions::default()).expect("a checked graph");
    let again = Blob::from_bytes(written).expect("a written file");
    assert_eq!(again.graph(), blob.graph());
});
