//! Linker options of the shared library.

#![allow(clippy::print_stdout, reason = "how build scripts talk to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Interpreters that outlive a `dlclose`, and threads that are about to end, still run the
    // library's code.
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(system.as_str(), "linux" | "android") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if system == "macos" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libxnn_delegate.dylib");
    }
}
