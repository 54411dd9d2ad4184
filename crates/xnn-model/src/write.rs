//! Writing a model as a new file.
//!
//! What the representation holds is written; what it drops (minimum and
//! maximum of quantization, debug indices, options of unknown operators) is
//! not. A model that would lose something that matters is refused.

use xnn_file::memory;

use crate::dialect::{circle, tflite};
use crate::error::Error;
use crate::graph::{Dialect, Model};
use crate::op::{Op, WeightsFormat};
use crate::types::DType;

/// The bytes of a TFLite file, identifier `TFL3`.
///
/// Equal constants are stored once; each starts at a multiple of 16 bytes.
/// Associated files follow as a ZIP archive.
///
/// # Errors
///
/// If the model has operators, types or data that a TFLite file cannot carry,
/// or constants beyond 2 GB.
pub fn to_tflite(model: &Model) -> Result<Vec<u8>, Error> {
    check_crossing(model, Dialect::Tflite)?;
    memory::ensure(taken_by_writing(model), "the file")?;
    model.files.append_to(tflite::write(model)?)
}

/// The bytes of a Circle file, identifier `CIR0`.
///
/// # Errors
///
/// As [`to_tflite`], for what Circle cannot carry.
pub fn to_circle(model: &Model) -> Result<Vec<u8>, Error> {
    check_crossing(model, Dialect::Circle)?;
    memory::ensure(taken_by_writing(model), "the file")?;
    model.files.append_to(circle::write(model)?)
}

/// Bytes that writing takes, about: what is large, once in the file, and twice while it grows by doubling its memory.
fn taken_by_writing(model: &Model) -> usize {
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

/// Refuses codes that the representation only passes on: their meaning is the
/// file's own dialect's.
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

/// Both dialects have the plain layout and SHUFFLED4x16INT8.
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
