//! Conversion, explanation, verification and metadata. Reports are JSON, which the Python layer turns into objects.

use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde_json::json;
use xnn::blob::{Compat, is_blob};
use xnn::lower::Delegation;
use xnn::metadata::Description;
use xnn::verify::{Deviation, Verifier};
use xnn::{ConvertOptions, Converted, Error, Model, RunnerOptions, SessionOptions, Source};

use crate::error::exception;
use crate::runner::partition_options;

/// Converts a model. Returns the content of the file, and whether it is a blob.
#[pyfunction]
#[pyo3(signature = (path, disable, require_full, pack, executorch))]
pub fn convert(
    py: Python<'_>,
    path: PathBuf,
    disable: Vec<String>,
    require_full: bool,
    pack: bool,
    executorch: bool,
) -> PyResult<(Bound<'_, PyBytes>, bool)> {
    let compat = if executorch { Compat::Executorch } else { Compat::Own };
    let options = ConvertOptions::default()
        .with_compat(compat)
        .with_partition(partition_options(disable)?)
        .with_require_full(require_full)
        .with_pack(pack);
    let converted = py.detach(|| {
        let model = Model::open(&path)?;
        xnn::convert(&model, &Source::of_file(&path)?, &options)
    });
    let converted = converted.map_err(|error| exception(&error))?;
    let is_whole = matches!(converted, Converted::Whole(_));
    Ok((PyBytes::new(py, converted.bytes()), is_whole))
}

/// Explains a subgraph: the report as text, and as JSON.
#[pyfunction]
#[pyo3(signature = (path, subgraph, disable))]
pub fn explain(
    py: Python<'_>,
    path: PathBuf,
    subgraph: usize,
    disable: Vec<String>,
) -> PyResult<(String, String)> {
    let options = partition_options(disable)?;
    let report = py.detach(|| {
        let model = Model::open(path)?;
        let count = model.subgraphs.len();
        let graph = model.subgraphs.get(subgraph);
        let report = graph.map(|graph| Delegation::new(graph, &options).map(|it| it.report()));
        Ok::<_, Error>(report.transpose()?.ok_or(count))
    });
    let report = report.map_err(|error| exception(&error))?.map_err(|count| {
        PyValueError::new_err(format!("no subgraph {subgraph}: the model has {count}, from 0"))
    })?;
    Ok((report.to_string(), json(&report)?))
}

/// Compares delegated operators with reference kernels. Returns the comparison as JSON, with the deviations that are within
/// the default tolerance of `xnn verify`.
///
/// `fill` is called with name, element type, dimensions, and number of valid indices of each input. It returns the position,
/// dimensions and bytes of the inputs that are not zeros.
#[pyfunction]
#[pyo3(signature = (path, threads, signature, disable, fill))]
pub fn verify(
    py: Python<'_>,
    path: PathBuf,
    threads: usize,
    signature: Option<String>,
    disable: Vec<String>,
    fill: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let session = SessionOptions { threads, ..SessionOptions::default() };
    let options = RunnerOptions::new(partition_options(disable)?, session);
    let verifier = py.detach(|| {
        let model = Model::open(path)?;
        match signature {
            Some(key) => Verifier::at_signature(&model, &key, &options),
            None => Verifier::new(&model, &options),
        }
    });
    let mut verifier = verifier.map_err(|error| exception(&error))?;
    let inputs = verifier.reference_mut().inputs().to_vec();
    let described: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(index, spec)| {
            let limit = verifier.reference_mut().index_limit(index);
            (spec.name.clone(), spec.dtype.name(), spec.dims.clone(), limit)
        })
        .collect();
    let filled: Vec<(usize, Vec<usize>, PyBackedBytes)> = fill.call1((described,))?.extract()?;
    for (index, dims, elements) in filled {
        let runner = verifier.reference_mut();
        let memory = runner
            .resize_input(index, &dims)
            .and_then(|()| runner.input_bytes_mut(index))
            .map_err(|error| exception(&error))?;
        if memory.len() != elements.len() {
            let (expected, found) = (memory.len(), elements.len());
            return Err(PyValueError::new_err(format!(
                "input {index}: expected {expected} bytes, found {found}"
            )));
        }
        memory.copy_from_slice(&elements);
    }
    let verified = py.detach(|| verifier.verify()).map_err(|error| exception(&error))?;
    let within: Vec<bool> = verified
        .operators
        .iter()
        .map(|it| it.is_within(1.0, Deviation::SMALL) || it.is_rounding())
        .collect();
    json(&json!({ "report": verified, "within": within }))
}

/// Metadata of a model or blob as JSON, with the names and contents of the associated files; `None` if it has none.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
pub fn metadata(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Option<(String, Vec<(String, Bound<'_, PyBytes>)>)>> {
    let described = py.detach(|| {
        let Some(description) = Description::open(path)? else { return Ok(None) };
        let files = description.files.read_all()?;
        let files: Vec<(String, Vec<u8>)> =
            files.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
        Ok(Some((description.metadata.to_json(), files)))
    });
    let described = described.map_err(|error: Error| exception(&error))?;
    Ok(described.map(|(json, files)| {
        let files = files.into_iter().map(|(name, content)| (name, PyBytes::new(py, &content)));
        (json, files.collect())
    }))
}

/// Whether a file is a blob.
#[pyfunction]
#[pyo3(name = "is_blob")]
pub fn file_is_blob(path: PathBuf) -> PyResult<bool> {
    is_blob(path).map_err(|error| exception(&error))
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
