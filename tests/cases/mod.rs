//! The cases of one operator each in `tests/golden/operators`, and how far their results may be
//! from real arithmetic.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use xnn_delegate::model::Subgraph;
use xnn_model::Tensor;
use xnn_model::op::Op;

use crate::common::{dequantized, span};

/// Names another folder of cases than the one in the repository.
pub const CASES: &str = "XNN_OPERATOR_CASES";

/// A folder with `model.tflite`, `in_<i>.npy`, `out_<i>.npy` and, but in fp32, `real_<i>.npy`.
pub struct Case {
    pub folder: PathBuf,
    pub id: String,
    pub op: String,
    pub scheme: String,
    /// Whether inputs have NaN, infinities and the like.
    pub is_special: bool,
    pub inputs: usize,
    pub outputs: usize,
}

pub fn cases() -> Vec<Case> {
    let folder = env::var_os(CASES).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/operators"),
        PathBuf::from,
    );
    let index = fs::read(folder.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let text = |case: &serde_json::Value, key: &str| case[key].as_str().unwrap().to_owned();
    let count = |case: &serde_json::Value, key: &str| case[key].as_u64().unwrap() as usize;
    index["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| Case {
            folder: folder.join(text(case, "id")),
            id: text(case, "id"),
            op: text(case, "op"),
            scheme: text(case, "scheme"),
            is_special: case.get("special").is_some(),
            inputs: count(case, "inputs"),
            outputs: count(case, "outputs"),
        })
        .collect()
}

/// The weights of an operator that multiplies them by activations quantized at run time, and their axis
/// of output channels. The weights of other operators are unpacked.
fn weights_of(graph: &Subgraph) -> Option<(&Tensor, usize)> {
    let operator = &graph.operators[0];
    let weights = graph.tensor((*operator.inputs.get(1)?)?);
    let rank = weights.shape.as_ref()?.len();
    let axis = match &operator.op {
        Op::Conv2d(_) | Op::FullyConnected(_) | Op::TransposeConv(_) => 0,
        Op::DepthwiseConv2d(_) => 3,
        // Several matrices are unpacked.
        Op::BatchMatMul(options) => {
            let is_one = weights.shape.as_ref()?[..rank - 2].iter().all(|&dim| dim == 1);
            is_one.then_some(rank - if options.adj_y { 2 } else { 1 })?
        }
        _ => return None,
    };
    Some((weights, axis))
}

/// How far quantizing the input to 8 bits can take a weighted sum from real
/// arithmetic: at most half a step of the input for each weight.
pub fn dynamic_bound(graph: &Subgraph, input: &[f64]) -> f64 {
    let Some((weights, axis)) = weights_of(graph) else { return 0.0 };
    let shape = weights.shape.as_ref().unwrap();
    let inner: usize = shape[axis + 1..].iter().product();
    let mut sums = vec![0.0; shape[axis]];
    for (at, value) in dequantized(weights).iter().enumerate() {
        sums[at / inner % shape[axis]] += value.abs();
    }
    let largest = sums.into_iter().fold(0.0, f64::max);
    let step = span(input) / 255.0;
    step * largest / 2.0
}
