//! Operators that compute the same constants in every run, and the bounds of folding.

use std::collections::HashSet;

use xnn_model::{Op, Operator, Subgraph, Tensor, TensorId};

/// Number of elements up to which a result may be computed from operands of any size.
const FEW_ELEMENTS: usize = 1 << 14;

/// Larger results have at most this many times the elements of their operands: enough for padded
/// weights, not for broadcasts.
const GROWTH: usize = 2;

/// All results of a subgraph together have at most this many times the bytes of its constants. This
/// allows unpacking 4-bit weights to floats, but a small file cannot become a large one.
const TOTAL_GROWTH: usize = 16;

/// Multiplications that folding may use in any subgraph: a fraction of a second.
const MULTIPLICATIONS: usize = 1 << 28;

/// For each operator, whether it computes the same in every run and folding it is within the
/// bounds.
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

/// The remaining budget of folding.
struct Budget {
    /// Bytes of results.
    bytes: usize,
    /// Elements read and written, and multiplications.
    work: usize,
}

impl Budget {
    fn new(graph: &Subgraph) -> Self {
        // Tensors may share their bytes, which count once.
        let mut seen = HashSet::new();
        let constants = graph.tensors.iter().filter_map(|tensor| tensor.data.as_ref());
        let bytes = constants
            .filter(|data| seen.insert(data.as_ptr()))
            .fold(FEW_ELEMENTS, |sum, data| sum.saturating_add(data.len()));
        let bytes = bytes.saturating_mul(TOTAL_GROWTH);
        Self { bytes, work: bytes.saturating_add(MULTIPLICATIONS) }
    }

    /// Spends the cost of an operator, or returns `None` if the budget does not suffice.
    fn spend(&mut self, graph: &Subgraph, operator: &Operator) -> Option<()> {
        let operands = sum(graph, operator.inputs.iter().flatten(), Tensor::elements)?;
        let results = sum(graph, &operator.outputs, Tensor::elements)?;
        if results > operands.saturating_mul(GROWTH).max(FEW_ELEMENTS) {
            return None;
        }
        let macs = usize::try_from(graph.macs_of(operator)).ok()?;
        let work = macs.checked_add(operands)?.checked_add(results)?;
        let bytes = sum(graph, &operator.outputs, Tensor::byte_size)?;
        let left =
            Self { bytes: self.bytes.checked_sub(bytes)?, work: self.work.checked_sub(work)? };
        *self = left;
        Some(())
    }
}

pub(crate) fn sum<'a>(
    graph: &Subgraph,
    tensors: impl IntoIterator<Item = &'a TensorId>,
    size: fn(&Tensor) -> Option<usize>,
) -> Option<usize> {
    tensors.into_iter().try_fold(0usize, |sum, &id| sum.checked_add(size(graph.tensor(id))?))
}

/// Whether the results of an operator depend only on its inputs, at a cost that their sizes bound.
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
