//! Comparison on a target that has the runtime for `.xnn` files alone: this machine converts the models.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use super::{Array, npy_of, run_xnn};
use crate::cross::{Cross, build};
use crate::venv;

const SCRIPT: &str = "xtask/src/cross/compare/run_wasm.py";
const REQUIREMENTS: &str = "xtask/src/cross/compare/requirements.txt";

/// The program `xnn-run` of a target, and the interpreter that runs it.
pub struct Runtime {
    python: PathBuf,
    script: PathBuf,
    program: PathBuf,
}

impl Runtime {
    /// Builds the program, and installs the interpreter.
    pub fn new(cross: &Cross<'_>, profile: &str) -> Result<Self> {
        let root = cross.root;
        let python = venv::python(root, "wasmtime", &root.join(REQUIREMENTS))?;
        let python = std::path::absolute(python)?;
        let program = format!("examples/xnn-run{}", cross.target.suffix);
        let program = std::path::absolute(build(cross, profile, &[])?.join(program))?;
        Ok(Self { python, script: root.join(SCRIPT), program })
    }

    /// Runs a converted model, and returns its outputs as files, with the headers of `expected`.
    pub fn outputs(
        &self,
        converted: &Converted,
        expected: &BTreeMap<String, Vec<u8>>,
    ) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(&self.program).arg(MODEL).args(&converted.inputs);
        let output = run_xnn(command.current_dir(converted.folder.path()))?;
        let mut rest = output.as_slice();
        let mut files = BTreeMap::new();
        // Outputs follow one another by index; `out_10.npy` is before `out_2.npy` in the map.
        for index in 0..expected.len() {
            let name = npy_of(index);
            let file = expected.get(&name).with_context(|| format!("no {name}"))?;
            let length = Array::read(file)?.data.len();
            let (data, next) = rest.split_at_checked(length).context("too few bytes of outputs")?;
            let header = &file[..file.len() - length];
            files.insert(name, [header, data].concat());
            rest = next;
        }
        ensure!(rest.is_empty(), "{} bytes of outputs too many", rest.len());
        Ok(files)
    }
}

/// Name of the converted model in its folder.
const MODEL: &str = "model.xnn";

/// A converted model and elements for its inputs.
pub struct Converted {
    folder: TempDir,
    /// Names of files in the folder, one for each input.
    inputs: Vec<String>,
}

/// The part of what `xnn run --json` prints that matters here.
#[derive(Deserialize)]
struct Summary {
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    #[serde(rename = "type")]
    dtype: String,
    shape: Vec<usize>,
}

impl Converted {
    /// Converts a model with this machine's program. It is an error if it is not fully delegated.
    pub fn new(native: &Path, model: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join(MODEL);
        let mut convert = Command::new(native);
        convert.arg("convert").arg("--require-full").arg(model).arg("-o").arg(&file);
        run_xnn(&mut convert)?;
        let summary = run_xnn(Command::new(native).args(["run", "--json"]).arg(&file))?;
        let summary: Summary = serde_json::from_slice(&summary).context("xnn run --json")?;
        let mut inputs = Vec::new();
        for (index, input) in summary.inputs.iter().enumerate() {
            let name = format!("input_{index}");
            let count = input.shape.iter().product();
            fs::write(folder.path().join(&name), elements(&input.dtype, count)?)?;
            inputs.push(name);
        }
        Ok(Self { folder, inputs })
    }

    /// Outputs of this machine's program.
    pub fn expected(&self, native: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
        let inputs = self.inputs.iter().enumerate();
        let options: Vec<_> =
            inputs.map(|(index, file)| format!("--input={index}={file}")).collect();
        let mut xnn = Command::new(native);
        xnn.current_dir(self.folder.path());
        super::outputs(xnn, Path::new(MODEL), &options)
    }
}

/// Pseudo-random elements: floats in [-1, 1), bytes over their whole range, and zeros as indices.
fn elements(dtype: &str, count: usize) -> Result<Vec<u8>> {
    // Numerical Recipes' generator; the upper bits are the good ones.
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u16
    };
    Ok(match dtype {
        "f32" => {
            (0..count).flat_map(|_| (f32::from(next()) / 32768.0 - 1.0).to_le_bytes()).collect()
        }
        "i8" | "u8" => (0..count).map(|_| next().to_le_bytes()[1]).collect(),
        "i32" => vec![0; count * 4],
        "i64" => vec![0; count * 8],
        other => bail!("inputs of type {other} are not compared"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn elements_fill_their_range() {
        let floats = elements("f32", 1000).unwrap();
        let floats: Vec<_> =
            floats.as_chunks().0.iter().map(|&one| f32::from_le_bytes(one)).collect();
        assert_eq!(floats.len(), 1000);
        assert!(floats.iter().all(|one| (-1.0..1.0).contains(one)));
        assert!(floats.iter().any(|&one| one < -0.9) && floats.iter().any(|&one| one > 0.9));
        let bytes = elements("i8", 4000).unwrap();
        assert!((0..=255u8).all(|value| bytes.contains(&value)));
        assert_eq!(elements("i64", 3).unwrap(), [0; 24]);
        assert!(elements("c64", 1).is_err());
    }
}
