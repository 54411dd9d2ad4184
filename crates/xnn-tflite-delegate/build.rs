//! Linker options of the shared library.

#![allow(clippy::print_stdout, reason = "how build scripts talk to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Interpreters that outlive a `dlclose`, and threads that are about to end, still run the
    // library's code.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
