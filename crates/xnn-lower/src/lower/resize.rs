//! Lowers RESIZE_BILINEAR.

use xnn_format::{NodeOp, flags};

use super::builder::Builder;
use crate::rules::resize::{PixelPositions, Resize};

pub(super) fn resize(b: &mut Builder<'_>, plan: &Resize) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let node = b.push(NodeOp::StaticResizeBilinear2d {
        new_height: plan.height,
        new_width: plan.width,
        input,
        output,
    });
    node.flags = match plan.positions {
        PixelPositions::AlignCorners => flags::ALIGN_CORNERS,
        PixelPositions::HalfPixelCenters => 0,
        PixelPositions::Legacy => flags::TENSORFLOW_LEGACY_MODE,
    };
}
