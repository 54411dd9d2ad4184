//! Whatever graph and options an interpreter has, its delegate takes nodes or leaves them, and runs or fails.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| xnn_tflite_delegate::fuzzing::drive(bytes));
