//! XNNPACK's build identifier, by which caches of packed weights are checked.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{Result, out_dir};

/// Writes the C file that upstream generates with a script, and returns its path.
/// The identifier is the SHA-256 of the names and contents of XNNPACK's `sources` and of files of this crate: it changes with the
/// sources, with the instruction sets that have microkernels, and with the choice among microkernels.
pub fn write(xnnpack: &Path, sources: &[String], own: &[&str]) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    let mut add = |root: &Path, source: &str| -> Result<()> {
        hash.update(source);
        hash.update([0]);
        hash.update(fs::read(root.join(source))?);
        Ok(())
    };
    sources.iter().try_for_each(|source| add(xnnpack, source))?;
    own.iter().try_for_each(|source| add(Path::new(env!("CARGO_MANIFEST_DIR")), source))?;
    let bytes: Vec<String> = hash.finalize().iter().map(u8::to_string).collect();
    let bytes = bytes.join(", ");
    let file = out_dir()?.join("build_identifier.c");
    fs::write(
        &file,
        format!(
            "#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint8_t identifier[] = {{{bytes}}};

size_t xnn_experimental_get_build_identifier_size(void) {{
  return sizeof(identifier);
}}

const void* xnn_experimental_get_build_identifier_data(void) {{
  return identifier;
}}

bool xnn_experimental_check_build_identifier(const void* data, size_t size) {{
  return size == sizeof(identifier) && memcmp(data, identifier, size) == 0;
}}
"
        ),
    )?;
    Ok(file)
}
