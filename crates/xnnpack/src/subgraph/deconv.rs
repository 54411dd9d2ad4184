//! Transposed convolution.

use xnnpack_sys as sys;

use super::checks::{FilteredTypes, Window, check_indirection, expect_flags, widen};
use super::context::{Context, RawIds};
use super::conv::{Channels, TYPES, check_rows, expect_channels, filter_shape, filtered};
use super::operator::{Fusion, Links, Operator};
use super::{Flags, OutputRange, Padding2d};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// 2D transposed convolution.
#[derive(Clone, Debug)]
pub struct Deconv2d {
    /// Elements that are cut from the edges of the output.
    pub padding: Padding2d,
    /// Rows and columns added at the bottom and to the right of the output.
    pub adjustment: [u32; 2],
    /// Height and width of the kernel.
    pub kernel: [u32; 2],
    /// Upsampling along height and width.
    pub stride: [u32; 2],
    /// Distances between kernel elements along height and width.
    pub dilation: [u32; 2],
    /// Number of groups of channels.
    pub groups: u32,
    /// Input channels of a group.
    pub group_input_channels: usize,
    /// Output channels of a group.
    pub group_output_channels: usize,
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[N, H, W, groups * group_input_channels]`.
    pub input: ValueId,
    /// `[groups * group_output_channels, kernel height, kernel width, group_input_channels]`,
    /// constant.
    pub filter: ValueId,
    /// `[groups * group_output_channels]`, constant.
    pub bias: Option<ValueId>,
    /// `[N, OH, OW, groups * group_output_channels]`.
    pub output: ValueId,
    /// Must be [`Flags::NONE`].
    pub flags: Flags,
}

/// Additional datatypes of [`Deconv2d`].
const DYNAMIC_DECONV_TYPES: &[FilteredTypes] = &[(D::Qdint8, D::Qcint8, D::F32, D::F32)];

impl Deconv2d {
    fn channels(&self) -> Result<Channels> {
        Channels::new(self.groups, self.group_input_channels, self.group_output_channels)
    }

    fn window(&self) -> Window {
        let Self { padding, kernel, stride, dilation, flags, .. } = *self;
        Window { padding, kernel, stride, dilation, flags }
    }
}

impl Operator for Deconv2d {
    fn kind(&self) -> &'static str {
        "deconvolution_2d"
    }

    fn links(&self) -> Links {
        filtered(self.input, self.filter, self.bias, self.output).links()
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_flags(self.flags, Flags::NONE)?;
        self.window().check()?;
        self.output_range.check()?;
        for axis in [0, 1] {
            if self.adjustment[axis] >= self.stride[axis] {
                return Err(Error::invalid(format!(
                    "adjustment {:?} is not less than stride {:?}",
                    self.adjustment, self.stride
                )));
            }
        }
        let filtered = filtered(self.input, self.filter, self.bias, self.output);
        filtered.check_types(cx, &[TYPES, DYNAMIC_DECONV_TYPES])?;
        filtered.check_channel_axis(cx, 0)?;
        filtered.check_weights(cx, 0, false)?;
        check_rows(cx, self.input)?;
        let channels = self.channels()?;
        filtered.check_constant_shapes(
            cx,
            &filter_shape(channels.output, self.kernel, self.group_input_channels),
            channels.output,
        )
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, input_channels] = cx.shape4(self.input)?;
        let channels = self.channels()?;
        expect_channels(self.input, input_channels, channels.input)?;
        let input = [height, width];
        let mut output = [0; 2];
        for axis in [0, 1] {
            let reach = (input[axis] - 1)
                .checked_mul(widen(self.stride[axis]))
                .and_then(|reach| {
                    reach.checked_add(self.window().reach(axis) + widen(self.adjustment[axis]))
                })
                .ok_or_else(|| Error::invalid("the output is too large"))?;
            output[axis] = reach
                .checked_sub(self.padding.along(axis))
                .filter(|&length| length > 0)
                .ok_or_else(|| Error::invalid("the padding cuts away the whole output"))?;
            // XNNPACK counts the pixels of each phase of the stride, and its count can become
            // negative.
            if output[axis] + 1 < widen(self.stride[axis]) {
                return Err(Error::unsupported(format!(
                    "an output of {output:?} pixels is too small for stride {:?}",
                    self.stride
                )));
            }
        }
        check_indirection(self.kernel, output)?;
        Ok(vec![Shape::new(&[batch, output[0], output[1], channels.output])?])
    }

    fn fusion(&self) -> Fusion {
        Fusion::BoundsAndPads(self.output_range)
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        new.keeps_padding_rows(self.input, old)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_deconvolution_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.adjustment[0],
                self.adjustment[1],
                self.kernel[0],
                self.kernel[1],
                self.stride[0],
                self.stride[1],
                self.dilation[0],
                self.dilation[1],
                self.groups,
                self.group_input_channels,
                self.group_output_channels,
                self.output_range.min,
                self.output_range.max,
                ids.of(self.input),
                ids.of(self.filter),
                ids.optional(self.bias),
                ids.of(self.output),
                self.flags.bits(),
            )
        }
    }
}
