//! Geometry of convolutions.

use std::ops::Range;

use smallvec::SmallVec;
use xnn_model::infer::{SpatialWindow, Window};

/// The largest number of output pixels that are gathered before they are multiplied.
const PIXELS: usize = 64;
/// The largest number of elements that are gathered for more than one pixel.
const GATHERED: usize = 1 << 13;

/// Positions of a filter along one axis of the input.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernels) struct Axis {
    pub(super) input: usize,
    pub(super) filter: Window,
    /// Padding before the input.
    pub(super) padding: usize,
}

impl Axis {
    pub(in crate::kernels) fn new(input: usize, filter: Window, output: usize) -> Self {
        Self { input, filter, padding: filter.padding(input, output).0 }
    }

    /// Elements of the filter that are on the input, for a position of the output.
    pub(in crate::kernels) fn inside(&self, position: usize) -> Range<usize> {
        let Window { size, stride, dilation } = self.filter;
        let before =
            |edge: usize| edge.saturating_sub(position * stride).div_ceil(dilation).min(size);
        before(self.padding)..before(self.padding + self.input)
    }

    /// Position on the input of a filter element that is on it.
    pub(in crate::kernels) fn under(&self, position: usize, element: usize) -> usize {
        position * self.filter.stride + element * self.filter.dilation - self.padding
    }
}

/// Positions of a filter on the input.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernels) struct Geometry {
    pub(super) batches: usize,
    pub(super) channels: usize,
    pub(super) rows: Axis,
    pub(super) columns: Axis,
    /// Height and width of the output.
    pub(super) output: [usize; 2],
}

impl Geometry {
    pub(in crate::kernels) fn new(
        input: [usize; 4],
        output: [usize; 4],
        filter: SpatialWindow,
    ) -> Self {
        let [batches, height, width, channels] = input;
        let [_, out_height, out_width, _] = output;
        Self {
            batches,
            channels,
            rows: Axis::new(height, filter.height, out_height),
            columns: Axis::new(width, filter.width, out_width),
            output: [out_height, out_width],
        }
    }

    /// Number of pixels of the output.
    pub(in crate::kernels) fn pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Number of output pixels to gather before they are multiplied, for patches of `patch` elements.
    pub(in crate::kernels) fn block(&self, patch: usize) -> usize {
        PIXELS.min(GATHERED / patch.max(1)).clamp(1, self.pixels().max(1))
    }

    /// Number of elements of an input image.
    pub(in crate::kernels) fn image(&self) -> usize {
        self.rows.input * self.columns.input * self.channels
    }

    /// Number of positions of the filter.
    pub(in crate::kernels) fn filter(&self) -> usize {
        self.rows.filter.size * self.columns.filter.size
    }

    /// The filter elements that are on the input at an output pixel, with the input pixels under
    /// them.
    pub(super) fn taps(&self, pixel: usize) -> impl Iterator<Item = (usize, usize)> {
        let (oy, ox) = (pixel / self.output[1], pixel % self.output[1]);
        let columns = self.columns.inside(ox);
        self.rows.inside(oy).flat_map(move |ky| {
            let row = self.rows.under(oy, ky) * self.columns.input;
            let tap =
                move |kx| (ky * self.columns.filter.size + kx, row + self.columns.under(ox, kx));
            columns.clone().map(tap)
        })
    }

    /// Copies `depth` channels, from `first` on, of all pixels under the filter at consecutive output pixels, for one
    /// image after the other. `patches` has equal parts for the output pixels. Padding becomes 0.
    pub(in crate::kernels) fn gather<'a, T: Copy + 'a, A: Copy + Default>(
        &self,
        pixels: Range<usize>,
        channels: Range<usize>,
        images: impl Iterator<Item = &'a [T]> + Clone,
        lift: impl Fn(T) -> A,
        patches: &mut [A],
    ) {
        let patch = patches.len() / pixels.len().max(1);
        let mut rest = patches;
        let mut start = pixels.start;
        // Pixels of one row of the output share the rows of the input.
        while start < pixels.end {
            let (y, x) = (start / self.output[1], start % self.output[1]);
            let count = (self.output[1] - x).min(pixels.end - start);
            let (row, after) = rest.split_at_mut(count * patch);
            self.gather_row(y, x, channels.clone(), images.clone(), &lift, (row, patch));
            (rest, start) = (after, start + count);
        }
    }

    /// [`Geometry::gather`] of pixels of one row of the output, from column `x` on.
    fn gather_row<'a, T: Copy + 'a, A: Copy + Default>(
        &self,
        y: usize,
        x: usize,
        channels: Range<usize>,
        images: impl Iterator<Item = &'a [T]>,
        lift: impl Fn(T) -> A,
        (patches, patch): (&mut [A], usize),
    ) {
        let Window { size: width, dilation, .. } = self.columns.filter;
        let depth = channels.len();
        let rows = self.rows.inside(y);
        let count = patches.len() / patch.max(1);
        let inside: SmallVec<[Range<usize>; PIXELS]> =
            (x..x + count).map(|x| self.columns.inside(x)).collect();
        // Contiguous pixels: whole rows of the filter, if all pixels and channels are used.
        let whole = depth == self.channels && dilation == 1;
        let span = width * depth;
        for (number, image) in images.enumerate() {
            for ky in 0..self.rows.filter.size {
                let at = (number * self.rows.filter.size + ky) * span;
                let parts = patches.chunks_exact_mut(patch.max(1));
                let parts = parts.map(|patch| &mut patch[at..at + span]).zip(&inside);
                if !rows.contains(&ky) {
                    parts.for_each(|(part, _)| part.fill(A::default()));
                    continue;
                }
                let row = self.columns.input * self.channels;
                let row = &image[self.rows.under(y, ky) * row..][..row];
                for (index, (part, inside)) in parts.enumerate() {
                    if whole && inside.len() == width {
                        let source = &row[self.columns.under(x + index, 0) * depth..];
                        part.iter_mut().zip(source).for_each(|(to, &x)| *to = lift(x));
                        continue;
                    }
                    part.fill(A::default());
                    for kx in inside.clone() {
                        let source = self.columns.under(x + index, kx) * self.channels;
                        let source = &row[source + channels.start..][..depth];
                        let to = &mut part[kx * depth..][..depth];
                        to.iter_mut().zip(source).for_each(|(to, &x)| *to = lift(x));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares all geometries with the definition, pixel by pixel.
    #[test]
    fn taps_and_patches() {
        let sizes = |most: usize| (1..=most).map(move |size| [size, most + 1 - size]);
        let cases = sizes(3).flat_map(|filter| {
            sizes(2).flat_map(move |strides| {
                sizes(3).flat_map(move |dilations| {
                    [[0, 0], [1, 0], [2, 3]].map(|padding| (filter, strides, dilations, padding))
                })
            })
        });
        let (input, channels) = ([4, 5], 4);
        let image: Vec<i32> = (1..=(4 * 5 * 4)).collect();
        for (filter, strides, dilations, padding) in cases {
            let axis = |i: usize| {
                let window = Window { size: filter[i], stride: strides[i], dilation: dilations[i] };
                Axis { input: input[i], filter: window, padding: padding[i] }
            };
            let geometry =
                Geometry { batches: 1, channels, rows: axis(0), columns: axis(1), output: [5, 6] };
            let source = |pixel: usize, tap: usize| {
                let y = pixel / 6 * strides[0] + tap / filter[1] * dilations[0];
                let x = pixel % 6 * strides[1] + tap % filter[1] * dilations[1];
                let (y, x) = (y.checked_sub(padding[0])?, x.checked_sub(padding[1])?);
                (y < input[0] && x < input[1]).then_some(y * input[1] + x)
            };
            let taps = filter[0] * filter[1];
            for pixel in 0..geometry.pixels() {
                let inside = (0..taps).filter_map(|tap| Some((tap, source(pixel, tap)?)));
                assert!(geometry.taps(pixel).eq(inside), "{geometry:?} {pixel}");
            }
            for (first, depth) in [(0, 4), (2, 2)] {
                for pixels in [0..30, 4..9, 17..18] {
                    let mut patches = vec![-1; pixels.len() * taps * depth];
                    let images = std::iter::once(image.as_slice());
                    let channels = first..first + depth;
                    geometry.gather(pixels.clone(), channels, images, |x| x, &mut patches);
                    for (n, found) in patches.chunks_exact(depth).enumerate() {
                        let (pixel, tap) = (pixels.start + n / taps, n % taps);
                        let expected = match source(pixel, tap) {
                            Some(at) => &image[at * 4 + first..][..depth],
                            None => &[0; 4][..depth],
                        };
                        assert_eq!(found, expected, "{geometry:?} {pixel} {tap}");
                    }
                }
            }
        }
    }
}
