//! Linker options of the shared library, and the C function that calls error reporters.

#![allow(clippy::print_stdout, reason = "how build scripts talk to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/report.c");
    cc::Build::new().file("src/report.c").warnings_into_errors(true).compile("xnn_tflite_c_report");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(system.as_str(), "linux" | "android") {
        // Threads that are about to end still run the library's code after a `dlclose`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtensorflowlite_c.so");
    }
    if system == "macos" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libtensorflowlite_c.dylib");
    }
}
