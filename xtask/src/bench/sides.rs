//! Sides of the comparison.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{venv, wheel, wheels};

/// A runtime in one of its ways to run a model.
#[derive(Debug)]
pub struct Side {
    pub name: &'static str,
    /// In a sentence.
    pub about: &'static str,
    pub runtime: Runtime,
    /// The file that it opens.
    pub form: Form,
    /// Left out unless it is asked for: gigabytes of packages, or minutes of conversion.
    pub on_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// This project.
    Xnn,
    /// A Python package.
    Python(Package, Way),
    Tract,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Package {
    LiteRt,
    TfLite,
    ExecuTorch,
    OnnxRuntime,
    /// This project's.
    Xnn,
}

/// How a package opens a model; see `bench_peer.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The package's choice.
    Default,
    /// No delegate.
    Off,
    /// This project's library as delegate.
    Library,
    /// Read into memory that stays.
    Memory,
}

/// A file that is made of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The model itself.
    Model,
    /// The output of `xnn convert --pack`.
    Packed,
    /// The graph of `xnn convert --compat executorch` in an ExecuTorch program.
    ExecuTorch,
    /// The output of tf2onnx.
    Onnx,
}

/// The peer that the figures are ratios to.
pub const REFERENCE: &str = "litert";
/// This project's runner.
pub const OURS: &str = "xnn";
/// This project's runner with weights packed beforehand.
pub const PACKED: &str = "xnn-packed";

/// All sides, in the order of tables and plots.
pub const SIDES: [Side; 12] = [
    Side::new(OURS, "this project, in process, from the model", Runtime::Xnn),
    Side {
        form: Form::Packed,
        ..Side::new(
            PACKED,
            "this project, in process, from the output of `xnn convert --pack`",
            Runtime::Xnn,
        )
    },
    Side::new(
        "xnn-in-litert",
        "`libxnn_delegate.so` in LiteRT",
        Runtime::Python(Package::LiteRt, Way::Library),
    ),
    Side::new(
        REFERENCE,
        "LiteRT with its default delegate",
        Runtime::Python(Package::LiteRt, Way::Default),
    ),
    Side::new(
        "litert-off",
        "LiteRT without a delegate",
        Runtime::Python(Package::LiteRt, Way::Off),
    ),
    Side::new(
        "xnn-in-tflite",
        "`libxnn_delegate.so` in tflite-runtime",
        Runtime::Python(Package::TfLite, Way::Library),
    ),
    Side::new(
        "tflite",
        "tflite-runtime with its default delegate",
        Runtime::Python(Package::TfLite, Way::Default),
    ),
    Side::new("tract", "tract-tflite, in process", Runtime::Tract),
    Side {
        form: Form::ExecuTorch,
        on_request: true,
        ..Side::new(
            "executorch",
            "ExecuTorch with this project's graph in a program, from the file",
            Runtime::Python(Package::ExecuTorch, Way::Default),
        )
    },
    Side {
        form: Form::ExecuTorch,
        on_request: true,
        ..Side::new(
            "executorch-memory",
            "the same, from memory that remains allocated",
            Runtime::Python(Package::ExecuTorch, Way::Memory),
        )
    },
    Side {
        form: Form::Onnx,
        on_request: true,
        ..Side::new(
            "onnxruntime",
            "ONNX Runtime with the model that tf2onnx converts",
            Runtime::Python(Package::OnnxRuntime, Way::Default),
        )
    },
    Side {
        on_request: true,
        ..Side::new(
            "xnn-python",
            "`xnn_delegate.interpreter.Interpreter` of this project's Python package",
            Runtime::Python(Package::Xnn, Way::Default),
        )
    },
];

impl Side {
    const fn new(name: &'static str, about: &'static str, runtime: Runtime) -> Self {
        Self { name, about, runtime, form: Form::Model, on_request: false }
    }

    /// The side of this name.
    pub fn named(name: &str) -> Result<&'static Self> {
        SIDES.iter().find(|side| side.name == name).with_context(|| {
            let names: Vec<&str> = SIDES.iter().map(|side| side.name).collect();
            format!("there is no side {name:?}; there are {}", names.join(", "))
        })
    }

    /// The sides of these names; those that need not be asked for if there are none, and every one for `all`.
    pub fn chosen(names: &[String]) -> Result<Vec<&'static Self>> {
        match names {
            [] => Ok(SIDES.iter().filter(|side| !side.on_request).collect()),
            [all] if all == "all" => Ok(SIDES.iter().collect()),
            names => names.iter().map(|name| Self::named(name)).collect(),
        }
    }

    /// Whether this project does the work.
    pub fn is_ours(&self) -> bool {
        match self.runtime {
            Runtime::Xnn => true,
            Runtime::Python(package, way) => package == Package::Xnn || way == Way::Library,
            Runtime::Tract => false,
        }
    }
}

impl Form {
    /// Whether another program than this project's runs it, so that it may compute something else.
    pub fn is_foreign(self) -> bool {
        match self {
            Self::Model | Self::Packed => false,
            Self::ExecuTorch | Self::Onnx => true,
        }
    }
}

impl Package {
    /// Its name for pip.
    pub fn name(self) -> &'static str {
        match self {
            Self::LiteRt => "ai-edge-litert",
            Self::TfLite => "tflite-runtime",
            Self::ExecuTorch => "executorch",
            Self::OnnxRuntime => "onnxruntime",
            Self::Xnn => "xnn-delegate",
        }
    }

    /// The Python of an environment that has it, made if it is not there.
    pub fn environment(self, root: &Path) -> Result<PathBuf> {
        let requirements = |name: &str| root.join("tools/python").join(name);
        match self {
            Self::LiteRt => venv::python(root, "litert", &requirements("requirements.txt")),
            Self::TfLite => wheels::environment(root, wheels::OLDEST),
            Self::ExecuTorch => venv::large(
                root,
                "executorch-1.5.1",
                &requirements("requirements-executorch-1.5.1.txt"),
            ),
            Self::OnnxRuntime => {
                venv::large(root, "onnxruntime", &requirements("requirements-onnxruntime.txt"))
            }
            Self::Xnn => wheel::environment(root),
        }
    }
}
