//! Metadata of a model or blob.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use xnn_delegate::metadata::Description;
use xnn_delegate::metadata::ModelMetadata;

use crate::output::{self, Table};

/// Metadata M001 and associated files.
#[derive(Serialize)]
pub struct DescriptionEntry {
    metadata: ModelMetadata,
    files: Vec<FileEntry>,
}

#[derive(Serialize)]
struct FileEntry {
    name: String,
    bytes: u64,
}

impl DescriptionEntry {
    pub fn new(described: &Description) -> Self {
        let files = described.files.iter();
        Self {
            metadata: described.metadata.clone(),
            files: files.map(|(name, bytes)| FileEntry { name: name.to_owned(), bytes }).collect(),
        }
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // Parsed from the text, so that numbers keep their short form.
        let metadata = serde_json::from_str(&self.metadata.to_json()).map_err(io::Error::from)?;
        write_fields(out, &metadata, 0)?;
        if self.files.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new(["associated file", "size>"]);
        for FileEntry { name, bytes } in &self.files {
            table.row([name.clone(), output::bytes(*bytes)]);
        }
        table.write(out)
    }
}

/// Writes fields as `name: value` lines, with nested fields indented.
fn write_fields(out: &mut dyn Write, value: &Value, depth: usize) -> io::Result<()> {
    let Value::Object(fields) = value else { return Ok(()) };
    let indent = "  ".repeat(depth);
    for (name, value) in fields {
        match value {
            Value::Object(_) => {
                writeln!(out, "{indent}{name}:")?;
                write_fields(out, value, depth + 1)?;
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    writeln!(out, "{indent}{name} {index}:")?;
                    write_fields(out, item, depth + 1)?;
                }
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(one_line).collect();
                writeln!(out, "{indent}{name}: {}", items.join(", "))?;
            }
            value => writeln!(out, "{indent}{name}: {}", one_line(value))?,
        }
    }
    Ok(())
}

/// A string on one line, or another value as JSON.
fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            output::plain(&lines.join(" "))
        }
        value => value.to_string(),
    }
}
