//! Models on both sides of constraints: one that is just delegated, and one that just is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{code, decide, decide_with};
use xnn_format::{Graph, NodeOp};
use xnn_lower::{
    Compile, CompileError, PartitionOptions, Partitioning, Refusal, WhyNot, partition,
};
use xnn_model::op::{
    Activation, ActivationOptions, ArithmeticOptions, ConcatenationOptions, Conv2dOptions,
    FullyConnectedOptions, Op, Padding, Pool2dOptions, SoftmaxOptions, SplitOptions,
    StridedSliceOptions,
};
use xnn_model::{DType, TensorId, infer};
use xnn_testing::GraphBuilder;

/// Decides about an operator with one input and one output of the same type.
fn unary(op: Op, dtype: DType, shape: &[usize], q: Option<(f32, i64)>) -> Option<&'static str> {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", dtype, shape);
    let y = g.tensor("y", dtype, shape);
    if let Some((scale, zero_point)) = q {
        g.quantize(x, scale, zero_point).quantize(y, scale, zero_point);
    }
    g.op(op, &[x], &[y]).output(y);
    code(&decide(g), 0)
}

#[test]
fn rank_six_is_delegated_and_rank_seven_is_not() {
    assert_eq!(unary(Op::Abs, DType::F32, &[1; 6], None), None);
    assert_eq!(unary(Op::Abs, DType::F32, &[1; 7], None), Some("rank"));
}

#[test]
fn element_types() {
    assert_eq!(unary(Op::Relu, DType::I8, &[4], Some((0.5, -128))), None);
    assert_eq!(unary(Op::Relu, DType::U8, &[4], Some((0.5, 255))), None);
    assert_eq!(unary(Op::Relu, DType::I32, &[4], None), Some("type"));
    assert_eq!(unary(Op::Relu, DType::I8, &[4], None), Some("not-quantized"));
    assert_eq!(unary(Op::Relu, DType::F32, &[0], None), Some("empty"));
}

#[test]
fn scales_and_zero_points() {
    let relu = |scale, zero_point| unary(Op::Relu, DType::I8, &[4], Some((scale, zero_point)));
    assert_eq!(relu(f32::MIN_POSITIVE, 127), None);
    assert_eq!(relu(f32::MIN_POSITIVE / 2.0, 127), Some("scale"), "denormal");
    assert_eq!(relu(0.0, 0), Some("scale"));
    assert_eq!(relu(-1.0, 0), Some("scale"));
    assert_eq!(relu(f32::INFINITY, 0), Some("scale"));
    assert_eq!(relu(f32::NAN, 0), Some("scale"));
    assert_eq!(relu(1.0, 128), Some("zero-point"));
    assert_eq!(relu(1.0, -129), Some("zero-point"));
}

#[test]
fn unknown_and_disabled_operators() {
    assert_eq!(
        unary(Op::Unknown { code: 999 }, DType::F32, &[4], None),
        Some("unsupported-operator")
    );
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[2, 3]);
    let y = g.tensor("y", DType::F32, &[2, 3]);
    g.op(Op::Softmax(SoftmaxOptions { beta: 1.0 }), &[x], &[y]).output(y);
    let mut options = PartitionOptions::default();
    options.disable.push("SOFTMAX".into());
    assert_eq!(code(&decide_with(g, &options), 0), Some("disabled"));
}

/// An int8 convolution 1x1 whose requantization ratio is `ratio`.
fn conv(ratio: f32, weight_zero_point: i64, bias: DType) -> Partitioning {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::I8, &[1, 4, 4, 2]);
    let w = g.constant_i8("w", &[3, 1, 1, 2], &[1; 6]);
    let b = g.constant("b", bias, &[3], vec![0; 12]);
    let y = g.tensor("y", DType::I8, &[1, 4, 4, 3]);
    g.quantize(x, ratio, 0).quantize(w, 1.0, weight_zero_point).quantize(y, 1.0, 0);
    let options = Conv2dOptions {
        padding: Padding::Same,
        stride_h: 1,
        stride_w: 1,
        ..Conv2dOptions::default()
    };
    g.op(Op::Conv2d(options), &[x, w, b], &[y]).output(y);
    decide(g)
}

#[test]
fn requantization_ratio_of_convolutions() {
    assert_eq!(code(&conv(255.9, 0, DType::I32), 0), None);
    assert_eq!(code(&conv(256.0, 0, DType::I32), 0), Some("scale-ratio"));
    assert_eq!(code(&conv(1e-20, 0, DType::I32), 0), None, "rounds to 0 as with any smaller ratio");
}

#[test]
fn weights_must_be_symmetric_and_biases_32_bit() {
    assert_eq!(code(&conv(1.0, 1, DType::I32), 0), Some("zero-point"));
    assert_eq!(code(&conv(1.0, 0, DType::F32), 0), Some("type"));
}

#[test]
fn weights_must_be_constant() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 4]);
    let w = g.input("w", DType::F32, &[2, 4]);
    let y = g.tensor("y", DType::F32, &[1, 2]);
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
    assert_eq!(code(&decide(g), 0), Some("not-constant"));
}

/// Kinds of the nodes of a sum of two 8-bit operands, the first with this scale.
fn add(scale: f32) -> Vec<&'static str> {
    let mut g = GraphBuilder::new("main");
    let [a, b] = ["a", "b"].map(|name| g.input(name, DType::I8, &[1, 4]));
    let y = g.tensor("y", DType::I8, &[1, 4]);
    g.quantize(a, scale, 0).quantize(b, 1.0, 0).quantize(y, 1.0, 0);
    g.op(Op::Add(ArithmeticOptions::default()), &[a, b], &[y]).output(y);
    let partitioning = decide(g);
    assert_eq!(code(&partitioning, 0), None);
    partitioning.partitions[0].graph.nodes.iter().map(|node| node.op.kind()).collect()
}

#[test]
fn unsupported_scales_are_computed_in_floats() {
    assert_eq!(add(255.0), ["Add"]);
    assert_eq!(add(256.0), ["Convert", "Convert", "Add", "Convert"]);
    assert_eq!(add(1.0 / 1024.0), ["Add"]);
    assert_eq!(add(1.0 / 1025.0), ["Convert", "Convert", "Add", "Convert"]);
}

#[test]
fn data_movement_requires_equal_quantization() {
    let pool = |scale| {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::I8, &[1, 4, 4, 1]);
        let y = g.tensor("y", DType::I8, &[1, 2, 2, 1]);
        g.quantize(x, 1.0, 0).quantize(y, scale, 0);
        let options = Pool2dOptions {
            padding: Padding::Valid,
            stride_w: 2,
            stride_h: 2,
            filter_width: 2,
            filter_height: 2,
            activation: Activation::None,
        };
        g.op(Op::MaxPool2d(options), &[x], &[y]).output(y);
        code(&decide(g), 0)
    };
    assert_eq!(pool(1.0), None);
    assert_eq!(pool(2.0), Some("quantization-differs"));
}

/// Decides about MAXIMUM or MINIMUM of integers with the scales 1 and `b`, and a result with the
/// scale `output`.
fn choice(op: Op, b: f32, output: f32) -> Option<&'static str> {
    let mut g = GraphBuilder::new("main");
    let operands = ["a", "b"].map(|name| g.input(name, DType::U8, &[1, 4]));
    let y = g.tensor("y", DType::U8, &[1, 4]);
    g.quantize(operands[0], 1.0, 3).quantize(operands[1], b, 3).quantize(y, output, 3);
    g.op(op, &operands, &[y]).output(y);
    code(&decide(g), 0)
}

#[test]
fn compared_integers_must_have_equal_quantization() {
    for op in [Op::Maximum, Op::Minimum] {
        assert_eq!(choice(op.clone(), 1.0, 1.0), None);
        assert_eq!(choice(op.clone(), 2.0, 1.0), Some("quantization-differs"));
        assert_eq!(choice(op, 1.0, 2.0), Some("quantization-differs"));
    }
    assert_eq!(add(2.0), ["Add"], "a sum is of real values");
}

/// Nodes of a maximum of integers, of which the second may be constant.
fn maximum(bound: Option<Vec<u8>>, options: &PartitionOptions) -> Vec<&'static str> {
    let mut g = GraphBuilder::new("main");
    let a = g.input("a", DType::I8, &[1, 4]);
    let b = match bound {
        Some(bound) => g.constant("b", DType::I8, &[1, 4], bound),
        None => g.input("b", DType::I8, &[1, 4]),
    };
    let y = g.tensor("y", DType::I8, &[1, 4]);
    g.quantize(a, 0.5, 3).quantize(b, 0.5, 3).quantize(y, 0.5, 3);
    g.op(Op::Maximum, &[a, b], &[y]).output(y);
    let partitioning = decide_with(g, options);
    assert_eq!(code(&partitioning, 0), None);
    partitioning.partitions[0].graph.nodes.iter().map(|node| node.op.kind()).collect()
}

#[test]
fn computed_integers_are_compared_as_integers() {
    let mut options = PartitionOptions::default();
    options.optimize.off = true;
    let in_floats = ["Convert", "Convert", "Maximum", "Convert"];
    assert_eq!(maximum(None, &options), ["Maximum"]);
    assert_eq!(maximum(Some(vec![7; 4]), &options)[1..], in_floats[2..], "the bound is converted");
    options.widely_known = true;
    assert_eq!(maximum(None, &options), in_floats, "ExecuTorch compares floats alone");
}

/// Decides about a choice between two matrices or vectors.
fn select(op: Op, condition: &[usize], output: &[usize]) -> Option<&'static str> {
    let mut g = GraphBuilder::new("main");
    let condition = g.input("condition", DType::Bool, condition);
    let count = output.iter().product();
    let [a, b] = [("a", 1.0), ("b", 2.0)]
        .map(|(name, number)| g.constant_f32(name, output, &vec![number; count]));
    let y = g.tensor("y", DType::F32, output);
    g.op(op, &[condition, a, b], &[y]).output(y);
    code(&decide(g), 0)
}

#[test]
fn a_vector_chooses_columns_in_select_v2_only() {
    assert_eq!(select(Op::Select, &[2, 2], &[2, 2]), None);
    assert_eq!(select(Op::Select, &[2], &[2]), None);
    assert_eq!(select(Op::Select, &[2], &[2, 2]), Some("shape"));
    assert_eq!(select(Op::SelectV2, &[2], &[2, 2]), None);
}

/// Decides about moving columns of 4 pixels into the batch or back, with a border of these pixels
/// above, below, left and right.
fn batch_blocks(op: Op, batch: usize, block: [i32; 2], border: [i64; 4]) -> Option<&'static str> {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[batch, 4, 1, 1]);
    let block = g.constant_i32("block", &[2], &block);
    let border = border.map(i64::to_le_bytes).concat();
    let border = g.constant("border", DType::I64, &[2, 2], border);
    let y = g.tensor("y", DType::F32, &[1, 1, 1, 1]);
    g.op(op, &[x, block, border], &[y]).output(y);
    code(&decide(g), 0)
}

#[test]
fn sizes_of_blocks_must_not_overflow() {
    let padded = |batch, block, border| batch_blocks(Op::SpaceToBatchNd, batch, block, border);
    assert_eq!(padded(1, [3, 1], [1, 1, 0, 0]), None);
    // 2^64 + 2 rows; 9 * (2^31 - 1)^2 images.
    assert_eq!(padded(1, [1, 1], [i64::MAX, i64::MAX, 0, 0]), Some("shape"));
    let size = i64::from(i32::MAX);
    assert_eq!(padded(9, [i32::MAX; 2], [size - 4, 0, size - 1, 0]), Some("shape"));
    let cropped = |border| batch_blocks(Op::BatchToSpaceNd, 9, [3, 1], border);
    assert_eq!(cropped([6, 5, 0, 0]), None);
    assert_eq!(cropped([6, 6, 0, 0]), Some("empty"));
}

#[test]
fn many_values_are_joined_in_rounds() {
    let kinds = |count: usize| {
        let mut g = GraphBuilder::new("main");
        let inputs: Vec<TensorId> =
            (0..count).map(|i| g.input(&format!("x{i}"), DType::F32, &[1, 2])).collect();
        let y = g.tensor("y", DType::F32, &[1, 2 * count]);
        let options = ConcatenationOptions { axis: -1, activation: Activation::None };
        g.op(Op::Concatenation(options), &inputs, &[y]).output(y);
        decide(g).partitions[0].graph.nodes.len()
    };
    assert_eq!(kinds(1), 1, "a copy");
    assert_eq!(kinds(5), 1);
    assert_eq!(kinds(6), 2);
    assert_eq!(kinds(26), 7, "five times five and one, then five and one, then two");
}

/// The box of a STRIDED_SLICE of a vector of 5 from `begin` to `end`, or the code of the reason.
fn strided(
    begin: i32,
    end: i32,
    options: StridedSliceOptions,
) -> Result<(usize, usize), &'static str> {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[5]);
    let [b, e, s] =
        [("b", begin), ("e", end), ("s", 1)].map(|(n, v)| g.constant_i32(n, &[1], &[v]));
    let y = g.tensor("y", DType::F32, &[5]);
    g.op(Op::StridedSlice(options), &[x, b, e, s], &[y]).output(y);
    let partitioning = decide(g);
    if let Some(code) = code(&partitioning, 0) {
        return Err(code);
    }
    match &partitioning.partitions[0].graph.nodes[0].op {
        NodeOp::StaticSlice { offsets, sizes, .. } => Ok((offsets[0], sizes[0])),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_of_zero_means_zero() {
    let none = StridedSliceOptions::default;
    assert_eq!(strided(1, 3, none()), Ok((1, 2)));
    assert_eq!(strided(-2, 5, none()), Ok((3, 2)));
    assert_eq!(strided(1, 0, none()), Err("empty"), "0 is not the end");
    assert_eq!(strided(1, 0, StridedSliceOptions { end_mask: 1, ..none() }), Ok((1, 4)));
    assert_eq!(strided(3, 9, StridedSliceOptions { begin_mask: 1, ..none() }), Ok((0, 5)));
    assert_eq!(strided(-1, 0, StridedSliceOptions { shrink_axis_mask: 1, ..none() }), Ok((4, 1)));
}

#[test]
fn splits_into_more_than_four_parts_are_slices() {
    let mut g = GraphBuilder::new("main");
    let axis = g.constant_i32("axis", &[], &[1]);
    let x = g.input("x", DType::F32, &[1, 10]);
    let parts: Vec<TensorId> =
        (0..5).map(|i| g.tensor(&format!("y{i}"), DType::F32, &[1, 2])).collect();
    g.op(Op::Split(SplitOptions { num_splits: 5 }), &[axis, x], &parts);
    for &part in &parts {
        g.output(part);
    }
    let partitioning = decide(g);
    assert_eq!(code(&partitioning, 0), None);
    assert_eq!(partitioning.partitions[0].graph.nodes.len(), 5);
}

/// abs → (unsupported) → abs in parallel with abs → abs needs two partitions.
#[test]
fn groups_are_convex_and_few() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[4]);
    let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(|name| g.tensor(name, DType::F32, &[4]));
    g.op(Op::Abs, &[x], &[a]);
    g.op(Op::Unknown { code: 999 }, &[a], &[b]);
    g.op(Op::Abs, &[b], &[c]);
    g.op(Op::Abs, &[x], &[d]);
    g.op(Op::Mul(ActivationOptions::default()), &[c, d], &[e]).output(e);
    let partitioning = decide(g);
    let groups: Vec<&[usize]> =
        partitioning.partitions.iter().map(|p| p.operators.as_slice()).collect();
    assert_eq!(groups, [&[0, 3][..], &[2, 4]]);
    assert_eq!(partitioning.partitions[0].outputs, [a, d]);
    assert_eq!(partitioning.partitions[1].inputs, [b, d]);
    assert_eq!(code(&partitioning, 1), Some("unsupported-operator"));
}

#[test]
fn small_partitions_are_dropped_on_request() {
    let graph = || {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::F32, &[1, 4]);
        let w = g.constant_f32("w", &[2, 4], &[1.0; 8]);
        let y = g.tensor("y", DType::F32, &[1, 2]);
        g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
        g
    };
    let mut options = PartitionOptions::default();
    options.min_partition_macs = 8;
    assert_eq!(code(&decide_with(graph(), &options), 0), None);
    options.min_partition_macs = 9;
    assert_eq!(code(&decide_with(graph(), &options), 0), Some("not-worth-it"));
    options = PartitionOptions::default();
    options.max_partitions = Some(0);
    assert_eq!(code(&decide_with(graph(), &options), 0), Some("too-many-partitions"));
}

#[test]
fn folded_weights_cost_nothing_at_run_time() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 2]);
    // 1.0 and -2.0 in fp16.
    let half = g.constant("half", DType::F16, &[1, 2], vec![0x00, 0x3c, 0x00, 0xc0]);
    let w = g.tensor("w", DType::F32, &[1, 2]);
    let y = g.tensor("y", DType::F32, &[1, 1]);
    g.op(Op::Dequantize, &[half], &[w]);
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
    let partitioning = decide(g);
    assert!(partitioning.is_full());
    let graph = &partitioning.partitions[0].graph;
    assert_eq!(graph.nodes.len(), 1);
    let weights = graph.values.iter().find_map(|value| value.data.as_ref()).unwrap();
    assert_eq!(weights[..], [1.0f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat());
}

/// The weights of a layer are transposed, widened and scaled constants.
#[test]
fn functions_of_constants_cost_nothing_at_run_time() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 3]);
    let turned = g.constant_f32("turned", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let order = g.constant_i32("order", &[2], &[1, 0]);
    let factor = g.constant_i32("factor", &[1], &[2]);
    let [plain, w] = ["plain", "w"].map(|name| g.tensor(name, DType::F32, &[2, 3]));
    let float = g.tensor("float", DType::F32, &[1]);
    let y = g.tensor("y", DType::F32, &[1, 2]);
    g.op(Op::Transpose, &[turned, order], &[plain]);
    g.op(Op::Cast(Default::default()), &[factor], &[float]);
    g.op(Op::Mul(Default::default()), &[plain, float], &[w]);
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
    let partitioning = decide(g);
    assert!(partitioning.is_full());
    let partition = &partitioning.partitions[0];
    assert_eq!(partition.graph.nodes.len(), 1);
    let weights = partition.graph.values.iter().find_map(|value| value.data.as_ref()).unwrap();
    assert_eq!(weights[..], [2.0f32, 6.0, 10.0, 4.0, 8.0, 12.0].map(f32::to_le_bytes).concat());
    assert_eq!(partition.optimization.changes.get("constants"), Some(&3));
    assert_eq!(partition.optimization.to_string(), "1 XNNPACK nodes: constants 3");
}

#[test]
fn layers_of_constants_multiply_nothing_at_run_time() {
    let mut g = GraphBuilder::new("main");
    let [x, image] = ["x", "image"].map(|name| g.input(name, DType::F32, &[1, 2]));
    let [ones, w] = [("ones", [1, 3]), ("w", [2, 3])]
        .map(|(name, shape)| g.constant_f32(name, &shape, &vec![1.0; shape[0] * shape[1]]));
    let [known, sum, y] = ["known", "sum", "y"].map(|name| g.tensor(name, DType::F32, &[1, 2]));
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[ones, w], &[known]);
    g.op(Op::Add(Default::default()), &[x, known], &[sum]);
    g.op(Op::Mul(Default::default()), &[sum, image], &[y]).output(y);
    let partitioning = decide(g);
    let partition = &partitioning.partitions[0];
    assert_eq!((partition.macs, partition.graph.nodes.len()), (0, 2));
}

/// Refuses graphs with fewer nodes.
struct AtLeast(usize);

impl Compile for AtLeast {
    type Output = ();

    fn compile(&mut self, graph: &Arc<Graph>) -> Result<(), CompileError> {
        if graph.nodes.len() >= self.0 {
            return Ok(());
        }
        Err(Refusal { operator: Some(0), message: "too few".into() }.into())
    }
}

#[test]
fn a_refused_graph_is_compiled_again_without_optimization() {
    let relus = || {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::F32, &[4]);
        let [y, z] = ["y", "z"].map(|name| g.tensor(name, DType::F32, &[4]));
        g.op(Op::Relu, &[x], &[y]);
        g.op(Op::Relu6, &[y], &[z]).output(z);
        infer(g.build().into()).unwrap()
    };
    let nodes = |least| {
        let options = PartitionOptions::default();
        let (partitioning, _) = partition(&relus(), &options, &mut AtLeast(least)).unwrap();
        let nodes = partitioning.partitions.first().map(|p| p.graph.nodes.len());
        (nodes, code(&partitioning, 0))
    };
    assert_eq!(nodes(1), (Some(1), None));
    assert_eq!(nodes(2), (Some(2), None));
    assert_eq!(nodes(3), (None, Some("compile-failed")));
}

#[test]
fn every_reason_has_a_code_of_its_own() {
    let mut codes = WhyNot::CODES.to_vec();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), WhyNot::CODES.len());
}
