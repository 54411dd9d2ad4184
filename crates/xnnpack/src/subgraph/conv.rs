//! Convolutions: ordinary and depthwise.

use xnnpack_sys as sys;

use super::checks::{Filtered, FilteredTypes, Window, product, widen};
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use super::{Flags, OutputRange, Padding2d};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Quantization, Shape, ValueId};

/// 2D convolution, possibly grouped.
#[derive(Clone, Debug)]
pub struct Conv2d {
    /// Zeros around the input; all 0 with [`Flags::SAME_PADDING`].
    pub padding: Padding2d,
    /// Height and width of the kernel.
    pub kernel: [u32; 2],
    /// Steps along height and width.
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
    /// [`Flags::SAME_PADDING`] or none.
    pub flags: Flags,
}

/// 2D convolution of each input channel with its own filters.
#[derive(Clone, Debug)]
pub struct DepthwiseConv2d {
    /// Zeros around the input; all 0 with [`Flags::SAME_PADDING`].
    pub padding: Padding2d,
    /// Height and width of the kernel.
    pub kernel: [u32; 2],
    /// Steps along height and width.
    pub stride: [u32; 2],
    /// Distances between kernel elements along height and width.
    pub dilation: [u32; 2],
    /// Output channels per input channel.
    pub depth_multiplier: u32,
    /// Input channels.
    pub input_channels: usize,
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[N, H, W, input_channels]`.
    pub input: ValueId,
    /// `[1, kernel height, kernel width, input_channels * depth_multiplier]`, constant.
    pub filter: ValueId,
    /// `[input_channels * depth_multiplier]`, constant.
    pub bias: Option<ValueId>,
    /// `[N, OH, OW, input_channels * depth_multiplier]`.
    pub output: ValueId,
    /// [`Flags::SAME_PADDING`] or none.
    pub flags: Flags,
}

/// Datatypes of input, filter, bias and output that XNNPACK convolves.
pub(super) const TYPES: &[FilteredTypes] = &[
    (D::F32, D::F32, D::F32, D::F32),
    (D::F16, D::F32, D::F32, D::F16),
    (D::Qint8, D::Qint8, D::Qint32, D::Qint8),
    (D::Qint8, D::Qcint8, D::Qcint32, D::Qint8),
    (D::Quint8, D::Quint8, D::Qint32, D::Quint8),
];

/// Additional datatypes of [`Conv2d`].
const DYNAMIC_TYPES: &[FilteredTypes] =
    &[(D::Qdint8, D::Qcint8, D::F32, D::F32), (D::Qdint8, D::Qcint8, D::F32, D::F16)];

/// Additional datatypes of [`DepthwiseConv2d`], in builds with the microkernels of `xnnpack-sys`.
const DYNAMIC_DEPTHWISE_TYPES: &[FilteredTypes] = &[(D::Qdint8, D::Qcint8, D::F32, D::F32)];

/// Largest kernel, height x width, of depthwise convolutions of inputs quantized at run time
/// (`csrc/hooks/depthwise_qd8.h` of `xnnpack-sys`).
pub const MAX_DYNAMIC_TAPS: u64 = 25;

impl Conv2d {
    fn window(&self) -> Window {
        let Self { padding, kernel, stride, dilation, flags, .. } = *self;
        Window { padding, kernel, stride, dilation, flags }
    }

    fn channels(&self) -> Result<Channels> {
        Channels::new(self.groups, self.group_input_channels, self.group_output_channels)
    }
}

impl Operator for Conv2d {
    fn kind(&self) -> &'static str {
        "convolution_2d"
    }

    fn links(&self) -> Links {
        // XNNPACK turns other ones into depthwise convolutions, which it packs before it looks them
        // up.
        let is_product = self.groups == 1 && self.group_input_channels > 1;
        filtered(self.input, self.filter, self.bias, self.output)
            .links()
            .looking_up(is_product.then_some(self.filter))
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        self.window().check()?;
        self.output_range.check()?;
        let filtered = filtered(self.input, self.filter, self.bias, self.output);
        filtered.check_types(cx, &[TYPES, DYNAMIC_TYPES])?;
        filtered.check_channel_axis(cx, 0)?;
        let is_dynamic = cx.datatype(self.input)? == D::Qdint8;
        filtered.check_weights(cx, 0, self.group_input_channels == 1 && !is_dynamic)?;
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
        let [height, width] = self.window().output([height, width])?;
        Ok(vec![Shape::new(&[batch, height, width, channels.output])?])
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
            sys::xnn_define_convolution_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
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

impl DepthwiseConv2d {
    fn window(&self) -> Window {
        let Self { padding, kernel, stride, dilation, flags, .. } = *self;
        Window { padding, kernel, stride, dilation, flags }
    }

    fn output_channels(&self) -> Result<usize> {
        product("channels", &[self.input_channels, widen(self.depth_multiplier)])
    }

    /// Checks the limits of the microkernels of `xnnpack-sys` for inputs quantized at run time.
    fn check_dynamic(&self) -> Result<()> {
        let taps = u64::from(self.kernel[0]) * u64::from(self.kernel[1]);
        if taps > MAX_DYNAMIC_TAPS || self.depth_multiplier != 1 {
            return Err(Error::unsupported(format!(
                "a dynamically quantized depthwise convolution with {taps} weights for each of {} outputs of a channel; at \
                 most {} for one are",
                self.depth_multiplier, MAX_DYNAMIC_TAPS
            )));
        }
        Ok(())
    }
}

impl Operator for DepthwiseConv2d {
    fn kind(&self) -> &'static str {
        "depthwise_convolution_2d"
    }

    fn links(&self) -> Links {
        filtered(self.input, self.filter, self.bias, self.output).links()
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        self.window().check()?;
        self.output_range.check()?;
        let filtered = filtered(self.input, self.filter, self.bias, self.output);
        filtered.check_types(cx, &[TYPES, DYNAMIC_DEPTHWISE_TYPES])?;
        filtered.check_channel_axis(cx, 3)?;
        check_rows(cx, self.input)?;
        if matches!(cx.quantization(self.input)?, Quantization::Dynamic { .. }) {
            // The microkernels of `xnnpack-sys` take any weights.
            self.check_dynamic()?;
        } else {
            filtered.check_weights(cx, 3, true)?;
        }
        // XNNPACK uses the channels as groups, which it counts in 32 bits.
        if u32::try_from(self.input_channels).is_err() {
            return Err(Error::unsupported(format!(
                "{} input channels are too many",
                self.input_channels
            )));
        }
        let channels = self.output_channels()?;
        let [height, width] = self.kernel.map(widen);
        filtered.check_constant_shapes(cx, &[1, height, width, channels], channels)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, channels] = cx.shape4(self.input)?;
        expect_channels(self.input, channels, self.input_channels)?;
        let [height, width] = self.window().output([height, width])?;
        Ok(vec![Shape::new(&[batch, height, width, self.output_channels()?])?])
    }

    fn fusion(&self) -> Fusion {
        Fusion::BoundsAndPads(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_depthwise_convolution_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.kernel[0],
                self.kernel[1],
                self.stride[0],
                self.stride[1],
                self.dilation[0],
                self.dilation[1],
                self.depth_multiplier,
                self.input_channels,
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

/// XNNPACK counts the channels of a group, rounded up to whole tiles, in 32 bits.
const MAX_GROUP_CHANNELS: usize = 1 << 31;

/// Channels over all groups.
pub(super) struct Channels {
    pub(super) input: usize,
    pub(super) output: usize,
}

impl Channels {
    pub(super) fn new(groups: u32, group_input: usize, group_output: usize) -> Result<Self> {
        if group_input.max(group_output) > MAX_GROUP_CHANNELS {
            return Err(Error::unsupported(format!(
                "{group_input} input and {group_output} output channels in a group are too many"
            )));
        }
        Ok(Self {
            input: product("input channels", &[widen(groups), group_input])?,
            output: product("output channels", &[widen(groups), group_output])?,
        })
    }
}

pub(super) fn filtered(
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    output: ValueId,
) -> Filtered {
    Filtered { input, filter, bias, output }
}

pub(super) fn filter_shape(
    output_channels: usize,
    kernel: [u32; 2],
    input_channels: usize,
) -> [usize; 4] {
    [output_channels, widen(kernel[0]), widen(kernel[1]), input_channels]
}

pub(super) fn expect_channels(input: ValueId, actual: usize, expected: usize) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::invalid(format!("{input} has {actual} channels; expected {expected}")))
}

/// Checks that an image quantized at run time has its parameters per batch index, which XNNPACK
/// requires.
pub(super) fn check_rows(cx: &Context<'_>, input: ValueId) -> Result<()> {
    match cx.quantization(input)? {
        Quantization::Dynamic { nonbatch_dims } if *nonbatch_dims != 3 => {
            Err(Error::invalid(format!(
                "{input} is quantized over {nonbatch_dims} dimensions; a convolution requires 3"
            )))
        }
        _ => Ok(()),
    }
}
