//! Inputs from files or with random elements, and outputs to files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use half::f16;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use xnn_delegate::{DType, Runner, TensorSpec};

use crate::files::{STANDARD, write_atomic};
use crate::npy;
use crate::output::{plain, shape};
use crate::source::about;

/// Number of different integers in random inputs that are not known to be indices. Every table has this number of rows.
const FEW: usize = 2;

/// `NAME=FILE` or `INDEX=FILE`.
#[derive(Clone, Debug)]
struct InputFile {
    tensor: String,
    file: PathBuf,
}

impl InputFile {
    /// Parses arguments. The file's name may be any byte string.
    fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text: OsString| {
            split(&text)
                .and_then(|(tensor, file)| {
                    let tensor = tensor.to_str().filter(|tensor| !tensor.is_empty())?.to_owned();
                    (!file.is_empty()).then(|| Self { tensor, file: file.into() })
                })
                .ok_or("expected NAME=FILE or INDEX=FILE")
        })
    }
}

/// Splits at the first `=`.
#[cfg(unix)]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    use std::os::unix::ffi::OsStrExt;

    let mut parts = text.as_bytes().splitn(2, |&byte| byte == b'=').map(OsStr::from_bytes);
    parts.next().zip(parts.next())
}

/// Splits at the first `=`.
#[cfg(not(unix))]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let (tensor, file) = text.to_str()?.split_once('=')?;
    Some((tensor.as_ref(), file.as_ref()))
}

/// Arguments of inputs. The default is random inputs.
#[derive(Default, clap::Args)]
pub struct Inputs {
    /// File for an input: a .npy file, whose shape may set open dimensions, or the bare elements; - for
    /// standard input. Inputs without a file are random
    #[arg(long = "input", value_name = "NAME|INDEX=FILE", value_parser = InputFile::parser())]
    files: Vec<InputFile>,
    /// Seed of random inputs
    #[arg(
        long,
        alias = "random-seed",
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub seed: u64,
}

impl Inputs {
    /// The seed without the files.
    pub fn random(&self) -> Self {
        Self { files: vec![], seed: self.seed }
    }

    /// Fills the inputs of the `model` from files, and others with random elements. Returns the file of each input.
    pub fn fill(&self, model: &Path, runner: &mut Runner) -> Result<Vec<Option<&Path>>> {
        let mut sources = vec![None; runner.inputs().len()];
        for InputFile { tensor, file } in &self.files {
            let index = input_index(runner, tensor).map_err(|what| about(model, what))?;
            let source = sources.get_mut(index).filter(|source| source.is_none());
            let source = source.ok_or_else(|| {
                about(
                    model,
                    format!("input {} is given twice", label(index, &runner.inputs()[index].name)),
                )
            })?;
            *source = Some(file.as_path());
        }
        take_shapes(runner, &sources)?;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        for (index, source) in sources.iter().enumerate() {
            let spec = runner.inputs()[index].clone();
            let indices = runner.index_limit(index).unwrap_or(FEW);
            let for_input = |what: String| format!("input {}: {what}", label(index, &spec.name));
            if let (DType::String, Some(path)) = (spec.dtype, source) {
                let strings =
                    read_strings(path, &spec).map_err(|what| about(path, for_input(what)))?;
                runner.set_strings(index, &strings).map_err(|error| about(path, error))?;
                continue;
            }
            // Types without elements have no memory, which is an error below.
            let memory = runner.input_bytes_mut(index).unwrap_or_default();
            match source {
                Some(path) => {
                    let elements =
                        read(path, &spec).map_err(|what| about(path, for_input(what)))?;
                    memory.copy_from_slice(&elements);
                }
                None => fill_random(spec.dtype, indices, memory, &mut random)
                    .map_err(|what| about(model, for_input(what)))?,
            }
        }
        Ok(sources)
    }
}

/// Resizes inputs with open dimensions to the shapes of their `.npy` files, all at once.
fn take_shapes(runner: &mut Runner, sources: &[Option<&Path>]) -> Result<()> {
    let mut taken = vec![];
    for (index, path) in sources.iter().enumerate() {
        let Some(path) = path else { continue };
        let Some(dims) = npy_dims(path) else { continue };
        if runner.inputs()[index].dims != dims && runner.leaves_open(index, &dims) {
            taken.push((index, *path, dims));
        }
    }
    let Some((index, path, dims)) = taken.first() else { return Ok(()) };
    let name = label(*index, &runner.inputs()[*index].name);
    let resized: Vec<(usize, &[usize])> =
        taken.iter().map(|(index, _, dims)| (*index, dims.as_slice())).collect();
    runner.resize_inputs(&resized).map_err(|error| {
        let shape = shape(dims);
        about(path, format!("input {name}: the model does not accept the shape {shape}: {error}"))
    })
}

/// The dimensions in a `.npy` file; `None` for other files, for pipes, and for damaged files, whose error [`read`] reports.
fn npy_dims(path: &Path) -> Option<Vec<usize>> {
    if !path.is_file() {
        return None;
    }
    let most = (npy::MAX_HEADER + npy::MAGIC.len() + 6) as u64;
    let mut header = Vec::new();
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut header)).ok()?;
    npy::dims(&header).ok()
}

/// Name of a tensor in errors and tables.
pub fn label(index: usize, name: &str) -> String {
    let name = plain(name);
    if name.is_empty() { index.to_string() } else { format!("{index} ({name})") }
}

fn input_index(runner: &Runner, tensor: &str) -> Result<usize, String> {
    let index = runner.input_index(tensor).or_else(|| tensor.parse().ok());
    index.filter(|&index| index < runner.inputs().len()).ok_or_else(|| {
        let known =
            runner.inputs().iter().enumerate().map(|(index, spec)| label(index, &spec.name));
        format!("no input {tensor:?}; the inputs are: {}", known.collect::<Vec<_>>().join(", "))
    })
}

/// Reads the elements of a `.npy` file, or the bytes of another file, which may be a pipe.
fn read(path: &Path, spec: &TensorSpec) -> Result<Vec<u8>, String> {
    let Some(wanted) = spec.byte_size() else {
        return Err(no_elements(spec.dtype));
    };
    // One byte more than any valid file, so that longer files are detected and endless ones end.
    let most = wanted.saturating_add(npy::MAX_HEADER + npy::MAGIC.len() + 7) as u64;
    let mut bytes = Vec::new();
    let read = if path == Path::new(STANDARD) {
        io::stdin().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| error.to_string())?;
    let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    if is_npy || bytes.starts_with(npy::MAGIC) {
        return npy::elements(&bytes, spec);
    }
    if bytes.len() != wanted {
        let found =
            if bytes.len() as u64 == most { "more".into() } else { bytes.len().to_string() };
        let what = format!("{} of {}", spec.dtype, shape(&spec.dims));
        return Err(format!("expected {wanted} bytes for {what}, found {found}"));
    }
    Ok(bytes)
}

/// Reads the strings of a `.npy` file.
fn read_strings(path: &Path, spec: &TensorSpec) -> Result<Vec<Vec<u8>>, String> {
    const MOST: u64 = 256 << 20;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    npy::strings(&bytes, spec)
}

/// Fills memory with random elements: floats in [-1, 1), 8-bit integers over their whole range, 32-bit and 64-bit integers
/// below `indices`.
fn fill_random(
    dtype: DType,
    indices: usize,
    memory: &mut [u8],
    random: &mut ChaCha8Rng,
) -> Result<(), String> {
    let indices = i32::try_from(indices).unwrap_or(i32::MAX).max(1);
    match dtype {
        DType::F32 => fill(memory, || random.random_range(-1.0f32..1.0).to_le_bytes()),
        DType::F16 => {
            fill(memory, || f16::from_f32(random.random_range(-1.0f32..1.0)).to_le_bytes());
        }
        DType::I8 | DType::U8 => fill(memory, || [random.random::<u8>()]),
        DType::Bool => fill(memory, || [random.random::<bool>().into()]),
        DType::I16 => fill(memory, || random.random_range(0i16..100).to_le_bytes()),
        DType::I32 => fill(memory, || random.random_range(0..indices).to_le_bytes()),
        DType::I64 => {
            fill(memory, || random.random_range(0..i64::from(indices)).to_le_bytes());
        }
        other if other.byte_size(1).is_none() && other != DType::String => {
            return Err(no_elements(other));
        }
        other => {
            return Err(format!(
                "random elements of type {other} are not supported; pass a file with --input"
            ));
        }
    }
    Ok(())
}

fn no_elements(dtype: DType) -> String {
    format!("inputs of type {dtype} are not supported: no file format has this type")
}

fn fill<const N: usize>(memory: &mut [u8], mut next: impl FnMut() -> [u8; N]) {
    memory.as_chunks_mut::<N>().0.iter_mut().for_each(|element| *element = next());
}

/// Writes output `index` as `out_<index>.npy` into `folder`.
pub fn write_output(runner: &Runner, index: usize, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("out_{index}.npy"));
    let spec = &runner.outputs()[index];
    let file = match spec.dtype {
        DType::String => npy::file_of_strings(spec, &runner.output_strings(index)?),
        _ => npy::file(spec, runner.output_bytes(index)?),
    };
    write_atomic(&path, &file.map_err(|error| about(&path, error))?)?;
    Ok(path)
}
