//! Kernels, compared with results computed by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod arrange;
mod audio;
#[path = "../common/mod.rs"]
mod common;
mod conv;
mod detection;
mod elementwise;
mod matmul;
mod pool;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod select;
mod shapes_that_do_not_fit;
mod strings;

use common::{floats, plain, run_op};
use xnn_model::op::CustomOptions;
use xnn_model::{DType, Op};

/// A float output.
const F32: common::Declared = (DType::F32, None);

#[test]
fn unsupported_types_are_refused_at_load() {
    let error = run_op(Op::Floor, &[plain(&[1], &[1i32])], (DType::I32, None)).unwrap_err();
    let (subgraph, operator, name) = error.operator().unwrap();
    assert_eq!((subgraph, operator, name), (0, 0, "FLOOR"));
    assert!(error.to_string().contains("not supported"), "{error}");
    let custom = Op::Custom(CustomOptions { code: "Sinh".into(), ..Default::default() });
    let error = run_op(custom, &[floats(&[1], &[0.])], F32).unwrap_err().to_string();
    assert!(error.contains("Sinh"), "{error}");
}
