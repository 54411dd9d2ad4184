//! Shapes of operators with windows over height and width.

use super::inputs::{Inputs, Rule, Stop, invalid, one, positive, size};
use crate::op::{
    Conv2dOptions, Conv3dOptions, DepthwiseConv2dOptions, Padding, Pool2dOptions,
    TransposeConvOptions,
};

/// A window that slides along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of elements of the window.
    pub size: usize,
    /// Distance of consecutive windows in input elements; positive.
    pub stride: usize,
    /// Distance of consecutive elements of the window in input elements; positive.
    pub dilation: usize,
}

impl Window {
    /// Input elements from the first to the last element of a window; saturates.
    #[must_use]
    pub const fn extent(&self) -> usize {
        match self.size {
            0 => 0,
            n => (n - 1).saturating_mul(self.dilation).saturating_add(1),
        }
    }

    /// Number of windows along a dimension of `input` elements.
    #[must_use]
    pub const fn output(&self, input: usize, padding: Padding) -> usize {
        match padding {
            Padding::Same => input.div_ceil(self.stride),
            Padding::Valid => {
                input.saturating_add(self.stride).saturating_sub(self.extent()) / self.stride
            }
        }
    }

    /// Padding before and after `input` elements for `output` windows. Both are 0 for an `output`
    /// of VALID padding.
    #[must_use]
    pub const fn padding(&self, input: usize, output: usize) -> (usize, usize) {
        let covered = output.saturating_sub(1).saturating_mul(self.stride);
        let total = covered.saturating_add(self.extent()).saturating_sub(input);
        (total / 2, total - total / 2)
    }
}

/// The windows of a two-dimensional operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpatialWindow {
    /// Along height.
    pub height: Window,
    /// Along width.
    pub width: Window,
}

fn window(size: usize, stride: i32, dilation: i32) -> Rule<Window> {
    Ok(Window {
        size,
        stride: positive(stride, "a stride")?,
        dilation: positive(dilation, "a dilation")?,
    })
}

impl SpatialWindow {
    /// The windows of a pooling operator.
    ///
    /// # Errors
    ///
    /// A phrase for error messages, if a size or a stride is not positive.
    pub fn of_pool(options: &Pool2dOptions) -> Result<Self, String> {
        (|| {
            let height = positive(options.filter_height, "the filter's height")?;
            let width = positive(options.filter_width, "the filter's width")?;
            Ok(Self {
                height: window(height, options.stride_h, 1)?,
                width: window(width, options.stride_w, 1)?,
            })
        })()
        .map_err(phrase)
    }

    /// The windows of a convolution with a filter of `height` × `width`. Strides and dilations are
    /// pairs of height and width.
    ///
    /// # Errors
    ///
    /// A phrase for error messages, if a stride or a dilation is not positive.
    pub fn of_filter(
        (height, width): (usize, usize),
        strides: (i32, i32),
        dilations: (i32, i32),
    ) -> Result<Self, String> {
        (|| {
            Ok(Self {
                height: window(height, strides.0, dilations.0)?,
                width: window(width, strides.1, dilations.1)?,
            })
        })()
        .map_err(phrase)
    }

    fn output(&self, (height, width): (usize, usize), padding: Padding) -> [usize; 2] {
        [self.height.output(height, padding), self.width.output(width, padding)]
    }
}

fn phrase(stop: Stop) -> String {
    match stop {
        Stop::Invalid(message) => message,
        Stop::Dynamic | Stop::Stated => String::new(),
    }
}

pub(super) fn pool(inputs: &Inputs<'_>, options: &Pool2dOptions) -> Rule {
    let [n, h, w, c] = inputs.dims(0)?;
    let window = SpatialWindow::of_pool(options).map_err(Stop::Invalid)?;
    let [oh, ow] = window.output((h, w), options.padding);
    one(vec![n, oh, ow, c])
}

pub(super) fn conv(inputs: &Inputs<'_>, options: &Conv2dOptions) -> Rule {
    let [n, h, w, c] = inputs.dims(0)?;
    let [outputs, kh, kw, filter_c] = inputs.dims(1)?;
    if filter_c == 0 || c == 0 || c % filter_c != 0 || outputs % (c / filter_c).max(1) != 0 {
        return invalid(format!(
            "{c} input channels and {outputs} output channels do not fit a filter with {filter_c} input channels"
        ));
    }
    let window = SpatialWindow::of_filter(
        (kh, kw),
        (options.stride_h, options.stride_w),
        (options.dilation_h, options.dilation_w),
    )
    .map_err(Stop::Invalid)?;
    let [oh, ow] = window.output((h, w), options.padding);
    one(vec![n, oh, ow, outputs])
}

pub(super) fn depthwise_conv(inputs: &Inputs<'_>, options: &DepthwiseConv2dOptions) -> Rule {
    let [n, h, w, c] = inputs.dims(0)?;
    let [first, kh, kw, outputs] = inputs.dims(1)?;
    if first != 1 || c == 0 || outputs % c != 0 {
        return invalid(format!(
            "a filter of shape [{first}, {kh}, {kw}, {outputs}] does not fit {c} input channels"
        ));
    }
    let window = SpatialWindow::of_filter(
        (kh, kw),
        (options.stride_h, options.stride_w),
        (options.dilation_h, options.dilation_w),
    )
    .map_err(Stop::Invalid)?;
    let [oh, ow] = window.output((h, w), options.padding);
    one(vec![n, oh, ow, outputs])
}

pub(super) fn conv_3d(inputs: &Inputs<'_>, options: &Conv3dOptions) -> Rule {
    let [n, d, h, w, c] = inputs.dims(0)?;
    let [kd, kh, kw, filter_c, outputs] = inputs.dims(1)?;
    if c != filter_c {
        return invalid(format!("{c} input channels do not fit a filter with {filter_c}"));
    }
    let depth = window(kd, options.stride_d, options.dilation_d)?;
    let height = window(kh, options.stride_h, options.dilation_h)?;
    let width = window(kw, options.stride_w, options.dilation_w)?;
    one(vec![
        n,
        depth.output(d, options.padding),
        height.output(h, options.padding),
        width.output(w, options.padding),
        outputs,
    ])
}

/// TRANSPOSE_CONV: height and width come from the shape input, if the transposed convolution maps
/// them to the image. The batch is that of the image, since a constant shape input has the batch
/// for which the model was exported.
pub(super) fn transpose_conv(inputs: &Inputs<'_>, options: &TransposeConvOptions) -> Rule {
    let requested = inputs.as_shape(0)?;
    let &[_, height, width, channels] = requested.as_slice() else {
        return invalid(format!("the output's shape is {requested:?}, expected 4 dimensions"));
    };
    let [batch, rows, columns, _] = inputs.dims(2)?;
    let [_, kh, kw, _] = inputs.dims(1)?;
    let window = SpatialWindow::of_filter((kh, kw), (options.stride_h, options.stride_w), (1, 1))
        .map_err(Stop::Invalid)?;
    if window.output((height, width), options.padding) != [rows, columns] {
        return invalid(format!(
            "an image of {rows} × {columns} cannot be upsampled to {height} × {width} with strides of {} × {} and a filter of {kh} × {kw}",
            options.stride_h, options.stride_w
        ));
    }
    one(vec![batch, height, width, channels])
}

/// CONV_3D_TRANSPOSE: the output's shape is an input.
pub(super) fn transpose_conv_3d(inputs: &Inputs<'_>) -> Rule {
    one(inputs.as_shape(0)?)
}

pub(super) fn resize(inputs: &Inputs<'_>) -> Rule {
    let [n, _, _, c] = inputs.dims(0)?;
    match inputs.ints(1)?.as_slice() {
        &[h, w] => one(vec![n, size(h)?, size(w)?, c]),
        other => invalid(format!("the new size has {} elements, expected 2", other.len())),
    }
}
