//! Writes models to new files.
//!
//! Files do not keep what the representation drops: minimum and maximum of quantization, debug
//! indices, options of unknown operators. A model that would lose information that affects results
//! is refused.

use xnn_file::memory;

use crate::dialect::{circle, tflite};
use crate::error::Error;
use crate::graph::{Dialect, Model};
use crate::op::{Op, WeightsFormat};
use crate::types::DType;

/// Serializes a model of either dialect as a TFLite file, identifier `TFL3`.
///
/// Equal constants are stored once, aligned to 16 bytes. Associated files follow as a ZIP archive.
///
/// # Errors
///
/// Operators, types, quantization or data that TFLite cannot represent, more than 2 GB of
/// constants, or exhausted memory. The error names the subgraph and the operator or tensor.
pub fn to_tflite(model: &Model) -> Result<Vec<u8>, Error> {
    check_crossing(model, Dialect::Tflite)?;
    memory::ensure(memory_for_writing(model), "the file")?;
    model.files.append_to(tflite::write(model)?)
}

/// Serializes a model of either dialect as a Circle file, identifier `CIR0`. The layout is that of
/// [`to_tflite`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = xnn_model::Model::open("model.tflite")?;
/// std::fs::write("model.circle", xnn_model::write::to_circle(&model)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Operators, types, quantization or data that Circle cannot represent, more than 2 GB of
/// constants, or exhausted memory. The error names the subgraph and the operator or tensor.
pub fn to_circle(model: &Model) -> Result<Vec<u8>, Error> {
    check_crossing(model, Dialect::Circle)?;
    memory::ensure(memory_for_writing(model), "the file")?;
    model.files.append_to(circle::write(model)?)
}

/// Approximate memory for writing, in bytes: the large data once in the builder, whose buffer grows
/// by doubling, and once in the file.
fn memory_for_writing(model: &Model) -> usize {
    let graphs = || model.subgraphs.iter();
    let constants = graphs().flat_map(|graph| &graph.tensors).filter_map(|it| it.data.as_ref());
    let options = graphs().flat_map(|graph| &graph.operators).filter_map(|it| match &it.op {
        Op::Custom(custom) => Some(&custom.options),
        _ => None,
    });
    let metadata = model.metadata.iter().map(|it| &it.data);
    let all = constants.chain(options).chain(metadata).map(|bytes| bytes.len());
    all.fold(0, usize::saturating_add).saturating_mul(4)
}

/// Refuses codes that the representation does not interpret, since they have another meaning in the
/// other dialect.
fn check_crossing(model: &Model, to: Dialect) -> Result<(), Error> {
    let from = model.dialect;
    if from == to {
        return Ok(());
    }
    for (graph_index, graph) in model.subgraphs.iter().enumerate() {
        for (index, tensor) in graph.tensors.iter().enumerate() {
            check_dtype(tensor.dtype, from, to)
                .map_err(|e| e.in_tensor(index, &tensor.name).in_subgraph(graph_index))?;
        }
        for (index, operator) in graph.operators.iter().enumerate() {
            check_weights_format(&operator.op, to)
                .map_err(|e| e.in_operator(index, operator.op.name()).in_subgraph(graph_index))?;
        }
    }
    Ok(())
}

fn check_dtype(dtype: DType, from: Dialect, to: Dialect) -> Result<(), Error> {
    match dtype {
        DType::Other(code) => {
            Err(Error::invalid(format!("{to} does not have {from}'s element type {code}")))
        }
        _ => Ok(()),
    }
}

/// Refuses layouts of weights other than the row-major layout and SHUFFLED4x16INT8, which both
/// dialects have.
fn check_weights_format(op: &Op, to: Dialect) -> Result<(), Error> {
    match op {
        Op::FullyConnected(options) => match options.weights_format {
            WeightsFormat::Default | WeightsFormat::Shuffled4x16Int8 => Ok(()),
            format => {
                Err(Error::invalid(format!("{to} does not have the weights format {format}")))
            }
        },
        _ => Ok(()),
    }
}
