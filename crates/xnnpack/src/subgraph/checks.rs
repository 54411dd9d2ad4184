//! Checks that several operators share.

use std::collections::HashSet;

use super::context::Context;
use super::operator::Links;
use super::{Flags, OutputRange, Padding2d};
use crate::status::{Error, Result};
use crate::target::{adds_in_16_bits, adds_in_16_bits_for_fp16};
use crate::value::{Datatype, Quantization, Shape, ValueId};

/// Datatypes of elementwise operators.
pub(super) const ELEMENTS: &[Datatype] = &[
    Datatype::F32,
    Datatype::F16,
    Datatype::Bf16,
    Datatype::I32,
    Datatype::Qint8,
    Datatype::Quint8,
];

/// Datatypes that can be copied.
pub(super) const COPYABLE: &[Datatype] =
    &[Datatype::F32, Datatype::F16, Datatype::Qint8, Datatype::Quint8];

/// Maximal kernel, padding, stride or dilation along a dimension. XNNPACK computes with these in 32
/// bits and does not check for overflow.
const MAX_EXTENT: u32 = 1 << 24;

/// Maximal number of pointers in an indirection buffer, whose size in bytes cannot overflow.
const MAX_INDIRECTION: usize = match 1usize.checked_shl(36) {
    Some(pointers) => pointers,
    None => usize::MAX / 64,
};

/// A window that slides over height and width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) padding: Padding2d,
    pub(super) kernel: [u32; 2],
    pub(super) stride: [u32; 2],
    pub(super) dilation: [u32; 2],
    pub(super) flags: Flags,
}

impl Window {
    /// Refuses parameters that are zero, contradictory or too large.
    pub(super) fn check(&self) -> Result<()> {
        let Self { padding, kernel, stride, dilation, flags } = *self;
        expect_flags(flags, Flags::SAME_PADDING)?;
        expect_extents("kernel", kernel)?;
        expect_extents("stride", stride)?;
        expect_extents("dilation", dilation)?;
        let padding = padding.sides();
        if flags.contains(Flags::SAME_PADDING) && padding != [0; 4] {
            return Err(Error::invalid(
                "explicit padding and `SAME` padding are mutually exclusive",
            ));
        }
        if padding.iter().any(|&side| side > MAX_EXTENT) {
            return Err(Error::unsupported(format!("padding {padding:?} is too large")));
        }
        for axis in [0, 1] {
            if self.reach(axis) > widen(MAX_EXTENT) {
                return Err(Error::unsupported(format!(
                    "a kernel of {kernel:?} dilated by {dilation:?} is too large"
                )));
            }
        }
        Ok(())
    }

    /// Height and width of the output, from those of the input.
    pub(super) fn output(&self, input: [usize; 2]) -> Result<[usize; 2]> {
        let mut output = [0; 2];
        for axis in [0, 1] {
            let stride = widen(self.stride[axis]);
            output[axis] = if self.flags.contains(Flags::SAME_PADDING) {
                let length = input[axis].div_ceil(stride);
                // XNNPACK would compute a negative padding, except for kernels of one element.
                if self.kernel != [1, 1] && (length - 1) * stride + self.reach(axis) < input[axis] {
                    return Err(Error::unsupported(format!(
                        "`SAME` padding of {} elements would be negative for a kernel of {:?} and stride {:?}",
                        input[axis], self.kernel, self.stride
                    )));
                }
                length
            } else {
                let padded = input[axis] + self.padding.along(axis);
                let free = padded.checked_sub(self.reach(axis)).ok_or_else(|| {
                    Error::invalid(format!(
                        "a kernel of {} elements does not fit into {padded}",
                        self.reach(axis)
                    ))
                })?;
                free / stride + 1
            };
        }
        check_indirection(self.kernel, output)?;
        Ok(output)
    }

    /// Refuses dilated windows for which XNNPACK would read outside the input. For an element in
    /// the padding it reads another element of the window, assumed to be inside the input, which is
    /// not always the case if the padding is shorter than the dilation.
    pub(super) fn check_substitutes(&self, input: [usize; 2], output: [usize; 2]) -> Result<()> {
        if self.dilation == [1, 1] {
            return Ok(());
        }
        for axis in [0, 1] {
            let [stride, dilation] = [self.stride, self.dilation].map(|sides| widen(sides[axis]));
            let before = self.padding_before(axis, input[axis], output[axis]);
            let last = output[axis] - 1;
            // Windows that begin before the offset use the element one dilation later.
            let offset = before % dilation;
            let early = offset
                .checked_sub(1)
                .map(|offset| last.min(offset / stride) * stride + dilation)
                .map(|place| place - offset);
            let late = (last * stride).checked_sub(offset);
            let is_inside = |place: Option<usize>| place.is_none_or(|place| place < input[axis]);
            if before >= self.reach(axis) || !is_inside(early) || !is_inside(late) {
                return Err(Error::unsupported(format!(
                    "a window of {:?} dilated by {:?} is not supported in the padding of {} elements",
                    self.kernel, self.dilation, input[axis]
                )));
            }
        }
        Ok(())
    }

    /// Padding above the input (axis 0) or to its left (axis 1).
    fn padding_before(&self, axis: usize, input: usize, output: usize) -> usize {
        if self.flags.contains(Flags::SAME_PADDING) {
            let reached = (output - 1) * widen(self.stride[axis]) + self.reach(axis);
            return reached.saturating_sub(input) / 2;
        }
        widen(if axis == 0 { self.padding.top } else { self.padding.left })
    }

    /// Number of elements that the dilated kernel spans.
    pub(super) fn reach(&self, axis: usize) -> usize {
        (widen(self.kernel[axis]) - 1) * widen(self.dilation[axis]) + 1
    }
}

impl Padding2d {
    fn sides(self) -> [u32; 4] {
        [self.top, self.right, self.bottom, self.left]
    }

    /// Sum of both sides along height (0) or width (1).
    pub(super) fn along(self, axis: usize) -> usize {
        let (before, behind) =
            if axis == 0 { (self.top, self.bottom) } else { (self.left, self.right) };
        widen(before) + widen(behind)
    }
}

impl OutputRange {
    /// Refuses NaN, and bounds in the wrong order.
    pub(super) fn check(self) -> Result<()> {
        let Self { min, max } = self;
        if min <= max {
            return Ok(());
        }
        Err(Error::invalid(format!("output range from {min} to {max} is not valid")))
    }
}

/// Refuses flags that the node does not support.
pub(super) fn expect_flags(flags: Flags, allowed: Flags) -> Result<()> {
    if allowed.contains(flags) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "flags {flags:?} are not supported; expected at most {allowed:?}"
    )))
}

/// Refuses a height or width that is 0 or exceeds [`MAX_EXTENT`].
pub(super) fn expect_extents(what: &str, extents: [u32; 2]) -> Result<()> {
    if extents.iter().all(|extent| (1..=MAX_EXTENT).contains(extent)) {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} {extents:?} has a side that is 0 or too large")))
}

/// Refuses an indirection buffer (a pointer per kernel element and pixel) that exceeds
/// [`MAX_INDIRECTION`].
pub(super) fn check_indirection(kernel: [u32; 2], pixels: [usize; 2]) -> Result<()> {
    // Microkernels compute whole tiles of pixels.
    const TILE: usize = 64;
    let entries = [widen(kernel[0]), widen(kernel[1]), pixels[0], pixels[1] + TILE];
    entries
        .into_iter()
        .try_fold(1usize, usize::checked_mul)
        .filter(|&entries| entries <= MAX_INDIRECTION)
        .map(|_| ())
        .ok_or_else(|| {
            Error::unsupported(format!("a kernel of {kernel:?} at {pixels:?} pixels is too large"))
        })
}

/// Refuses a tensor whose shape does not match a node's parameters.
pub(super) fn expect_shape(what: &str, shape: Shape, expected: &[usize]) -> Result<()> {
    if *shape == *expected {
        return Ok(());
    }
    Err(Error::invalid(format!("the {what} has shape {shape:?}; expected {expected:?}")))
}

/// Product of factors that come from parameters.
pub(super) fn product(what: &str, factors: &[usize]) -> Result<usize> {
    factors
        .iter()
        .try_fold(1usize, |product, &factor| product.checked_mul(factor))
        .filter(|&product| product > 0)
        .ok_or_else(|| Error::invalid(format!("{what} {factors:?}: the product is 0 or too large")))
}

/// A 32-bit parameter as a size.
pub(super) fn widen(parameter: u32) -> usize {
    // XNNPACK does not support targets with a narrower `usize`.
    usize::try_from(parameter).unwrap_or(usize::MAX)
}

/// Datatypes of input, filter, bias and output.
pub(super) type FilteredTypes = (Datatype, Datatype, Datatype, Datatype);

/// Operands of a node that applies a filter and adds a bias.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filtered {
    pub(super) input: ValueId,
    pub(super) filter: ValueId,
    pub(super) bias: Option<ValueId>,
    pub(super) output: ValueId,
}

impl Filtered {
    pub(super) fn links(&self) -> Links {
        let operands = [self.filter].into_iter().chain(self.bias);
        Links::new([self.input].into_iter().chain(operands.clone()), [self.output])
            .packing(operands)
    }

    /// Refuses combinations of datatypes that are not in the tables.
    pub(super) fn check_types(&self, cx: &Context<'_>, tables: &[&[FilteredTypes]]) -> Result<()> {
        let (input, filter) = (cx.datatype(self.input)?, cx.datatype(self.filter)?);
        let bias = self.bias.map(|bias| cx.datatype(bias)).transpose()?;
        let output = cx.datatype(self.output)?;
        let matches = |&(i, f, b, o): &FilteredTypes| {
            (i, f, o) == (input, filter, output) && bias.is_none_or(|bias| bias == b)
        };
        if tables.iter().copied().flatten().any(matches) {
            return Ok(());
        }
        let bias = bias.map_or_else(|| "no".to_owned(), |bias| bias.to_string());
        Err(Error::unsupported(format!(
            "the combination of {input} input, {filter} filter, {bias} bias and {output} output is not supported"
        )))
    }

    /// Refuses per-channel scales along a dimension of the filter other than `axis`, and zero
    /// points that XNNPACK ignores.
    pub(super) fn check_channel_axis(&self, cx: &Context<'_>, axis: usize) -> Result<()> {
        match cx.quantization(self.filter)? {
            Quantization::PerChannel { axis: actual, .. }
            | Quantization::Blockwise { axis: actual, .. }
                if *actual != axis =>
            {
                Err(Error::unsupported(format!(
                    "the filter has scales along dimension {actual}; expected {axis}"
                )))
            }
            Quantization::PerTensor { zero_point, .. }
                if *zero_point != 0 && cx.datatype(self.filter)? == Datatype::Qint8 =>
            {
                Err(Error::unsupported(format!(
                    "zero point {zero_point} of a qint8 filter is not supported"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses int8 weights whose products with 8-bit inputs overflow in this processor's
    /// microkernels: two weights of -128 for one channel, along dimension `axis` of the filter.
    pub(super) fn check_weights(
        &self,
        cx: &Context<'_>,
        axis: usize,
        depthwise: bool,
    ) -> Result<()> {
        let is_fp16 = cx.datatype(self.output)? == Datatype::F16;
        let overflows = adds_in_16_bits(depthwise) || (is_fp16 && adds_in_16_bits_for_fp16());
        if !overflows {
            return Ok(());
        }
        let is_quantized = matches!(cx.datatype(self.input)?, Datatype::Qint8 | Datatype::Qdint8);
        let is_int8 = matches!(cx.datatype(self.filter)?, Datatype::Qint8 | Datatype::Qcint8);
        let Some(weights) = cx.static_bytes(self.filter)?.filter(|_| is_quantized && is_int8)
        else {
            return Ok(());
        };
        let shape = cx.shape(self.filter)?;
        let channels = shape.get(axis).copied().unwrap_or(1).max(1);
        let inner = shape.iter().skip(axis + 1).product::<usize>().max(1);
        let is_least = |place: &(usize, &u8)| place.1.cast_signed() == i8::MIN;
        let least = weights.iter().enumerate().filter(is_least);
        let mut seen = HashSet::new();
        for channel in least.map(|(position, _)| position / inner % channels) {
            if !seen.insert(channel) {
                return Err(Error::unsupported(format!(
                    "two weights of {} for channel {channel}: their products overflow the 16-bit sums of this processor's microkernels",
                    i8::MIN
                )));
            }
        }
        Ok(())
    }

    /// Refuses a filter or bias that is not constant or has another shape.
    pub(super) fn check_constant_shapes(
        &self,
        cx: &Context<'_>,
        filter: &[usize],
        bias_length: usize,
    ) -> Result<()> {
        expect_constant(cx, "filter", self.filter)?;
        expect_shape("filter", cx.shape(self.filter)?, filter)?;
        let Some(bias) = self.bias else { return Ok(()) };
        expect_constant(cx, "bias", bias)?;
        expect_shape("bias", cx.shape(bias)?, &[bias_length])
    }
}

/// Refuses an operand that is not constant.
pub(super) fn expect_constant(cx: &Context<'_>, what: &str, id: ValueId) -> Result<()> {
    if cx.is_static(id)? {
        return Ok(());
    }
    Err(Error::unsupported(format!("the {what} ({id}) is not constant")))
}

/// Checks a node that moves the elements of one tensor to another.
pub(super) fn check_move(cx: &Context<'_>, input: ValueId, output: ValueId) -> Result<()> {
    cx.expect_datatype(input, COPYABLE)?;
    cx.expect_same_type(input, output)
}

/// Broadcasts two shapes; `None` if they are not compatible.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let padded = |dims: &[usize]| {
        let ones = std::iter::repeat_n(1, rank - dims.len());
        ones.chain(dims.iter().copied()).collect::<Vec<_>>()
    };
    padded(a)
        .into_iter()
        .zip(padded(b))
        .map(|pair| match pair {
            (x, y) if x == y => Some(x),
            (1, other) | (other, 1) => Some(other),
            _ => None,
        })
        .collect()
}
