//! Raw FFI to XNNPACK, built from vendored sources.
