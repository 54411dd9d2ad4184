//! Calls the delegate library's C interface with any graph and options.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| xnn_tflite_delegate::fuzzing::drive(bytes));
