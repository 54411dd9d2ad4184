//! Matrix products.

use xnnpack_sys as sys;

use super::checks::{
    Filtered, FilteredTypes, broadcast, expect_constant, expect_flags, expect_shape,
};
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use super::{Flags, OutputRange};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Quantization, Shape, ValueId};

/// Product of each row of the input with a filter matrix, plus bias.
#[derive(Clone, Debug)]
pub struct FullyConnected {
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[..., input channels]`; with [`Flags::RESHAPE_2D`] any shape whose number of elements is a
    /// multiple of the input channels.
    pub input: ValueId,
    /// `[output channels, input channels]`; `[input channels, output channels]` with
    /// [`Flags::TRANSPOSE_WEIGHTS`].
    pub filter: ValueId,
    /// `[output channels]`.
    pub bias: Option<ValueId>,
    /// `[..., output channels]`; `[rows, output channels]` with [`Flags::RESHAPE_2D`].
    pub output: ValueId,
    /// [`Flags::TRANSPOSE_WEIGHTS`], [`Flags::RESHAPE_2D`]; [`Flags::FP16_WEIGHTS`] if the filter
    /// is not transposed and its role is [`Role::Fp16Weights`](crate::Role::Fp16Weights);
    /// [`Flags::MANY_ROWS`] if the input is of 8-bit integers and the filter too, or of 4-bit ones
    /// with a scale for each channel.
    pub flags: Flags,
}

/// [`FullyConnected`] for fp32 filters that are mostly zero.
#[derive(Clone, Debug)]
pub struct FullyConnectedSparse {
    /// Bounds of the output.
    pub output_range: OutputRange,
    /// `[rows, input channels]`.
    pub input: ValueId,
    /// `[output channels, input channels]`, constant.
    pub filter: ValueId,
    /// `[output channels]`, constant.
    pub bias: Option<ValueId>,
    /// `[rows, output channels]`.
    pub output: ValueId,
}

/// Matrix products over broadcast batch dimensions.
#[derive(Clone, Debug)]
pub struct BatchMatMul {
    /// `[..., M, K]`.
    pub a: ValueId,
    /// `[..., K, N]`; `[..., N, K]` with [`Flags::TRANSPOSE_B`].
    pub b: ValueId,
    /// `[..., M, N]`.
    pub output: ValueId,
    /// [`Flags::TRANSPOSE_B`] or none.
    pub flags: Flags,
}

/// Datatypes of input, filter, bias and output of [`FullyConnected`].
const FULLY_CONNECTED_TYPES: &[FilteredTypes] = &[
    (D::F32, D::F32, D::F32, D::F32),
    (D::F16, D::F32, D::F32, D::F16),
    (D::F16, D::F16, D::F16, D::F16),
    (D::F32, D::Qcint8, D::F32, D::F32),
    (D::F32, D::Qcint4, D::F32, D::F32),
    (D::Qdint8, D::Qcint8, D::F32, D::F32),
    (D::Qdint8, D::Qcint8, D::F32, D::F16),
    (D::Qdint8, D::Qcint4, D::F32, D::F32),
    (D::Qdint8, D::Qcint4, D::F32, D::F16),
    (D::Qdint8, D::Qbint4, D::F32, D::F32),
    (D::Qdint8, D::Qbint4, D::F32, D::F16),
    (D::Qint8, D::Qint8, D::Qint32, D::Qint8),
    (D::Qint8, D::Qcint8, D::Qcint32, D::Qint8),
    (D::Quint8, D::Quint8, D::Qint32, D::Quint8),
];

/// Datatypes of input, filter, bias and output of [`FullyConnectedSparse`].
const SPARSE_TYPES: &[FilteredTypes] =
    &[(D::F32, D::F32, D::F32, D::F32), (D::F16, D::F32, D::F32, D::F16)];

/// Datatypes of both operands and the output of [`BatchMatMul`].
const BATCH_TYPES: &[(D, D, D)] =
    &[(D::F32, D::F32, D::F32), (D::F16, D::F16, D::F16), (D::Qdint8, D::Qcint8, D::F32)];

impl FullyConnected {
    fn filtered(&self) -> Filtered {
        let Self { input, filter, bias, output, .. } = *self;
        Filtered { input, filter, bias, output }
    }

    fn is_of_integers(&self, cx: &Context<'_>) -> Result<bool> {
        let types = (cx.datatype(self.input)?, cx.datatype(self.filter)?);
        Ok(matches!(
            types,
            (D::Qdint8 | D::Qint8, D::Qint8 | D::Qcint8)
                | (D::Qdint8, D::Qcint4)
                | (D::Quint8, D::Quint8)
        ))
    }

    fn channels(&self, cx: &Context<'_>) -> Result<Channels> {
        let shape = cx.shape(self.filter)?;
        match *shape {
            [input, output] if self.flags.contains(Flags::TRANSPOSE_WEIGHTS) => {
                Ok(Channels { input, output })
            }
            [output, input] => Ok(Channels { input, output }),
            _ => Err(Error::invalid(format!(
                "the filter has shape {shape:?}; expected two dimensions"
            ))),
        }
    }
}

impl Operator for FullyConnected {
    fn kind(&self) -> &'static str {
        // XNNPACK packs these weights differently.
        if self.flags.contains(Flags::FP16_WEIGHTS) {
            "fully_connected_f16w"
        } else if self.flags.contains(Flags::MANY_ROWS) {
            "fully_connected_rows"
        } else if self.flags.contains(Flags::SPARSE_WEIGHTS) {
            "fully_connected_sparse_weights"
        } else {
            "fully_connected"
        }
    }

    fn links(&self) -> Links {
        self.filtered().links().looking_up(Some(self.filter))
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        let has_fp16_weights = self.flags.contains(Flags::FP16_WEIGHTS);
        let layout = if has_fp16_weights { Flags::FP16_WEIGHTS } else { Flags::TRANSPOSE_WEIGHTS };
        let layout = layout | Flags::RESHAPE_2D;
        expect_flags(self.flags, layout | Flags::MANY_ROWS | Flags::SPARSE_WEIGHTS)?;
        if has_fp16_weights && !cx.is_fp16_weights(self.filter)? {
            return Err(Error::invalid(
                "the flag for fp16 weights requires a filter that is kept in fp16",
            ));
        }
        if self.flags.contains(Flags::MANY_ROWS) && !self.is_of_integers(cx)? {
            return Err(Error::invalid(
                "the flag for many rows requires 8-bit inputs, and weights of 8 or 4 bits",
            ));
        }
        if self.flags.contains(Flags::SPARSE_WEIGHTS) {
            let types = (cx.datatype(self.input)?, cx.datatype(self.filter)?);
            if has_fp16_weights || types != (D::F32, D::F32) {
                return Err(Error::invalid(
                    "the flag for sparse weights requires fp32 inputs, and weights that are packed in fp32",
                ));
            }
            expect_constant(cx, "filter", self.filter)?;
        }
        self.output_range.check()?;
        let filtered = self.filtered();
        filtered.check_types(cx, &[FULLY_CONNECTED_TYPES])?;
        let transposed = self.flags.contains(Flags::TRANSPOSE_WEIGHTS);
        let axis = usize::from(transposed);
        filtered.check_channel_axis(cx, axis)?;
        filtered.check_weights(cx, axis, false)?;
        // XNNPACK packs transposed 4-bit filters only for inputs quantized at run time, in pairs of
        // rows.
        let packs = match cx.datatype(self.filter)? {
            D::Qcint4 => {
                cx.datatype(self.input)? == D::Qdint8 && self.channels(cx)?.input.is_multiple_of(2)
            }
            filter => filter != D::Qbint4,
        };
        if transposed && !packs {
            return Err(Error::unsupported(
                "a transposed 4-bit filter of this kind is not supported",
            ));
        }
        // Only fp32 filters and biases may be computed at run time.
        if cx.datatype(self.input)? != D::F32 || cx.datatype(self.filter)? != D::F32 {
            expect_constant(cx, "filter", self.filter)?;
            self.bias.map_or(Ok(()), |bias| expect_constant(cx, "bias", bias))?;
        }
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let channels = self.channels(cx)?;
        if let Some(bias) = self.bias {
            expect_shape("bias", cx.shape(bias)?, &[channels.output])?;
        }
        rows(cx, self.input, channels.input)?;
        let reshape = self.flags.contains(Flags::RESHAPE_2D);
        Ok(vec![channels.output_shape(cx.shape(self.input)?, reshape)?])
    }

    fn fusion(&self) -> Fusion {
        Fusion::Bounds(self.output_range)
    }

    fn fp16_filter(&self) -> Option<ValueId> {
        self.flags.contains(Flags::FP16_WEIGHTS).then_some(self.filter)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_fully_connected(
                graph,
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

impl Operator for FullyConnectedSparse {
    fn kind(&self) -> &'static str {
        "fully_connected_sparse"
    }

    fn links(&self) -> Links {
        let Self { input, filter, bias, output, .. } = *self;
        Filtered { input, filter, bias, output }.links()
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        let Self { input, filter, bias, output, .. } = *self;
        self.output_range.check()?;
        Filtered { input, filter, bias, output }.check_types(cx, &[SPARSE_TYPES])?;
        expect_constant(cx, "filter", filter)?;
        bias.map_or(Ok(()), |bias| expect_constant(cx, "bias", bias))
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let filter = cx.shape(self.filter)?;
        let [output, input] = *filter else {
            return Err(Error::invalid(format!(
                "the filter has shape {filter:?}; expected two dimensions"
            )));
        };
        if let Some(bias) = self.bias {
            expect_shape("bias", cx.shape(bias)?, &[output])?;
        }
        // XNNPACK uses the second dimension of the input as its channels, regardless of the rank.
        let shape = cx.shape(self.input)?;
        match *shape {
            [rows, channels] if channels == input => Ok(vec![Shape::new(&[rows, output])?]),
            _ => Err(Error::unsupported(format!(
                "the input has shape {shape:?}; expected [rows, {input}]"
            ))),
        }
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn fusion(&self) -> Fusion {
        Fusion::Bounds(self.output_range)
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_fully_connected_sparse(
                graph,
                self.output_range.min,
                self.output_range.max,
                ids.of(self.input),
                ids.of(self.filter),
                ids.optional(self.bias),
                ids.of(self.output),
                0,
            )
        }
    }
}

impl Operator for BatchMatMul {
    fn kind(&self) -> &'static str {
        "batch_matrix_multiply"
    }

    fn links(&self) -> Links {
        Links::new([self.a, self.b], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        expect_flags(self.flags, Flags::TRANSPOSE_B)?;
        let types = (cx.datatype(self.a)?, cx.datatype(self.b)?, cx.datatype(self.output)?);
        if !BATCH_TYPES.contains(&types) {
            let (a, b, output) = types;
            return Err(Error::unsupported(format!(
                "matrices of {a} and {b} cannot be multiplied to {output}"
            )));
        }
        let Quantization::PerChannel { axis, .. } = cx.quantization(self.b)? else { return Ok(()) };
        expect_constant(cx, "second operand", self.b)?;
        let shape = cx.shape(self.b)?;
        let columns = if self.flags.contains(Flags::TRANSPOSE_B) { 2 } else { 1 };
        if shape.len().checked_sub(columns) != Some(*axis) {
            return Err(Error::unsupported(format!(
                "{} has scales along dimension {axis}, which is not its output channels",
                self.b
            )));
        }
        // XNNPACK reads scales for each matrix of a batch, which the datatype cannot express.
        if shape.iter().rev().skip(2).any(|&batch| batch != 1) {
            return Err(Error::unsupported(format!(
                "scales per channel require a single matrix, not a batch of shape {shape:?}"
            )));
        }
        Ok(())
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let (a, b) = (cx.shape(self.a)?, cx.shape(self.b)?);
        let mismatch = || Error::invalid(format!("matrices {a:?} and {b:?} cannot be multiplied"));
        let ([batch_a @ .., m, k], [batch_b @ .., b_rows, b_columns]) = (&*a, &*b) else {
            return Err(mismatch());
        };
        let transposed = self.flags.contains(Flags::TRANSPOSE_B);
        let (b_k, n) = if transposed { (b_columns, b_rows) } else { (b_rows, b_columns) };
        if k != b_k {
            return Err(mismatch());
        }
        rows(cx, self.a, *k)?;
        let mut dims = broadcast(batch_a, batch_b).ok_or_else(mismatch)?;
        dims.extend([m, n]);
        Ok(vec![Shape::new(&dims)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            sys::xnn_define_batch_matrix_multiply(
                graph,
                ids.of(self.a),
                ids.of(self.b),
                ids.of(self.output),
                self.flags.bits(),
            )
        }
    }
}

/// Columns of a filter matrix and of the product.
struct Channels {
    input: usize,
    output: usize,
}

impl Channels {
    /// Shape of the product of an input of shape `input` with the filter.
    fn output_shape(&self, input: Shape, reshape: bool) -> Result<Shape> {
        if reshape {
            let rows = input.elements() / self.input;
            return Shape::new(&[rows, self.output]);
        }
        match &*input {
            [batch @ .., channels] if *channels == self.input => {
                Shape::new(&[batch, &[self.output]].concat())
            }
            _ => Err(Error::invalid(format!(
                "the input has shape {input:?}; expected {} channels",
                self.input
            ))),
        }
    }
}

/// Returns the number of rows of `channels` elements in a tensor. Refuses a remainder, and
/// quantization at run time over other rows.
fn rows(cx: &Context<'_>, input: ValueId, channels: usize) -> Result<usize> {
    let shape = cx.shape(input)?;
    if !shape.elements().is_multiple_of(channels) {
        return Err(Error::invalid(format!(
            "{input} of shape {shape:?} cannot be divided into rows of {channels} elements"
        )));
    }
    if let Quantization::Dynamic { nonbatch_dims } = cx.quantization(input)? {
        let row = shape.iter().rev().take(*nonbatch_dims).product::<usize>();
        if row != channels {
            return Err(Error::invalid(format!(
                "{input} is quantized in rows of {row} elements; expected {channels}"
            )));
        }
    }
    Ok(shape.elements() / channels)
}
