//! Reads bytes as a blob and runs it with various inputs and shapes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_format::{Blob, GraphLimits, ReadOptions};
use xnn_runtime::{Program, ProgramOptions, RuntimeError, Session, SessionOptions};

/// Fill bytes of the inputs: zero, small values, and NaN for floats.
const FILLS: [u8; 3] = [0, 0x3c, 0xff];

fuzz_target!(|bytes: &[u8]| {
    let mut limits = GraphLimits::default();
    limits.max_value_bytes = 1 << 16;
    let reading = ReadOptions { limits: limits.clone(), constants: None };
    let Ok(blob) = Blob::from_bytes_with(bytes.to_vec(), &reading) else { return };
    let _ = replay(blob, limits);
});

fn replay(blob: Blob, limits: GraphLimits) -> Result<(), RuntimeError> {
    let options = ProgramOptions { limits, ..ProgramOptions::default() };
    let program = Program::from_blob_with(blob, &options)?;
    let mut session = Session::new(&program, &SessionOptions::default())?;
    for fill in FILLS {
        for input in 0..session.inputs().len() {
            session.input_mut(input).fill(fill);
        }
        session.run()?;
    }
    for input in 0..session.inputs().len() {
        let Some(info) = session.inputs().get(input) else { continue };
        let twice: Vec<usize> = info.dims.iter().map(|&dim| dim.saturating_mul(2)).collect();
        let _ = session.resize(input, &twice);
    }
    let _ = session.reshape();
    session.run()
}
