//! Unsigned 8-bit layers computed on int8, for which processors have better instructions.
//!
//! A tensor that is shifted by 128, with its zero point, holds the same real numbers, and weights may
//! lose their zero point where the difference fits into int8. XNNPACK's arithmetic is the same up to
//! the shift, so that results are equal bit for bit. (Where `xnnpack-sys` has microkernels for uint8, those
//! round as TFLite's kernels, which int8 ones do not, and XNNPACK's own for ARM round uint8 and int8 in two ways:
//! results may be a step apart.)

mod channel_duplication;
mod layers;
mod signedness;
mod weights;

use std::str::FromStr;

use xnn_format::{Conv2d, Node, NodeOp, Value};

use self::channel_duplication::Repeats;
use self::layers::{Kind, Layer};
use self::signedness::Side;
use self::weights::{Change, changed};
use super::rewriter::Rewriter;
use crate::names::choice;

/// What reports call it.
pub(super) const NAME: &str = "u8-as-s8";

/// Which unsigned 8-bit layers are computed as signed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignedLayers {
    /// As [`Exact`](Self::Exact), or [`Off`](Self::Off) where unsigned ones are as fast.
    #[default]
    Auto,
    /// None.
    Off,
    /// Those whose results stay the same bit for bit in XNNPACK's arithmetic, see the module.
    Exact,
    /// All: weights that int8 cannot hold are rounded, with a scale of their own for their channel.
    Approximate,
}

impl SignedLayers {
    /// Every choice, as users name it.
    pub const NAMES: [(&str, Self); 4] = [
        ("auto", Self::Auto),
        ("off", Self::Off),
        ("exact", Self::Exact),
        ("approx", Self::Approximate),
    ];

    /// What it comes to on a backend that has fast unsigned products or has not.
    #[must_use]
    pub fn on(self, has_fast_uint8: bool) -> Self {
        match self {
            Self::Auto if has_fast_uint8 => Self::Off,
            Self::Auto => Self::Exact,
            chosen => chosen,
        }
    }
}

/// One of [`SignedLayers::NAMES`].
impl FromStr for SignedLayers {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        choice(&Self::NAMES, name)
    }
}

/// Makes layers signed; how many.
pub(super) fn run(rewriter: &mut Rewriter, mode: SignedLayers) -> usize {
    if mode == SignedLayers::Off {
        return 0;
    }
    let layers: Vec<Layer> =
        (0..rewriter.len()).filter_map(|node| Layer::new(rewriter, node)).collect();
    let repeats = match mode {
        SignedLayers::Approximate => Repeats::default(),
        _ => channel_duplication::plan(rewriter, &layers),
    };
    let mut signedness: Vec<Side> = (0..rewriter.len())
        .map(|index| match rewriter.node(index) {
            Some(node) if signedness::is_neutral(rewriter, node) => Side::Either,
            _ => Side::Unsigned,
        })
        .collect();
    for layer in &layers {
        let can_go = mode == SignedLayers::Approximate || fits(rewriter, layer, &repeats);
        signedness[layer.node] = match (can_go, layer.worthwhile) {
            (true, true) => Side::Signed,
            (true, false) => Side::Either,
            (false, _) => Side::Unsigned,
        };
    }
    if !signedness.contains(&Side::Signed) {
        return 0;
    }
    signedness::settle(rewriter, &mut signedness);
    let changes: Option<Vec<NewLayer>> = layers
        .iter()
        .map(|layer| (layer, change(layer, signedness[layer.node], &repeats)))
        .filter(|(_, change)| *change != Change::default())
        .map(|(layer, change)| NewLayer::new(rewriter, layer, change))
        .collect();
    let Some(changes) = changes else { return 0 };
    changes.into_iter().for_each(|layer| layer.put(rewriter));
    for (value, repeated) in repeats.values() {
        if let Some(channels) = rewriter.value_mut(value).dims.last_mut() {
            *channels += repeated.len();
        }
    }
    signedness::apply(rewriter, &signedness);
    layers.iter().filter(|layer| signedness[layer.node] == Side::Signed).count()
}

/// Whether int8 holds the layer's weights, with the repeated input channels.
fn fits(rewriter: &Rewriter, layer: &Layer, repeats: &Repeats) -> bool {
    if layer.overflow.is_empty() {
        return true;
    }
    let row = rewriter.value(layer.filter).dims.last().copied().unwrap_or(1).max(1);
    let repeated = repeats.of(layer.input);
    layer.kind == Kind::Convolution && layer.overflow.iter().all(|p| repeated.contains(&(p % row)))
}

fn change(layer: &Layer, side: Side, repeats: &Repeats) -> Change {
    let repeated = |value, by: &[Kind]| match by.contains(&layer.kind) {
        true => repeats.of(value).to_vec(),
        false => Vec::new(),
    };
    Change {
        signed: side == Side::Signed,
        repeated_inputs: repeated(layer.input, &[Kind::Convolution]),
        repeated_outputs: repeated(layer.output, &[Kind::Convolution, Kind::Depthwise]),
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
    fn new(rewriter: &Rewriter, layer: &Layer, change: Change) -> Option<Self> {
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

    /// Puts the layer in the place of the old one.
    fn put(mut self, rewriter: &mut Rewriter) {
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
