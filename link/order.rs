//! For build scripts: has the linker put the functions that run at a start next to each other.
//!
//! The system maps a program's code in pieces of 64 KiB around what is used. Spread over the whole, the functions of one
//! start make three quarters of it resident; next to each other, less than a quarter.

use std::env;
use std::path::PathBuf;

/// Set to `off`: functions stay where the linker puts them.
const SWITCH: &str = "XNN_LINK_ORDER";

/// Linkers that do not read the script, by what chooses them.
const OTHER_LINKERS: [&str; 3] = ["mold", "gold", "wild"];

/// Passes `first.ld` to the linker, in optimized builds for Linux.
pub fn tell_linker() {
    println!("cargo:rerun-if-env-changed={SWITCH}");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let script = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../../link/first.ld");
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rerun-if-changed=build.rs");
    let is_known = |linker: &&str| !variable("CARGO_ENCODED_RUSTFLAGS").contains(*linker);
    let is_wanted = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("PROFILE") == "release"
        && variable(SWITCH) != "off"
        && OTHER_LINKERS.iter().all(is_known);
    if is_wanted {
        println!("cargo:rustc-link-arg=-T");
        println!("cargo:rustc-link-arg={}", script.display());
    }
}
