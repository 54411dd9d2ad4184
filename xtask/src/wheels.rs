//! `cargo xtask wheels`: the delegate inside the interpreters that people install from PyPI.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::build::build;
use crate::{shared, venv};

/// Interpreters, from the oldest to the newest: files in `tests/requirements` of the delegate.
const WHEELS: [&str; 5] =
    [OLDEST, "ai-edge-litert-1.0.1", "ai-edge-litert-1.4.0", "ai-edge-litert-2.1.6", NEWEST];

pub const OLDEST: &str = "tflite-runtime-2.14.0";

/// The one that runs all models.
const NEWEST: &str = "ai-edge-litert-2.3.0";

/// Models that every interpreter runs; the newest one runs all there are.
const DOZEN: &[&str] = &[
    "blazeface_front_fp16",
    "deeplabv3_257_fp32",
    "digits_mobilenet_v2_0.35_48_int8",
    "face_landmark",
    "kws_dscnn_int8",
    "mobilenet_v1_1.0_224_fp16",
    "mobilenet_v1_1.0_224_fp32",
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_dynamic_range",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_int8_ptq",
    "resnet8_cifar_int8",
    "ssd_mobilenet_v1_coco_quant",
];

/// A model that keeps a state in variables.
const STATEFUL: &str = "microwakeword_okay_nabu";

/// The model that runs under valgrind, where everything takes a hundred times as long.
const WATCHED: &str = "digits_tinycnn_int8";

/// Models that go to XNNPACK in part, and what is left of them: detection, pose, segmentation,
/// recurrent operators, variables.
const PARTIAL: &[&str] = &[
    "ssd_mobilenet_v1_coco_quant",
    "movenet_lightning_int8",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "mnist_lstm_int8",
    STATEFUL,
];

/// Small models of floats; with `--quick` these alone get inputs that are no numbers.
const FLOATS: &[&str] = &[
    "digits_mobilenet_v2_0.35_48_fp32",
    "mnist_lstm_fp32",
    "mtcnn_pnet_fp32",
    "resnet8_cifar_fp32",
];

/// Choices for `cargo xtask wheels`.
#[derive(clap::Args)]
pub struct Args {
    /// Only interpreters whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// The oldest and the newest interpreter, a dozen models each, valgrind in the newest, and no
    /// optimized build: what CI runs
    #[arg(long)]
    quick: bool,
    /// Only watch the life cycle of delegates with valgrind, in the oldest and the newest interpreter
    #[arg(long, conflicts_with = "quick")]
    valgrind: bool,
}

/// Builds the delegate, installs the interpreters into environments of their own, and runs models
/// and life-cycle checks in each. All of them exist for CPython 3.11.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    if args.valgrind {
        return valgrind(root, &args.only);
    }
    let built = build(root, !args.quick, &["xnn-tflite-delegate", "xnn-cli"])?;
    let (library, xnn) = (built.join("libxnn_delegate.so"), built.join("xnn"));
    let tests = root.join("crates/xnn-tflite-delegate/tests");
    let resizable = root.join("models/digits_mobilenet_v2_fp32.tflite");
    let environment = |name: &str| environment(root, name);
    let photo = ["--photo".into(), shared::folder(root).join("images/grace_hopper.bmp")];
    let mut failures = Vec::new();
    let wheels: &[&str] = if args.quick { &[OLDEST, NEWEST] } else { &WHEELS };
    for name in wheels.iter().filter(|name| name.contains(&args.only)) {
        println!("== {name}");
        let python = environment(name)?;
        let script = |file: &str, arguments: &[PathBuf]| {
            venv::run(Command::new(&python).arg(tests.join(file)).arg(&library).args(arguments))
        };
        failures.extend(script("lifecycle.py", std::slice::from_ref(&resizable)).err());
        // The others come without the schema to write models with, or with another delegate. The scripts that other commands of
        // xtask run need no more than this interpreter.
        if *name == NEWEST {
            failures.extend(script("sweep.py", &[]).err());
            let tools = root.join("tools/python/test_tools.py");
            failures.extend(venv::run(Command::new(&python).arg(tools)).err());
        }
        if let Some(folder) = shared::models_of_tests(root)? {
            let partial = PARTIAL.iter().map(|name| folder.join(format!("{name}.tflite")));
            let arguments: Vec<PathBuf> = [xnn.clone()].into_iter().chain(partial).collect();
            failures.extend(script("partial.py", &arguments).err());
            let stateful = folder.join(STATEFUL).with_added_extension("tflite");
            failures.extend(script("variables.py", &[stateful]).err());
            if *name == NEWEST {
                let floats = if args.quick {
                    FLOATS.iter().map(|name| folder.join(format!("{name}.tflite"))).collect()
                } else {
                    models(root, true)?
                };
                failures.extend(script("special_values.py", &floats).err());
            }
            // An optimized library would leave functions out of stacks.
            if args.quick && *name == NEWEST {
                failures.extend(script("memcheck.py", &[watched(&folder)]).err());
            }
        }
        // One model that fails shall not hide what the other interpreters do.
        let mut arguments = vec![xnn.clone()];
        arguments.extend(models(root, *name == NEWEST && !args.quick)?);
        if photo[1].is_file() {
            arguments.extend(photo.iter().cloned());
        }
        failures.extend(script("wheels.py", &arguments).err());
    }
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// Runs the delegate under valgrind. It is not optimized, so that stacks name every function.
fn valgrind(root: &Path, only: &str) -> Result<()> {
    let library = build(root, false, &[])?.join("libxnn_delegate.so");
    let Some(folder) = shared::models_of_tests(root)? else { return Ok(()) };
    for name in [OLDEST, NEWEST].into_iter().filter(|name| name.contains(only)) {
        println!("== {name}");
        let script = root.join("crates/xnn-tflite-delegate/tests/memcheck.py");
        let mut memcheck = Command::new(environment(root, name)?);
        venv::run(memcheck.arg(script).arg(&library).arg(watched(&folder)))?;
    }
    Ok(())
}

/// See [`WATCHED`].
fn watched(folder: &Path) -> PathBuf {
    folder.join(WATCHED).with_added_extension("tflite")
}

/// The Python that has this interpreter.
pub fn environment(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = root.join("crates/xnn-tflite-delegate/tests/requirements");
    venv::python(root, name, &folder.join(name).with_added_extension("txt"))
}

/// The models of the repository, and those beside it.
fn models(root: &Path, all: bool) -> Result<Vec<PathBuf>> {
    let mut models = tflite_files(&root.join("models"))?;
    let Some(folder) = shared::models_of_tests(root)? else { return Ok(models) };
    if all {
        for part in [".", "random-weights", "small", "accept_then_fail"] {
            models.extend(tflite_files(&folder.join(part))?);
        }
    } else {
        models.extend(DOZEN.iter().map(|name| folder.join(format!("{name}.tflite"))));
    }
    Ok(models)
}

fn tflite_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("tflite")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
