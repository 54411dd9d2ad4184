//! Parameters of nodes that are not values.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value as Json, json};
use xnn_format::{Conv2d, Node, NodeOp, OutputRange, Padding2d, Pooling2d, Size2d, UnaryOp, flags};

/// Names and values in display order.
pub struct Attributes(Vec<(&'static str, Json)>);

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            match value {
                Json::String(text) => write!(f, "{space}{name}={text}")?,
                value => write!(f, "{space}{name}={value}")?,
            }
        }
        Ok(())
    }
}

/// All attributes of a node, without defaults such as no padding or one group.
pub fn attributes(node: &Node) -> Attributes {
    let mut attributes = match &node.op {
        NodeOp::Unary { op: UnaryOp::Elu { alpha }, .. } => vec![("alpha", json!(alpha))],
        NodeOp::Unary { op: UnaryOp::LeakyRelu { negative_slope }, .. } => {
            vec![("slope", json!(negative_slope))]
        }
        NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) | NodeOp::ConvTranspose2d(conv) => {
            convolution(conv)
        }
        NodeOp::FullyConnected { sparse: true, .. } => vec![("sparse", json!(true))],
        NodeOp::AveragePooling2d(window)
        | NodeOp::MaxPooling2d(window)
        | NodeOp::ArgMaxPooling2d { window, .. }
        | NodeOp::Unpooling2d { window, .. } => pooling(window),
        NodeOp::Concatenate { axis, .. } | NodeOp::EvenSplit { axis, .. } => {
            vec![("axis", json!(axis))]
        }
        NodeOp::StaticReshape { new_shape, .. } => vec![("shape", json!(new_shape))],
        NodeOp::StaticExpandDims { new_axes, .. } => vec![("axes", json!(new_axes))],
        NodeOp::StaticTranspose { perm, .. } => vec![("permutation", json!(perm))],
        NodeOp::StaticSlice { offsets, sizes, .. } => {
            vec![("offsets", json!(offsets)), ("sizes", json!(sizes))]
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, .. } => vec![
            ("before", json!(pre_paddings)),
            ("behind", json!(post_paddings)),
            ("value", json!(padding_value)),
        ],
        NodeOp::StaticResizeBilinear2d { new_height, new_width, .. } => {
            vec![("size", json!(format!("{new_height}x{new_width}")))]
        }
        NodeOp::StaticReduce { op, axes, .. } => {
            vec![("op", json!(format!("{op:?}"))), ("axes", json!(axes))]
        }
        NodeOp::DepthToSpace2d { block_size, .. } | NodeOp::SpaceToDepth2d { block_size, .. } => {
            vec![("block", json!(block_size))]
        }
        NodeOp::Rope { max_tokens, .. } => vec![("max_tokens", json!(max_tokens))],
        _ => Vec::new(),
    };
    if let Some(OutputRange { min, max }) = node.output_range {
        attributes.push(("range", json!(format!("{min}..{max}"))));
    }
    let names = flag_names(node);
    if !names.is_empty() {
        attributes.push(("flags", json!(names.join("|"))));
    }
    Attributes(attributes)
}

fn convolution(conv: &Conv2d) -> Vec<(&'static str, Json)> {
    let mut attributes = vec![("kernel", size(conv.kernel))];
    attributes.extend(unless_one("stride", conv.stride));
    attributes.extend(unless_one("dilation", conv.dilation));
    attributes.extend(padding(conv.padding));
    if conv.adjustment != (Size2d { height: 0, width: 0 }) {
        attributes.push(("adjustment", size(conv.adjustment)));
    }
    if conv.groups != 1 {
        attributes.push(("groups", json!(conv.groups)));
    }
    attributes
}

fn pooling(window: &Pooling2d) -> Vec<(&'static str, Json)> {
    let mut attributes = vec![("kernel", size(window.kernel))];
    attributes.extend(unless_one("stride", window.stride));
    attributes.extend(unless_one("dilation", window.dilation));
    attributes.extend(padding(window.padding));
    attributes
}

fn size(size: Size2d) -> Json {
    json!(format!("{}x{}", size.height, size.width))
}

fn unless_one(name: &'static str, value: Size2d) -> Option<(&'static str, Json)> {
    (value != Size2d::ONE).then(|| (name, size(value)))
}

fn padding(padding: Padding2d) -> Option<(&'static str, Json)> {
    let Padding2d { top, right, bottom, left } = padding;
    (padding != Padding2d::default()).then(|| ("padding", json!([top, right, bottom, left])))
}

/// Names of the flags; the meaning of a bit depends on the operator.
fn flag_names(node: &Node) -> Vec<String> {
    let same = match node.op {
        NodeOp::FullyConnected { .. } => "reshape-2d",
        NodeOp::StaticResizeBilinear2d { .. } => "legacy",
        _ => "same-padding",
    };
    let sizes = match node.op {
        NodeOp::GlobalAveragePooling2d { .. } => "fixed-size",
        _ => "open-dimension",
    };
    let known = [
        (flags::TRANSPOSE_WEIGHTS, "transpose-weights"),
        (flags::TENSORFLOW_SAME_PADDING, same),
        (flags::ALIGN_CORNERS, "align-corners"),
        (flags::KEEP_DIMS, "keep-dims"),
        (flags::OPEN_DIMENSION | flags::FIXED_SIZE, sizes),
    ];
    let set = known.iter().filter(|(bit, _)| node.flags & bit != 0);
    let rest = known.iter().fold(node.flags, |rest, (bit, _)| rest & !bit);
    let rest = (rest != 0).then(|| format!("{rest:#x}"));
    set.map(|(_, name)| (*name).to_owned()).chain(rest).collect()
}
