//! Facts about the build, for `--version` and for the producer that blobs record.

use std::fs;

fn main() {
    println!("cargo::rerun-if-changed=schemas/SHA256SUMS");
    println!("cargo::rerun-if-changed=vendor/XNNPACK/PIN");
    let sums = fs::read_to_string("schemas/SHA256SUMS").unwrap_or_default();
    let schema = sums
        .lines()
        .find(|line| line.ends_with("xnn_graph.fbs"))
        .and_then(|line| line.get(..12))
        .unwrap_or("unknown");
    println!("cargo::rustc-env=XNN_XN01_SCHEMA={schema}");
    println!("cargo::rustc-env=XNN_XNNPACK_REVISION={}", xnnpack_revision());
}

/// The first archive of the pin is XNNPACK's; its version ends in the revision.
fn xnnpack_revision() -> String {
    let pin = fs::read_to_string("vendor/XNNPACK/PIN").unwrap_or_default();
    let line = pin.lines().find(|line| line.starts_with("xnnpack")).unwrap_or_default();
    let version = line.split_whitespace().nth(3).unwrap_or_default();
    let revision = version.rsplit('.').next().unwrap_or_default();
    if revision.is_empty() { "unknown".into() } else { revision.to_owned() }
}
