//! Shape inference: the shapes that operators give to their outputs.
//!
//! The rules are those of TFLite's kernels. A rule sees what is known when it
//! is asked: the partitioner asks before anything has run and knows constants;
//! an interpreter asks with every input at hand. What cannot be known yet is
//! [`OutputShape::Dynamic`], never a guess.

mod arrange;
mod custom;
mod index;
mod math;
mod recurrent;
mod values;
mod window;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::graph::{Operator, Subgraph, Tensor, TensorId, decode_ints};
use crate::op::Op;
use crate::sparse::unpack;
use crate::types::{DType, element_count};

pub use index::{StridedSlice, StridedSliceBounds};
pub use math::{axes_of_reduction, axis_in_rank, broadcast_shapes};
pub use window::{SpatialWindow, Window};

/// What inference may know of an input.
#[derive(Clone, Debug)]
pub struct Fact<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, if known.
    pub shape: Option<Cow<'a, [usize]>>,
    /// Elements, little endian, if known.
    pub data: Option<Cow<'a, [u8]>>,
}

impl<'a> Fact<'a> {
    /// A fact with everything known.
    #[must_use]
    pub fn known(dtype: DType, shape: &'a [usize], data: &'a [u8]) -> Self {
        Self { dtype, shape: Some(Cow::Borrowed(shape)), data: Some(Cow::Borrowed(data)) }
    }

    /// The elements as integers; `None` where they are unknown or not integers.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        decode_ints(self.dtype, self.data.as_deref()?)
    }
}

/// What inference says of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// These dimensions.
    Known(Vec<usize>),
    /// Depends on values or shapes that are not known yet.
    Dynamic,
    /// No rule (custom operators, control flow, variables): what the file
    /// states has to do.
    Stated,
}

/// Why a rule gives no shape.
enum Stop {
    Dynamic,
    Stated,
    Invalid(String),
}

type Rule<T = Vec<Vec<usize>>> = Result<T, Stop>;

fn invalid<T>(message: impl Into<String>) -> Rule<T> {
    Err(Stop::Invalid(message.into()))
}

/// A subgraph in which every shape that can be known is filled in.
///
/// A shape that follows from the inputs replaces the one that the file states,
/// as it does in TFLite; one that depends on values becomes `None`. Small
/// integer values (a SHAPE, a slice of it, ...) are followed through the graph,
/// so that a RESHAPE by a computed shape is known where the shapes are.
///
/// What the file states of an operator without a rule, and of an input that may have other sizes, is taken for what it
/// is until an operator behind it cannot take it: then that operator's results are left to the run, which knows better.
///
/// Sparse constants become dense where operators read them as weights; see [`densified`](crate::densified).
///
/// A subgraph that nobody else has is changed in place; another is copied, unless it states all shapes.
///
/// # Errors
///
/// If an operator cannot take the shapes of its inputs.
pub fn infer_shapes(subgraph: Arc<Subgraph>) -> Result<Arc<Subgraph>, Error> {
    infer(subgraph).map(|inferred| inferred.subgraph)
}

/// What [`infer`] finds out.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The subgraph with every shape that can be known.
    pub subgraph: Arc<Subgraph>,
    /// For each tensor that operators write, its elements where they are known before a run, little
    /// endian: small integer tensors that follow from the shapes, and what else was found out.
    pub values: Vec<Option<Bytes>>,
}

/// [`infer_shapes`], and the values that were followed on the way.
///
/// # Errors
///
/// If an operator cannot take the shapes of its inputs.
pub fn infer(mut subgraph: Arc<Subgraph>) -> Result<Inferred, Error> {
    unpack(&mut subgraph);
    let mut values: Vec<Option<Bytes>> = vec![None; subgraph.tensors.len()];
    // Tensors whose shape follows from what the file states and may be another in a run.
    let mut is_stated = vec![false; subgraph.tensors.len()];
    for &input in &subgraph.inputs {
        if let (Some(stated), Some(tensor)) =
            (is_stated.get_mut(input), subgraph.tensors.get(input))
        {
            *stated = is_open(tensor);
        }
    }
    let mut found: Vec<(TensorId, Option<Vec<usize>>)> = Vec::new();
    for index in 0..subgraph.operators.len() {
        let operator = &subgraph.operators[index];
        let facts = facts_of(&subgraph, &values, operator);
        let follows =
            operator.inputs.iter().flatten().any(|&input| is_stated.get(input) == Some(&true));
        let shapes = match infer_op_shapes(&operator.op, &facts, operator.outputs.len()) {
            Err(_) if follows => vec![OutputShape::Dynamic; operator.outputs.len()],
            shapes => shapes.map_err(|e| e.in_operator(index, operator.op.name()))?,
        };
        let folded = values::fold(&operator.op, &facts, &shapes);
        for (&output, shape) in operator.outputs.iter().zip(shapes) {
            let Some(tensor) = subgraph.tensors.get(output) else { continue };
            is_stated[output] = follows || shape == OutputShape::Stated;
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape),
                OutputShape::Dynamic => None,
                OutputShape::Stated if has_open_rank(tensor) => None,
                OutputShape::Stated => continue,
            };
            if tensor.shape != shape {
                found.push((output, shape));
            }
        }
        for (&output, data) in operator.outputs.iter().zip(folded.into_iter().flatten()) {
            if let Some(value) = values.get_mut(output) {
                *value = Some(data.into());
            }
        }
        if !found.is_empty() {
            let tensors = &mut Arc::make_mut(&mut subgraph).tensors;
            for (output, shape) in found.drain(..) {
                tensors[output].shape = shape;
            }
        }
    }
    Ok(Inferred { subgraph, values })
}

/// Whether a run may give an input other dimensions than the file states. One without elements has to have others, if it
/// is to be of any use.
fn is_open(tensor: &Tensor) -> bool {
    tensor.shape_signature.is_some()
        || tensor.shape.as_ref().is_some_and(|shape| shape.contains(&0))
}

/// Whether the file leaves out even the number of dimensions.
fn has_open_rank(tensor: &Tensor) -> bool {
    tensor.shape_signature.as_ref().is_some_and(Vec::is_empty)
}

fn facts_of<'a>(
    subgraph: &'a Subgraph,
    values: &'a [Option<Bytes>],
    operator: &Operator,
) -> Vec<Option<Fact<'a>>> {
    let fact = |id: usize| {
        let tensor = subgraph.tensors.get(id)?;
        let shape = tensor.shape.as_deref();
        let computed = values.get(id).and_then(Option::as_deref);
        // Files' constants without bytes are marked as constants when they are read (`mark_empty_constants`). Interpreters
        // take them for inputs, which callers may resize: they stay such, and are known to be empty where no size is open.
        let is_empty = shape.is_some_and(|shape| shape.contains(&0));
        let none = (is_empty && tensor.shape_signature.is_none()).then_some([].as_slice());
        Some(Fact {
            dtype: tensor.dtype,
            shape: shape.map(Cow::Borrowed),
            data: computed.or(tensor.data.as_deref()).or(none).map(Cow::Borrowed),
        })
    };
    operator.inputs.iter().map(|input| input.and_then(fact)).collect()
}

/// The shapes of the outputs of one operator; as many as `outputs`.
///
/// `inputs` has one entry per input of the operator, `None` where an optional
/// one is left out.
///
/// # Errors
///
/// If the operator cannot take these inputs; the error does not name the
/// operator yet.
pub fn infer_op_shapes(
    op: &Op,
    inputs: &[Option<Fact<'_>>],
    outputs: usize,
) -> Result<Vec<OutputShape>, Error> {
    match apply(op, &Inputs { facts: inputs }, outputs) {
        Ok(shapes) if shapes.len() < outputs => {
            Err(Error::invalid(format!("has {outputs} outputs where {} are defined", shapes.len())))
        }
        Ok(shapes) if shapes.iter().any(|shape| element_count(shape).is_none()) => {
            Err(Error::invalid("the output has more elements than can be counted"))
        }
        Ok(shapes) => Ok(shapes.into_iter().take(outputs).map(OutputShape::Known).collect()),
        Err(Stop::Dynamic) => Ok(vec![OutputShape::Dynamic; outputs]),
        Err(Stop::Stated) => Ok(vec![OutputShape::Stated; outputs]),
        Err(Stop::Invalid(message)) => Err(Error::invalid(message)),
    }
}

/// The inputs of an operator, as rules ask for them.
struct Inputs<'a> {
    facts: &'a [Option<Fact<'a>>],
}

impl Inputs<'_> {
    fn len(&self) -> usize {
        self.facts.len()
    }

    fn has(&self, position: usize) -> bool {
        matches!(self.facts.get(position), Some(Some(_)))
    }

    fn fact(&self, position: usize) -> Rule<&Fact<'_>> {
        match self.facts.get(position) {
            Some(Some(fact)) => Ok(fact),
            _ => invalid(format!("input {position} is missing")),
        }
    }

    fn shape(&self, position: usize) -> Rule<&[usize]> {
        self.fact(position)?.shape.as_deref().ok_or(Stop::Dynamic)
    }

    /// The shape of an input that must have `N` dimensions.
    fn dims<const N: usize>(&self, position: usize) -> Rule<[usize; N]> {
        let shape = self.shape(position)?;
        shape.try_into().or_else(|_| {
            invalid(format!("input {position} has rank {}, expected {N}", shape.len()))
        })
    }

    fn ints(&self, position: usize) -> Rule<Vec<i64>> {
        let fact = self.fact(position)?;
        if fact.data.is_none() {
            return Err(Stop::Dynamic);
        }
        fact.ints().ok_or_else(|| {
            Stop::Invalid(format!("input {position} is {}, expected integers", fact.dtype))
        })
    }

    fn int(&self, position: usize) -> Rule<i64> {
        match self.ints(position)?.as_slice() {
            [value] => Ok(*value),
            many => invalid(format!("input {position} has {} elements, expected 1", many.len())),
        }
    }

    /// The elements of an input that is a shape.
    fn as_shape(&self, position: usize) -> Rule<Vec<usize>> {
        self.ints(position)?.into_iter().map(size).collect()
    }
}

/// A dimension from a number that a file gives.
fn size(value: i64) -> Rule<usize> {
    usize::try_from(value).or_else(|_| invalid(format!("{value} is not a size")))
}

fn positive(value: i32, what: &str) -> Rule<usize> {
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => invalid(format!("{what} is {value}, expected a positive number")),
    }
}

fn one(shape: Vec<usize>) -> Rule {
    Ok(vec![shape])
}

/// One line per operator, alphabetical within a family.
fn apply(op: &Op, inputs: &Inputs<'_>, outputs: usize) -> Rule {
    match op {
        // The shape of the first input.
        Op::Abs
        | Op::AddN
        | Op::Bucketize(_)
        | Op::Cast(_)
        | Op::Ceil
        | Op::ComplexAbs
        | Op::Cos
        | Op::Cumsum(_)
        | Op::Densify
        | Op::Dequantize
        | Op::DynamicUpdateSlice
        | Op::Elu
        | Op::Exp
        | Op::FakeQuant(_)
        | Op::Floor
        | Op::Gelu(_)
        | Op::HardSwish
        | Op::Imag
        | Op::InstanceNorm(_)
        | Op::L2Normalization(_)
        | Op::LeakyRelu(_)
        | Op::LocalResponseNormalization(_)
        | Op::Log
        | Op::LogSoftmax
        | Op::LogicalNot
        | Op::Logistic
        | Op::MatrixSetDiag
        | Op::Neg
        | Op::Prelu
        | Op::Quantize
        | Op::Real
        | Op::Relu
        | Op::Relu0To1
        | Op::Relu6
        | Op::ReluN1To1
        | Op::ReverseSequence(_)
        | Op::ReverseV2
        | Op::RmsNorm(_)
        | Op::Rope(_)
        | Op::Round
        | Op::Rsqrt
        | Op::Sign
        | Op::Sin
        | Op::Softmax(_)
        | Op::Sqrt
        | Op::Square
        | Op::Tanh
        | Op::ZerosLike => one(inputs.shape(0)?.to_vec()),
        // Broadcasting.
        Op::Add(_)
        | Op::Atan2
        | Op::BitwiseXor
        | Op::Div(_)
        | Op::Equal
        | Op::FloorDiv
        | Op::FloorMod
        | Op::Greater
        | Op::GreaterEqual
        | Op::Less
        | Op::LessEqual
        | Op::LogicalAnd
        | Op::LogicalOr
        | Op::Maximum
        | Op::Minimum
        | Op::Mul(_)
        | Op::NotEqual
        | Op::Pow
        | Op::RightShift
        | Op::SquaredDifference
        | Op::Sub(_) => math::broadcast(inputs, &[0, 1]),
        Op::Select => one(inputs.shape(1)?.to_vec()),
        Op::SelectV2 => math::broadcast(inputs, &[0, 1, 2]),
        // Windows.
        Op::AveragePool2d(options) | Op::L2Pool2d(options) | Op::MaxPool2d(options) => {
            window::pool(inputs, options)
        }
        Op::Conv2d(options) => window::conv(inputs, options),
        Op::Conv3d(options) => window::conv_3d(inputs, options),
        Op::Conv3dTranspose(_) => window::transpose_conv_3d(inputs),
        Op::DepthwiseConv2d(options) => window::depthwise_conv(inputs, options),
        Op::ResizeBilinear(_) | Op::ResizeNearestNeighbor(_) => window::resize(inputs),
        Op::TransposeConv(options) => window::transpose_conv(inputs, options),
        // Products, reductions and the like.
        Op::ArgMax(_) | Op::ArgMin(_) => math::arg_min_max(inputs),
        Op::BatchMatMul(options) => math::batch_matmul(inputs, options),
        Op::FullyConnected(options) => math::fully_connected(inputs, options),
        Op::Mean(options)
        | Op::ReduceAll(options)
        | Op::ReduceAny(options)
        | Op::ReduceMax(options)
        | Op::ReduceMin(options)
        | Op::ReduceProd(options)
        | Op::Sum(options) => math::reduce(inputs, options.keep_dims),
        Op::NonMaxSuppressionV4 | Op::NonMaxSuppressionV5 => math::non_max_suppression(op, inputs),
        Op::Rfft2d => math::rfft2d(inputs),
        Op::TopkV2 => math::top_k(inputs),
        Op::Multinomial(_) => math::multinomial(inputs),
        Op::SegmentSum => Err(Stop::Dynamic),
        Op::UnsortedSegmentMax
        | Op::UnsortedSegmentMin
        | Op::UnsortedSegmentProd
        | Op::UnsortedSegmentSum => math::unsorted_segment(inputs),
        // Shapes as values.
        Op::BroadcastArgs => math::broadcast_args(inputs),
        Op::Fill | Op::RandomStandardNormal(_) | Op::RandomUniform(_) => one(inputs.as_shape(0)?),
        Op::Range => math::range(inputs),
        Op::Rank => one(vec![]),
        Op::Hashtable(_) | Op::HashtableSize | Op::VarHandle(_) => one(vec![1]),
        Op::ScatterNd => one(inputs.as_shape(2)?),
        Op::Shape(_) => one(vec![inputs.shape(0)?.len()]),
        Op::SparseToDense(_) => one(inputs.as_shape(1)?),
        // Rearrangement.
        Op::BatchToSpaceNd => arrange::batch_to_space(inputs),
        Op::Bitcast => Err(Stop::Stated),
        Op::BroadcastTo => arrange::broadcast_to(inputs),
        Op::Concatenation(options) => arrange::concatenation(inputs, options.axis),
        Op::DepthToSpace(options) => arrange::depth_to_space(inputs, options.block_size),
        Op::ExpandDims => arrange::expand_dims(inputs),
        Op::MatrixDiag => arrange::matrix_diag(inputs),
        Op::MirrorPad(_) | Op::Pad | Op::PadV2 => arrange::pad(inputs),
        Op::Pack(options) => arrange::pack(inputs, options.axis),
        Op::Reshape(options) => arrange::reshape(inputs, options),
        Op::SpaceToBatchNd => arrange::space_to_batch(inputs),
        Op::SpaceToDepth(options) => arrange::space_to_depth(inputs, options.block_size),
        Op::Squeeze(options) => arrange::squeeze(inputs, &options.squeeze_dims),
        Op::Tile => arrange::tile(inputs),
        Op::Transpose => arrange::transpose(inputs),
        // Selection by index.
        Op::EmbeddingLookup | Op::HashtableLookup => index::lookup(op, inputs),
        Op::Gather(options) => index::gather(inputs, options),
        Op::GatherNd => index::gather_nd(inputs),
        Op::HashtableFind => one(inputs.shape(1)?.to_vec()),
        Op::OneHot(options) => index::one_hot(inputs, options.axis),
        Op::Slice => index::slice(inputs),
        Op::Split(options) => index::split(inputs, options.num_splits, outputs),
        Op::SplitV(_) => index::split_v(inputs),
        Op::StridedSlice(options) => index::strided_slice(inputs, options),
        Op::Unpack(options) => index::unpack(inputs, options.axis, outputs),
        Op::Unique(_) | Op::Where => Err(Stop::Dynamic),
        // State from step to step.
        Op::BidirectionalSequenceLstm(options) => recurrent::bidirectional_lstm(inputs, options),
        Op::BidirectionalSequenceRnn(options) => recurrent::bidirectional_rnn(inputs, options),
        Op::Lstm(options) => recurrent::lstm(inputs, options, outputs),
        Op::Rnn(_) => recurrent::rnn(inputs),
        Op::Svdf(options) => recurrent::svdf(inputs, options.rank),
        Op::UnidirectionalSequenceLstm(_) => recurrent::sequence_lstm(inputs),
        Op::UnidirectionalSequenceRnn(_) => recurrent::sequence_rnn(inputs),
        Op::Custom(options) => custom::shapes(inputs, options),
        _ => Err(Stop::Stated),
    }
}

#[cfg(test)]
mod tests;
