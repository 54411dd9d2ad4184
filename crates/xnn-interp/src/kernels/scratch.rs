//! Memory that recurrent kernels compute in.

/// Vectors whose contents no call relies on. An interpreter keeps them from call
/// to call, and all its kernels share them: they run one after the other.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) floats: [Vec<f32>; 6],
    pub(super) shorts: [Vec<i16>; 7],
    pub(super) ints: [Vec<i32>; 2],
}
