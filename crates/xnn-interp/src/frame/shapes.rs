//! Shapes of the outputs of a step.

use xnn_model::infer::OutputShape;

/// The shapes of the outputs of a step, with what they were inferred from.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    pub(crate) basis: Basis,
    /// One per output of the step.
    pub(crate) outputs: Vec<OutputShape>,
    /// Whether all outputs are empty.
    pub(crate) is_empty: bool,
    /// Whether only the kernel knows the shape of some output.
    pub(crate) is_open: bool,
    /// See [`xnn_model::work`].
    pub(crate) work: u64,
}

#[derive(Debug, Default)]
pub(crate) enum Basis {
    /// Nothing has been inferred yet.
    #[default]
    None,
    /// These shapes of the step's inputs, without constants.
    Shapes(Vec<Option<Vec<usize>>>),
    /// Values, which may differ in every run.
    Values,
}
