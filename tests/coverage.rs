//! `docs/op-coverage.md` is made from what the partitioner really claims:
//! `XNN_BLESS=1 cargo test --test coverage` writes it again.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use xnn_delegate::lower::{Delegation, WhyNot};
use xnn_delegate::{Model, PartitionOptions};
use xnn_testing::assert_golden;

/// Types in which TFLite's own XNNPACK delegate (LiteRT 2.3.0) supports each operator: fp32, int8,
/// uint8, dynamic range.
const TFLITE: &[(&str, [bool; 4])] = &[
    ("ABS", [true, false, false, false]),
    ("ADD", [true, true, true, false]),
    ("AVERAGE_POOL_2D", [true, false, false, false]),
    ("BATCH_MATMUL", [true, true, true, true]),
    ("CEIL", [true, false, false, false]),
    ("CONCATENATION", [true, true, true, false]),
    ("CONV_2D", [true, true, true, true]),
    ("COS", [true, false, false, false]),
    ("DEPTHWISE_CONV_2D", [true, true, true, false]),
    ("DEPTH_TO_SPACE", [true, true, true, false]),
    ("DEQUANTIZE", [false, true, true, false]),
    ("DIV", [true, false, false, false]),
    ("ELU", [true, true, false, false]),
    ("EXP", [true, false, false, false]),
    ("FLOOR", [true, false, false, false]),
    ("FULLY_CONNECTED", [true, true, true, true]),
    ("GELU", [true, false, false, false]),
    ("HARD_SWISH", [true, false, false, false]),
    ("LEAKY_RELU", [true, true, true, false]),
    ("LOG", [true, false, false, false]),
    ("LOGISTIC", [true, true, true, false]),
    ("MAXIMUM", [true, false, false, false]),
    ("MAX_POOL_2D", [true, true, true, false]),
    ("MEAN", [true, true, true, false]),
    ("MINIMUM", [true, false, false, false]),
    ("MUL", [true, true, true, false]),
    ("NEG", [true, false, false, false]),
    ("PAD", [true, true, true, false]),
    ("PRELU", [true, false, false, false]),
    ("QUANTIZE", [false, true, true, false]),
    ("REDUCE_MAX", [true, true, true, false]),
    ("REDUCE_MIN", [true, true, true, false]),
    ("RELU", [true, false, false, false]),
    ("RELU6", [true, false, false, false]),
    ("RELU_N1_TO_1", [true, false, false, false]),
    ("RESHAPE", [true, true, true, false]),
    ("RESIZE_BILINEAR", [true, true, true, false]),
    ("ROUND", [true, false, false, false]),
    ("RSQRT", [true, false, false, false]),
    ("SIN", [true, false, false, false]),
    ("SLICE", [true, true, true, false]),
    ("SOFTMAX", [true, false, false, false]),
    ("SPACE_TO_DEPTH", [true, true, true, false]),
    ("SPLIT", [true, true, true, false]),
    ("SQRT", [true, false, false, false]),
    ("SQUARE", [true, false, false, false]),
    ("SQUARED_DIFFERENCE", [true, false, false, false]),
    ("STRIDED_SLICE", [true, true, true, false]),
    ("SUB", [true, true, true, false]),
    ("SUM", [true, true, true, false]),
    ("TANH", [true, true, true, false]),
    ("TRANSPOSE", [true, true, true, false]),
    ("TRANSPOSE_CONV", [true, true, true, true]),
];

#[test]
fn the_table_is_what_the_partitioner_claims() {
    // (operator, scheme) → whether some case of it was claimed.
    let mut claimed: BTreeMap<(String, String), bool> = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/operators");
    let index = fs::read(folder.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    for case in index["cases"].as_array().unwrap() {
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        let model = Model::open(folder.join(text("id")).join("model.tflite")).unwrap();
        let delegation =
            Delegation::new(model.main().unwrap(), &PartitionOptions::default()).unwrap();
        *claimed.entry((text("op"), text("scheme"))).or_default() |= delegation.whole().is_ok();
    }
    assert_golden(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/op-coverage.md"),
        &table(&claimed),
    );
}

fn table(claimed: &BTreeMap<(String, String), bool>) -> String {
    let mut operators: Vec<&str> = claimed.keys().map(|(op, _)| op.as_str()).collect();
    operators.dedup();
    let has = |op: &str, schemes: &[&str]| {
        let key = |scheme: &&str| (op.to_owned(), (*scheme).to_owned());
        schemes.iter().any(|scheme| claimed.get(&key(scheme)).copied().unwrap_or(false))
    };
    // Conversions are named after the types on both sides.
    let columns: [&[&str]; 4] = [
        &["fp32"],
        &["int8", "int8_to_fp32", "fp32_to_int8", "uint8_to_int8"],
        &["uint8", "uint8_to_fp32", "fp32_to_uint8", "int8_to_uint8"],
        &["dynamic"],
    ];
    let mut rows = String::new();
    let mut totals = [0usize; 8];
    for op in operators {
        let ours = columns.map(|schemes| has(op, schemes));
        let theirs = TFLITE.iter().find(|(name, _)| *name == op).map_or([false; 4], |row| row.1);
        let cells = ours.iter().chain(&theirs);
        for (total, &cell) in totals.iter_mut().zip(cells.clone()) {
            *total += usize::from(cell);
        }
        let cells: Vec<&str> = cells.map(|&cell| if cell { "yes" } else { "" }).collect();
        writeln!(rows, "| {op} | {} |", cells.join(" | ")).unwrap();
    }
    let totals: Vec<String> = totals.iter().map(ToString::to_string).collect();
    let codes: Vec<String> = WhyNot::CODES.iter().map(|code| format!("`{code}`")).collect();
    format!(
        "# Operator coverage\n\n\
         Generated by `XNN_BLESS=1 cargo test --test coverage` from the operator cases in `tests/golden/operators`: \
         a cell says yes where\na case of that operator and type is delegated and \
         its result agrees with LiteRT's\nreference kernels (`tests/operators.rs`). \
         *Dynamic* means fp32 activations with 8-bit weights. The columns on the right say\n\
         what TFLite's own XNNPACK delegate supports (LiteRT 2.3.0).\n\n\
         Not in the table, but delegated: STRIDED_SLICE masks, SQUEEZE and EXPAND_DIMS of any axes, functions of constants \
         (folded),\nSHAPE and the arithmetic on it (folded), 4-bit and blockwise weights of FULLY_CONNECTED, sparse weights of any layout, ARG_MAX and ARG_MIN \
         with 32-bit\npositions, CAST to fp32, SELECT and SELECT_V2 of constants, the composite `odml.scaled_dot_product_attention`, Circle's \
         INSTANCE_NORM,\nRMS_NORM and ROPE, and MediaPipe's Convolution2DTransposeBias, MaxPoolingWithArgmax2D and MaxUnpooling2D.\n\n\
         | operator | fp32 | int8 | uint8 | dynamic | TFLite fp32 | TFLite int8 | TFLite uint8 | TFLite dynamic |\n\
         |---|---|---|---|---|---|---|---|---|\n\
         {rows}| **{} operators** | {} |\n\n\
         ## Reasons\n\n\
         The reason why an operator is not delegated has one of these codes, and a sentence that names the tensor or attribute \
         (`xnn explain`):\n{}.\n",
        claimed.keys().map(|(op, _)| op).collect::<std::collections::BTreeSet<_>>().len(),
        totals.join(" | "),
        codes.join(", "),
    )
}
