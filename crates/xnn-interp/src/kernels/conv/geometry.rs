//! Geometry of convolutions.

use std::ops::Range;

use xnn_model::infer::SpatialWindow;

/// Positions of a filter on the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) batches: usize,
    pub(super) input: [usize; 2],
    pub(super) channels: usize,
    pub(super) output: [usize; 2],
    pub(super) filter: [usize; 2],
    pub(super) strides: [usize; 2],
    pub(super) dilations: [usize; 2],
    /// Padding above and left of the input.
    pub(super) padding: [usize; 2],
}

impl Geometry {
    pub(super) fn new(
        input: [usize; 4],
        filter: [usize; 2],
        output: [usize; 4],
        window: SpatialWindow,
    ) -> Self {
        let [batches, height, width, channels] = input;
        let [_, out_height, out_width, _] = output;
        Self {
            batches,
            input: [height, width],
            channels,
            output: [out_height, out_width],
            filter,
            strides: [window.height.stride, window.width.stride],
            dilations: [window.height.dilation, window.width.dilation],
            padding: [
                window.height.padding(height, out_height).0,
                window.width.padding(width, out_width).0,
            ],
        }
    }

    pub(super) fn pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Elements of the filter along an axis that are on the input, for a position of the output.
    fn inside(&self, axis: usize, position: usize) -> Range<usize> {
        let Self { filter, strides, dilations, padding, input, .. } = self;
        let before = |edge: usize| {
            edge.saturating_sub(position * strides[axis])
                .div_ceil(dilations[axis])
                .min(filter[axis])
        };
        before(padding[axis])..before(padding[axis] + input[axis])
    }

    /// Position on the input of a filter element that is on it.
    fn under(&self, axis: usize, position: usize, element: usize) -> usize {
        position * self.strides[axis] + element * self.dilations[axis] - self.padding[axis]
    }

    /// The filter elements that are on the input at an output pixel, with the input pixels under
    /// them.
    pub(super) fn taps(&self, pixel: usize) -> impl Iterator<Item = (usize, usize)> {
        let (oy, ox) = (pixel / self.output[1], pixel % self.output[1]);
        let columns = self.inside(1, ox);
        self.inside(0, oy).flat_map(move |ky| {
            let row = self.under(0, oy, ky) * self.input[1];
            let tap = move |kx| (ky * self.filter[1] + kx, row + self.under(1, ox, kx));
            columns.clone().map(tap)
        })
    }

    /// Copies `depth` channels, from `first` on, of all pixels under the filter at an output pixel.
    /// Padding becomes 0.
    pub(super) fn gather<T: Copy, A: Copy + Default>(
        &self,
        pixel: usize,
        (first, depth): (usize, usize),
        image: &[T],
        lift: impl Fn(T) -> A,
        patch: &mut [A],
    ) {
        let (oy, ox) = (pixel / self.output[1], pixel % self.output[1]);
        let (rows, columns) = (self.inside(0, oy), self.inside(1, ox));
        // Contiguous pixels: whole rows of the filter, if all pixels and channels are used.
        let whole = depth == self.channels && self.dilations[1] == 1;
        let piece = if whole { columns.len() * depth } else { depth };
        for (ky, row) in patch.chunks_exact_mut((self.filter[1] * depth).max(1)).enumerate() {
            if !rows.contains(&ky) || columns.is_empty() {
                row.fill(A::default());
                continue;
            }
            let (inner, after) = row.split_at_mut(columns.end * depth);
            let (before, inner) = inner.split_at_mut(columns.start * depth);
            before.fill(A::default());
            after.fill(A::default());
            let left = self.under(0, oy, ky) * self.input[1] + self.under(1, ox, columns.start);
            let source = &image[left * self.channels + first..];
            let step = self.dilations[1] * self.channels;
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
            let geometry = Geometry {
                batches: 1,
                input,
                channels,
                output: [5, 6],
                filter,
                strides,
                dilations,
                padding,
            };
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
