//! Moves padding into convolutions, which pad with zeros, and into maximum poolings, which ignore
//! padding.

use xnn_format::{
    Conv2d, Datatype, NodeOp, Padding2d, Pooling2d, Quantization, Size2d, ValueId, flags,
};

use super::rewriter::Rewriter;
use crate::rules::checks::Elem;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len())
        .filter(|&index| {
            into_convolution(rewriter, index).is_some() || into_maximum(rewriter, index).is_some()
        })
        .count()
}

fn into_convolution(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let (NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv)) = &node.op else { return None };
    // SAME padding depends on the padded size.
    if node.flags & flags::TENSORFLOW_SAME_PADDING != 0 && conv.padding == Padding2d::default() {
        return None;
    }
    let padded = PaddedImage::of(rewriter, conv.input).filter(|padded| padded.is_zero(rewriter))?;
    let padding = sum(conv.padding, padded.padding)?;
    if !padding.is_within_reach(conv.kernel, conv.dilation) {
        return None;
    }
    rewriter.change(index, |node| {
        if let NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) = &mut node.op {
            *conv = Conv2d { input: padded.source, padding, ..conv.clone() };
        }
    });
    Some(())
}

fn into_maximum(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let NodeOp::MaxPooling2d(pool) = &node.op else { return None };
    let padded =
        PaddedImage::of(rewriter, pool.input).filter(|padded| padded.is_lowest(rewriter))?;
    let padding = sum(pool.padding, padded.padding)?;
    // Every window must contain an element.
    if !padding.is_within_reach(pool.kernel, pool.dilation)
        || pool.dilation != Size2d::ONE
        || node.flags & flags::TENSORFLOW_SAME_PADDING != 0
    {
        return None;
    }
    let pool = Pooling2d { input: padded.source, padding, ..pool.clone() };
    rewriter.change(index, |node| node.op = NodeOp::MaxPooling2d(pool));
    Some(())
}

/// An image with a constant border.
struct PaddedImage {
    source: ValueId,
    padding: Padding2d,
    value: f32,
}

impl PaddedImage {
    /// The padding node that writes the image.
    fn of(rewriter: &Rewriter, image: ValueId) -> Option<Self> {
        let NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, input, .. } =
            &rewriter.producer(image)?.1.op
        else {
            return None;
        };
        let (&[0, top, left, 0], &[0, bottom, right, 0]) = (&pre_paddings[..], &post_paddings[..])
        else {
            return None;
        };
        let side = |pixels: usize| u32::try_from(pixels).ok();
        let padding = Padding2d {
            top: side(top)?,
            right: side(right)?,
            bottom: side(bottom)?,
            left: side(left)?,
        };
        Some(Self { source: *input, padding, value: *padding_value })
    }

    /// Whether the border is zero.
    fn is_zero(&self, rewriter: &Rewriter) -> bool {
        let value = rewriter.value(self.source);
        let has_zero = matches!(
            (value.datatype, &value.quantization),
            (Datatype::F32 | Datatype::F16, Quantization::None)
                | (Datatype::QInt8 | Datatype::QUint8, Quantization::PerTensor { .. })
        );
        has_zero && self.value == 0.0
    }

    /// Whether no element of the image is less than the border.
    fn is_lowest(&self, rewriter: &Rewriter) -> bool {
        let range = rewriter.producer(self.source).and_then(|(_, node)| node.output_range);
        let is_bound = range.is_some_and(|range| range.min >= self.value);
        is_bound
            || match rewriter.elem(self.source) {
                Some(Elem::F32) => self.value == f32::NEG_INFINITY,
                Some(Elem::Q8(q)) => {
                    let (lowest, _) = q.bounds();
                    (self.value / q.scale + q.zero()).round() <= f32::from(lowest)
                }
                None => false,
            }
    }
}

fn sum(a: Padding2d, b: Padding2d) -> Option<Padding2d> {
    Some(Padding2d {
        top: a.top.checked_add(b.top)?,
        right: a.right.checked_add(b.right)?,
        bottom: a.bottom.checked_add(b.bottom)?,
        left: a.left.checked_add(b.left)?,
    })
}
