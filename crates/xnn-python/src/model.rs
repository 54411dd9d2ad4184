//! Models as data: tensors, operators and signatures, as interpreters describe them.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};
use xnn::model::Subgraph;
use xnn::{ModelLimits, RunnerBuilder};
use xnn_model::{Quantization, SparseDimension, Sparsity, Tensor};

use crate::error::exception;
use crate::memory::{Owner, TensorMemory};
use crate::runner::{Kernels, Options, Runner};

/// Scales, zero points, quantized dimension, and block size.
type QuantizationParameters = (Vec<f32>, Vec<i64>, usize, usize);

/// A model that was read.
#[pyclass(frozen, module = "xnn_delegate._native")]
pub struct Model {
    model: xnn::Model,
}

impl Model {
    fn graph(&self, subgraph: usize) -> PyResult<&Arc<Subgraph>> {
        let count = self.model.subgraphs.len();
        self.model.subgraphs.get(subgraph).ok_or_else(|| {
            PyIndexError::new_err(format!("no subgraph {subgraph}: the model has {count}, from 0"))
        })
    }

    fn find(&self, subgraph: usize, index: usize) -> PyResult<&Tensor> {
        let tensors = &self.graph(subgraph)?.tensors;
        tensors.get(index).ok_or_else(|| {
            let count = tensors.len();
            PyIndexError::new_err(format!(
                "no tensor {index}: subgraph {subgraph} has {count}, from 0"
            ))
        })
    }
}

#[pymethods]
impl Model {
    /// Reads a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let model = py.detach(|| xnn::Model::open(path));
        model.map(|model| Self { model }).map_err(|error| exception(&error.into()))
    }

    /// Reads the content of a file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, content: PyBackedBytes) -> PyResult<Self> {
        let model =
            py.detach(|| xnn::Model::from_bytes_with(content.to_vec(), &ModelLimits::default()));
        model.map(|model| Self { model }).map_err(|error| exception(&error.into()))
    }

    /// Number of subgraphs.
    #[getter]
    fn subgraphs(&self) -> usize {
        self.model.subgraphs.len()
    }

    /// Key, subgraph, inputs and outputs of each signature; the inputs and outputs as names and tensors.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    #[getter]
    fn signatures(&self) -> Vec<(String, usize, Vec<(String, usize)>, Vec<(String, usize)>)> {
        let signatures = self.model.signatures.iter();
        signatures
            .map(|it| (it.key.clone(), it.subgraph, it.inputs.clone(), it.outputs.clone()))
            .collect()
    }

    /// Number of tensors of a subgraph.
    fn tensors(&self, subgraph: usize) -> PyResult<usize> {
        Ok(self.graph(subgraph)?.tensors.len())
    }

    /// Tensors that are the inputs of a subgraph.
    fn inputs(&self, subgraph: usize) -> PyResult<Vec<usize>> {
        Ok(self.graph(subgraph)?.inputs.clone())
    }

    /// Tensors that are the outputs of a subgraph.
    fn outputs(&self, subgraph: usize) -> PyResult<Vec<usize>> {
        Ok(self.graph(subgraph)?.outputs.clone())
    }

    /// Name, inputs and outputs of each operator of a subgraph.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn operators(
        &self,
        subgraph: usize,
    ) -> PyResult<Vec<(String, Vec<Option<usize>>, Vec<usize>)>> {
        let operators = self.graph(subgraph)?.operators.iter();
        Ok(operators.map(|it| (it.op.to_string(), it.inputs.clone(), it.outputs.clone())).collect())
    }

    /// Name, element type, shape, shape signature, quantization and sparsity of a tensor, as the file states them.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn tensor<'py>(
        &self,
        py: Python<'py>,
        subgraph: usize,
        index: usize,
    ) -> PyResult<(
        String,
        &'static str,
        Vec<usize>,
        Option<Vec<i32>>,
        QuantizationParameters,
        Bound<'py, PyDict>,
    )> {
        let graph = self.graph(subgraph)?;
        let tensor = self.find(subgraph, index)?;
        let sparsity = match &tensor.sparsity {
            Some(sparsity) => sparsity_parameters(py, sparsity)?,
            None => PyDict::new(py),
        };
        Ok((
            tensor.name.clone(),
            tensor.dtype.name(),
            tensor.shape.clone().unwrap_or_default(),
            tensor.shape_signature.clone(),
            quantization_parameters(graph, tensor),
            sparsity,
        ))
    }

    /// A view of a constant; `None` if the tensor is not a constant of a type that numpy has.
    fn constant(&self, subgraph: usize, index: usize) -> PyResult<Option<TensorMemory>> {
        let tensor = self.find(subgraph, index)?;
        let Some(data) = &tensor.data else { return Ok(None) };
        let shape = match (&tensor.sparsity, tensor.dtype.bits()) {
            // Elements that are stored, in their order.
            (Some(_), Some(bits)) => vec![data.len() * 8 / bits.max(8)],
            _ => tensor.shape.clone().unwrap_or_default(),
        };
        let place = (data.as_ptr().expose_provenance(), data.len());
        let owner = Owner::Model(self.model.clone());
        Ok(TensorMemory::new(place, tensor.dtype, shape, true, owner))
    }

    /// Makes a subgraph ready to run.
    #[pyo3(signature = (subgraph, threads, kernels, shapes))]
    fn runner(
        &self,
        py: Python<'_>,
        subgraph: usize,
        threads: usize,
        kernels: &str,
        shapes: Vec<(usize, Vec<usize>)>,
    ) -> PyResult<Runner> {
        let options = Options { threads, ..Options::default() };
        let builder = RunnerBuilder::from_model(&self.model).subgraph(subgraph).input_dims(shapes);
        Runner::build(py, options.apply(builder)?, Kernels::parse(kernels)?)
    }
}

fn quantization_parameters(graph: &Subgraph, tensor: &Tensor) -> QuantizationParameters {
    match &tensor.quantization {
        Some(Quantization::PerTensor { scale, zero_point }) => {
            (vec![*scale], vec![*zero_point], 0, 0)
        }
        Some(Quantization::PerAxis { scales, zero_points, axis }) => {
            let zeros = (0..scales.len()).map(|slice| zero_points.at(slice)).collect();
            (scales.to_vec(), zeros, *axis, 0)
        }
        Some(Quantization::Blockwise { scales, block_size, .. }) => {
            let scales = graph.tensors.get(*scales).and_then(Tensor::constant_floats);
            (scales.unwrap_or_default(), vec![], 0, *block_size)
        }
        _ => (vec![], vec![], 0, 0),
    }
}

/// Sparsity as interpreters report it.
fn sparsity_parameters<'py>(py: Python<'py>, sparsity: &Sparsity) -> PyResult<Bound<'py, PyDict>> {
    let parameters = PyDict::new(py);
    parameters.set_item("traversal_order", &sparsity.traversal_order)?;
    parameters.set_item("block_map", &sparsity.block_map)?;
    let dimensions = PyList::empty(py);
    for dimension in &sparsity.dimensions {
        let entry = PyDict::new(py);
        match dimension {
            SparseDimension::Dense { size } => {
                entry.set_item("format", 0)?;
                entry.set_item("dense_size", size)?;
            }
            SparseDimension::Csr { segments, indices } => {
                entry.set_item("format", 1)?;
                entry.set_item("array_segments", segments)?;
                entry.set_item("array_indices", indices)?;
            }
        }
        dimensions.append(entry)?;
    }
    parameters.set_item("dim_metadata", dimensions)?;
    Ok(parameters)
}
