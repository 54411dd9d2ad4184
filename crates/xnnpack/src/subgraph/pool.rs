//! Pooling over windows of height and width.

use xnnpack_sys as sys;

use super::checks::{Window, check_indirection, expect_shape, product, widen};
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use super::{Flags, OutputRange, Padding2d};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// Mean of each window; padding does not count.
#[derive(Clone, Debug)]
pub struct AveragePool2d {
    /// Padding around the input; all 0 with [`Flags::SAME_PADDING`].
    pub padding: Padding2d,
    /// Height and width of the window.
    pub pooling: [u32; 2],
    /// Steps along height and width.
    pub stride: [u32; 2],
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[N, H, W, channels]`.
    pub input: ValueId,
    /// `[N, OH, OW, channels]`.
    pub output: ValueId,
    /// [`Flags::SAME_PADDING`] or none.
    pub flags: Flags,
}

/// Largest value of each window.
#[derive(Clone, Debug)]
pub struct MaxPool2d {
    /// Padding around the input; all 0 with [`Flags::SAME_PADDING`].
    pub padding: Padding2d,
    /// Height and width of the window.
    pub pooling: [u32; 2],
    /// Steps along height and width.
    pub stride: [u32; 2],
    /// Distances between window elements along height and width.
    pub dilation: [u32; 2],
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[N, H, W, channels]`.
    pub input: ValueId,
    /// `[N, OH, OW, channels]`.
    pub output: ValueId,
    /// [`Flags::SAME_PADDING`] or none.
    pub flags: Flags,
}

/// Largest value of each window and its position in the window; windows do not overlap.
#[derive(Clone, Debug)]
pub struct ArgMaxPool2d {
    /// Padding around the input; all 0 with [`Flags::SAME_PADDING`].
    pub padding: Padding2d,
    /// Height and width of the window, and of the steps.
    pub pooling: [u32; 2],
    /// `[N, H, W, channels]`, fp32.
    pub input: ValueId,
    /// `[N, OH, OW, channels]`, fp32.
    pub value_output: ValueId,
    /// `[N, OH, OW, channels]`, int32: column-major positions in the window.
    pub index_output: ValueId,
    /// [`Flags::SAME_PADDING`] or none.
    pub flags: Flags,
}

/// Inverse of [`ArgMaxPool2d`]: writes values to the positions given by the indices, and zeros
/// elsewhere.
#[derive(Clone, Debug)]
pub struct Unpool2d {
    /// Elements that are cut from the edges of the output.
    pub padding: Padding2d,
    /// Height and width of the window.
    pub pooling: [u32; 2],
    /// `[N, H, W, channels]`, fp32.
    pub value_input: ValueId,
    /// `[N, H, W, channels]`, int32; computed by [`ArgMaxPool2d`] with the same window.
    pub index_input: ValueId,
    /// `[N, OH, OW, channels]`, fp32.
    pub output: ValueId,
}

/// Refuses a window of one element, for which XNNPACK has no kernels.
fn expect_several(pooling: [u32; 2]) -> Result<()> {
    if pooling == [1, 1] {
        return Err(Error::unsupported(
            "a pooling window of one element is not supported; use strides instead",
        ));
    }
    Ok(())
}

/// Whether the distance between pixels is unchanged. XNNPACK keeps pointers to pixels while height
/// and width are unchanged.
fn same_pixels(input: ValueId, old: &Context<'_>, new: &Context<'_>) -> bool {
    old.channels(input) == new.channels(input)
}

/// Shape of the output of a window that slides over `input`.
fn pooled(cx: &Context<'_>, window: Window, input: ValueId) -> Result<Shape> {
    let [batch, height, width, channels] = cx.shape4(input)?;
    let output = window.output([height, width])?;
    window.check_substitutes([height, width], output)?;
    Shape::new(&[batch, output[0], output[1], channels])
}

impl AveragePool2d {
    fn window(&self) -> Window {
        let Self { padding, pooling: kernel, stride, .. } = *self;
        Window { padding, kernel, stride, dilation: [1, 1], flags: self.window_flags() }
    }

    /// Clears `SAME` padding for windows of one element, for which XNNPACK would compute a negative
    /// padding.
    fn window_flags(&self) -> Flags {
        if self.pooling == [1, 1] && self.flags == Flags::SAME_PADDING {
            return Flags::NONE;
        }
        self.flags
    }
}

impl Operator for AveragePool2d {
    fn kind(&self) -> &'static str {
        "average_pooling_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        self.window().check()?;
        self.output_range.check()?;
        cx.expect_datatype(self.input, &[D::F32, D::F16])?;
        cx.expect_same_type(self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        Ok(vec![pooled(cx, self.window(), self.input)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        same_pixels(self.input, old, new)
    }

    fn fusion(&self) -> Fusion {
        Fusion::BoundsAndPads(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_average_pooling_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.pooling[0],
                self.pooling[1],
                self.stride[0],
                self.stride[1],
                self.output_range.min,
                self.output_range.max,
                ids.of(self.input),
                ids.of(self.output),
                self.window_flags().bits(),
            )
        }
    }
}

impl MaxPool2d {
    fn window(&self) -> Window {
        let Self { padding, pooling: kernel, stride, dilation, flags, .. } = *self;
        Window { padding, kernel, stride, dilation, flags }
    }
}

impl Operator for MaxPool2d {
    fn kind(&self) -> &'static str {
        "max_pooling_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_several(self.pooling)?;
        self.window().check()?;
        self.output_range.check()?;
        cx.expect_datatype(self.input, &[D::F32, D::F16, D::Qint8, D::Quint8])?;
        cx.expect_same_type(self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        Ok(vec![pooled(cx, self.window(), self.input)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        same_pixels(self.input, old, new)
    }

    fn fusion(&self) -> Fusion {
        Fusion::BoundsAndPads(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_max_pooling_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.pooling[0],
                self.pooling[1],
                self.stride[0],
                self.stride[1],
                self.dilation[0],
                self.dilation[1],
                self.output_range.min,
                self.output_range.max,
                ids.of(self.input),
                ids.of(self.output),
                self.flags.bits(),
            )
        }
    }
}

impl ArgMaxPool2d {
    fn window(&self) -> Window {
        let Self { padding, pooling: kernel, flags, .. } = *self;
        Window { padding, kernel, stride: kernel, dilation: [1, 1], flags }
    }
}

impl Operator for ArgMaxPool2d {
    fn kind(&self) -> &'static str {
        "argmax_pooling_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.value_output, self.index_output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_several(self.pooling)?;
        self.window().check()?;
        cx.expect_datatype(self.input, &[D::F32])?;
        cx.expect_datatype(self.value_output, &[D::F32])?;
        cx.expect_datatype(self.index_output, &[D::I32])?;
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = pooled(cx, self.window(), self.input)?;
        Ok(vec![shape, shape])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // XNNPACK never changes the shape of the indices.
        old.shape(self.index_output) == new.shape(self.index_output)
    }

    fn indices(&self) -> Option<(ValueId, [u32; 2])> {
        Some((self.index_output, self.pooling))
    }

    fn fusion(&self) -> Fusion {
        Fusion::NeedsAllOutputs
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_argmax_pooling_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.pooling[0],
                self.pooling[1],
                ids.of(self.input),
                ids.of(self.value_output),
                ids.of(self.index_output),
                self.flags.bits(),
            )
        }
    }
}

impl Operator for Unpool2d {
    fn kind(&self) -> &'static str {
        "unpooling_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.value_input, self.index_input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_several(self.pooling)?;
        let Self { padding, pooling: kernel, .. } = *self;
        let window =
            Window { padding, kernel, stride: kernel, dilation: [1, 1], flags: Flags::NONE };
        window.check()?;
        cx.expect_datatype(self.value_input, &[D::F32])?;
        cx.expect_datatype(self.index_input, &[D::I32])?;
        cx.expect_datatype(self.output, &[D::F32])?;
        // An index outside the window would cause a write out of bounds.
        cx.expect_indices(self.index_input, self.pooling)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, channels] = cx.shape4(self.value_input)?;
        expect_shape("index input", cx.shape(self.index_input)?, &cx.shape(self.value_input)?)?;
        let mut output = [height, width];
        for axis in [0, 1] {
            output[axis] = output[axis]
                .checked_mul(widen(self.pooling[axis]))
                .and_then(|length| length.checked_sub(self.padding.along(axis)))
                .ok_or_else(|| Error::invalid("the padding cuts away the whole output"))?;
        }
        check_indirection(self.pooling, [product("rows", &[batch, height])?, width])?;
        Ok(vec![Shape::new(&[batch, output[0], output[1], channels])?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // XNNPACK fixes the channels when the node is created.
        old.channels(self.value_input) == new.channels(self.value_input)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_unpooling_2d(
                graph,
                self.padding.top,
                self.padding.right,
                self.padding.bottom,
                self.padding.left,
                self.pooling[0],
                self.pooling[1],
                ids.of(self.value_input),
                ids.of(self.index_input),
                ids.of(self.output),
                0,
            )
        }
    }
}
