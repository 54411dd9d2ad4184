//! Resizing of images.

use xnn_format::{ValueId, flags};
use xnnpack::{Flags, ResizeBilinear2d};

use super::definer::NodeDefiner;
use crate::error::Result;

const COORDINATES: &[(u32, Flags)] = &[
    (flags::ALIGN_CORNERS, Flags::ALIGN_CORNERS),
    (flags::TENSORFLOW_LEGACY_MODE, Flags::TENSORFLOW_LEGACY),
];

pub(super) fn static_resize_bilinear_2d(
    cx: &mut NodeDefiner<'_, '_>,
    size: [usize; 2],
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let node = ResizeBilinear2d {
        size,
        input: cx.id(input)?,
        output: cx.id(output)?,
        flags: cx.flags(COORDINATES),
    };
    cx.define(node)
}
