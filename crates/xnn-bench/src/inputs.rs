//! Inputs that all peers share.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The contents of one of a model's inputs, in the machine's byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Dimensions, row-major.
    pub dims: Vec<usize>,
    /// Elements.
    pub bytes: Vec<u8>,
}

impl Input {
    /// Reads inputs from a folder, in the model's order: `shapes.json`, and for each shape in it
    /// `in_<i>.bin`.
    ///
    /// # Errors
    /// A file cannot be read, or `shapes.json` is invalid.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let shapes: Vec<Vec<usize>> =
            serde_json::from_slice(&read("shapes.json")?).context("shapes.json")?;
        let inputs = shapes.into_iter().enumerate();
        inputs.map(|(at, dims)| Ok(Self { dims, bytes: read(&format!("in_{at}.bin"))? })).collect()
    }
}
