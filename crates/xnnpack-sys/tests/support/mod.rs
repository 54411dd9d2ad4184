//! XNNPACK's sources in the slot of this checkout.

use std::path::{Path, PathBuf};

/// Returns a file or folder in the slot. Without sources tests are skipped, except in CI.
pub fn vendored(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vendor/XNNPACK").join(path);
    if file.exists() {
        return Some(file);
    }
    xnn_testing::skip(format_args!(
        "{} does not exist (`cargo xtask vendor` fetches it)",
        file.display()
    ));
    None
}
