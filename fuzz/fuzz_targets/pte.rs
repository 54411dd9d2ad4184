//! Any bytes are an ExecuTorch program or an error, and so is each payload in one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_pte::PteProgram;

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = Program::from_bytes(bytes.to_vec()) else { return };
    for method in program.methods() {
        for delegate in &method.delegates {
            let _ = program.xnnpack_graph(method, delegate);
        }
    }
});
