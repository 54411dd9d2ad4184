//! Padding with zeros into convolutions.

use xnn_format::{Conv2d, Datatype, NodeOp, Padding2d, Quantization, ValueId, flags};

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len()).filter(|&index| into_convolution(rewriter, index).is_some()).count()
}

fn into_convolution(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let (NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv)) = &node.op else { return None };
    // What SAME comes to depends on the padded size.
    if node.flags & flags::TENSORFLOW_SAME_PADDING != 0 && conv.padding == Padding2d::default() {
        return None;
    }
    let (source, added) = zeros_around(rewriter, conv.input)?;
    let padding = sum(conv.padding, added)?;
    rewriter.change(index, |node| {
        if let NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) = &mut node.op {
            *conv = Conv2d { input: source, padding, ..conv.clone() };
        }
    });
    Some(())
}

/// What is padded to become the image, and by how many pixels.
fn zeros_around(rewriter: &Rewriter, image: ValueId) -> Option<(ValueId, Padding2d)> {
    let NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, input, .. } =
        &rewriter.producer(image)?.1.op
    else {
        return None;
    };
    let (&[0, top, left, 0], &[0, bottom, right, 0]) = (&pre_paddings[..], &post_paddings[..])
    else {
        return None;
    };
    let value = rewriter.value(image);
    // A convolution pads with what stands for 0.
    let zero = matches!(
        (value.datatype, &value.quantization),
        (Datatype::F32 | Datatype::F16, Quantization::None)
            | (Datatype::QInt8 | Datatype::QUint8, Quantization::PerTensor { .. })
    );
    let side = |pixels: usize| u32::try_from(pixels).ok();
    let padding = Padding2d {
        top: side(top)?,
        right: side(right)?,
        bottom: side(bottom)?,
        left: side(left)?,
    };
    (zero && *padding_value == 0.0).then_some((*input, padding))
}

fn sum(a: Padding2d, b: Padding2d) -> Option<Padding2d> {
    Some(Padding2d {
        top: a.top.checked_add(b.top)?,
        right: a.right.checked_add(b.right)?,
        bottom: a.bottom.checked_add(b.bottom)?,
        left: a.left.checked_add(b.left)?,
    })
}
