//! Tests of the wrapper with a real XNNPACK: results calculated by hand, and refused arguments.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod attention;
mod caches;
mod candidates;
mod conv;
mod damaged_weights;
mod edges;
mod elementwise;
mod fixture;
mod fp16_weights;
mod levels;
mod matmul;
mod microkernels;
mod moving;
mod outputs;
mod pool;
mod reduce;
mod reshaping;
mod runtime;
mod shapes;
mod tensors;
mod threads;
mod unsafety;
mod upstream_fixes;
mod workspaces;
