//! Moves products and sums with constants into the float weights of a neighbouring layer.

use xnn_format::{BinaryOp, Conv2d, Datatype, Node, NodeOp, ValueId, flags};

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut changes = 0;
    for index in 0..rewriter.len() {
        let changed = into_layer_before(rewriter, index).is_some();
        changes += usize::from(changed || into_layer_after(rewriter, index).is_some());
    }
    changes
}

/// `scale * x + shift`, where both constants have one element, or one for each channel.
struct Affine {
    input: ValueId,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Affine {
    /// The function of a node with a constant operand, if it has no bounds.
    fn of(rewriter: &Rewriter, node: &Node) -> Option<Self> {
        let &NodeOp::Binary { op, inputs: [a, b], output } = &node.op else { return None };
        let channels = *rewriter.value(output).dims.last()?;
        let (input, constant, reversed) = match rewriter.floats(b) {
            Some(_) => (a, b, false),
            None => (b, a, true),
        };
        let elements = rewriter.floats(constant)?;
        let is_per_channel =
            elements.len() == 1 || rewriter.value(constant).dims.last() == Some(&elements.len());
        if has_bounds(node)
            || rewriter.value(input).dims != rewriter.value(output).dims
            || !(is_per_channel && [1, channels].contains(&elements.len()))
        {
            return None;
        }
        let (scale, shift) = match (op, reversed) {
            (BinaryOp::Add, _) => (vec![1.0], elements),
            (BinaryOp::Subtract, false) => (vec![1.0], elements.iter().map(|c| -c).collect()),
            (BinaryOp::Subtract, true) => (vec![-1.0], elements),
            (BinaryOp::Multiply, _) => (elements, vec![0.0]),
            (BinaryOp::Divide, false) => (elements.iter().map(|c| c.recip()).collect(), vec![0.0]),
            _ => return None,
        };
        Some(Self { input, scale, shift })
    }
}

/// Whether the node bounds finite results.
fn has_bounds(node: &Node) -> bool {
    node.output_range.is_some_and(|range| !range.holds_all_finite())
}

/// The element for a channel, of one for all channels or one for each.
fn at(elements: &[f32], channel: usize) -> f32 {
    elements.get(channel).or(elements.first()).copied().unwrap_or(0.0)
}

/// A layer with constant float weights.
struct Layer {
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    /// The filter is `[outer, outputs, inner]`, where `inner` consecutive weights belong to the
    /// same output channel.
    outputs: usize,
    inner: usize,
    /// Which input channel a weight multiplies.
    channel: Channel,
}

enum Channel {
    /// Each group of `outputs` output channels has `inputs` input channels.
    Group { outputs: usize, inputs: usize },
    /// Each input channel has this many output channels.
    Depthwise { multiplier: usize },
    /// `[inputs, outputs]`.
    Row,
}

impl Layer {
    fn of(node: &Node) -> Option<Self> {
        let size = |n: u32| usize::try_from(n).ok();
        let grouped = |conv: &Conv2d| {
            let [groups, inputs, outputs] =
                [conv.groups, conv.group_input_channels, conv.group_output_channels].map(size);
            let (groups, inputs, outputs) = (groups?, inputs?, outputs?);
            let area = size(conv.kernel.height)?.checked_mul(size(conv.kernel.width)?)?;
            Some(Self {
                input: conv.input,
                filter: conv.filter,
                bias: conv.bias,
                outputs: groups.checked_mul(outputs)?,
                inner: area.checked_mul(inputs)?,
                channel: Channel::Group { outputs, inputs },
            })
        };
        match &node.op {
            NodeOp::Conv2d(conv) | NodeOp::ConvTranspose2d(conv) => grouped(conv),
            NodeOp::DepthwiseConv2d(conv) => {
                let multiplier = size(conv.group_output_channels)?;
                Some(Self {
                    input: conv.input,
                    filter: conv.filter,
                    bias: conv.bias,
                    outputs: size(conv.groups)?.checked_mul(multiplier)?,
                    inner: 1,
                    channel: Channel::Depthwise { multiplier },
                })
            }
            _ => None,
        }
    }

    /// [`Layer::of`] for fully connected layers, whose sizes are the filter's dimensions.
    fn of_matrix(rewriter: &Rewriter, node: &Node) -> Option<Self> {
        let &NodeOp::FullyConnected { input, filter, bias, sparse: false, .. } = &node.op else {
            return None;
        };
        // Rows of a length other than the operand's last dimension have no channels.
        if node.flags & flags::TENSORFLOW_RESHAPE_2D != 0 {
            return None;
        }
        let &[rows, columns] = rewriter.value(filter).dims.as_slice() else { return None };
        let (outputs, inner, channel) = if node.flags & flags::TRANSPOSE_WEIGHTS == 0 {
            (rows, columns, Channel::Group { outputs: rows, inputs: columns })
        } else {
            (columns, 1, Channel::Row)
        };
        Some(Self { input, filter, bias, outputs, inner, channel })
    }

    /// Output and input channel of the weight at a position.
    fn channels(&self, position: usize) -> (usize, usize) {
        let output = position / self.inner % self.outputs;
        let input = match self.channel {
            Channel::Group { outputs, inputs } => {
                output / outputs * inputs + position % self.inner % inputs
            }
            Channel::Depthwise { multiplier } => output / multiplier,
            Channel::Row => position / self.outputs,
        };
        (output, input)
    }
}

fn layer(rewriter: &Rewriter, node: &Node) -> Option<Layer> {
    let layer = Layer::of(node).or_else(|| Layer::of_matrix(rewriter, node))?;
    let sizes = match layer.channel {
        Channel::Group { outputs, inputs } => [outputs, inputs],
        Channel::Depthwise { multiplier } => [multiplier, 1],
        Channel::Row => [1, 1],
    };
    let is_float = [layer.input]
        .into_iter()
        .chain(layer.bias)
        .all(|id| rewriter.value(id).datatype == Datatype::F32);
    (is_float && !sizes.contains(&0) && layer.inner > 0 && layer.outputs > 0).then_some(layer)
}

/// Moves `scale * layer(x) + shift` into the layer's weights and bias, even if a reshape is in
/// between.
fn into_layer_before(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let &[output] = node.outputs().as_slice() else { return None };
    let affine = Affine::of(rewriter, node)?;
    let (writer, producer) = rewriter.sole_writer(result_of_layer(rewriter, affine.input))?;
    let layer = layer(rewriter, producer)?;
    if has_bounds(producer) {
        return None;
    }
    let mut weights = rewriter.weights(layer.filter)?;
    for (position, weight) in weights.iter_mut().enumerate() {
        *weight *= at(&affine.scale, layer.channels(position).0);
    }
    let bias = match layer.bias {
        Some(bias) => rewriter.floats(bias)?,
        None => vec![0.0; layer.outputs],
    };
    let moved = |(channel, bias): (usize, &f32)| {
        bias * at(&affine.scale, channel) + at(&affine.shift, channel)
    };
    let bias: Vec<f32> = bias.iter().enumerate().map(moved).collect();
    if !weights.iter().chain(&bias).all(|weight| weight.is_finite()) {
        return None;
    }
    let filter = weights_like(rewriter, layer.filter, &weights);
    let bias = match layer.bias {
        None if affine.shift.iter().all(|&shift| shift == 0.0) => None,
        _ => Some(rewriter.push_floats(&[layer.outputs], &bias)),
    };
    rewriter.change(writer, |node| set_weights(node, filter, bias));
    rewriter.unify(output, affine.input).then_some(())
}

/// The value before reshapes that keep the channels.
fn result_of_layer(rewriter: &Rewriter, mut id: ValueId) -> ValueId {
    while let Some((_, Node { op: NodeOp::StaticReshape { input, .. }, .. })) =
        rewriter.sole_writer(id)
        && rewriter.value(*input).dims.last() == rewriter.value(id).dims.last()
    {
        id = *input;
    }
    id
}

/// Moves `layer(scale * x)` into the layer's weights; padding stays 0.
fn into_layer_after(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let &[output] = node.outputs().as_slice() else { return None };
    let affine = Affine::of(rewriter, node)?;
    let (reader, consumer) = rewriter.sole_reader(output)?;
    let layer = layer(rewriter, consumer).filter(|layer| layer.input == output)?;
    if affine.shift.iter().any(|&shift| shift != 0.0) {
        return None;
    }
    let mut weights = rewriter.weights(layer.filter)?;
    for (position, weight) in weights.iter_mut().enumerate() {
        *weight *= at(&affine.scale, layer.channels(position).1);
    }
    if !weights.iter().all(|weight| weight.is_finite()) {
        return None;
    }
    let filter = weights_like(rewriter, layer.filter, &weights);
    rewriter.remove(index);
    rewriter.change(reader, |node| {
        set_weights(node, filter, layer.bias);
        if let Some(input) = node.inputs_mut().into_iter().next() {
            *input = affine.input;
        }
    });
    Some(())
}

fn weights_like(rewriter: &mut Rewriter, filter: ValueId, weights: &[f32]) -> ValueId {
    let dims = rewriter.value(filter).dims.clone();
    rewriter.push_floats(&dims, weights)
}

fn set_weights(node: &mut Node, new_filter: ValueId, new_bias: Option<ValueId>) {
    if let NodeOp::Conv2d(Conv2d { filter, bias, .. })
    | NodeOp::DepthwiseConv2d(Conv2d { filter, bias, .. })
    | NodeOp::ConvTranspose2d(Conv2d { filter, bias, .. })
    | NodeOp::FullyConnected { filter, bias, .. } = &mut node.op
    {
        (*filter, *bias) = (new_filter, new_bias);
    }
}
