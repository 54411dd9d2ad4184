//! Summaries of files, as text or JSON.

pub mod attributes;
pub mod blob;
pub mod description;
pub mod model;
pub mod program;

use std::fmt::Write;

/// A digest in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A metadata entry of a file.
#[derive(serde::Serialize)]
pub struct Metadata {
    name: String,
    bytes: usize,
}
