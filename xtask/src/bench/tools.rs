//! Programs and environments, and what they do with a model.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::sides::{Form, Package, Runtime, Side, Way};
use crate::test::cargo;
use crate::venv;

/// LiteRT's kernels that judge outputs, the first that run the model; and the mark of that.
const JUDGES: [(&str, &str); 2] = [("ref", ""), ("noxnn", "*")];
/// Maximal number of characters of an error's text.
const LENGTH: usize = 200;

/// Programs and environments, built.
#[derive(Debug)]
pub struct Tools {
    scripts: PathBuf,
    xnn: PathBuf,
    peer: PathBuf,
    library: PathBuf,
    pythons: BTreeMap<Package, PathBuf>,
    tract: Option<PathBuf>,
}

/// How far outputs are from the judge's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Distance {
    /// The largest differences, where there are such outputs: of integers in quantization steps, of floats in parts of the range.
    Apart([Option<f64>; 2]),
    /// There is no such output, or in another size.
    Other(String),
}

impl fmt::Display for Distance {
    /// `2 steps`, `3.1e-7`, or both.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, range) = match self {
            Self::Other(text) => return write!(f, "another {text}"),
            Self::Apart([steps, range]) => (*steps, *range),
        };
        match steps {
            Some(0.0) => f.write_str("0")?,
            Some(1.0) => f.write_str("1 step")?,
            Some(steps) => write!(f, "{steps} steps")?,
            None => {}
        }
        f.write_str(if steps.is_some() && range.is_some() { ", " } else { "" })?;
        match range {
            Some(0.0) => f.write_str("0"),
            Some(range) => write!(f, "{range:.1e}"),
            None => f.write_str(if steps.is_none() { "–" } else { "" }),
        }
    }
}

impl Tools {
    /// Builds and installs what the sides need.
    pub fn new(root: &Path, sides: &[&Side]) -> Result<Self> {
        let packages = ["xnn-bench", "xnn-cli", "xnn-tflite-delegate"];
        let packages = packages.into_iter().flat_map(|name| ["-p", name]);
        let arguments = ["--profile", "dist", "--quiet"].into_iter().chain(packages);
        cargo(root, "build", &arguments.map(String::from).collect::<Vec<_>>())?;
        let used = sides.iter().filter_map(|side| match side.runtime {
            Runtime::Python(package, _) => Some(package),
            Runtime::Xnn | Runtime::Tract => None,
        });
        // Inputs come from LiteRT.
        let packages: BTreeSet<Package> = used.chain([Package::LiteRt]).collect();
        let pythons = packages.into_iter().map(|one| Ok((one, one.environment(root)?)));
        let tract = sides.iter().any(|side| side.runtime == Runtime::Tract);
        let built = venv::target(root).join("dist");
        Ok(Self {
            scripts: root.join("tools/python"),
            xnn: built.join("xnn"),
            peer: built.join("xnn-bench-peer"),
            library: built.join("libxnn_delegate.so"),
            pythons: pythons.collect::<Result<_>>()?,
            tract: tract.then(|| build_tract(root)).transpose()?,
        })
    }

    /// The process that runs `side`, with the options that all peers have.
    pub fn peer(&self, side: &Side, files: &Files, threads: usize) -> Result<Command> {
        let mut command = match side.runtime {
            Runtime::Python(package, way) => {
                self.python_peer(package, &[(side.name, way)], files.of(side.form))?
            }
            Runtime::Xnn | Runtime::Tract => {
                let program = match side.runtime {
                    Runtime::Tract => self.tract.as_ref().context("tract is not built")?,
                    _ => &self.peer,
                };
                let mut command = Command::new(program);
                command.args(["--side", side.name]).arg("--model").arg(files.of(side.form));
                command
            }
        };
        common(&mut command, files, threads);
        Ok(command)
    }

    /// One process of LiteRT with several sides, one thread each.
    pub fn litert(&self, sides: &[&str], files: &Files) -> Result<Command> {
        let mut ways = Vec::new();
        for name in sides {
            match Side::named(name)?.runtime {
                Runtime::Python(Package::LiteRt, way) => ways.push((*name, way)),
                _ => bail!("{name} is no side of LiteRT"),
            }
        }
        let mut command = self.python_peer(Package::LiteRt, &ways, files.of(Form::Model))?;
        common(&mut command, files, 1);
        Ok(command)
    }

    fn python_peer(
        &self,
        package: Package,
        sides: &[(&str, Way)],
        model: PathBuf,
    ) -> Result<Command> {
        let mut command = self.script(package, "bench_peer.py")?;
        command.args(["--package", package.name()]);
        for (name, way) in sides {
            let mut side = OsString::from(format!("{name}="));
            side.push(match way {
                Way::Default => OsStr::new("default"),
                Way::Off => OsStr::new("off"),
                Way::Memory => OsStr::new("memory"),
                Way::Library => self.library.as_os_str(),
            });
            command.arg("--side").arg(side);
        }
        command.arg("--model").arg(model);
        Ok(command)
    }

    fn python(&self, package: Package) -> Result<Command> {
        let python = self.pythons.get(&package);
        Ok(Command::new(python.with_context(|| format!("{} is not installed", package.name()))?))
    }

    fn script(&self, package: Package, name: &str) -> Result<Command> {
        let mut command = self.python(package)?;
        command.arg(self.scripts.join(name));
        Ok(command)
    }

    /// The process that multiplies matrices of this kind, `fp32` or `int8`.
    pub fn gemm(&self, kind: &str, files: &Files, threads: usize) -> Command {
        let mut command = Command::new(&self.peer);
        command.args(["--side", kind, "--gemm", kind]);
        common(&mut command, files, threads);
        command
    }

    /// Draws inputs for the model.
    pub fn draw_inputs(&self, files: &Files) -> Result<()> {
        let mut command = self.judge("inputs", files)?;
        quietly(&mut command).context("LiteRT does not open the model").map(drop)
    }

    /// How far outputs in folders are from those of LiteRT's kernels, and the mark of the judge.
    pub fn distances(
        &self,
        files: &Files,
        outputs: &[PathBuf],
    ) -> Result<(&'static str, Vec<Distance>)> {
        let distances = |kernels| -> Result<Vec<Distance>> {
            let mut command = self.judge("distances", files)?;
            command.args(["--kernels", kernels, "--outputs"]).args(outputs);
            Ok(serde_json::from_slice(&quietly(&mut command)?)?)
        };
        let judged =
            JUDGES.iter().find_map(|(kernels, mark)| Some((*mark, distances(kernels).ok()?)));
        judged.context("LiteRT's kernels do not run the model")
    }

    fn judge(&self, what: &str, files: &Files) -> Result<Command> {
        let mut command = self.script(Package::LiteRt, "judge.py")?;
        command.arg(what).arg("--model").arg(&files.model).arg("--folder").arg(&files.folder);
        Ok(command)
    }

    /// Makes the model's file in this form.
    pub fn convert(&self, form: Form, files: &Files) -> Result<()> {
        let out = files.of(form);
        let mut command = match form {
            Form::Model => return Ok(()),
            Form::Packed => {
                let mut command = Command::new(&self.xnn);
                command.args(["convert", "--pack"]).arg(&files.model).arg("-o");
                command
            }
            Form::ExecuTorch => {
                let mut command = self.script(Package::ExecuTorch, "executorch_program.py")?;
                command.arg("--xnn").arg(&self.xnn).arg("--model").arg(&files.model).arg("--out");
                command
            }
            Form::Onnx => {
                let mut command = self.python(Package::OnnxRuntime)?;
                command.args(["-m", "tf2onnx.convert", "--tflite"]).arg(&files.model);
                command.arg("--output");
                command
            }
        };
        quietly(command.arg(out)).map(drop)
    }
}

/// A model's files.
#[derive(Debug)]
pub struct Files {
    model: PathBuf,
    /// Folder of the inputs, and of files made from the model.
    folder: PathBuf,
}

impl Files {
    /// Names the files of a model; files made from it are written to `folder`.
    pub fn new(model: &Path, folder: &Path) -> Self {
        Self { model: model.to_owned(), folder: folder.to_owned() }
    }

    /// In the place of [`Tools::draw_inputs`]: peers keep what their inputs have.
    pub fn write_no_inputs(&self) -> Result<()> {
        Ok(fs::write(self.folder.join("shapes.json"), "[]")?)
    }

    /// Reads the model's file, and so has the system keep it: what is not used for some seconds may be gone.
    pub fn read(&self, form: Form) -> Result<()> {
        let path = self.of(form);
        fs::read(&path).map(drop).with_context(|| format!("cannot read {}", path.display()))
    }

    /// A text with the names of files as they are on any machine.
    pub fn without_folders(&self, text: &str) -> String {
        let folders = [self.model.parent(), Some(self.folder.as_path())];
        let named = folders.into_iter().flatten().filter(|folder| !folder.as_os_str().is_empty());
        named.fold(text.to_owned(), |text, folder| {
            text.replace(&format!("{}/", folder.display()), "")
        })
    }

    /// The model's file in this form.
    pub fn of(&self, form: Form) -> PathBuf {
        match form {
            Form::Model => self.model.clone(),
            Form::Packed => self.folder.join("packed"),
            Form::ExecuTorch => self.folder.join("model.pte"),
            Form::Onnx => self.folder.join("model.onnx"),
        }
    }
}

fn common(command: &mut Command, files: &Files, threads: usize) {
    command.arg("--inputs").arg(&files.folder).args(["--threads", &threads.to_string()]);
}

/// tract's peer is a workspace of its own.
fn build_tract(root: &Path) -> Result<PathBuf> {
    let target = venv::target(root).join("peer-tract");
    let manifest = root.join("benches/peer-tract/Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
    venv::run(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release/bench-peer-tract"))
}

/// Returns the output of a command; the last line of its standard error is the error.
pub fn quietly(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let last = said.lines().last().unwrap_or("no word of why");
        bail!("{}", last.chars().take(LENGTH).collect::<String>());
    }
    Ok(done.stdout)
}
