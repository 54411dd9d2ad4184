//! Reads bytes as an ExecuTorch program, and the payloads of its delegates.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_pte::PteProgram;

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = PteProgram::from_bytes(bytes.to_vec()) else { return };
    for method in program.methods() {
        for delegate in &method.delegates {
            let _ = program.xnnpack_graph(method, delegate);
        }
    }
});
