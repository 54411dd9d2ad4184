//! May RESIZE_BILINEAR go?

use xnn_model::TensorId;
use xnn_model::op::ResizeOptions;

use super::checks;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// A resize of height and width that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Resize {
    pub input: TensorId,
    pub output: TensorId,
    pub height: usize,
    pub width: usize,
    pub align_corners: bool,
    pub half_pixel_centers: bool,
}

pub(crate) fn resize_bilinear(view: OpView<'_>, options: &ResizeOptions) -> Result<Resize, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, size, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::nhwc(input)?;
    checks::same_elem(input, output)?;
    let new = checks::constant_ints(size)?;
    let (height, width) = match *new {
        [height, width] => (usize::try_from(height), usize::try_from(width)),
        _ => (Ok(0), Ok(0)),
    };
    match (height, width) {
        (Ok(height @ 1..=MAX_SIDE), Ok(width @ 1..=MAX_SIDE)) => Ok(Resize {
            input: input.id,
            output: output.id,
            height,
            width,
            align_corners: options.align_corners,
            half_pixel_centers: options.half_pixel_centers,
        }),
        _ => Err(WhyNot::Shape {
            tensor: size.to_ref(),
            expected: "must be a positive height and width".into(),
        }),
    }
}

/// XNNPACK takes heights and widths below 2^24.
const MAX_SIDE: usize = (1 << 24) - 1;
