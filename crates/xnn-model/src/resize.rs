//! Which pixels RESIZE_NEAREST_NEIGHBOR copies.

use crate::op::ResizeOptions;

impl ResizeOptions {
    /// For each of `to` pixels along a side of the result the one of `from` that it copies, in single
    /// precision as interpreters compute it.
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
