//! Constant folding: what follows from constants alone is computed once, by the kernels.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use half::f16;
use xnn_model::{
    DType, Inferred, Op, Operator, OutOfMemory, Quantization, Shape, Subgraph, Tensor, TensorId,
    fp16_weights, macs, memory,
};

use crate::error::{Error, ErrorKind};
use crate::interpreter::{Entry, InterpOptions, Interpreter};
use crate::storage::TensorBuf;

/// Results with so many elements may be made of anything.
const FEW_ELEMENTS: usize = 1 << 14;

/// Larger ones have at most so many times the elements of their operands: room for padded weights, none for
/// what is broadcast.
const GROWTH: usize = 2;

/// All results of a subgraph together have at most so many times the bytes of its constants: 4 bits become
/// floats, and floats another order, but a small file does not become a large one.
const TOTAL_GROWTH: usize = 16;

/// Multiplications for which any subgraph has time: a fraction of a second.
const MULTIPLICATIONS: usize = 1 << 28;

/// Adds to what was inferred the results of operators that read nothing but constants.
///
/// The kernels compute them: they are what every run would compute, bit for bit. Left out are operators that are
/// more than functions of their inputs (state, random numbers), outputs of the subgraph, which somebody has to
/// write, and results that are much larger than what they are made of. Filters in fp16 are left to the partitioner.
///
/// # Errors
///
/// Memory is exhausted.
pub fn fold_constants(inferred: &mut Inferred) -> Result<(), OutOfMemory> {
    fold_constants_again(inferred, &[])
}

/// [`fold_constants`] of a subgraph that has been folded before with inputs of other shapes, on which constants do
/// not depend: what was computed is among the values found `earlier`, by tensor.
///
/// # Errors
///
/// Memory is exhausted.
pub fn fold_constants_again(
    inferred: &mut Inferred,
    earlier: &[Option<Bytes>],
) -> Result<(), OutOfMemory> {
    let Inferred { subgraph, values } = inferred;
    values.resize(subgraph.tensors.len(), None);
    // The last operator with these inputs: exporters repeat themselves.
    let mut last: HashMap<&[Option<TensorId>], &Operator> = HashMap::new();
    let is_constant = constant_operators(subgraph).into_iter().zip(fp16_weights(subgraph));
    for (operator, (is_constant, is_half)) in subgraph.operators.iter().zip(is_constant) {
        if !is_constant || is_half {
            continue;
        }
        let known = |operator: &Operator| {
            operator.outputs.iter().map(|&id| values[id].clone()).collect::<Option<Vec<_>>>()
        };
        let was_known = |&id: &TensorId| {
            let fits = |value: &&Bytes| Some(value.len()) == subgraph.tensor(id).byte_size();
            earlier.get(id)?.as_ref().filter(fits).cloned()
        };
        let were_known = || operator.outputs.iter().map(was_known).collect();
        let twin = last.insert(&operator.inputs, operator);
        let twin = twin.filter(|twin| repeats(subgraph, operator, twin));
        let results = known(operator).or_else(were_known).or_else(|| known(twin?));
        let results = match results {
            Some(results) => Some(results),
            None => compute(subgraph, values, operator)?,
        };
        for (&output, result) in operator.outputs.iter().zip(results.into_iter().flatten()) {
            values[output] = Some(result);
        }
    }
    Ok(())
}

/// Of each operator, whether it computes the same in every run and is worth keeping.
pub(crate) fn constant_operators(graph: &Subgraph) -> Vec<bool> {
    let mut is_constant: Vec<bool> =
        graph.tensors.iter().map(|t| t.is_constant() && !t.is_variable).collect();
    let mut budget = Budget::new(graph);
    let mut decide = |operator: &Operator| {
        let is_needed = |id| !graph.outputs.contains(id) && !graph.tensor(*id).is_variable;
        let wanted = is_function(&operator.op)
            && operator.inputs.iter().flatten().all(|&id| is_constant[id])
            && operator.outputs.iter().all(is_needed)
            && budget.spend(graph, operator).is_some();
        if wanted {
            operator.outputs.iter().for_each(|&id| is_constant[id] = true);
        }
        wanted
    };
    graph.operators.iter().map(&mut decide).collect()
}

/// Whether an operator computes what an earlier one with the same inputs does.
fn repeats(graph: &Subgraph, operator: &Operator, earlier: &Operator) -> bool {
    let types = |operator: &Operator| {
        let tensor = |&id: &TensorId| {
            let Tensor { dtype, shape, quantization, .. } = graph.tensor(id);
            (*dtype, shape, quantization)
        };
        operator.outputs.iter().map(tensor).collect::<Vec<_>>()
    };
    earlier.op == operator.op && types(earlier) == types(operator)
}

/// Results of so many bytes are large.
const LARGE: usize = 1 << 16;

/// What the operator computes.
fn compute(
    graph: &Subgraph,
    values: &[Option<Bytes>],
    operator: &Operator,
) -> Result<Option<Vec<Bytes>>, OutOfMemory> {
    // What could be known is not always.
    let is_known = |&id: &TensorId| values[id].is_some() || graph.tensor(id).is_constant();
    if !operator.inputs.iter().flatten().all(is_known) {
        return Ok(None);
    }
    let bytes = sum(graph, &operator.outputs, Tensor::byte_size).unwrap_or(0);
    if bytes >= LARGE {
        memory::ensure(bytes, "a constant that follows from others")?;
    }
    match widen(graph, values, operator) {
        Some(results) => Ok(Some(results)),
        None => run(graph, values, operator),
    }
}

/// What was computed, if it could be; where there was no memory for it, that ends everything.
fn unless_exhausted<T>(computed: Result<T, Error>) -> Result<Option<T>, OutOfMemory> {
    match computed {
        Ok(computed) => Ok(Some(computed)),
        Err(error) => match error.kind() {
            ErrorKind::OutOfMemory(exhausted) => Err(exhausted.clone()),
            _ => Ok(None),
        },
    }
}

/// The floats that an operator makes of fp16 numbers: a model has dozens of these operators, and they need no interpreter.
fn widen(graph: &Subgraph, values: &[Option<Bytes>], operator: &Operator) -> Option<Vec<Bytes>> {
    let (Op::Dequantize, &[Some(input)], &[output]) =
        (&operator.op, operator.inputs.as_slice(), operator.outputs.as_slice())
    else {
        return None;
    };
    let (halves, floats) = (graph.tensor(input), graph.tensor(output));
    let has_elements =
        (halves.dtype, floats.dtype) == (DType::F16, DType::F32) && halves.shape == floats.shape;
    let data = values[input].as_ref().or(halves.data.as_ref()).filter(|_| has_elements)?;
    if Some(data.len()) != halves.byte_size() {
        return None;
    }
    let float = |bytes: &[u8; 2]| f16::from_le_bytes(*bytes).to_f32().to_le_bytes();
    Some(vec![data.as_chunks().0.iter().flat_map(float).collect::<Vec<u8>>().into()])
}

/// Runs the operator as a model of its own.
fn run(
    graph: &Subgraph,
    values: &[Option<Bytes>],
    operator: &Operator,
) -> Result<Option<Vec<Bytes>>, OutOfMemory> {
    let Some(alone) = alone(graph, values, operator) else { return Ok(None) };
    let expected: Vec<Tensor> = alone.outputs.iter().map(|&id| alone.tensor(id).clone()).collect();
    let options = InterpOptions::default();
    let computed = Interpreter::new(&alone.into(), Entry::Main, &options);
    let computed = computed.and_then(|mut interpreter| {
        interpreter.run()?;
        Ok(interpreter)
    });
    let result = |(result, expected): (TensorBuf, &Tensor)| {
        let is_expected = result.dtype() == expected.dtype
            && Some(result.shape()) == expected.shape.as_deref()
            && Some(result.view().bytes.len()) == expected.byte_size();
        is_expected.then(|| Bytes::from_owner(Elements(result)))
    };
    let outputs = unless_exhausted(computed)?.and_then(Interpreter::into_outputs);
    Ok(outputs.and_then(|outputs| outputs.into_iter().zip(&expected).map(result).collect()))
}

/// A subgraph of this operator alone, on constants that are stored plainly.
fn alone(graph: &Subgraph, values: &[Option<Bytes>], operator: &Operator) -> Option<Subgraph> {
    let mut alone = Subgraph::default();
    let mut add = |id: TensorId| {
        let tensor = graph.tensor(id);
        let data = values[id].clone().or_else(|| tensor.data.clone());
        let is_whole = !matches!(tensor.quantization, Some(Quantization::Blockwise { .. }));
        alone.tensors.push(Tensor { data, ..tensor.clone() });
        is_whole.then_some(alone.tensors.len() - 1)
    };
    let inputs = operator.inputs.iter().map(|id| id.map(|id| add(id).ok_or(())).transpose());
    let inputs = inputs.collect::<Result<_, ()>>().ok()?;
    let outputs = operator.outputs.iter().map(|&id| add(id)).collect::<Option<Vec<_>>>()?;
    alone.outputs.clone_from(&outputs);
    let op = operator.op.clone();
    let intermediates = Vec::new();
    let operator = Operator { op, version: operator.version, inputs, outputs, intermediates };
    alone.operators.push(operator);
    Some(alone)
}

/// The bytes of a tensor's elements.
struct Elements(TensorBuf);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.view().bytes
    }
}

/// What folding may still cost.
struct Budget {
    /// Of results.
    bytes: usize,
    /// Elements read and written, and multiplications.
    work: usize,
}

impl Budget {
    fn new(graph: &Subgraph) -> Self {
        // Tensors may share their bytes.
        let mut seen = HashSet::new();
        let constants = graph.tensors.iter().filter_map(|tensor| tensor.data.as_ref());
        let bytes = constants
            .filter(|data| seen.insert(data.as_ptr()))
            .fold(FEW_ELEMENTS, |sum, data| sum.saturating_add(data.len()));
        let bytes = bytes.saturating_mul(TOTAL_GROWTH);
        Self { bytes, work: bytes.saturating_add(MULTIPLICATIONS) }
    }

    /// Takes what an operator costs; `None` if that is too much.
    fn spend(&mut self, graph: &Subgraph, operator: &Operator) -> Option<()> {
        let operands = sum(graph, operator.inputs.iter().flatten(), Tensor::elements)?;
        let results = sum(graph, &operator.outputs, Tensor::elements)?;
        if results > operands.saturating_mul(GROWTH).max(FEW_ELEMENTS) {
            return None;
        }
        let shape = |id: TensorId| graph.tensor(id).shape.as_deref();
        let inputs: Vec<Shape<'_>> = operator.inputs.iter().map(|&id| id.and_then(shape)).collect();
        let outputs: Vec<Shape<'_>> = operator.outputs.iter().map(|&id| shape(id)).collect();
        let macs = usize::try_from(macs(&operator.op, &inputs, &outputs)).ok()?;
        let work = macs.checked_add(operands)?.checked_add(results)?;
        let bytes = sum(graph, &operator.outputs, Tensor::byte_size)?;
        let left =
            Self { bytes: self.bytes.checked_sub(bytes)?, work: self.work.checked_sub(work)? };
        *self = left;
        Some(())
    }
}

fn sum<'a>(
    graph: &Subgraph,
    tensors: impl IntoIterator<Item = &'a TensorId>,
    size: fn(&Tensor) -> Option<usize>,
) -> Option<usize> {
    tensors.into_iter().try_fold(0usize, |sum, &id| sum.checked_add(size(graph.tensor(id))?))
}

/// Whether the results of an operator depend on nothing but its inputs, at a cost that their sizes bound.
fn is_function(op: &Op) -> bool {
    is_elementwise(op) || is_rearrangement(op) || is_reduction_or_product(op)
}

fn is_elementwise(op: &Op) -> bool {
    matches!(
        op,
        Op::Abs
            | Op::Add(_)
            | Op::AddN
            | Op::Cast(_)
            | Op::Ceil
            | Op::Cos
            | Op::Dequantize
            | Op::Div(_)
            | Op::Elu
            | Op::Equal
            | Op::Exp
            | Op::FakeQuant(_)
            | Op::Floor
            | Op::FloorDiv
            | Op::FloorMod
            | Op::Gelu(_)
            | Op::Greater
            | Op::GreaterEqual
            | Op::HardSwish
            | Op::LeakyRelu(_)
            | Op::Less
            | Op::LessEqual
            | Op::Log
            | Op::LogicalAnd
            | Op::LogicalNot
            | Op::LogicalOr
            | Op::Logistic
            | Op::Maximum
            | Op::Minimum
            | Op::Mul(_)
            | Op::Neg
            | Op::NotEqual
            | Op::Pow
            | Op::Prelu
            | Op::Quantize
            | Op::Relu
            | Op::Relu0To1
            | Op::Relu6
            | Op::ReluN1To1
            | Op::Round
            | Op::Rsqrt
            | Op::Select
            | Op::SelectV2
            | Op::Sign
            | Op::Sin
            | Op::Sqrt
            | Op::Square
            | Op::SquaredDifference
            | Op::Sub(_)
            | Op::Tanh
            | Op::ZerosLike
    )
}

fn is_rearrangement(op: &Op) -> bool {
    matches!(
        op,
        Op::BatchToSpaceNd
            | Op::BroadcastTo
            | Op::Concatenation(_)
            | Op::Densify
            | Op::DepthToSpace(_)
            | Op::ExpandDims
            | Op::Fill
            | Op::Gather(_)
            | Op::GatherNd
            | Op::MirrorPad(_)
            | Op::OneHot(_)
            | Op::Pack(_)
            | Op::Pad
            | Op::PadV2
            | Op::Range
            | Op::Rank
            | Op::Reshape(_)
            | Op::ReverseV2
            | Op::Shape(_)
            | Op::Slice
            | Op::SpaceToBatchNd
            | Op::SpaceToDepth(_)
            | Op::Split(_)
            | Op::SplitV(_)
            | Op::Squeeze(_)
            | Op::StridedSlice(_)
            | Op::Tile
            | Op::Transpose
            | Op::Unpack(_)
    )
}

fn is_reduction_or_product(op: &Op) -> bool {
    matches!(
        op,
        Op::BatchMatMul(_)
            | Op::Conv2d(_)
            | Op::Cumsum(_)
            | Op::DepthwiseConv2d(_)
            | Op::FullyConnected(_)
            | Op::L2Normalization(_)
            | Op::LogSoftmax
            | Op::Mean(_)
            | Op::ReduceMax(_)
            | Op::ReduceMin(_)
            | Op::ReduceProd(_)
            | Op::Softmax(_)
            | Op::Sum(_)
    )
}
