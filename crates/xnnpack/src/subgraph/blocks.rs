//! Operators that move blocks of pixels into channels, and back.

use xnnpack_sys as sys;

use super::checks::{check_move, product, widen};
use super::context::{Context, RawIds};
use super::operator::{Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Shape, ValueId};

/// Moves channels into blocks of height and width.
#[derive(Clone, Debug)]
pub struct DepthToSpace2d {
    /// Side length of a block.
    pub block_size: u32,
    /// `[N, H, W, C * block_size^2]`.
    pub input: ValueId,
    /// `[N, H * block_size, W * block_size, C]`.
    pub output: ValueId,
}

/// Moves blocks of height and width into channels.
#[derive(Clone, Debug)]
pub struct SpaceToDepth2d {
    /// Side length of a block.
    pub block_size: u32,
    /// `[N, H * block_size, W * block_size, C]`.
    pub input: ValueId,
    /// `[N, H, W, C * block_size^2]`.
    pub output: ValueId,
}

impl Operator for DepthToSpace2d {
    fn kind(&self) -> &'static str {
        "depth_to_space_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_block_size(self.block_size)?;
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, channels] = cx.shape4(self.input)?;
        let side = check_block_size(self.block_size)?;
        let block = product("block", &[side, side])?;
        if !channels.is_multiple_of(block) {
            return Err(Error::invalid(format!(
                "{channels} channels cannot be divided into blocks of {block}"
            )));
        }
        let height = product("height", &[height, side])?;
        let width = product("width", &[width, side])?;
        Ok(vec![Shape::new(&[batch, height, width, channels / block])?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe { sys::xnn_define_depth_to_space_2d(graph, self.block_size, input, output, 0) }
    }
}

impl Operator for SpaceToDepth2d {
    fn kind(&self) -> &'static str {
        "space_to_depth_2d"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_block_size(self.block_size)?;
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let [batch, height, width, channels] = cx.shape4(self.input)?;
        let side = check_block_size(self.block_size)?;
        if !height.is_multiple_of(side) || !width.is_multiple_of(side) {
            return Err(Error::invalid(format!(
                "{height} x {width} pixels cannot be divided into blocks of side {side}"
            )));
        }
        let channels = product("channels", &[channels, side, side])?;
        Ok(vec![Shape::new(&[batch, height / side, width / side, channels])?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe { sys::xnn_define_space_to_depth_2d(graph, self.block_size, input, output, 0) }
    }
}

/// Refuses a side length below 2, which XNNPACK does not support, and blocks whose elements do not
/// fit 32 bits.
fn check_block_size(block_size: u32) -> Result<usize> {
    if block_size < 2 || block_size > u32::from(u16::MAX) {
        return Err(Error::unsupported(format!("blocks of side {block_size} are not supported")));
    }
    Ok(widen(block_size))
}
