//! Stamps of generated code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Asserts that the first line of a generated module names the SHA-256 of
/// `schemas/<schema>.fbs` as it is now.
///
/// # Panics
///
/// If it does not: the module must be generated again.
#[track_caller]
pub fn assert_schema_stamp(schema: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schemas")
        .join(schema)
        .with_extension("fbs");
    let source = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let digest = Sha256::digest(source).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes any text");
        hex
    });
    let stamp = generated.lines().next().unwrap_or_default();
    assert!(
        stamp.ends_with(&format!("schemas/{schema}.fbs sha256 {digest}")),
        "the code made from {schema}.fbs is out of date ({stamp}): run `cargo xtask codegen`"
    );
}
