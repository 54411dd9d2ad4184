//! Sums and means over whole dimensions.

use xnnpack_sys as sys;

use super::checks::expect_flags;
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use super::{Flags, OutputRange};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// Operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Sum.
    Sum,
    /// Arithmetic mean.
    Mean,
}

/// Sum or mean over given dimensions.
#[derive(Clone, Debug)]
pub struct StaticReduce {
    /// Sum or mean.
    pub op: ReduceOp,
    /// Dimensions to reduce; negative ones count from the innermost, -1.
    pub axes: Vec<i64>,
    /// Tensor of at least one dimension.
    pub input: ValueId,
    /// Shape without the reduced dimensions; they have length 1 with [`Flags::KEEP_DIMS`].
    pub output: ValueId,
    /// [`Flags::KEEP_DIMS`] or none.
    pub flags: Flags,
}

/// Dimensions that a [`GlobalPool`] reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PooledDims {
    /// Width of `[..., W, C]`.
    One,
    /// Height and width of `[..., H, W, C]`.
    Two,
}

/// Sum or mean over width, or height and width, with bounds.
#[derive(Clone, Debug)]
pub struct GlobalPool {
    /// Sum or mean.
    pub op: ReduceOp,
    /// The dimensions.
    pub dims: PooledDims,
    /// Whether these dimensions must keep the lengths that the subgraph was defined with.
    pub is_fixed: bool,
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[..., W, C]` or `[..., H, W, C]`.
    pub input: ValueId,
    /// Shape without the pooled dimensions; they have length 1 with [`Flags::KEEP_DIMS`].
    pub output: ValueId,
    /// [`Flags::KEEP_DIMS`] or none.
    pub flags: Flags,
}

/// Datatypes that can be reduced.
const REDUCIBLE: &[D] = &[D::F32, D::F16, D::Qint8, D::Quint8];

/// Shape of `input` without the dimensions `axes`.
fn reduced(cx: &Context<'_>, input: ValueId, axes: &[i64], flags: Flags) -> Result<Shape> {
    let datatype = cx.datatype(input)?;
    let input = cx.shape(input)?;
    let rank = i64::try_from(input.len()).unwrap_or(i64::MAX);
    let mut keep = [true; crate::value::MAX_DIMS];
    for &axis in axes {
        let index = if axis < 0 { axis.saturating_add(rank) } else { axis };
        let slot = usize::try_from(index).ok().and_then(|index| keep[..input.len()].get_mut(index));
        match slot {
            Some(slot @ true) => *slot = false,
            Some(false) => return Err(Error::invalid(format!("axis {axis} occurs twice"))),
            None => {
                return Err(Error::invalid(format!(
                    "axis {axis} is out of range for shape {input:?}"
                )));
            }
        }
    }
    let kept = input.iter().zip(keep).filter_map(|(&dim, keep)| match keep {
        true => Some(dim),
        false => flags.contains(Flags::KEEP_DIMS).then_some(1),
    });
    let output = Shape::new(&kept.collect::<Vec<_>>())?;
    let summed = input.elements() / output.elements();
    let most = if datatype == D::F32 { MAX_SUMMED } else { MAX_SUMMED_BYTES };
    if summed > most {
        return Err(Error::unsupported(format!(
            "a sum of {summed} {datatype} elements may overflow"
        )));
    }
    Ok(output)
}

/// XNNPACK counts the elements of a reduced dimension in signed 32-bit integers.
const MAX_SUMMED: usize = i32::MAX as usize;

/// XNNPACK accumulates 8-bit elements in 32 bits.
const MAX_SUMMED_BYTES: usize = i32::MAX as usize / u8::MAX as usize;

/// Whether the memory that XNNPACK has planned suffices for the accumulators, one for each element
/// of the output. XNNPACK plans again when the output grows beyond its peak, but not when it grows
/// back.
fn accumulators_fit(
    output: ValueId,
    old: &Context<'_>,
    new: &Context<'_>,
    peaks: &[usize],
) -> bool {
    let (Ok(datatype), Ok(before), Ok(after)) =
        (new.datatype(output), old.shape(output), new.shape(output))
    else {
        return false;
    };
    let peak =
        super::context::index(output).and_then(|index| peaks.get(index)).copied().unwrap_or(0);
    datatype == D::F32
        || after.elements() <= before.elements()
        || after.bytes(datatype).is_ok_and(|bytes| bytes > peak)
}

impl Operator for StaticReduce {
    fn kind(&self) -> &'static str {
        match self.op {
            ReduceOp::Sum => "static_sum",
            ReduceOp::Mean => "static_mean",
        }
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_flags(self.flags, Flags::KEEP_DIMS)?;
        let datatype = cx.expect_datatype(self.input, REDUCIBLE)?;
        cx.expect_datatype(self.output, &[datatype])?;
        if self.axes.is_empty() {
            return Err(Error::invalid("no axes are given"));
        }
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        Ok(vec![reduced(cx, self.input, &self.axes, self.flags)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, peaks: &[usize]) -> bool {
        accumulators_fit(self.output, old, new, peaks)
    }

    fn runs_channels_first(&self) -> bool {
        // XNNPACK maps only the axes of height and width correctly.
        self.axes.iter().all(|axis| matches!(axis, 1 | 2))
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let op = match self.op {
            ReduceOp::Sum => sys::xnn_reduce_sum,
            ReduceOp::Mean => sys::xnn_reduce_mean,
        };
        // SAFETY: the caller upholds the contract of `Operator::define`; `infer` accepts at most
        // `MAX_DIMS` axes.
        unsafe {
            sys::xnn_define_static_reduce_v2(
                graph,
                op,
                self.axes.len(),
                self.axes.as_ptr(),
                ids.of(self.input),
                ids.of(self.output),
                self.flags.bits(),
            )
        }
    }
}

impl Operator for GlobalPool {
    fn kind(&self) -> &'static str {
        match (self.op, self.dims) {
            (ReduceOp::Mean, PooledDims::One) => "global_average_pooling_1d",
            (ReduceOp::Mean, PooledDims::Two) => "global_average_pooling_2d",
            (ReduceOp::Sum, PooledDims::One) => "global_sum_pooling_1d",
            (ReduceOp::Sum, PooledDims::Two) => "global_sum_pooling_2d",
        }
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_flags(self.flags, Flags::KEEP_DIMS)?;
        self.output_range.check()?;
        let datatype = cx.expect_datatype(self.input, REDUCIBLE)?;
        cx.expect_datatype(self.output, &[datatype])?;
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let axes: &[i64] = match self.dims {
            PooledDims::One => &[-2],
            PooledDims::Two => &[-3, -2],
        };
        let input = cx.shape(self.input)?;
        let defined = cx.defined_shape(self.input).unwrap_or(input);
        let pooled = |shape: &Shape| {
            let from_innermost = shape.iter().rev().copied();
            from_innermost.skip(1).take(axes.len()).collect::<Vec<_>>()
        };
        if self.is_fixed && pooled(&input) != pooled(&defined) {
            return Err(Error::invalid(format!(
                "images of shape {input:?} must keep the height and width of {defined:?}: they are \
                 pooled by windows of this size"
            )));
        }
        Ok(vec![reduced(cx, self.input, axes, self.flags)?])
    }

    fn reshapes_in_place(&self, old: &Context<'_>, new: &Context<'_>, peaks: &[usize]) -> bool {
        let rank = |cx: &Context<'_>| cx.shape(self.input).map(|shape| shape.len());
        // XNNPACK fixes the axes when the node is defined.
        rank(old) == rank(new) && accumulators_fit(self.output, old, new, peaks)
    }

    fn fusion(&self) -> Fusion {
        // XNNPACK defines a clamp for the bounds.
        Fusion::Bounds(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let define = match (self.op, self.dims) {
            (ReduceOp::Mean, PooledDims::One) => sys::xnn_define_global_average_pooling_1d,
            (ReduceOp::Mean, PooledDims::Two) => sys::xnn_define_global_average_pooling_2d,
            (ReduceOp::Sum, PooledDims::One) => sys::xnn_define_global_sum_pooling_1d,
            (ReduceOp::Sum, PooledDims::Two) => sys::xnn_define_global_sum_pooling_2d,
        };
        let OutputRange { min, max } = self.output_range;
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            define(graph, min, max, ids.of(self.input), ids.of(self.output), self.flags.bits())
        }
    }
}
