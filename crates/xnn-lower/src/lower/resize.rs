//! Bilinear resize.

use xnn_format::{NodeOp, flags};

use super::builder::Builder;
use crate::rules::resize::Resize;

pub(super) fn resize(b: &mut Builder<'_>, plan: &Resize) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let node = b.push(NodeOp::StaticResizeBilinear2d {
        new_height: plan.height,
        new_width: plan.width,
        input,
        output,
    });
    node.flags = if plan.align_corners {
        flags::ALIGN_CORNERS
    } else if plan.half_pixel_centers {
        0
    } else {
        flags::TENSORFLOW_LEGACY_MODE
    };
}
