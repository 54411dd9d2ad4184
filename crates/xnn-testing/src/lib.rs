//! Test support: models built by hand, seeded tensors, tolerances, golden
//! files, shared test data.
//!
//! ```
//! use xnn_model::{DType, Dialect, op::Op};
//! use xnn_testing::{GraphBuilder, ModelBuilder};
//!
//! let mut graph = GraphBuilder::new("main");
//! let x = graph.input("x", DType::F32, &[1, 4]);
//! let y = graph.tensor("y", DType::F32, &[1, 4]);
//! graph.op(Op::Tanh, &[x], &[y]).output(y);
//! let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
//! assert_eq!(model.main().unwrap().operators.len(), 1);
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test support: a panic is a failed test"
)]

mod allocations;
mod builder;
mod golden;
mod random;
mod shared;
mod stamp;
mod tolerance;

pub use allocations::{CountingAllocator, allocations, peak_bytes};
pub use builder::{GraphBuilder, ModelBuilder};
pub use golden::assert_golden;
pub use random::{Random, le_bytes};
pub use shared::{files_below, shared_dir, skip};
pub use stamp::assert_schema_stamp;
pub use tolerance::{
    FP32_PART, Q8_STEPS, assert_close, assert_close_relative, assert_within_range,
    assert_within_steps,
};
