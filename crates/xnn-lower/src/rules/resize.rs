//! Partitioning rule for RESIZE_BILINEAR.

use xnn_model::op::ResizeOptions;
use xnn_model::{DType, TensorId};

use super::checks;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// Plan for a bilinear resize of height and width.
#[derive(Clone, Debug)]
pub(crate) struct Resize {
    pub input: TensorId,
    pub output: TensorId,
    pub height: usize,
    pub width: usize,
    pub positions: PixelPositions,
}

/// How positions of pixels in the output correspond to positions in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PixelPositions {
    /// The centers of the corner pixels are equal.
    AlignCorners,
    /// The corners of the images are equal, and pixels are at their centers.
    HalfPixelCenters,
    /// The top left corners of the images are equal, and pixels are at their top left corners.
    Legacy,
}

/// Rule for RESIZE_BILINEAR.
pub(crate) fn resize_bilinear(view: OpView<'_>, options: &ResizeOptions) -> Result<Resize, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, size, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let [_, old_height, old_width, _] = checks::nhwc(input)?;
    checks::same_elem(input, output)?;
    let new = checks::constant_ints(size)?;
    let (height, width) = match *new {
        [height, width] => (usize::try_from(height), usize::try_from(width)),
        _ => (Ok(0), Ok(0)),
    };
    let (Ok(height @ 1..=MAX_SIDE), Ok(width @ 1..=MAX_SIDE)) = (height, width) else {
        return Err(WhyNot::Shape {
            tensor: size.to_ref(),
            expected: "must be a positive height and width".into(),
        });
    };
    let error = drift(old_height, height, options) + drift(old_width, width, options);
    if input.tensor.dtype == DType::I8 && error > MAX_DRIFT {
        return Err(WhyNot::Shape {
            tensor: size.to_ref(),
            expected: format!(
                "interpreters compute positions of i8 pixels from a scale in 1024ths, {error:.4} pixels \
                 from the exact ones; errors up to 0.0034 are one step of the result"
            ),
        });
    }
    Ok(Resize {
        input: input.id,
        output: output.id,
        height,
        width,
        positions: match options {
            ResizeOptions { align_corners: true, .. } => PixelPositions::AlignCorners,
            ResizeOptions { half_pixel_centers: true, .. } => PixelPositions::HalfPixelCenters,
            _ => PixelPositions::Legacy,
        },
    })
}

/// Error of the position that interpreters compute for the last of `to` pixels of an i8 image:
/// their steps are multiples of 1/1024 pixel.
fn drift(from: usize, to: usize, options: &ResizeOptions) -> f64 {
    const UNIT: f64 = 1024.0;
    let (from, to) = (from as f64, to as f64);
    let (pixels, steps) =
        if options.align_corners && to > 1.0 { (from - 1.0, to - 1.0) } else { (from, to) };
    let scale = UNIT * pixels / steps;
    let stepped = (scale + 0.5).floor();
    let along = (stepped - scale).abs() * (to - 1.0);
    // Half of a step is rounded down.
    let center = if options.half_pixel_centers {
        (scale / 2.0 - (stepped / 2.0).floor()).abs()
    } else {
        0.0
    };
    (along + center) / UNIT
}

/// Largest error of a position for which results differ by at most one step. Neighbours differ by
/// up to 255 steps, so that it contributes 0.87 of a step; the 11 bits of XNNPACK's weights
/// contribute 0.13.
const MAX_DRIFT: f64 = 0.0034;

/// Largest height and width for which XNNPACK's positions, which are fp32, stay inside the image.
const MAX_SIDE: usize = 1 << 22;
