//! Memory in which recurrent kernels compute.

/// Vectors with arbitrary contents. An interpreter keeps them between calls, and its kernels, which
/// run one at a time, share them.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) floats: [Vec<f32>; 6],
    pub(crate) shorts: [Vec<i16>; 7],
    pub(crate) ints: [Vec<i32>; 2],
}
