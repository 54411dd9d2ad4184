//! Inputs and outputs of a session.

use xnn_format::{Datatype, Quantization, ValueId};
use xnnpack::{AlignedBuffer, ExternalId, Runtime};

use crate::error::{Result, RuntimeError};
use crate::program::Program;

/// An input or output of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Id for a [`Binding`](crate::Binding).
    pub id: ExternalId,
    /// Name in the model; empty if unknown.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Quantization parameters.
    pub quantization: Quantization,
    /// Present dimensions, outermost first.
    pub dims: Vec<usize>,
}

impl TensorInfo {
    /// Size of the elements in bytes.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        // XNNPACK has accepted the shape, which limits the size.
        self.datatype.byte_size(&self.dims).unwrap_or(usize::MAX)
    }
}

/// Inputs or outputs, with the session's memory for them.
#[derive(Default)]
pub(super) struct Tensors {
    pub(super) infos: Vec<TensorInfo>,
    pub(super) buffers: Vec<AlignedBuffer>,
}

impl Tensors {
    /// Describes the given values, without shapes and memory.
    pub(super) fn new(
        program: &Program,
        ids: impl Iterator<Item = (ExternalId, ValueId)>,
        names: &[String],
    ) -> Result<Self> {
        let mut tensors = Self::default();
        for (position, (id, value)) in ids.enumerate() {
            let value = program
                .graph()
                .value(value)
                .ok_or_else(|| RuntimeError::graph(format!("value {} does not exist", value.0)))?;
            tensors.infos.push(TensorInfo {
                id,
                name: names.get(position).cloned().unwrap_or_default(),
                datatype: value.datatype,
                quantization: value.quantization.clone(),
                dims: Vec::new(),
            });
            tensors.buffers.push(AlignedBuffer::new(0));
        }
        Ok(tensors)
    }

    pub(super) fn info(&self, index: usize) -> Result<&TensorInfo> {
        self.infos.get(index).ok_or_else(|| no_tensor(index))
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.infos.iter().position(|info| info.name == name && !name.is_empty())
    }

    /// The runtime's dimensions.
    pub(super) fn dims_in(&self, runtime: &Runtime) -> Result<Vec<Vec<usize>>> {
        let dims = |info: &TensorInfo| {
            let shape = runtime.external_shape(info.id).map(<[usize]>::to_vec);
            shape.ok_or_else(|| {
                RuntimeError::graph(format!("XNNPACK has no external tensor {}", info.id))
            })
        };
        self.infos.iter().map(dims).collect()
    }

    /// Prepares these dimensions, with new buffers if sizes change.
    pub(super) fn shaped(&self, dims: Vec<Vec<usize>>) -> Result<Vec<Shaped>> {
        let mut shaped = Vec::with_capacity(dims.len());
        for ((info, buffer), dims) in self.infos.iter().zip(&self.buffers).zip(dims) {
            let bytes = info.datatype.byte_size(&dims).unwrap_or(usize::MAX);
            let fits = buffer.len() == bytes;
            let buffer = if fits { None } else { Some(AlignedBuffer::try_new(bytes)?) };
            shaped.push(Shaped { dims, buffer });
        }
        Ok(shaped)
    }

    pub(super) fn adopt(&mut self, shaped: Vec<Shaped>) {
        for ((info, buffer), new) in self.infos.iter_mut().zip(&mut self.buffers).zip(shaped) {
            info.dims = new.dims;
            if let Some(new) = new.buffer {
                *buffer = new;
            }
        }
    }
}

/// New shape of a tensor, and a buffer if its size changes.
pub(super) struct Shaped {
    dims: Vec<usize>,
    buffer: Option<AlignedBuffer>,
}

pub(super) fn no_tensor(index: usize) -> RuntimeError {
    RuntimeError::argument(format!("tensor {index} does not exist"))
}
