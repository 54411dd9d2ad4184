//! Inputs from files or at random, outputs to files and as real numbers.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use half::f16;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use xnn_delegate::{Datatype, Quantization, Session, TensorInfo};

use crate::output::shape;
use crate::source::about;
use crate::{files, npy};

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

/// Fills the session's inputs: from `files`, and at random where none is given.
/// Returns, for each input, the file that it came from.
pub fn fill_inputs<'a>(
    session: &mut Session,
    files: &'a [InputFile],
    seed: u64,
) -> Result<Vec<Option<&'a Path>>> {
    let mut sources = vec![None; session.inputs().len()];
    for InputFile { tensor, file } in files {
        let index = input_index(session, tensor)?;
        let source = sources.get_mut(index).filter(|source| source.is_none());
        *source.ok_or_else(|| anyhow!("input {tensor} is given twice"))? = Some(file.as_path());
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for (index, source) in sources.iter().enumerate() {
        let info = session.inputs()[index].clone();
        let memory = session.input_mut(index);
        match source {
            Some(path) => memory.copy_from_slice(&read(path, &info)?),
            None => fill_random(info.datatype, memory, &mut random)?,
        }
    }
    Ok(sources)
}

/// What errors and tables call a tensor.
pub fn label(index: usize, info: &TensorInfo) -> String {
    if info.name.is_empty() { index.to_string() } else { format!("{index} ({})", info.name) }
}

fn input_index(session: &Session, tensor: &str) -> Result<usize> {
    let index = session.input_index(tensor).or_else(|| tensor.parse().ok());
    index.filter(|&index| index < session.inputs().len()).ok_or_else(|| {
        let known = session.inputs().iter().enumerate().map(|(index, info)| label(index, info));
        anyhow!("there is no input {tensor:?}; there are: {}", known.collect::<Vec<_>>().join(", "))
    })
}

/// The elements in a `.npy` file, or the bytes of any other.
fn read(path: &Path, info: &TensorInfo) -> Result<Vec<u8>> {
    let wanted = info.byte_size();
    // One byte more than any good file: too long is seen, endless does no harm.
    let most = wanted.saturating_add(npy::MAX_HEADER + npy::MAGIC.len() + 7) as u64;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| about(path, error))?;
    let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    if is_npy || bytes.starts_with(npy::MAGIC) {
        let elements = npy::elements(&bytes, info).map_err(|error| about(path, error))?;
        return Ok(elements.to_vec());
    }
    if bytes.len() != wanted {
        let found =
            if bytes.len() as u64 == most { "more".into() } else { bytes.len().to_string() };
        let what = format!("{} of {}", info.datatype.name(), shape(&info.dims));
        return Err(about(path, format!("it has {found} bytes; {what} takes {wanted}")));
    }
    Ok(bytes)
}

/// Reals in [-1, 1), 8-bit integers over their whole range, other integers
/// small enough for an index.
fn fill_random(datatype: Datatype, memory: &mut [u8], random: &mut ChaCha8Rng) -> Result<()> {
    match datatype {
        Datatype::F32 => fill(memory, || random.random_range(-1.0f32..1.0).to_le_bytes()),
        Datatype::F16 => {
            fill(memory, || f16::from_f32(random.random_range(-1.0f32..1.0)).to_le_bytes());
        }
        Datatype::QInt8 | Datatype::QUint8 => fill(memory, || [random.random::<u8>()]),
        Datatype::Int32 | Datatype::QInt32 => {
            fill(memory, || random.random_range(0i32..100).to_le_bytes());
        }
        other => bail!("no random inputs of type {}; give files", other.name()),
    }
    Ok(())
}

fn fill<const N: usize>(memory: &mut [u8], mut next: impl FnMut() -> [u8; N]) {
    memory.as_chunks_mut::<N>().0.iter_mut().for_each(|element| *element = next());
}

/// Writes output `index` as `out_<index>.npy` into `folder`.
pub fn write_output(session: &Session, index: usize, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("out_{index}.npy"));
    let file = npy::file(&session.outputs()[index], session.output(index));
    files::write_atomic(&path, &file.map_err(|error| about(&path, error))?)?;
    Ok(path)
}

/// The real numbers that a tensor's elements stand for.
pub fn reals(info: &TensorInfo, elements: &[u8]) -> Result<Vec<f32>> {
    let numbers: Vec<f32> = match info.datatype {
        Datatype::F32 => decode(elements, f32::from_le_bytes),
        Datatype::F16 => decode(elements, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Datatype::QInt8 => decode(elements, |bytes| f32::from(i8::from_le_bytes(bytes))),
        Datatype::QUint8 => decode(elements, |[byte]| f32::from(byte)),
        // Exact up to 2^24, and only ever shown.
        Datatype::Int32 | Datatype::QInt32 => decode(elements, |b| i32::from_le_bytes(b) as f32),
        other => bail!("elements of type {} cannot be shown", other.name()),
    };
    Ok(match info.quantization {
        Quantization::PerTensor { scale, zero_point } => {
            numbers.into_iter().map(|q| (q - zero_point as f32) * scale).collect()
        }
        _ => numbers,
    })
}

fn decode<const N: usize>(elements: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    elements.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
}
