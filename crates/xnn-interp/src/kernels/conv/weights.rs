//! Weights of convolutions and the products with them.

use std::borrow::Cow;

use super::geometry::Geometry;
use crate::call::Call;
use crate::error::Refusal;
use crate::kernels::gemm::{Accumulator, Packed, Weight, multiply};
use crate::kernels::weights::Reader;
use crate::operator::{OperatorContext, is_fixed};
use crate::tensor::TensorView;

/// Convolves. `store` gets the sums of one pixel and group: batch, pixel, first output channel,
/// sums.
fn convolve<T: Copy, A: Copy + Default, W: Copy, C: Accumulator<A, W>>(
    geometry: &Geometry,
    input: &[T],
    lift: impl Fn(usize, T) -> A,
    weights: &[Packed<W>],
    width: usize,
    mut store: impl FnMut(usize, usize, usize, &[C]),
) {
    let taps = geometry.filter();
    let depth = geometry.channels / weights.len().max(1);
    let image = geometry.image();
    let patch = taps * depth;
    let block = geometry.block(patch);
    let mut patches = vec![A::default(); block * patch];
    let mut sums = vec![C::default(); block * width];
    for (batch, image) in input.chunks_exact(image.max(1)).take(geometry.batches).enumerate() {
        for (group, weights) in weights.iter().enumerate() {
            for first in (0..geometry.pixels()).step_by(block) {
                let count = block.min(geometry.pixels() - first);
                let channels = group * depth..(group + 1) * depth;
                let patches = &mut patches[..count * patch];
                let images = std::iter::once(image);
                geometry.gather(
                    first..first + count,
                    channels,
                    images,
                    |x| lift(batch, x),
                    patches,
                );
                multiply(patches, weights, &mut sums[..count * width]);
                for (pixel, sums) in sums.chunks_exact(width.max(1)).take(count).enumerate() {
                    store(batch, first + pixel, group * width, sums);
                }
            }
        }
    }
}

/// Convolves each channel with its own filters. `store` gets batch, pixel and sums.
fn convolve_depthwise<T: Copy, A: Copy, W: Copy, C: Accumulator<A, W>>(
    geometry: &Geometry,
    input: &[T],
    lift: impl Fn(usize, T) -> A,
    weights: &[W],
    mut store: impl FnMut(usize, usize, &[C]),
) {
    let taps = geometry.filter();
    let channels = geometry.channels;
    let image = geometry.image();
    let outputs = weights.len().checked_div(taps).unwrap_or(0);
    let multiplier = outputs.checked_div(channels).unwrap_or(0);
    let mut sums = vec![C::default(); outputs];
    for (batch, image) in input.chunks_exact(image.max(1)).take(geometry.batches).enumerate() {
        for pixel in 0..geometry.pixels() {
            sums.fill(C::default());
            for (tap, at) in geometry.taps(pixel) {
                let weights = &weights[tap * outputs..][..outputs];
                let input = &image[at * channels..][..channels];
                if multiplier == 1 {
                    for ((sum, &x), &w) in sums.iter_mut().zip(input).zip(weights) {
                        *sum = sum.add_product(lift(batch, x), w);
                    }
                } else {
                    let sums = sums.chunks_exact_mut(multiplier);
                    for ((sums, &x), weights) in
                        sums.zip(input).zip(weights.chunks_exact(multiplier))
                    {
                        let x = lift(batch, x);
                        for (sum, &w) in sums.iter_mut().zip(weights) {
                            *sum = sum.add_product(x, w);
                        }
                    }
                }
            }
            store(batch, pixel, &sums);
        }
    }
}

/// The two operators, whose weights differ in layout.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Filters `[outputs, height, width, channels / groups]`.
    Dense,
    /// Filters `[1, height, width, outputs]`.
    Depthwise,
}

/// Weights in the layout in which they are multiplied.
#[derive(Clone)]
pub(super) enum Weights<W> {
    /// One matrix per group, and the number of output channels of a group.
    Dense { groups: Vec<Packed<W>>, width: usize },
    /// The layout of the file.
    Depthwise(Vec<W>),
}

impl<W: Weight> Weights<W> {
    fn new(kind: Kind, shape: [usize; 4], channels: usize, elements: Vec<W>) -> Self {
        let [outputs, height, width, depth] = shape;
        match kind {
            Kind::Depthwise => Self::Depthwise(elements),
            Kind::Dense => {
                let groups = channels.checked_div(depth).unwrap_or(0).max(1);
                let columns = outputs / groups;
                let k = height * width * depth;
                let pack = |group| {
                    Packed::from_rows(k, columns, |column, i| {
                        elements[(group * columns + column) * k + i]
                    })
                };
                Self::Dense { groups: (0..groups).map(pack).collect(), width: columns }
            }
        }
    }

    /// Convolves. `store` gets batch, pixel, first output channel and sums.
    pub(super) fn convolve<T: Copy, A: Copy + Default, C: Accumulator<A, W>>(
        &self,
        geometry: &Geometry,
        input: &[T],
        lift: impl Fn(usize, T) -> A,
        mut store: impl FnMut(usize, usize, usize, &[C]),
    ) {
        match self {
            Self::Dense { groups, width } => {
                convolve(geometry, input, lift, groups, *width, store);
            }
            Self::Depthwise(weights) => {
                convolve_depthwise(geometry, input, lift, weights, |batch, pixel, sums| {
                    store(batch, pixel, 0, sums);
                });
            }
        }
    }
}

/// Weights that are packed when the model is loaded, or in each call if another operator computes
/// them.
pub(super) struct Source<W> {
    kind: Kind,
    read: Reader<W>,
    fixed: Option<Weights<W>>,
}

impl<W: Weight> Source<W> {
    pub(super) fn new(
        context: &OperatorContext<'_>,
        kind: Kind,
        read: Reader<W>,
    ) -> Result<Self, Refusal> {
        let weights = context.input(1)?;
        let known = is_fixed(weights).then_some(()).and(weights.shape.as_deref());
        let fixed = match (known, context.input(0)?.shape.as_deref(), weights.data.as_deref()) {
            (Some(shape), Some(&[_, _, _, channels]), Some(bytes)) => {
                let dims = shape.try_into().map_err(|_| {
                    Refusal(format!("the weights have shape {shape:?}, expected four dimensions"))
                })?;
                let view = TensorView { dtype: weights.dtype, shape, bytes };
                Some(Weights::new(kind, dims, channels, read(view)?))
            }
            _ => None,
        };
        Ok(Self { kind, read, fixed })
    }

    pub(super) fn get(&self, call: &Call<'_>) -> Result<Cow<'_, Weights<W>>, Refusal> {
        if let Some(weights) = &self.fixed {
            return Ok(Cow::Borrowed(weights));
        }
        let [_, _, _, channels] = call.dims(0)?;
        let elements = (self.read)(call.tensor(1)?)?;
        Ok(Cow::Owned(Weights::new(self.kind, call.dims(1)?, channels, elements)))
    }
}
