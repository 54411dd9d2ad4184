//! What files hold, as data that is printed or written as JSON.

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

/// A named blob that a file carries along.
#[derive(serde::Serialize)]
pub struct Metadata {
    name: String,
    bytes: usize,
}
