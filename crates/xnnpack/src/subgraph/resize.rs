//! Resizing of images.

use xnnpack_sys as sys;

use super::Flags;
use super::checks::{check_indirection, check_move, expect_flags};
use super::context::{Context, RawIds};
use super::operator::{Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Shape, ValueId};

/// Longest side of an image. XNNPACK computes positions in fp32, and with longer sides the last
/// position may be rounded up to one outside the input.
const MAX_SIDE: usize = 1 << 22;

/// Bilinear resize of height and width.
#[derive(Clone, Debug)]
pub struct ResizeBilinear2d {
    /// New height and width.
    pub size: [usize; 2],
    /// `[N, H, W, channels]`.
    pub input: ValueId,
    /// `[N, new height, new width, channels]`.
    pub output: ValueId,
    /// One of [`Flags::ALIGN_CORNERS`] and [`Flags::TENSORFLOW_LEGACY`], or none for half-pixel
    /// centers.
    pub flags: Flags,
}

impl Operator for ResizeBilinear2d {
    fn kind(&self) -> &'static str {
        "static_resize_bilinear_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        let exclusive = Flags::ALIGN_CORNERS | Flags::TENSORFLOW_LEGACY;
        expect_flags(self.flags, exclusive)?;
        if self.flags.contains(exclusive) {
            return Err(Error::invalid("aligned corners and legacy mode are mutually exclusive"));
        }
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, channels] = cx.shape4(self.input)?;
        let [new_height, new_width] = self.size;
        if [height, width, new_height, new_width].iter().any(|&side| side > MAX_SIDE) {
            return Err(Error::unsupported(format!(
                "resize from {:?} to {:?}: a side is too long",
                [height, width],
                self.size
            )));
        }
        check_indirection([2, 2], self.size)?;
        Ok(vec![Shape::new(&[batch, new_height, new_width, channels])?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, _: &[usize]) -> bool {
        // XNNPACK keeps pointers to pixels while height and width are unchanged.
        old.channels(self.input) == new.channels(self.input)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_static_resize_bilinear_2d(
                graph,
                self.size[0],
                self.size[1],
                ids.of(self.input),
                ids.of(self.output),
                self.flags.bits(),
            )
        }
    }
}
