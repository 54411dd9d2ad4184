//! Geometry of convolutions.

use std::ops::Range;

use xnn_model::infer::{SpatialWindow, Window};

/// The largest number of output pixels that are gathered before they are multiplied.
const PIXELS: usize = 64;
/// The largest number of elements that are gathered for more than one pixel.
const GATHERED: usize = 1 << 20;

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

    /// Copies `depth` channels, from `first` on, of all pixels under the filter at an output pixel.
    /// Padding becomes 0.
    pub(in crate::kernels) fn gather<T: Copy, A: Copy + Default>(
        &self,
        pixel: usize,
        (first, depth): (usize, usize),
        image: &[T],
        lift: impl Fn(T) -> A,
        patch: &mut [A],
    ) {
        let (oy, ox) = (pixel / self.output[1], pixel % self.output[1]);
        let (rows, columns) = (self.rows.inside(oy), self.columns.inside(ox));
        let Window { size: width, dilation, .. } = self.columns.filter;
        // Contiguous pixels: whole rows of the filter, if all pixels and channels are used.
        let whole = depth == self.channels && dilation == 1;
        let piece = if whole { columns.len() * depth } else { depth };
        for (ky, row) in patch.chunks_exact_mut((width * depth).max(1)).enumerate() {
            if !rows.contains(&ky) || columns.is_empty() {
                row.fill(A::default());
                continue;
            }
            let (inner, after) = row.split_at_mut(columns.end * depth);
            let (before, inner) = inner.split_at_mut(columns.start * depth);
            before.fill(A::default());
            after.fill(A::default());
            let row = self.rows.under(oy, ky) * self.columns.input;
            let left = row + self.columns.under(ox, columns.start);
            let source = &image[left * self.channels + first..];
            let step = dilation * self.channels;
            for (index, piece) in inner.chunks_exact_mut(piece.max(1)).enumerate() {
                piece.iter_mut().zip(&source[index * step..]).for_each(|(to, &x)| *to = lift(x));
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
                for (first, depth) in [(0, 4), (2, 2)] {
                    let mut patch = vec![-1; taps * depth];
                    geometry.gather(pixel, (first, depth), &image, |x| x, &mut patch);
                    for (tap, found) in patch.chunks_exact(depth).enumerate() {
                        let expected = match source(pixel, tap) {
                            Some(at) => &image[at * channels + first..][..depth],
                            None => &[0; 4][..depth],
                        };
                        assert_eq!(found, expected, "{geometry:?} {pixel} {tap}");
                    }
                }
            }
        }
    }
}
