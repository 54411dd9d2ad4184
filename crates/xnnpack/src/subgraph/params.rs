//! Parameters that several operators share.

/// Implicit padding around the height and width of a tensor, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding2d {
    /// Rows above.
    pub top: u32,
    /// Columns to the right.
    pub right: u32,
    /// Rows below.
    pub bottom: u32,
    /// Columns to the left.
    pub left: u32,
}

/// Bounds to which output values are clipped; infinite ones do not clip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputRange {
    /// Lower bound.
    pub min: f32,
    /// Upper bound.
    pub max: f32,
}

impl Default for OutputRange {
    fn default() -> Self {
        Self { min: f32::NEG_INFINITY, max: f32::INFINITY }
    }
}
