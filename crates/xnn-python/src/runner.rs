//! Runners: models and blobs that are ready to run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use xnn::tensor::TensorKey;
use xnn::{Coverage, DType, Error, PartitionOptions, RunnerBuilder, TensorSpec};

use crate::arrays::{Outputs, outputs};
use crate::error::exception;
use crate::memory::{Counted, Owner, TensorMemory};

/// Name, element type, dimensions, and scale and zero point of an input or output.
type Spec = (String, &'static str, Vec<usize>, Option<(f32, i64)>);

/// A model or blob that is ready to run. All methods may be called by any thread; they take turns. Runs release the GIL.
#[pyclass(frozen, module = "xnn_delegate._native")]
pub struct Runner {
    runner: Mutex<xnn::Runner>,
    /// Number of [`TensorMemory`] objects that view tensors of the runner.
    views: Arc<AtomicUsize>,
}

/// Which kernels run operators, as Python names them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kernels {
    /// XNNPACK, and reference kernels for other operators.
    Xnnpack,
    /// Reference kernels.
    Reference,
    /// Reference kernels, with intermediate values kept.
    Preserve,
}

impl Kernels {
    pub fn parse(name: &str) -> PyResult<Self> {
        Ok(match name {
            "xnnpack" => Self::Xnnpack,
            "reference" => Self::Reference,
            "preserve" => Self::Preserve,
            _ => return Err(PyValueError::new_err(format!("unknown kernels: {name:?}"))),
        })
    }
}

/// Options of runners.
#[derive(Default)]
pub struct Options {
    pub threads: usize,
    pub signature: Option<String>,
    pub cache_dir: Option<PathBuf>,
    pub disable: Vec<String>,
}

impl Options {
    /// Applies the options.
    pub fn apply(self, mut builder: RunnerBuilder) -> PyResult<RunnerBuilder> {
        let partition = partition_options(self.disable)?;
        builder = builder.threads(self.threads).partition(partition);
        if let Some(key) = self.signature {
            builder = builder.signature(key);
        }
        if let Some(folder) = self.cache_dir {
            builder = builder.cache_dir(folder);
        }
        Ok(builder)
    }
}

/// Options of partitioning with the names of operators that are not delegated.
pub fn partition_options(disable: Vec<String>) -> PyResult<PartitionOptions> {
    let mut options = PartitionOptions::default();
    for name in disable {
        let known = xnn::lower::operator_name(&name)
            .map_err(|error| PyValueError::new_err(format!("disable: {error}")))?;
        options.disable.push(known.to_string());
    }
    Ok(options)
}

impl Runner {
    /// Builds a runner without the GIL.
    pub fn build(py: Python<'_>, builder: RunnerBuilder, kernels: Kernels) -> PyResult<Self> {
        let builder = match kernels {
            Kernels::Xnnpack => builder,
            Kernels::Reference => builder.reference_kernels(),
            Kernels::Preserve => builder.keep_intermediates(),
        };
        py.detach(|| builder.build()).map(Self::new).map_err(|error| exception(&error))
    }

    pub fn new(runner: xnn::Runner) -> Self {
        Self { runner: Mutex::new(runner), views: Arc::default() }
    }

    /// Calls `work` without the GIL, after other threads have finished with the runner.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut xnn::Runner) -> R + Send) -> R {
        py.detach(|| work(&mut self.lock()))
    }

    /// [`Runner::with`] for calls of the facade that fail.
    fn attempt<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut xnn::Runner) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.with(py, work).map_err(|error| exception(&error))
    }

    fn lock(&self) -> MutexGuard<'_, xnn::Runner> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Runner::attempt`] for calls that may move tensors.
    fn moving<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut xnn::Runner) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let done = self.with(py, |runner| match self.views.load(Ordering::Acquire) {
            0 => Some(work(runner)),
            _ => None,
        });
        done.ok_or_else(viewed)?.map_err(|error| exception(&error))
    }

    /// [`Runner::moving`] for runs. If XNNPACK runs all operators, tensors stay in their place.
    fn running<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut xnn::Runner) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let done = self.with(py, |runner| match self.views.load(Ordering::Acquire) {
            views if views == 0 || runner.program().is_some() => Some(work(runner)),
            _ => None,
        });
        done.ok_or_else(viewed)?.map_err(|error| exception(&error))
    }

    /// A view of memory that `find` returns, with its element type and dimensions.
    fn view(
        slf: &Bound<'_, Self>,
        read_only: bool,
        find: impl FnOnce(&mut xnn::Runner) -> Result<Found, Error> + Send,
    ) -> PyResult<TensorMemory> {
        let this = slf.get();
        // The view is counted before the lock is released, so that no run comes in between.
        let found = this
            .with(slf.py(), |runner| find(runner).map(|found| (found, Counted::new(&this.views))));
        let (found, counted) = found.map_err(|error| exception(&error))?;
        let Found { place, dtype, dims } = found;
        let owner = Owner::Runner(slf.clone().into_any().unbind(), counted);
        TensorMemory::new(place, dtype, dims, read_only, owner)
            .ok_or_else(|| PyValueError::new_err(format!("elements of type {dtype} have no array")))
    }
}

/// Memory of a tensor.
struct Found {
    /// Address and size in bytes.
    place: (usize, usize),
    dtype: DType,
    dims: Vec<usize>,
}

impl Found {
    fn new(bytes: &[u8], dtype: DType, dims: &[usize]) -> Self {
        Self {
            place: (bytes.as_ptr().expose_provenance(), bytes.len()),
            dtype,
            dims: dims.to_vec(),
        }
    }
}

/// The error for calls that would move tensors while arrays view them.
fn viewed() -> PyErr {
    PyRuntimeError::new_err(
        "an array still views a tensor of this model, which may move; delete the array first, or copy it",
    )
}

fn spec(spec: &TensorSpec) -> Spec {
    (spec.name.clone(), spec.dtype.name(), spec.dims.clone(), spec.quantization)
}

#[pymethods]
impl Runner {
    /// Opens a file.
    #[staticmethod]
    #[pyo3(signature = (path, threads, signature, cache_dir, disable, kernels))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        threads: usize,
        signature: Option<String>,
        cache_dir: Option<PathBuf>,
        disable: Vec<String>,
        kernels: &str,
    ) -> PyResult<Self> {
        let options = Options { threads, signature, cache_dir, disable };
        let builder = options.apply(RunnerBuilder::from_file(path))?;
        Self::build(py, builder, Kernels::parse(kernels)?)
    }

    /// Opens the content of a file.
    #[staticmethod]
    #[pyo3(signature = (content, threads, signature, cache_dir, disable, kernels))]
    fn from_bytes(
        py: Python<'_>,
        content: pyo3::pybacked::PyBackedBytes,
        threads: usize,
        signature: Option<String>,
        cache_dir: Option<PathBuf>,
        disable: Vec<String>,
        kernels: &str,
    ) -> PyResult<Self> {
        let options = Options { threads, signature, cache_dir, disable };
        let builder = options.apply(RunnerBuilder::from_bytes(content))?;
        Self::build(py, builder, Kernels::parse(kernels)?)
    }

    /// Another runner of the same model, which shares constants and packed weights.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        self.attempt(py, |runner| runner.fork()).map(Self::new)
    }

    /// Descriptions of the inputs.
    fn inputs(&self, py: Python<'_>) -> Vec<Spec> {
        self.with(py, |runner| runner.inputs().iter().map(spec).collect())
    }

    /// Descriptions of the outputs, with the shapes of the last run.
    fn outputs(&self, py: Python<'_>) -> Vec<Spec> {
        self.with(py, |runner| runner.outputs().iter().map(spec).collect())
    }

    /// Dimensions of all tensors of the subgraph that are known; `None` for a blob.
    fn shapes(&self, py: Python<'_>) -> Option<Vec<Option<Vec<usize>>>> {
        self.with(py, |runner| {
            let tensors = runner.subgraph()?.tensors.iter();
            Some(tensors.map(|tensor| tensor.shape.clone()).collect())
        })
    }

    /// Delegated operators, all operators, partitions, and deferred operators.
    #[getter]
    fn coverage(&self, py: Python<'_>) -> (usize, usize, usize, usize) {
        let Coverage { delegated, operators, partitions, deferred } =
            self.with(py, |runner| runner.coverage());
        (delegated, operators, partitions, deferred)
    }

    /// Whether XNNPACK runs all operators.
    #[getter]
    fn is_whole(&self, py: Python<'_>) -> bool {
        self.with(py, |runner| runner.program().is_some())
    }

    /// Number of threads that compute.
    #[getter]
    fn threads(&self, py: Python<'_>) -> usize {
        self.with(py, |runner| runner.threads())
    }

    /// Number of views of tensors that exist.
    #[getter]
    fn views(&self) -> usize {
        self.views.load(Ordering::Acquire)
    }

    /// Gives inputs other dimensions.
    fn resize(&self, py: Python<'_>, dims: Vec<(usize, Vec<usize>)>) -> PyResult<()> {
        let dims: Vec<(usize, &[usize])> =
            dims.iter().map(|(index, dims)| (*index, dims.as_slice())).collect();
        self.moving(py, |runner| runner.resize_inputs(&dims))
    }

    /// Computes the outputs.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        self.running(py, xnn::Runner::run)
    }

    /// Computes the outputs, and writes them to arrays at these positions.
    fn run_into(&self, py: Python<'_>, arrays: Vec<(usize, Bound<'_, PyAny>)>) -> PyResult<()> {
        let mut memory: Outputs<'_> = outputs(&arrays)?;
        self.running(py, |runner| runner.run_into(&mut memory))
    }

    /// A view of an input, to be filled.
    fn input(slf: &Bound<'_, Self>, index: usize) -> PyResult<TensorMemory> {
        Self::view(slf, false, |runner| {
            let spec = runner.inputs().get(index).cloned();
            // The slice is mutable, so that writes through its address are valid.
            let bytes = runner.input_bytes_mut(index)?;
            let place = (bytes.as_mut_ptr().expose_provenance(), bytes.len());
            let (dtype, dims) = spec.map_or((DType::U8, vec![]), |spec| (spec.dtype, spec.dims));
            Ok(Found { place, dtype, dims })
        })
    }

    /// A view of an output, as the last run computed it.
    fn output(slf: &Bound<'_, Self>, index: usize) -> PyResult<TensorMemory> {
        Self::view(slf, true, |runner| {
            let bytes = runner.output_bytes(index)?;
            let spec = runner.outputs().get(index);
            let (dtype, dims) = spec.map_or((DType::U8, &[][..]), |spec| (spec.dtype, &spec.dims));
            Ok(Found::new(bytes, dtype, dims))
        })
    }

    /// A view of a tensor of the subgraph; `None` if memory does not hold it.
    fn tensor(slf: &Bound<'_, Self>, index: usize) -> PyResult<Option<TensorMemory>> {
        let is_held = slf.get().with(slf.py(), |runner| runner.tensor(index).is_some());
        if !is_held {
            return Ok(None);
        }
        let view = Self::view(slf, true, |runner| {
            let view = runner.tensor(index);
            Ok(view.map_or_else(
                || Found::new(&[], DType::U8, &[0]),
                |view| Found::new(view.bytes, view.dtype, view.shape),
            ))
        });
        view.map(Some)
    }

    /// Fills an input of strings, in row-major order.
    fn set_strings(
        &self,
        py: Python<'_>,
        index: usize,
        strings: Vec<pyo3::pybacked::PyBackedBytes>,
    ) -> PyResult<()> {
        self.moving(py, |runner| runner.set_strings(TensorKey::Index(index), &strings))
    }

    /// Shape and elements of a tensor of strings; `None` if memory does not hold it.
    fn strings<'py>(
        &self,
        py: Python<'py>,
        index: usize,
    ) -> PyResult<Option<(Vec<usize>, Bound<'py, PyList>)>> {
        let found = self.with(py, |runner| {
            let view = runner.tensor(index)?;
            let strings = view.strings()?;
            Some((view.shape.to_vec(), strings.iter().map(|it| it.to_vec()).collect::<Vec<_>>()))
        });
        let Some((shape, strings)) = found else { return Ok(None) };
        let strings = strings.iter().map(|string| PyBytes::new(py, string));
        Ok(Some((shape, PyList::new(py, strings.collect::<Vec<_>>())?)))
    }

    /// Elements of an output of strings.
    fn output_strings<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyList>> {
        let strings = self.attempt(py, |runner| {
            let strings = runner.output_strings(index)?;
            Ok(strings.iter().map(|it| it.to_vec()).collect::<Vec<_>>())
        })?;
        PyList::new(py, strings.iter().map(|it| PyBytes::new(py, it)).collect::<Vec<_>>())
    }

    /// Sets variables and the state of recurrent operators to their initial values.
    fn reset_variables(&self, py: Python<'_>) {
        self.with(py, xnn::Runner::reset_variables);
    }
}
