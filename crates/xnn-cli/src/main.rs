//! The `xnn` program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    xnn_cli::main()
}
