//! `cargo xtask cross TARGET compare`: outputs of models on the target beside those of this machine.

mod runtime;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::suites::command;
use super::targets::{Processor, Target, When};
use super::{Cross, Subjects, folder_of, toolchain};
use crate::bench::find_models;
use crate::{shared, venv};
use runtime::{Converted, Runtime};

/// Parts of the names of 8-bit models.
const QUANTIZED: [&str; 6] = ["int8", "uint8", "quant", "dyn8", "dynamic_range", "q8"];

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    subjects: Subjects,
    /// The program `xnn` of this machine [default: built from the workspace]
    #[arg(long, value_name = "FILE")]
    native: Option<PathBuf>,
}

/// Runs each model on both machines with the same inputs. It is an error if integers differ.
pub fn run(root: &Path, target: &'static Target, args: &Args) -> Result<()> {
    toolchain::check(target.run_tools)?;
    let models = if args.subjects.models.is_empty() {
        quantized(root)?
    } else {
        find_models(root, &args.subjects.models, &[])?
    };
    let processors = target.processors_or_none(&args.subjects.processors, When::Full)?;
    let cross = Cross::new(root, target)?;
    let program = Program::build(&cross, &args.subjects.profile)?;
    let native = match &args.native {
        Some(file) => std::path::absolute(file)?,
        None => build_native(root, &args.subjects.profile)?,
    };
    let mut differing = Vec::new();
    for model in &models {
        let name = model.file_stem().unwrap_or_default().to_string_lossy();
        let subject = match Subject::new(&program, &native, model) {
            Ok(subject) => subject,
            Err(error) => {
                println!("{name}: skipped: {error:#}");
                continue;
            }
        };
        for processor in &processors {
            let on = processor.map_or(target.triple, |one| one.name);
            match subject.compare(*processor) {
                Ok(Difference { integers: 0, floats }) => {
                    println!("{name} {on}: equal{}", Floats(floats));
                }
                Ok(Difference { integers, floats }) => {
                    println!("{name} {on}: {integers} INTEGERS DIFFER{}", Floats(floats));
                    differing.push(format!("{name} on {on}"));
                }
                Err(error) => {
                    println!("{name} {on}: FAILED: {error:#}");
                    differing.push(format!("{name} on {on}"));
                }
            }
        }
    }
    ensure!(differing.is_empty(), "outputs differ from this machine's: {}", differing.join(", "));
    Ok(())
}

/// The target's program.
enum Program {
    Xnn { target: &'static Target, file: PathBuf },
    Runtime(Runtime),
}

impl Program {
    fn build(cross: &Cross<'_>, profile: &str) -> Result<Self> {
        let target = cross.target;
        if target.products.contains(&"xnn-cli") {
            return Ok(Self::Xnn { target, file: cross.xnn(profile)? });
        }
        Runtime::new(cross, profile).map(Self::Runtime)
    }
}

/// A model on the target, and this machine's outputs.
struct Subject<'a> {
    kind: Kind<'a>,
    expected: BTreeMap<String, Vec<u8>>,
}

enum Kind<'a> {
    Model { target: &'static Target, xnn: &'a Path, model: &'a Path },
    Converted { runtime: &'a Runtime, converted: Converted },
}

impl<'a> Subject<'a> {
    fn new(program: &'a Program, native: &Path, model: &'a Path) -> Result<Self> {
        match program {
            Program::Xnn { target, file } => {
                let expected = outputs(Command::new(native), model, &[])
                    .context("it does not run on this machine")?;
                Ok(Self { kind: Kind::Model { target, xnn: file, model }, expected })
            }
            Program::Runtime(runtime) => {
                let converted = Converted::new(native, model).context("it cannot be converted")?;
                let expected = converted.expected(native)?;
                Ok(Self { kind: Kind::Converted { runtime, converted }, expected })
            }
        }
    }

    fn compare(&self, processor: Option<&Processor>) -> Result<Difference> {
        let actual = match &self.kind {
            Kind::Model { target, xnn, model } => {
                outputs(command(target, xnn, processor), model, &[])
            }
            Kind::Converted { runtime, converted } => runtime.outputs(converted, &self.expected),
        };
        compare(&self.expected, &actual?)
    }
}

/// Shared models whose names tell that they compute with 8 bits.
fn quantized(root: &Path) -> Result<Vec<PathBuf>> {
    let [models, random_weights] = shared::model_folders(root);
    let mut found = Vec::new();
    for folder in [&models, &random_weights, &models.join("modern"), &models.join("small")] {
        let Ok(files) = fs::read_dir(folder) else { continue };
        found.extend(files.flatten().map(|file| file.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".tflite") && QUANTIZED.iter().any(|part| name.contains(part))
        }));
    }
    found.sort();
    ensure!(!found.is_empty(), "no model of 8 bits in {}", models.display());
    Ok(found)
}

fn build_native(root: &Path, profile: &str) -> Result<PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--profile", profile, "--package", "xnn-cli"]).current_dir(root);
    venv::run(&mut command)?;
    Ok(venv::target(root).join(folder_of(profile)).join("xnn"))
}

/// Runs the model with the program, and returns its outputs' files by name.
fn outputs(
    mut xnn: Command,
    model: &Path,
    options: &[String],
) -> Result<BTreeMap<String, Vec<u8>>> {
    let folder = tempfile::tempdir()?;
    xnn.arg("run").arg(model).args(options).arg("--output-dir").arg(folder.path());
    run_xnn(&mut xnn)?;
    let files = fs::read_dir(folder.path())?.map(|file| {
        let file = file?;
        Ok((file.file_name().to_string_lossy().into_owned(), fs::read(file.path())?))
    });
    let files: BTreeMap<_, _> = files.collect::<Result<_>>()?;
    ensure!(!files.is_empty(), "it wrote no output");
    Ok(files)
}

/// Runs the program and returns what it prints; an error with the last line of its messages if it fails.
fn run_xnn(xnn: &mut Command) -> Result<Vec<u8>> {
    let output = xnn.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {xnn:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let error = errors.lines().last().unwrap_or("no message");
    ensure!(output.status.success(), "{}: {error}", output.status);
    Ok(output.stdout)
}

/// Name of the file that `xnn run` writes for an output.
fn npy_of(index: usize) -> String {
    format!("out_{index}.npy")
}

/// How far outputs are apart.
#[derive(Debug, Default, PartialEq)]
struct Difference {
    /// Number of integers that differ.
    integers: usize,
    /// The largest difference of floats as a part of the range of the expected ones; `None` if there are no floats.
    floats: Option<f64>,
}

/// The note about floats, if there are any.
struct Floats(Option<f64>);

impl fmt::Display for Floats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(0.0) => f.write_str(", floats equal"),
            Some(distance) => write!(f, ", floats differ by {distance:.1e} of the range"),
        }
    }
}

fn compare(
    expected: &BTreeMap<String, Vec<u8>>,
    actual: &BTreeMap<String, Vec<u8>>,
) -> Result<Difference> {
    ensure!(expected.keys().eq(actual.keys()), "other outputs");
    let mut difference = Difference::default();
    for (file, one) in expected {
        let other = &actual[file];
        let [one, other] = [one, other].map(|bytes| Array::read(bytes));
        let (one, other) =
            (one.with_context(|| file.clone())?, other.with_context(|| file.clone())?);
        ensure!(
            one.header == other.header,
            "{file}: expected {}, found {}",
            one.header,
            other.header
        );
        match one.floats()? {
            None => {
                let pairs = one.data.chunks(one.size).zip(other.data.chunks(one.size));
                difference.integers += pairs.filter(|(one, other)| one != other).count();
            }
            Some(one) => {
                let other = other.floats()?.unwrap_or_default();
                let distance = distance(&one, &other);
                difference.floats = Some(difference.floats.unwrap_or(0.0).max(distance));
            }
        }
    }
    Ok(difference)
}

/// The largest difference as a part of the range; infinite if a value is not finite in one of the arrays alone.
fn distance(expected: &[f64], actual: &[f64]) -> f64 {
    let finite = || expected.iter().copied().filter(|value| value.is_finite());
    let range = finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min);
    let apart = expected.iter().zip(actual).map(|(one, other)| match (one - other).abs() {
        _ if one == other || (one.is_nan() && other.is_nan()) => 0.0,
        difference if difference.is_nan() => f64::INFINITY,
        difference => difference,
    });
    let largest = apart.fold(0.0, f64::max);
    if largest == 0.0 { 0.0 } else { largest / range.max(f64::MIN_POSITIVE) }
}

/// An array of a `.npy` file.
struct Array<'a> {
    /// Type, order and shape.
    header: &'a str,
    data: &'a [u8],
    /// Size of an element.
    size: usize,
}

impl<'a> Array<'a> {
    /// Reads version 1 of the format, which `xnn` writes.
    fn read(file: &'a [u8]) -> Result<Self> {
        let rest = file.strip_prefix(b"\x93NUMPY\x01\x00").context("not a .npy file")?;
        let (length, rest) = rest.split_first_chunk().context("a header is missing")?;
        let length = usize::from(u16::from_le_bytes(*length));
        let (header, data) = rest.split_at_checked(length).context("the header is too short")?;
        let header = std::str::from_utf8(header)?.trim();
        let size = dtype(header)?.get(2..).and_then(|digits| digits.parse().ok());
        Ok(Self {
            header,
            data,
            size: size.filter(|&size| size > 0).context("a type without size")?,
        })
    }

    /// The elements, if the type is a float.
    fn floats(&self) -> Result<Option<Vec<f64>>> {
        match dtype(self.header)? {
            "<f4" => {
                let words = self.data.as_chunks().0.iter();
                Ok(Some(words.map(|&word| f64::from(f32::from_le_bytes(word))).collect()))
            }
            other if other.contains('f') => bail!("outputs of type {other} are not compared"),
            _ => Ok(None),
        }
    }
}

/// The type in a header such as `{'descr': '<f4', ...}`.
fn dtype(header: &str) -> Result<&str> {
    let (_, rest) = header.split_once("'descr': '").context("a header without a type")?;
    Ok(rest.split_once('\'').context("a header without a type")?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn npy(dtype: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (2,)}}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
    }

    fn difference(dtype: &str, one: &[u8], other: &[u8]) -> Difference {
        let files = |data| BTreeMap::from([("out_0.npy".to_owned(), npy(dtype, data))]);
        compare(&files(one), &files(other)).unwrap()
    }

    #[test]
    fn integers_are_compared_by_element() {
        assert_eq!(difference("|i1", &[1, 2], &[1, 2]), Difference { integers: 0, floats: None });
        assert_eq!(difference("|u1", &[1, 2], &[1, 3]).integers, 1);
        assert_eq!(
            difference("<i4", &[0, 0, 0, 1, 2, 0, 0, 0], &[1, 1, 0, 1, 2, 0, 0, 0]).integers,
            1
        );
    }

    #[test]
    fn floats_are_compared_relative_to_their_range() {
        let bytes = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
        let apart = |one, other| difference("<f4", &bytes(one), &bytes(other)).floats.unwrap();
        assert_eq!(apart([0.0, 4.0], [0.0, 4.0]), 0.0);
        assert_eq!(apart([0.0, 4.0], [0.0, 5.0]), 0.25);
        assert_eq!(apart([f32::NAN, 4.0], [f32::NAN, 4.0]), 0.0);
        assert_eq!(apart([0.0, 4.0], [f32::NAN, 4.0]), f64::INFINITY);
        assert!(apart([1.0, 1.0], [1.0, 2.0]) > 1.0);
    }

    #[test]
    fn other_types_and_files_are_errors() {
        let files = |bytes: Vec<u8>| BTreeMap::from([("out_0.npy".to_owned(), bytes)]);
        let one = files(npy("|i1", &[1, 2]));
        assert!(compare(&one, &files(npy("|u1", &[1, 2]))).is_err());
        assert!(compare(&one, &files(b"text".to_vec())).is_err());
        assert!(compare(&one, &BTreeMap::new()).is_err());
        let truncated = npy("|i1", &[1, 2]);
        assert!(compare(&one, &files(truncated[..20].to_vec())).is_err());
    }
}
