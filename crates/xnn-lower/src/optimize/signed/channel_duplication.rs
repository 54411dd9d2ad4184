//! Repeats channels so that weights outside the range of int8 have exact results.
//!
//! Where `w` does not fit, `w * x` is computed as `(w - r) * x + r * x'`, where `x'` is the same
//! channel repeated. The largest weight determines the range of unsigned weights, so that most
//! layers have only one weight that does not fit, and need one more input channel. The layer before
//! computes the channel twice, and channelwise operators in between pass it on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use xnn_format::{BinaryOp, NodeOp, UnaryOp, ValueId};

use super::super::rewriter::Rewriter;
use super::layers::{Layer, LayerKind, is_unsigned};
use super::weights::can_be_split;

/// Smallest number of channels for each repeated channel.
const CHANNELS_PER_REPEAT: usize = 8;

/// The channels to repeat, by value.
#[derive(Debug, Default)]
pub(super) struct RepeatedChannels {
    /// The group of each value. All values of a group have the same channels.
    groups: HashMap<ValueId, ValueId>,
    channels: BTreeMap<ValueId, Vec<usize>>,
}

impl RepeatedChannels {
    /// The channels of a value that are repeated after the others; none for most values.
    pub fn of(&self, value: ValueId) -> &[usize] {
        let group = self.groups.get(&value).copied().unwrap_or(value);
        self.channels.get(&group).map_or(&[], Vec::as_slice)
    }

    /// All values with repeated channels.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &[usize])> {
        self.groups.keys().map(|&value| (value, self.of(value))).filter(|(_, c)| !c.is_empty())
    }
}

/// Finds channels to repeat so that as many `layers` as possible are exact in int8.
pub(super) fn plan(rewriter: &Rewriter, layers: &[Layer]) -> RepeatedChannels {
    let groups = groups(rewriter);
    let group_of = |id: ValueId| groups.get(&id).copied().unwrap_or(id);
    let by_node: HashMap<usize, &Layer> = layers.iter().map(|layer| (layer.node, layer)).collect();

    let mut channels: BTreeMap<ValueId, BTreeSet<usize>> = BTreeMap::new();
    for layer in
        layers.iter().filter(|layer| layer.kind == LayerKind::Convolution && layer.worthwhile)
    {
        let filter = rewriter.value(layer.filter);
        let (Some(data), Some(&row)) = (filter.data.as_deref(), filter.dims.last()) else {
            continue;
        };
        let few = layer.overflow.len() <= row.div_ceil(CHANNELS_PER_REPEAT);
        if few && layer.overflow.iter().all(|&p| can_be_split(layer.weight(data, p))) {
            let repeated = layer.overflow.iter().map(|&position| position % row);
            channels.entry(group_of(layer.input)).or_default().extend(repeated);
        }
    }
    let mut blocked = BTreeSet::new();
    for (&value, &group) in &groups {
        let repeated = channels.get(&group).map_or(0, BTreeSet::len);
        let width = rewriter.value(value).dims.last().copied().unwrap_or(0);
        if repeated > width.div_ceil(CHANNELS_PER_REPEAT) || !can_widen(rewriter, value, &by_node) {
            blocked.insert(group);
        }
    }
    let channels = channels
        .into_iter()
        .filter(|(group, channels)| !channels.is_empty() && !blocked.contains(group))
        .map(|(group, channels)| (group, channels.into_iter().collect()))
        .collect();
    RepeatedChannels { groups, channels }
}

/// The group of each unsigned tensor, represented by one tensor of the group. Channelwise nodes
/// connect the tensors of a group.
fn groups(rewriter: &Rewriter) -> HashMap<ValueId, ValueId> {
    let mut parents: HashMap<ValueId, ValueId> = HashMap::new();
    let mut union = |a: ValueId, b: ValueId| {
        let (a, b) = (find(&mut parents, a), find(&mut parents, b));
        parents.insert(a.max(b), a.min(b));
    };
    for node in (0..rewriter.len()).filter_map(|index| rewriter.node(index)) {
        let tensors = || node.inputs().into_iter().chain(node.outputs());
        for id in tensors().filter(|&id| is_tensor(rewriter, id)) {
            union(id, id);
        }
        if let Some((inputs, output)) = channelwise(rewriter, &node.op) {
            inputs.into_iter().for_each(|input| union(input, output));
        }
    }
    let values: Vec<ValueId> = parents.keys().copied().collect();
    values.into_iter().map(|id| (id, find(&mut parents, id))).collect()
}

fn find(parents: &mut HashMap<ValueId, ValueId>, id: ValueId) -> ValueId {
    let mut root = id;
    while let Some(&parent) = parents.get(&root).filter(|&&parent| parent != root) {
        root = parent;
    }
    parents.insert(id, root);
    root
}

fn is_tensor(rewriter: &Rewriter, id: ValueId) -> bool {
    let value = rewriter.value(id);
    is_unsigned(value) && value.data.is_none()
}

/// The unsigned inputs and the output of a channelwise node.
fn channelwise(rewriter: &Rewriter, op: &NodeOp) -> Option<(Vec<ValueId>, ValueId)> {
    let (inputs, output) = match op {
        NodeOp::Unary { input, output, op: UnaryOp::Clamp } => (vec![*input], *output),
        NodeOp::Binary {
            inputs,
            output,
            op: BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply,
        } => (inputs.to_vec(), *output),
        NodeOp::DepthwiseConv2d(conv) if conv.group_output_channels == 1 => {
            (vec![conv.input], conv.output)
        }
        NodeOp::MaxPooling2d(window) => (vec![window.input], window.output),
        _ => return None,
    };
    let width = |id: ValueId| rewriter.value(id).dims.last();
    let alike = |&id: &ValueId| is_tensor(rewriter, id) && width(id) == width(output);
    (alike(&output) && inputs.iter().all(alike)).then_some((inputs, output))
}

/// Whether all nodes that write or read the value support additional channels.
fn can_widen(rewriter: &Rewriter, id: ValueId, layers: &HashMap<usize, &Layer>) -> bool {
    let supports = |index: usize| {
        let Some(node) = rewriter.node(index) else { return false };
        match layers.get(&index) {
            Some(layer) => layer.kind != LayerKind::Other,
            None => {
                !matches!(node.op, NodeOp::DepthwiseConv2d(_))
                    && channelwise(rewriter, &node.op).is_some()
            }
        }
    };
    !rewriter.is_external(id)
        && rewriter.writer(id).is_some_and(supports)
        && rewriter.readers(id).iter().all(|&reader| supports(reader))
}
