//! Computes unsigned 8-bit layers as signed ones, for which processors have better instructions.
//!
//! A tensor and its zero point can be shifted by 128 without changing the real values, and weights
//! can lose their zero point if the difference fits into int8. XNNPACK's arithmetic is the same up
//! to the shift, so that results are bit-identical. (Exceptions: `xnnpack-sys` has microkernels for
//! uint8 that round as TFLite's kernels do, and so keeps layers unsigned; XNNPACK's own kernels for
//! ARM round uint8 and int8 differently. Results of this pass may differ by one step there.)

mod channel_duplication;
mod layers;
mod signedness;
mod weights;

use std::str::FromStr;

use xnn_format::{Conv2d, Node, NodeOp, Value};

use self::channel_duplication::RepeatedChannels;
use self::layers::{Layer, LayerKind};
use self::signedness::Signedness;
use self::weights::{LayerChange, changed};
use super::rewriter::Rewriter;
use crate::choice::choice;
use crate::target::TargetFeatures;

/// Which unsigned 8-bit layers are computed as signed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignedLayers {
    /// [`Exact`](Self::Exact), or [`Off`](Self::Off) where unsigned layers are as fast.
    #[default]
    Auto,
    /// None.
    Off,
    /// Layers whose results stay bit-identical in XNNPACK's arithmetic.
    Exact,
    /// All layers: weights outside the range of int8 are rounded, with a larger scale for their
    /// channel.
    Approximate,
}

impl SignedLayers {
    /// All values with the names that users give them.
    pub const NAMES: [(&str, Self); 4] = [
        ("auto", Self::Auto),
        ("off", Self::Off),
        ("exact", Self::Exact),
        ("approx", Self::Approximate),
    ];

    /// Replaces [`Auto`](Self::Auto) by the choice for a processor.
    #[must_use]
    pub fn resolve(self, target: &TargetFeatures) -> Self {
        match self {
            Self::Auto if target.has_fast_uint8 => Self::Off,
            Self::Auto => Self::Exact,
            chosen => chosen,
        }
    }
}

/// Parses a name from [`SignedLayers::NAMES`].
impl FromStr for SignedLayers {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        choice(&Self::NAMES, name)
    }
}

/// Makes layers signed. Returns their number.
pub(super) fn run(rewriter: &mut Rewriter, mode: SignedLayers) -> usize {
    if mode == SignedLayers::Off {
        return 0;
    }
    let layers: Vec<Layer> =
        (0..rewriter.len()).filter_map(|node| Layer::new(rewriter, node)).collect();
    let repeats = match mode {
        SignedLayers::Approximate => RepeatedChannels::default(),
        _ => channel_duplication::plan(rewriter, &layers),
    };
    let mut signedness: Vec<Signedness> = (0..rewriter.len())
        .map(|index| match rewriter.node(index) {
            Some(node) if signedness::is_neutral(rewriter, node) => Signedness::Either,
            _ => Signedness::Unsigned,
        })
        .collect();
    for layer in &layers {
        let can_be_signed = mode == SignedLayers::Approximate || fits(rewriter, layer, &repeats);
        signedness[layer.node] = match (can_be_signed, layer.worthwhile) {
            (true, true) => Signedness::Signed,
            (true, false) => Signedness::Either,
            (false, _) => Signedness::Unsigned,
        };
    }
    if !signedness.contains(&Signedness::Signed) {
        return 0;
    }
    signedness::settle(rewriter, &mut signedness);
    let changes: Option<Vec<NewLayer>> = layers
        .iter()
        .map(|layer| (layer, change(layer, signedness[layer.node], &repeats)))
        .filter(|(_, change)| *change != LayerChange::default())
        .map(|(layer, change)| NewLayer::new(rewriter, layer, change))
        .collect();
    let Some(changes) = changes else { return 0 };
    changes.into_iter().for_each(|layer| layer.apply(rewriter));
    for (value, repeated) in repeats.values() {
        if let Some(channels) = rewriter.value_mut(value).dims.last_mut() {
            *channels += repeated.len();
        }
    }
    signedness::apply(rewriter, &signedness);
    layers.iter().filter(|layer| signedness[layer.node] == Signedness::Signed).count()
}

/// Whether the layer's weights fit into int8, with the repeated input channels.
fn fits(rewriter: &Rewriter, layer: &Layer, repeats: &RepeatedChannels) -> bool {
    if layer.overflow.is_empty() {
        return true;
    }
    let row = rewriter.value(layer.filter).dims.last().copied().unwrap_or(1).max(1);
    let repeated = repeats.of(layer.input);
    layer.kind == LayerKind::Convolution
        && layer.overflow.iter().all(|p| repeated.contains(&(p % row)))
}

fn change(layer: &Layer, signedness: Signedness, repeats: &RepeatedChannels) -> LayerChange {
    let repeated = |value, kinds: &[LayerKind]| match kinds.contains(&layer.kind) {
        true => repeats.of(value).to_vec(),
        false => Vec::new(),
    };
    LayerChange {
        signed: signedness == Signedness::Signed,
        repeated_inputs: repeated(layer.input, &[LayerKind::Convolution]),
        repeated_outputs: repeated(layer.output, &[LayerKind::Convolution, LayerKind::Depthwise]),
    }
}

/// A layer in its new form.
struct NewLayer {
    index: usize,
    node: Node,
    filter: Value,
    bias: Option<Value>,
}

impl NewLayer {
    fn new(rewriter: &Rewriter, layer: &Layer, change: LayerChange) -> Option<Self> {
        let mut node = rewriter.node(layer.node)?.clone();
        let bias = layer.bias.map(|id| rewriter.value(id));
        let (filter, bias) = changed(layer, rewriter.value(layer.filter), bias, &change)?;
        let inputs = u32::try_from(change.repeated_inputs.len()).ok()?;
        let outputs = u32::try_from(change.repeated_outputs.len()).ok()?;
        match &mut node.op {
            NodeOp::Conv2d(conv) => {
                conv.group_input_channels += inputs;
                conv.group_output_channels += outputs;
            }
            NodeOp::DepthwiseConv2d(conv) => conv.groups += outputs,
            _ => {}
        }
        Some(Self { index: layer.node, node, filter, bias })
    }

    /// Replaces the old layer.
    fn apply(mut self, rewriter: &mut Rewriter) {
        let new_filter = rewriter.push_value(self.filter);
        let new_bias = self.bias.map(|bias| rewriter.push_value(bias));
        match &mut self.node.op {
            NodeOp::Conv2d(Conv2d { filter, bias, .. })
            | NodeOp::DepthwiseConv2d(Conv2d { filter, bias, .. })
            | NodeOp::ConvTranspose2d(Conv2d { filter, bias, .. })
            | NodeOp::FullyConnected { filter, bias, .. } => {
                (*filter, *bias) = (new_filter, new_bias)
            }
            _ => {}
        }
        rewriter.replace(self.index, self.node);
    }
}
