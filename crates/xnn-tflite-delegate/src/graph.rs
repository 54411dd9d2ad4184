//! The interpreter's graph as the same representation that files give.

use std::ffi::{CStr, c_char, c_int};
use std::slice;
use std::sync::Arc;

use xnn_model::op::{CUSTOM_CODE, CustomOptions};
use xnn_model::{
    DType, Op, Operator, Quantization, SparseDimension, Sparsity, Subgraph, Tensor, TensorId,
};

use crate::abi::{
    AFFINE_QUANTIZATION, BLOCKWISE_QUANTIZATION, DIM_SPARSE_CSR, MMAP_RO, TfLiteAffineQuantization,
    TfLiteBlockwiseQuantization, TfLiteNode, TfLiteQuantization, TfLiteRegistration,
    TfLiteSparsity, TfLiteTensor, floats, ints,
};
use crate::builtin_data::builtin;
use crate::constants::Constants;
use crate::context::Context;
use crate::error::{Error, Result};

/// The nodes of `plan` and all tensors, under the interpreter's indices of tensors. Operator `i` is
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
    // The context does not tell the graph's inputs and outputs. Seen as one kernel, all nodes
    // together would have to write exactly the outputs.
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

/// Present dimensions; `None` where the tensor has none yet.
pub(crate) fn dims(tensor: &TfLiteTensor) -> Option<Vec<usize>> {
    if tensor.dims.is_null() {
        return None;
    }
    // SAFETY: the array belongs to the tensor, which is live.
    let dims = unsafe { ints(tensor.dims) };
    dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// Whether the present dimensions are these; allocates nothing.
pub(crate) fn has_dims(tensor: &TfLiteTensor, dims: &[usize]) -> bool {
    // SAFETY: the array belongs to the tensor, which is live.
    let found = unsafe { ints(tensor.dims) };
    found.len() == dims.len()
        && found.iter().zip(dims).all(|(&found, &dim)| usize::try_from(found) == Ok(dim))
}

/// The element type with TFLite's code.
pub(crate) fn dtype(code: c_int) -> DType {
    match code {
        1 => DType::F32,
        2 => DType::I32,
        3 => DType::U8,
        4 => DType::I64,
        5 => DType::String,
        6 => DType::Bool,
        7 => DType::I16,
        8 => DType::Complex64,
        9 => DType::I8,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::Complex128,
        13 => DType::U64,
        14 => DType::Resource,
        15 => DType::Variant,
        16 => DType::U32,
        17 => DType::U16,
        18 => DType::I4,
        19 => DType::BF16,
        20 => DType::I2,
        21 => DType::U4,
        other => DType::Other(i8::try_from(other).unwrap_or(-1)),
    }
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
    // Negative indices are optional tensors that are left out.
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
    // SAFETY: the runtime made the data for the operator that the registration names.
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
            // SAFETY: the kind says what the runtime made.
            let params = unsafe { params.cast::<TfLiteAffineQuantization>().as_ref() }?;
            affine(params)
        }
        BLOCKWISE_QUANTIZATION => {
            // SAFETY: the kind says what the runtime made.
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

/// How a constant is compressed, or why that is not understood.
fn sparsity(sparsity: *const TfLiteSparsity) -> std::result::Result<Option<Sparsity>, String> {
    // SAFETY: null, or made by the runtime for a live tensor.
    let Some(sparsity) = (unsafe { sparsity.as_ref() }) else { return Ok(None) };
    let wrong = |_| "its sparsity has negative numbers".to_owned();
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

pub(crate) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: a string of the runtime's, which is live.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
