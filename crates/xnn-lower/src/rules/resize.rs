//! May RESIZE_BILINEAR go?

use xnn_model::op::ResizeOptions;
use xnn_model::{DType, TensorId};

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
    let away = drift(old_height, height, options) + drift(old_width, width, options);
    if input.tensor.dtype == DType::I8 && away > MAX_DRIFT {
        return Err(WhyNot::Shape {
            tensor: size.to_ref(),
            expected: format!(
                "interpreters take the places of i8 pixels from a scale in 1024ths, {away:.4} pixels \
                 from the true ones; at most 0.0034 are one step"
            ),
        });
    }
    Ok(Resize {
        input: input.id,
        output: output.id,
        height,
        width,
        align_corners: options.align_corners,
        half_pixel_centers: options.half_pixel_centers,
    })
}

/// How far the last of `to` pixels is from where interpreters take it from an i8 image: they step in
/// 1024ths of a pixel.
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

/// Neighbours differ by up to 255 steps: this far apart results differ by 0.87 of a step, and by 0.13
/// more for the 11 bits in which XNNPACK weighs neighbours.
const MAX_DRIFT: f64 = 0.0034;

/// Longest height and width in which XNNPACK's positions, which are in fp32, stay inside of the image.
const MAX_SIDE: usize = 1 << 22;
