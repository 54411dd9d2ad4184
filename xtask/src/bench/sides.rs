//! What is compared, and what each needs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::test::cargo;
use crate::{venv, wheels};

/// A runtime in one of its ways to run a model.
#[derive(Debug)]
pub struct Side {
    pub name: &'static str,
    /// In a sentence.
    pub about: &'static str,
    runtime: Runtime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    /// This project, of the model.
    Xnn,
    /// This project, of the converted model with packed weights.
    Packed,
    /// An interpreter from PyPI.
    Interpreter(Package, Kernels),
    Tract,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Package {
    LiteRt,
    TfLite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernels {
    /// The package's choice.
    Default,
    /// No delegate.
    Off,
    /// This project's library.
    Library,
}

/// The peer that the figures are ratios to.
pub const REFERENCE: &str = "litert";

/// All sides, in the order of tables and plots.
pub const SIDES: [Side; 8] = [
    Side { name: "xnn", about: "this project, in process, of the model", runtime: Runtime::Xnn },
    Side {
        name: "xnn-packed",
        about: "this project, in process, of what `xnn convert --pack` makes of the model",
        runtime: Runtime::Packed,
    },
    Side {
        name: "xnn-in-litert",
        about: "`libxnn_delegate.so` in LiteRT",
        runtime: Runtime::Interpreter(Package::LiteRt, Kernels::Library),
    },
    Side {
        name: REFERENCE,
        about: "LiteRT with its default delegate",
        runtime: Runtime::Interpreter(Package::LiteRt, Kernels::Default),
    },
    Side {
        name: "litert-off",
        about: "LiteRT without a delegate",
        runtime: Runtime::Interpreter(Package::LiteRt, Kernels::Off),
    },
    Side {
        name: "xnn-in-tflite",
        about: "`libxnn_delegate.so` in tflite-runtime",
        runtime: Runtime::Interpreter(Package::TfLite, Kernels::Library),
    },
    Side {
        name: "tflite",
        about: "tflite-runtime with its default delegate",
        runtime: Runtime::Interpreter(Package::TfLite, Kernels::Default),
    },
    Side { name: "tract", about: "tract-tflite, in process", runtime: Runtime::Tract },
];

impl Side {
    /// The side of this name.
    pub fn named(name: &str) -> Result<&'static Self> {
        SIDES.iter().find(|side| side.name == name).with_context(|| {
            let names: Vec<&str> = SIDES.iter().map(|side| side.name).collect();
            format!("there is no side {name:?}; there are {}", names.join(", "))
        })
    }

    /// Whether this project does the work.
    pub fn is_ours(&self) -> bool {
        match self.runtime {
            Runtime::Xnn | Runtime::Packed => true,
            Runtime::Interpreter(_, kernels) => kernels == Kernels::Library,
            Runtime::Tract => false,
        }
    }

    pub fn needs_packed(&self) -> bool {
        self.runtime == Runtime::Packed
    }
}

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

impl Tools {
    /// Builds and installs what the sides need.
    pub fn new(root: &Path, sides: &[&Side]) -> Result<Self> {
        let packages = ["xnn-bench", "xnn-cli", "xnn-tflite-delegate"];
        let packages = packages.into_iter().flat_map(|name| ["-p", name]);
        let arguments = ["--release", "--quiet"].into_iter().chain(packages);
        cargo(root, "build", &arguments.map(String::from).collect::<Vec<_>>())?;
        let mut pythons = BTreeMap::new();
        // Inputs come from LiteRT.
        pythons.insert(
            Package::LiteRt,
            venv::python(root, "litert", &root.join("tools/python/requirements.txt"))?,
        );
        let wanted = |runtime: fn(Runtime) -> bool| sides.iter().any(|side| runtime(side.runtime));
        if wanted(|one| matches!(one, Runtime::Interpreter(Package::TfLite, _))) {
            pythons.insert(Package::TfLite, wheels::environment(root, wheels::OLDEST)?);
        }
        let tract = wanted(|one| one == Runtime::Tract).then(|| tract(root)).transpose()?;
        let built = venv::target(root).join("release");
        Ok(Self {
            scripts: root.join("tools/python"),
            xnn: built.join("xnn"),
            peer: built.join("xnn-bench-peer"),
            library: built.join("libxnn_delegate.so"),
            pythons,
            tract,
        })
    }

    /// The process that runs `side`, with the options that all peers have.
    pub fn peer(&self, side: &Side, files: &Files, threads: usize) -> Result<Command> {
        let mut model = files.model.as_path();
        let mut command = match side.runtime {
            Runtime::Xnn => Command::new(&self.peer),
            Runtime::Packed => {
                model = &files.packed;
                Command::new(&self.peer)
            }
            Runtime::Interpreter(package, kernels) => {
                return self.interpreter(package, &[(side.name, kernels)], files, threads);
            }
            Runtime::Tract => Command::new(self.tract.as_ref().context("tract is not built")?),
        };
        command.args(["--side", side.name]).arg("--model").arg(model);
        Ok(common(command, files, threads))
    }

    /// One process of LiteRT with several sides, one thread each.
    pub fn litert(&self, sides: &[&str], files: &Files) -> Result<Command> {
        let mut kernels = Vec::new();
        for name in sides {
            match Side::named(name)?.runtime {
                Runtime::Interpreter(Package::LiteRt, one) => kernels.push((*name, one)),
                _ => bail!("{name} is no side of LiteRT"),
            }
        }
        self.interpreter(Package::LiteRt, &kernels, files, 1)
    }

    fn interpreter(
        &self,
        package: Package,
        sides: &[(&str, Kernels)],
        files: &Files,
        threads: usize,
    ) -> Result<Command> {
        let name = match package {
            Package::LiteRt => "ai-edge-litert",
            Package::TfLite => "tflite-runtime",
        };
        let mut command = self.script(package, "bench_peer.py")?;
        command.args(["--package", name]);
        for (name, kernels) in sides {
            let mut side = OsString::from(format!("{name}="));
            side.push(match kernels {
                Kernels::Default => OsStr::new("default"),
                Kernels::Off => OsStr::new("off"),
                Kernels::Library => self.library.as_os_str(),
            });
            command.arg("--side").arg(side);
        }
        command.arg("--model").arg(&files.model);
        Ok(common(command, files, threads))
    }

    fn script(&self, package: Package, name: &str) -> Result<Command> {
        let python = self.pythons.get(&package).context("the interpreter is not installed")?;
        let mut command = Command::new(python);
        command.arg(self.scripts.join(name));
        Ok(command)
    }

    /// The process that multiplies matrices of this kind, `fp32` or `int8`.
    pub fn gemm(&self, kind: &str, files: &Files, threads: usize) -> Command {
        let mut command = Command::new(&self.peer);
        command.args(["--side", kind, "--gemm", kind]);
        common(command, files, threads)
    }

    /// Draws inputs for the model.
    pub fn draw_inputs(&self, files: &Files) -> Result<()> {
        let mut command = self.judge("inputs", files)?;
        quietly(&mut command).context("LiteRT does not open the model").map(drop)
    }

    /// How far outputs in folders are from those of LiteRT's kernels, `ref` or `noxnn`: see the script.
    pub fn distances(&self, files: &Files, kernels: &str, outputs: &[PathBuf]) -> Result<Value> {
        let mut command = self.judge("distances", files)?;
        command.args(["--kernels", kernels, "--outputs"]).args(outputs);
        Ok(serde_json::from_slice(&quietly(&mut command)?)?)
    }

    fn judge(&self, what: &str, files: &Files) -> Result<Command> {
        let mut command = self.script(Package::LiteRt, "judge.py")?;
        command.arg(what).arg("--model").arg(&files.model).arg("--folder").arg(&files.inputs);
        Ok(command)
    }

    /// Converts the model, with packed weights.
    pub fn pack(&self, files: &Files) -> Result<()> {
        let mut command = Command::new(&self.xnn);
        command.args(["convert", "--pack"]).arg(&files.model).arg("-o").arg(&files.packed);
        quietly(&mut command).map(drop)
    }
}

/// A model's files.
#[derive(Debug)]
pub struct Files {
    pub model: PathBuf,
    pub packed: PathBuf,
    /// Folder.
    pub inputs: PathBuf,
}

impl Files {
    /// Of a model; what is made of it goes to `folder`.
    pub fn new(model: &Path, folder: &Path) -> Self {
        let (packed, inputs) = (folder.join("packed"), folder.to_owned());
        Self { model: model.to_owned(), packed, inputs }
    }

    /// In the place of [`Tools::draw_inputs`]: peers keep what their inputs have.
    pub fn write_no_inputs(&self) -> Result<()> {
        Ok(fs::write(self.inputs.join("shapes.json"), "[]")?)
    }
}

fn common(mut command: Command, files: &Files, threads: usize) -> Command {
    command.arg("--inputs").arg(&files.inputs).args(["--threads", &threads.to_string()]);
    command
}

/// tract's peer is a workspace of its own.
fn tract(root: &Path) -> Result<PathBuf> {
    let target = venv::target(root).join("peer-tract");
    let manifest = root.join("benches/peer-tract/Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
    venv::run(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release/bench-peer-tract"))
}

/// What a command prints; its last word on standard error is the error.
fn quietly(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{}", said.lines().last().unwrap_or("no word of why"));
    }
    Ok(done.stdout)
}
