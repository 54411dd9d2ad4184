//! Source pixels of RESIZE_NEAREST_NEIGHBOR.

use crate::op::ResizeOptions;

impl ResizeOptions {
    /// The source pixel, below `from`, of each of the `to` pixels along one side of the result.
    /// Computed in single precision, as in interpreters.
    #[must_use]
    pub fn nearest(&self, from: usize, to: usize) -> Vec<usize> {
        let last = from.saturating_sub(1);
        let scale = if self.align_corners && to > 1 {
            last as f32 / (to - 1) as f32
        } else {
            from as f32 / to as f32
        };
        let center = if self.half_pixel_centers { 0.5 } else { 0.0 };
        let source = |pixel: usize| {
            let at = (pixel as f32 + center) * scale;
            let at = if self.align_corners { at.round() } else { at.floor() };
            (at as usize).min(last)
        };
        (0..to).map(source).collect()
    }
}
