//! Tests of each operator family, compared with results that are calculated by hand or by naive
//! code.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod attention;
mod conv;
mod elementwise;
mod fp16_weights;
mod fully_connected;
mod matmul;
mod pool;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod support;
