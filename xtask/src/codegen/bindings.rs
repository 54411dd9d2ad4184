//! `crates/xnnpack-sys/src/bindings.rs`, from the headers in the slot.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use sha2::{Digest, Sha256};

#[path = "../../../crates/xnnpack-sys/build/bindings.rs"]
mod bindgen;

const COMMITTED: &str = "crates/xnnpack-sys/src/bindings.rs";

/// Regenerates the bindings under the workspace `root`, or, with `check`,
/// compares them with what is committed.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let slot = root.join("vendor/XNNPACK");
    let (xnnpack, pthreadpool) = (slot.join("xnnpack/include"), slot.join("pthreadpool/include"));
    // The stamp shows, without libclang, which headers the bindings are of.
    let mut code = String::new();
    for (folder, header) in [(&xnnpack, "xnnpack.h"), (&pthreadpool, "pthreadpool.h")] {
        let text = fs::read(folder.join(header)).with_context(|| {
            format!("no {header} in {}: run `cargo xtask vendor`", slot.display())
        })?;
        let digest = Sha256::digest(text);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        code.push_str(&format!("// {header} SHA-256 {digest}\n"));
    }
    code.push_str(&bindgen::generate(&xnnpack, &pthreadpool).map_err(|error| anyhow!(error))?);

    let file = root.join(COMMITTED);
    if fs::read_to_string(&file).is_ok_and(|committed| committed == code) {
        return Ok(());
    }
    ensure!(
        !check,
        "{COMMITTED} is not what the headers say; run `cargo xtask codegen --bindings`"
    );
    fs::write(&file, code).with_context(|| COMMITTED.to_owned())
}
