//! Inputs from files or at random, outputs to files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use half::f16;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use xnn_delegate::{DType, Runner, TensorSpec};

use crate::output::shape;
use crate::source::about;
use crate::{files, npy};

/// How many different integers there are in random inputs, where nothing says what they are: any table has
/// so many rows.
const FEW: usize = 2;

/// `NAME=FILE` or `INDEX=FILE`.
#[derive(Clone, Debug)]
pub struct InputFile {
    tensor: String,
    file: PathBuf,
}

impl std::str::FromStr for InputFile {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((tensor, file)) if !tensor.is_empty() && !file.is_empty() => {
                Ok(Self { tensor: tensor.into(), file: file.into() })
            }
            _ => Err("expected NAME=FILE or INDEX=FILE"),
        }
    }
}

/// Fills the model's inputs: from `files`, and at random where none is given.
/// Returns, for each input, the file that it came from.
pub fn fill_inputs<'a>(
    runner: &mut Runner,
    files: &'a [InputFile],
    seed: u64,
) -> Result<Vec<Option<&'a Path>>> {
    let mut sources = vec![None; runner.inputs().len()];
    for InputFile { tensor, file } in files {
        let index = input_index(runner, tensor)?;
        let source = sources.get_mut(index).filter(|source| source.is_none());
        *source.ok_or_else(|| anyhow!("input {tensor} is given twice"))? = Some(file.as_path());
    }
    take_shapes(runner, &sources)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for (index, source) in sources.iter().enumerate() {
        let spec = runner.inputs()[index].clone();
        let indices = runner.index_limit(index).unwrap_or(FEW);
        let memory = runner.input_mut(index);
        match source {
            Some(path) => memory.copy_from_slice(&read(path, &spec)?),
            None => fill_random(spec.dtype, indices, memory, &mut random)?,
        }
    }
    Ok(sources)
}

/// Gives inputs the shapes of their `.npy` files where the model leaves them open, all at once.
fn take_shapes(runner: &mut Runner, sources: &[Option<&Path>]) -> Result<()> {
    let mut taken = vec![];
    for (index, path) in sources.iter().enumerate() {
        let Some(path) = path else { continue };
        let Some(dims) = npy_dims(path)? else { continue };
        if runner.inputs()[index].dims != dims && runner.leaves_open(index, &dims) {
            taken.push((index, *path, dims));
        }
    }
    let Some((_, path, dims)) = taken.first() else { return Ok(()) };
    let resized: Vec<(usize, &[usize])> =
        taken.iter().map(|(index, _, dims)| (*index, dims.as_slice())).collect();
    runner.resize_inputs(&resized).map_err(|error| {
        about(path, format!("its shape is {}, which does not fit the model: {error}", shape(dims)))
    })
}

/// The dimensions in a `.npy` file; `None` for any other, and for what can be read but once.
fn npy_dims(path: &Path) -> Result<Option<Vec<usize>>> {
    if !path.is_file() {
        return Ok(None);
    }
    let most = (npy::MAX_HEADER + npy::MAGIC.len() + 6) as u64;
    let mut header = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut header))
        .map_err(|error| about(path, error))?;
    if !header.starts_with(npy::MAGIC) {
        return Ok(None);
    }
    npy::dims(&header).map(Some).map_err(|error| about(path, error))
}

/// What errors and tables call a tensor.
pub fn label(index: usize, spec: &TensorSpec) -> String {
    if spec.name.is_empty() { index.to_string() } else { format!("{index} ({})", spec.name) }
}

fn input_index(runner: &Runner, tensor: &str) -> Result<usize> {
    let index = runner.input_index(tensor).or_else(|| tensor.parse().ok());
    index.filter(|&index| index < runner.inputs().len()).ok_or_else(|| {
        let known = runner.inputs().iter().enumerate().map(|(index, spec)| label(index, spec));
        anyhow!("there is no input {tensor:?}; there are: {}", known.collect::<Vec<_>>().join(", "))
    })
}

/// The elements in a `.npy` file, or the bytes of any other.
fn read(path: &Path, spec: &TensorSpec) -> Result<Vec<u8>> {
    let Some(wanted) = spec.byte_size() else {
        bail!("inputs of type {} cannot be given", spec.dtype);
    };
    // One byte more than any good file: too long is seen, endless does no harm.
    let most = wanted.saturating_add(npy::MAX_HEADER + npy::MAGIC.len() + 7) as u64;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| about(path, error))?;
    let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    if is_npy || bytes.starts_with(npy::MAGIC) {
        let elements = npy::elements(&bytes, spec).map_err(|error| about(path, error))?;
        return Ok(elements.to_vec());
    }
    if bytes.len() != wanted {
        let found =
            if bytes.len() as u64 == most { "more".into() } else { bytes.len().to_string() };
        let what = format!("{} of {}", spec.dtype, shape(&spec.dims));
        return Err(about(path, format!("it has {found} bytes; {what} takes {wanted}")));
    }
    Ok(bytes)
}

/// Reals in [-1, 1), 8-bit integers over their whole range, 32 and 64-bit integers that are among so many
/// `indices`.
fn fill_random(
    dtype: DType,
    indices: usize,
    memory: &mut [u8],
    random: &mut ChaCha8Rng,
) -> Result<()> {
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
        other => bail!("no random inputs of type {other}; give files"),
    }
    Ok(())
}

fn fill<const N: usize>(memory: &mut [u8], mut next: impl FnMut() -> [u8; N]) {
    memory.as_chunks_mut::<N>().0.iter_mut().for_each(|element| *element = next());
}

/// Writes output `index` as `out_<index>.npy` into `folder`.
pub fn write_output(runner: &Runner, index: usize, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("out_{index}.npy"));
    let file = npy::file(&runner.outputs()[index], runner.output(index));
    files::write_atomic(&path, &file.map_err(|error| about(&path, error))?)?;
    Ok(path)
}
