//! Merges consecutive transposes, and moves transposes behind other nodes, where they may cancel
//! out.
//!
//! Dimension `i` of a transpose's result is dimension `perm[i]` of its operand.

use xnn_format::{BinaryOp, Datatype, Node, NodeOp, Quantization, ReduceOp, Value, ValueId, flags};

use super::rewriter::Rewriter;
use super::{dead_nodes, identities};

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    match rewrite(rewriter, false) {
        0 => share(rewriter),
        changes => changes,
    }
}

fn rewrite(rewriter: &mut Rewriter, shared: bool) -> usize {
    let mut changes = 0;
    for index in 0..rewriter.len() {
        let changed = merge(rewriter, index) || into_product(rewriter, index);
        changes += usize::from(changed || sink(rewriter, index, shared).is_some());
    }
    changes
}

/// Also moves transposes that several nodes read, which duplicates them. The result is kept only if
/// it transposes fewer bytes.
fn share(rewriter: &mut Rewriter) -> usize {
    if !has_shared(rewriter) {
        return 0;
    }
    let before = transposed_bytes(rewriter);
    let mut trial = rewriter.clone();
    let mut changes = 0;
    // Each round moves every transpose over at least one node, so the loop ends.
    while let count @ 1.. = rewrite(&mut trial, true) {
        changes += count;
        identities::run(&mut trial);
        dead_nodes::run(&mut trial);
        trial.settle();
    }
    if transposed_bytes(&trial) >= before {
        return 0;
    }
    *rewriter = trial;
    changes
}

/// Whether several nodes read the result of a transpose, or the caller and a node.
fn has_shared(rewriter: &Rewriter) -> bool {
    (0..rewriter.len()).any(|index| match rewriter.node(index).map(|node| &node.op) {
        Some(NodeOp::StaticTranspose { output, .. }) => match rewriter.readers(*output) {
            [] => false,
            &[reader, ..] => !rewriter.is_read_only_by(*output, reader),
        },
        _ => false,
    })
}

/// Bytes that all transposes move.
fn transposed_bytes(rewriter: &Rewriter) -> usize {
    let size = |index: usize| match rewriter.node(index)?.op {
        NodeOp::StaticTranspose { output, .. } => rewriter.value(output).byte_size(),
        _ => None,
    };
    (0..rewriter.len()).filter_map(size).fold(0, usize::saturating_add)
}

/// The permutation and the operand of the transpose that writes the value, if one does.
fn transposed(rewriter: &Rewriter, id: ValueId) -> Option<(&[usize], ValueId)> {
    match &rewriter.producer(id)?.1.op {
        NodeOp::StaticTranspose { perm, input, .. } => Some((perm, *input)),
        _ => None,
    }
}

/// Merges a transpose of a transpose into one transpose.
fn merge(rewriter: &mut Rewriter, index: usize) -> bool {
    let Some(NodeOp::StaticTranspose { perm, input, output }) = rewriter.node(index).map(|n| &n.op)
    else {
        return false;
    };
    let Some((first, source)) = transposed(rewriter, *input) else { return false };
    let perm = perm.iter().map(|&dim| first[dim]).collect();
    let op = NodeOp::StaticTranspose { perm, input: source, output: *output };
    rewriter.change(index, |node| node.op = op);
    true
}

/// Moves a transpose into a matrix product, which can transpose its second operand itself.
fn into_product(rewriter: &mut Rewriter, index: usize) -> bool {
    let Some(NodeOp::BatchMatrixMultiply { inputs: [_, second], .. }) =
        rewriter.node(index).map(|node| &node.op)
    else {
        return false;
    };
    let Some((perm, source)) = transposed(rewriter, *second) else { return false };
    let last = perm.len().saturating_sub(2);
    let swaps = perm.len() >= 2
        && perm[..last].is_sorted()
        && perm[last..] == [last + 1, last]
        && rewriter.value(source).datatype == Datatype::F32;
    if swaps {
        rewriter.change(index, |node| {
            node.flags ^= flags::TRANSPOSE_WEIGHTS;
            if let NodeOp::BatchMatrixMultiply { inputs, .. } = &mut node.op {
                inputs[1] = source;
            }
        });
    }
    swaps
}

/// A node after it was moved before the transpose of its operands.
struct Sunk {
    op: NodeOp,
    /// The permutation that the node's result needs.
    perm: Vec<usize>,
}

/// Replaces the transposes of a node's operands by one transpose of its result. At least one of the
/// old transposes must have no other reader, unless `shared`.
fn sink(rewriter: &mut Rewriter, index: usize, shared: bool) -> Option<()> {
    let node = rewriter.node(index)?;
    let &[output] = node.outputs().as_slice() else { return None };
    let inputs = node.inputs();
    let (perm, _) = inputs.iter().find_map(|&id| transposed(rewriter, id))?;
    let is_alone =
        |&id: &ValueId| transposed(rewriter, id).is_some() && rewriter.is_read_only_by(id, index);
    let others = |&id: &ValueId| transposed(rewriter, id).is_some_and(|(other, _)| other != perm);
    let chosen = |&id: &ValueId| is_chosen(rewriter, id, node);
    let may_move = shared || inputs.iter().any(is_alone);
    if !may_move || inputs.iter().any(others) || inputs.iter().any(chosen) {
        return None;
    }
    let perm = perm.to_vec();
    let handle = inputs.iter().find_map(|&id| {
        transposed(rewriter, id).and_then(|_| rewriter.producer(id)?.1.debug_handle)
    });
    let sunk = sunk(rewriter, node, &perm, output)?;
    let sources: Vec<ValueId> = inputs
        .iter()
        .map(|&id| match transposed(rewriter, id) {
            Some((_, source)) => Some(source),
            None => constant_before(rewriter, id, &perm),
        })
        .collect::<Option<_>>()?;
    let dims = before(&rewriter.value(output).dims, &sunk.perm);
    let inner = if sunk.perm.is_sorted() { output } else { rewriter.push_like(output, &dims) };
    rewriter.change(index, |node| {
        node.op = sunk.op;
        // Before the transpose, a reshape's open dimension no longer follows from all others.
        node.flags &= !flags::OPEN_DIMENSION;
        node.inputs_mut().into_iter().zip(sources).for_each(|(id, source)| *id = source);
        node.outputs_mut().into_iter().for_each(|id| *id = inner);
    });
    if inner != output {
        let op = NodeOp::StaticTranspose { perm: sunk.perm, input: inner, output };
        rewriter.push(Node { debug_handle: handle, ..Node::new(op) });
    }
    Some(())
}

/// Whether lowering chose to transpose this operand of the node, which is of the same operator.
fn is_chosen(rewriter: &Rewriter, id: ValueId, node: &Node) -> bool {
    let operator = node.debug_handle;
    let transpose = transposed(rewriter, id).and_then(|_| rewriter.producer(id));
    operator.is_some() && transpose.is_some_and(|(_, first)| first.debug_handle == operator)
}

/// The node for operands without the transpose `perm`.
fn sunk(rewriter: &Rewriter, node: &Node, perm: &[usize], output: ValueId) -> Option<Sunk> {
    let mut sunk = Sunk { op: node.op.clone(), perm: perm.to_vec() };
    match &mut sunk.op {
        // The transpose must not move larger elements than before. Rows with a scale of their own
        // must stay rows.
        NodeOp::Unary { input, .. } => {
            let [from, to] = [*input, output].map(|id| rewriter.value(id).datatype);
            if to == Datatype::QdInt8 || to.bits() > from.bits() {
                return None;
            }
        }
        // Slopes belong to channels, the last dimension.
        NodeOp::Binary { op: BinaryOp::Prelu, inputs: [_, slopes], .. } => {
            let dims = aligned(&rewriter.value(*slopes).dims, perm.len())?;
            let last = perm.len() - 1;
            if dims.iter().zip(perm).any(|(&size, &dim)| size > 1 && dim != last) {
                return None;
            }
        }
        // The other operand may have more dimensions.
        NodeOp::Binary { .. } if rewriter.value(output).dims.len() == perm.len() => {}
        NodeOp::Concatenate { axis, .. } => {
            *axis = u32::try_from(*perm.get(usize::try_from(*axis).ok()?)?).ok()?;
        }
        NodeOp::StaticReshape { new_shape, input, .. } => {
            let dims = &rewriter.value(*input).dims;
            (*new_shape, sunk.perm) = reshape(new_shape, dims, &rewriter.value(output).dims, perm)?;
        }
        NodeOp::StaticSlice { offsets, sizes, .. } => {
            (*offsets, *sizes) = (before(offsets, perm), before(sizes, perm));
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, .. } => {
            (*pre_paddings, *post_paddings) =
                (before(pre_paddings, perm), before(post_paddings, perm));
        }
        NodeOp::GlobalAveragePooling2d { input, .. } if perm.len() == 4 => {
            let input = *input;
            reduce(rewriter, &mut sunk, node.flags, (ReduceOp::Mean, &[1, 2], input), output)?;
        }
        NodeOp::StaticReduce { op, axes, input, .. } => {
            let (op, axes, input) = (*op, axes.clone(), *input);
            reduce(rewriter, &mut sunk, node.flags, (op, &axes, input), output)?;
        }
        _ => return None,
    }
    Some(sunk)
}

/// Moves a sum or mean over `axes` before the transpose.
fn reduce(
    rewriter: &Rewriter,
    sunk: &mut Sunk,
    node_flags: u32,
    (op, axes, input): (ReduceOp, &[usize], ValueId),
    output: ValueId,
) -> Option<()> {
    if rewriter.value(input).datatype != Datatype::F32 {
        return None;
    }
    let rank = sunk.perm.len();
    let mut moved: Vec<usize> = axes.iter().map(|&axis| sunk.perm[axis]).collect();
    moved.sort_unstable();
    if node_flags & flags::KEEP_DIMS == 0 {
        sunk.perm.retain(|dim| !moved.contains(dim));
        let left = sunk.perm.clone();
        let place = |dim: &usize| left.iter().filter(|other| *other < dim).count();
        sunk.perm = left.iter().map(place).collect();
    }
    let is_image_mean = op == ReduceOp::Mean && moved == [1, 2] && rank == 4;
    // Some readers of graphs know no other mean than that of an image.
    if !is_image_mean && matches!(sunk.op, NodeOp::GlobalAveragePooling2d { .. }) {
        return None;
    }
    sunk.op = if is_image_mean {
        NodeOp::GlobalAveragePooling2d { input, output }
    } else {
        NodeOp::StaticReduce { op, axes: moved, input, output }
    };
    Some(())
}

/// Moves a reshape from `from` to `to` that inserts or removes a dimension of size 1 before the
/// transpose. Returns the new shape, and the permutation after it.
fn reshape(
    new_shape: &[usize],
    from: &[usize],
    to: &[usize],
    perm: &[usize],
) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut before = before(from, perm);
    let mut moved = perm.to_vec();
    if let Some(place) = extra_one(to, from) {
        moved.insert(place, before.len());
        before.push(1);
    } else {
        let place = extra_one(from, to)?;
        let removed = moved.remove(place);
        before.remove(removed);
        moved.iter_mut().filter(|dim| **dim > removed).for_each(|dim| *dim -= 1);
    }
    // The inferred dimension stays inferred.
    match new_shape.iter().position(|&dim| dim == 0) {
        None => {}
        Some(0) => before[*moved.first()?] = 0,
        Some(_) => return None,
    }
    Some((before, moved))
}

/// The position, after the first dimension, of a 1 in `longer` that `shorter` lacks.
fn extra_one(longer: &[usize], shorter: &[usize]) -> Option<usize> {
    let without = |place: usize| {
        longer.len() == shorter.len() + 1
            && longer[place] == 1
            && longer[..place] == shorter[..place]
            && longer[place + 1..] == shorter[place..]
    };
    (1..longer.len()).rev().find(|&place| without(place))
}

/// Reorders one element for each dimension of a transpose's result to the order of its operand.
fn before(after: &[usize], perm: &[usize]) -> Vec<usize> {
    let mut before = after.to_vec();
    for (&dim, &element) in perm.iter().zip(after) {
        before[dim] = element;
    }
    before
}

/// Dimensions with ones prepended up to a rank.
fn aligned(dims: &[usize], rank: usize) -> Option<Vec<usize>> {
    let ones = rank.checked_sub(dims.len())?;
    Some(std::iter::repeat_n(1, ones).chain(dims.iter().copied()).collect())
}

/// The constant whose transpose `perm` is the constant `id`.
fn constant_before(rewriter: &mut Rewriter, id: ValueId, perm: &[usize]) -> Option<ValueId> {
    let value = rewriter.value(id).clone();
    let data = value.data.as_ref()?;
    if matches!(
        value.quantization,
        Quantization::PerChannel { .. } | Quantization::Blockwise { .. }
    ) {
        return None;
    }
    if value.dims.iter().all(|&dim| dim == 1) {
        return Some(id);
    }
    let size = value.datatype.bits().checked_div(8).filter(|&size| size > 0)?;
    let dims = aligned(&value.dims, perm.len())?;
    let (dims, data) = (before(&dims, perm), inverse(data, &dims, perm, size));
    let value = Value::new(value.datatype, value.quantization, &dims);
    Some(rewriter.push_value(value.with_data(data.into())))
}

/// Inverts the transpose `perm` of elements of `size` bytes, whose result has these dimensions.
fn inverse(data: &[u8], dims: &[usize], perm: &[usize], size: usize) -> Vec<u8> {
    let sources = before(dims, perm);
    let mut steps = vec![size; sources.len()];
    for dim in (1..steps.len()).rev() {
        steps[dim - 1] = steps[dim] * sources[dim];
    }
    let mut moved = vec![0; data.len()];
    for (index, element) in data.chunks_exact(size).enumerate() {
        let mut rest = index;
        let mut offset = 0;
        for (&dim, &from) in dims.iter().zip(perm).rev() {
            offset += rest % dim * steps[from];
            rest /= dim;
        }
        if let Some(slot) = moved.get_mut(offset..offset + size) {
            slot.copy_from_slice(element);
        }
    }
    moved
}
