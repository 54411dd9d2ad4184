//! Models and other data beside the repository. (`xnn-testing` does the same for tests; xtask does not build the crates that it
//! tests.)

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// The folder beside the repository, or the one that `XNN_SHARED` names.
pub fn folder(root: &Path) -> PathBuf {
    env::var_os("XNN_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

/// Folders of models that `bench` finds by name and `zoo` compares by default.
pub fn model_folders(root: &Path) -> [PathBuf; 2] {
    let models = folder(root).join("models");
    [models.clone(), models.join("random-weights")]
}

/// Models for tests. Prints that tests are skipped and returns `None` if there are none; in CI, that is an error.
pub fn models_of_tests(root: &Path) -> Result<Option<PathBuf>> {
    let models = folder(root).join("models");
    if models.is_dir() {
        return Ok(Some(models));
    }
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    ensure!(!is_ci, "{} does not exist, and CI skips no test", models.display());
    println!("SKIPPED: {} does not exist", models.display());
    Ok(None)
}

/// Paths for an error, separated by commas.
pub fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
