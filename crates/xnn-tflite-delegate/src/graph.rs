//! Converts the interpreter's graph to the representation of model files.

use std::ffi::c_int;
use std::slice;
use std::sync::Arc;

use xnn_model::op::{CUSTOM_CODE, CustomOptions};
use xnn_model::{
    Op, Operator, Quantization, SparseDimension, Sparsity, Subgraph, Tensor, TensorId,
};

use crate::abi::{
    AFFINE_QUANTIZATION, BLOCKWISE_QUANTIZATION, DIM_SPARSE_CSR, MMAP_RO, TfLiteAffineQuantization,
    TfLiteBlockwiseQuantization, TfLiteNode, TfLiteQuantization, TfLiteRegistration,
    TfLiteSparsity, TfLiteTensor, dtype, floats, ints, text,
};
use crate::builtin_data::builtin;
use crate::constants::Constants;
use crate::context::Context;
use crate::error::{Error, Result};

/// Converts the nodes of `plan` and all tensors. Tensors keep their indices, and operator `i` is
/// node `plan[i]`.
///
/// Constants are views of the model's file or of the interpreter's memory.
pub(crate) fn subgraph(
    context: &Context,
    plan: &[c_int],
    constants: &mut Constants,
) -> Result<Subgraph> {
    let tensors = context.tensors().iter().map(|raw| tensor(raw, constants));
    let tensors: Vec<Tensor> = tensors.collect();
    let operators = plan
        .iter()
        .map(|&index| operator(context, index, tensors.len(), constants))
        .collect::<Result<Vec<Operator>>>()?;
    // The context does not tell the graph's inputs and outputs. If all nodes were one kernel, it
    // would write exactly the graph's outputs.
    let outputs = context
        .preview(plan)?
        .iter()
        .flat_map(|subset| &subset.outputs)
        .filter_map(|&id| usize::try_from(id).ok())
        .filter(|&id| id < tensors.len())
        .collect();
    let mut produced = vec![false; tensors.len()];
    for &output in operators.iter().flat_map(|operator| &operator.outputs) {
        produced[output] = true;
    }
    let is_input = |id: &TensorId| !produced[*id] && !tensors[*id].is_constant();
    let mut inputs: Vec<TensorId> = operators
        .iter()
        .flat_map(|o| o.inputs.iter().flatten())
        .copied()
        .filter(is_input)
        .collect();
    inputs.sort_unstable();
    inputs.dedup();
    Ok(Subgraph { name: String::new(), tensors, inputs, outputs, operators })
}

/// Present dimensions; `None` if the tensor has none yet.
pub(crate) fn dims(tensor: &TfLiteTensor) -> Option<Vec<usize>> {
    if tensor.dims.is_null() {
        return None;
    }
    // SAFETY: the array belongs to the tensor, which is live.
    let dims = unsafe { ints(tensor.dims) };
    dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// Whether the present dimensions equal `dims`. Does not allocate.
pub(crate) fn has_dims(tensor: &TfLiteTensor, dims: &[usize]) -> bool {
    // SAFETY: the array belongs to the tensor, which is live.
    let found = unsafe { ints(tensor.dims) };
    found.len() == dims.len()
        && found.iter().zip(dims).all(|(&found, &dim)| usize::try_from(found) == Ok(dim))
}

fn operator(
    context: &Context,
    index: c_int,
    tensors: usize,
    constants: &mut Constants,
) -> Result<Operator> {
    let (node, registration) = context.node(index)?;
    let tensor_id = |id: c_int| match usize::try_from(id) {
        Ok(id) if id < tensors => Ok(id),
        _ => Err(Error::TensorIndex { node: index, tensor: id }),
    };
    // Negative indices stand for absent optional tensors.
    let present = |array: &[c_int]| -> Result<Vec<TensorId>> {
        array.iter().filter(|&&id| id >= 0).map(|&id| tensor_id(id)).collect()
    };
    let optional = |&id: &c_int| if id < 0 { Ok(None) } else { tensor_id(id).map(Some) };
    // SAFETY: the arrays belong to the node, which is live.
    let (inputs, outputs, intermediates) =
        unsafe { (ints(node.inputs), ints(node.outputs), ints(node.intermediates)) };
    Ok(Operator {
        op: op(node, registration, constants),
        version: u32::try_from(registration.version).unwrap_or(1),
        inputs: inputs.iter().map(optional).collect::<Result<_>>()?,
        outputs: present(outputs)?,
        intermediates: present(intermediates)?,
    })
}

fn op(node: &TfLiteNode, registration: &TfLiteRegistration, constants: &mut Constants) -> Op {
    if registration.builtin_code == CUSTOM_CODE {
        let size = usize::try_from(node.custom_initial_data_size).unwrap_or(0);
        return Op::Custom(CustomOptions {
            code: text(registration.custom_name),
            options: constants.view(node.custom_initial_data, size).unwrap_or_default(),
        });
    }
    // SAFETY: the interpreter created the data for the operator of the registration.
    unsafe { builtin(registration.builtin_code, node.builtin_data) }
}

fn tensor(tensor: &TfLiteTensor, constants: &mut Constants) -> Tensor {
    // SAFETY: the array belongs to the tensor, which is live.
    let signature = unsafe { ints(tensor.dims_signature) };
    let is_constant = tensor.allocation_type == MMAP_RO;
    let (sparsity, unusable) = match sparsity(tensor.sparsity) {
        Ok(sparsity) => (sparsity, None),
        Err(why) => (None, Some(why)),
    };
    Tensor {
        name: text(tensor.name),
        dtype: dtype(tensor.element_type),
        shape: dims(tensor),
        shape_signature: signature.iter().any(|&dim| dim < 0).then(|| signature.to_vec()),
        quantization: quantization(tensor),
        data: is_constant.then(|| constants.view(tensor.data, tensor.bytes)).flatten(),
        is_variable: tensor.is_variable != 0,
        sparsity: sparsity.map(Arc::new),
        unusable,
    }
}

fn quantization(tensor: &TfLiteTensor) -> Option<Quantization> {
    let TfLiteQuantization { kind, params } = &tensor.quantization;
    let other = Quantization::Other(u8::try_from(*kind).unwrap_or(u8::MAX));
    match *kind {
        0 => None,
        AFFINE_QUANTIZATION => {
            // SAFETY: the kind tells the structure that the interpreter created.
            let params = unsafe { params.cast::<TfLiteAffineQuantization>().as_ref() }?;
            affine(params)
        }
        BLOCKWISE_QUANTIZATION => {
            // SAFETY: the kind tells the structure that the interpreter created.
            let params = unsafe { params.cast::<TfLiteBlockwiseQuantization>().as_ref() }?;
            Some(blockwise(params).unwrap_or(other))
        }
        _ => Some(other),
    }
}

fn affine(params: &TfLiteAffineQuantization) -> Option<Quantization> {
    // SAFETY: the arrays belong to the tensor's quantization, which is live.
    let (scales, zero_points) = unsafe { (floats(params.scale), ints(params.zero_point)) };
    let zero_point = |at: usize| {
        let zero_point = zero_points.get(at).or(zero_points.first()).copied().unwrap_or(0);
        i64::from(zero_point)
    };
    match scales {
        [] => None,
        &[scale] => Some(Quantization::PerTensor { scale, zero_point: zero_point(0) }),
        scales => Some(Quantization::PerAxis {
            scales: scales.into(),
            zero_points: (0..scales.len()).map(zero_point).collect::<Vec<_>>().into(),
            axis: usize::try_from(params.quantized_dimension).ok()?,
        }),
    }
}

fn blockwise(params: &TfLiteBlockwiseQuantization) -> Option<Quantization> {
    Some(Quantization::Blockwise {
        scales: usize::try_from(params.scale).ok()?,
        zero_points: usize::try_from(params.zero_point).ok(),
        block_size: usize::try_from(params.block_size).ok()?,
    })
}

/// Converts the sparsity of a constant, or returns why it is not valid.
fn sparsity(sparsity: *const TfLiteSparsity) -> std::result::Result<Option<Sparsity>, String> {
    // SAFETY: null, or created by the interpreter for a live tensor.
    let Some(sparsity) = (unsafe { sparsity.as_ref() }) else { return Ok(None) };
    let wrong = |_| "its sparsity has negative values".to_owned();
    let sizes = |array| -> std::result::Result<Vec<usize>, String> {
        // SAFETY: the array belongs to the sparsity, which is live.
        let ints = unsafe { ints(array) };
        ints.iter().map(|&int| usize::try_from(int).map_err(wrong)).collect()
    };
    let count = usize::try_from(sparsity.dim_metadata_size).map_err(wrong)?;
    let metadata = match sparsity.dim_metadata.is_null() {
        true => &[],
        // SAFETY: `dim_metadata` has `dim_metadata_size` elements.
        false => unsafe { slice::from_raw_parts(sparsity.dim_metadata, count) },
    };
    let dimensions = metadata.iter().map(|dimension| {
        Ok(if dimension.format == DIM_SPARSE_CSR {
            let (segments, indices) =
                (sizes(dimension.array_segments)?, sizes(dimension.array_indices)?);
            SparseDimension::Csr { segments, indices }
        } else {
            SparseDimension::Dense { size: usize::try_from(dimension.dense_size).map_err(wrong)? }
        })
    });
    Ok(Some(Sparsity {
        dimensions: dimensions.collect::<std::result::Result<_, String>>()?,
        traversal_order: sizes(sparsity.traversal_order)?,
        block_map: sizes(sparsity.block_map)?,
    }))
}
