//! Operators that move and compare strings, by means of their kernels for integers.

use std::collections::HashMap;

use xnn_model::{DType, Op, Subgraph, TensorId};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{Kernel, OperatorContext, Prepare, Run, run};
use crate::storage::TensorBuf;
use crate::strings::unpack;

/// Whether an operator only moves elements and compares them for equality. Padding elements are 0.
fn moves(op: &Op) -> bool {
    matches!(
        op,
        Op::BroadcastTo
            | Op::Concatenation(_)
            | Op::Equal
            | Op::ExpandDims
            | Op::Fill
            | Op::Gather(_)
            | Op::GatherNd
            | Op::HashtableLookup
            | Op::NotEqual
            | Op::Pack(_)
            | Op::Reshape(_)
            | Op::ReverseV2
            | Op::Select
            | Op::SelectV2
            | Op::Slice
            | Op::Split(_)
            | Op::SplitV(_)
            | Op::Squeeze(_)
            | Op::StridedSlice(_)
            | Op::Tile
            | Op::Transpose
            | Op::Unpack(_)
    )
}

/// Prepares the kernel of an operator. For strings, the kernel moves integers that represent them.
pub(crate) fn prepare(context: &OperatorContext<'_>, prepare: Prepare) -> Result<Run, Refusal> {
    let is_string = |id: &TensorId| {
        context.subgraph.tensors.get(*id).is_some_and(|tensor| tensor.dtype == DType::String)
    };
    let mut operands = context.operator.inputs.iter().flatten().chain(&context.operator.outputs);
    if !moves(&context.operator.op) || !operands.any(is_string) {
        return prepare(context);
    }
    let mut tensors = context.subgraph.tensors.clone();
    for tensor in tensors.iter_mut().filter(|tensor| tensor.dtype == DType::String) {
        // Constants are passed with the call, like all other inputs.
        (tensor.dtype, tensor.data) = (DType::I32, None);
    }
    let subgraph = Subgraph { tensors, ..Subgraph::default() };
    let kernel = prepare(&OperatorContext { subgraph: &subgraph, ..*context })?;
    run(move |call| by_index(call, &*kernel))
}

/// Runs a kernel on integers in place of strings. Equal strings have the same integer, the empty
/// one 0.
fn by_index(call: &mut Call<'_>, kernel: &dyn Kernel) -> Result<(), Refusal> {
    let mut strings: Vec<&[u8]> = vec![&[]];
    let mut numbers: HashMap<&[u8], i32> = HashMap::from([(&[][..], 0)]);
    let mut inputs: Vec<Option<TensorBuf>> = Vec::with_capacity(call.inputs.len());
    for input in &call.inputs {
        let Some(input) = input.filter(|input| input.dtype == DType::String) else {
            inputs.push(None);
            continue;
        };
        let mut numbered = Vec::new();
        for string in unpack(input.shape, input.bytes)? {
            let number = *numbers.entry(string).or_insert_with(|| {
                strings.push(string);
                // There are fewer strings than bytes, whose number is below 2^31.
                strings.len() as i32 - 1
            });
            numbered.push(number);
        }
        inputs.push(TensorBuf::from_slice(input.shape, &numbered));
    }
    let is_string = |dtype| dtype == DType::String;
    let mut moved = Vec::with_capacity(call.outputs.len());
    for output in &call.outputs {
        let numbers =
            is_string(output.dtype()).then(|| TensorBuf::zeros(DType::I32, output.shape()));
        moved.push(numbers.map(|buf| buf.ok_or_else(no_memory)).transpose()?);
    }
    run_on(call, kernel, &inputs, &mut moved)?;
    for (position, moved) in moved.iter().enumerate() {
        let Some(moved) = moved else { continue };
        let view = moved.view();
        let string = |&number: &i32| strings.get(usize::try_from(number).ok()?).copied();
        let chosen = view.as_slice::<i32>().and_then(|view| view.iter().map(string).collect());
        let chosen: Vec<&[u8]> =
            chosen.ok_or_else(|| Refusal("the kernel returned an invalid string index".into()))?;
        call.put_strings(position, view.shape, &chosen)?;
    }
    Ok(())
}

/// Runs a kernel with some inputs and outputs replaced.
fn run_on(
    call: &mut Call<'_>,
    kernel: &dyn Kernel,
    inputs: &[Option<TensorBuf>],
    outputs: &mut [Option<TensorBuf>],
) -> Result<(), Refusal> {
    let given = inputs.iter().zip(&call.inputs);
    let inputs = given.map(|(own, input)| own.as_ref().map(TensorBuf::view).or(*input)).collect();
    let given = outputs.iter_mut().zip(&mut call.outputs);
    let outputs = given
        .map(|(own, output)| match own {
            Some(own) => own.output(),
            None => output.reborrow(),
        })
        .collect();
    let mut inner = Call {
        inputs,
        outputs,
        states: Default::default(),
        tables: &mut *call.tables,
        generators: &mut *call.generators,
        scratch: call.scratch.as_deref_mut(),
        max_tensor_bytes: call.max_tensor_bytes,
        exhausted: None,
    };
    let ran = kernel.compute(&mut inner);
    call.exhausted = inner.exhausted;
    ran
}

fn no_memory() -> Refusal {
    Refusal("there is no memory for the indices of strings".into())
}

/// Returns an error unless an input has strings or 64-bit integers, which tables contain, or 32-bit
/// integers, which are widened.
pub(super) fn expect_atoms(context: &OperatorContext<'_>, position: usize) -> Result<(), Refusal> {
    match context.input(position)?.dtype {
        DType::I64 | DType::I32 | DType::String => Ok(()),
        other => refuse(format!("input {position} is {other}, expected integers or strings")),
    }
}
