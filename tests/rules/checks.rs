//! Constraints that all rules share, in `view.rs` and `rules/checks.rs`.

use std::sync::Arc;

use xnn_model::op::{
    Activation, ArithmeticOptions, Conv2dOptions, CumsumOptions, FullyConnectedOptions,
    LocalResponseNormalizationOptions, Op, ReshapeOptions, ShapeOptions,
};
use xnn_model::{DType, Quantization, SparseDimension, Sparsity, Tensor};
use xnn_testing::GraphBuilder;

use super::{
    Constraint, Model, constant, f32s, holding, i8s, int, ints, list, numbers, one, per_axis,
    quantized, row, tensor, with,
};

fn relu(tensor: Tensor) -> Model {
    one(Op::Relu, [tensor.clone()], [tensor])
}

fn add(inputs: impl IntoIterator<Item = Option<Tensor>>) -> Model {
    one(Op::Add(ArithmeticOptions::default()), inputs, [f32s(&[2])])
}

/// A layer of 4 inputs and 3 outputs with these weights.
fn dense(weights: Tensor) -> Model {
    let op = Op::FullyConnected(FullyConnectedOptions::default());
    one(op, [f32s(&[1, 4]), weights], [f32s(&[1, 3])])
}

fn weights() -> Tensor {
    constant(f32s(&[3, 4]))
}

/// A convolution of 2 channels to 3 with 8-bit weights and a bias.
fn conv(weights: Tensor, bias: Tensor, scale: f32) -> Model {
    let options = Conv2dOptions { stride_h: 1, stride_w: 1, ..Conv2dOptions::default() };
    let input = quantized(tensor(DType::I8, &[1, 4, 4, 2]), scale, 0);
    let output = quantized(tensor(DType::I8, &[1, 4, 4, 3]), 1.0, 0);
    one(Op::Conv2d(options), [input, weights, bias], [output])
}

fn i8_weights() -> Tensor {
    constant(tensor(DType::I8, &[3, 1, 1, 2]))
}

fn weighed(weights: Tensor) -> Model {
    conv(weights, ints(&[0, 1, 2]), 0.5)
}

/// RESHAPE to the shape of a tensor of this type.
fn shaped_like(dtype: DType) -> Model {
    let mut g = GraphBuilder::new("main");
    let like = g.input("like", dtype, &[2, 2]);
    let x = g.input("x", DType::F32, &[4]);
    let shape = g.tensor("shape", DType::I32, &[2]);
    let [rows, y] = ["rows", "y"].map(|name| g.tensor(name, DType::F32, &[2, 2]));
    g.op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[like], &[shape])
        .op(Op::Reshape(ReshapeOptions { new_shape: None }), &[x, shape], &[rows])
        .op(Op::Tanh, &[rows], &[y])
        .output(y);
    Model::new(g.build())
}

pub fn constraints() -> Vec<Constraint> {
    let i8 = |shape: &[usize]| tensor(DType::I8, shape);
    let cumsum = Op::Cumsum(CumsumOptions::default());
    vec![
        row(
            "view::arity",
            "input-count",
            "inputs: expected 1, found 2",
            |count| one(Op::Relu, vec![f32s(&[2]); count], [f32s(&[2])]),
            1,
            2,
        ),
        row(
            "view::arity",
            "output-count",
            "outputs: expected 1, found 2",
            |count| one(Op::Relu, [f32s(&[2])], vec![f32s(&[2]); count]),
            1,
            2,
        )
        .stated(),
        row(
            "view::input",
            "input-count",
            "at least 2",
            |second: Option<Tensor>| add([Some(f32s(&[2])), second]),
            Some(f32s(&[2])),
            None,
        )
        .stated(),
        row(
            "view::tensor",
            "unusable",
            "external",
            |unusable| relu(Tensor { unusable, ..f32s(&[2]) }),
            None,
            Some("external".to_owned()),
        ),
        row(
            "view::tensor",
            "unknown-shape",
            "not known before the run",
            |shape| {
                one(
                    Op::Reshape(ReshapeOptions { new_shape: None }),
                    [f32s(&[4]), shape],
                    [f32s(&[2, 2])],
                )
            },
            ints(&[2, 2]),
            tensor(DType::I32, &[2]),
        ),
        row(
            "checks::elem",
            "type",
            "f32, i8 or u8",
            |dtype| relu(tensor(dtype, &[2])),
            DType::F32,
            DType::I32,
        ),
        row("checks::extent", "empty", "no elements", |dim| relu(f32s(&[dim])), 1, 0),
        row(
            "checks::f32_operand",
            "type",
            "supported: f32",
            |t: Tensor| one(Op::AddN, [t.clone(), t.clone()], [t]),
            f32s(&[2]),
            i8s(&[2]),
        ),
        row(
            "checks::graph_input",
            "type",
            "f32, f16, i32, i8, u8 or bool",
            shaped_like,
            DType::F16,
            DType::I64,
        ),
        row("checks::q8", "not-quantized", "no scale", relu, i8s(&[2]), i8(&[2])),
        row(
            "checks::q8",
            "quantization",
            "one scale for the whole tensor",
            relu,
            i8s(&[2]),
            per_axis(i8(&[2]), 2, 0),
        ),
        row(
            "checks::q8",
            "zero-point",
            "-128 to 127",
            |zero| relu(quantized(i8(&[2]), 0.5, zero)),
            127,
            128,
        ),
        row(
            "checks::q8",
            "zero-point",
            "-128 to 127",
            |zero| relu(quantized(i8(&[2]), 0.5, zero)),
            -128,
            -129,
        ),
        row(
            "checks::q8",
            "zero-point",
            "0 to 255",
            |zero| relu(quantized(tensor(DType::U8, &[2]), 0.5, zero)),
            255,
            256,
        ),
        row(
            "checks::check_scale",
            "scale",
            "positive normal",
            |scale| relu(quantized(i8(&[2]), scale, 0)),
            f32::MIN_POSITIVE,
            f32::MIN_POSITIVE / 2.0,
        ),
        row(
            "checks::check_scale",
            "scale",
            "positive normal",
            |scale| relu(quantized(i8(&[2]), scale, 0)),
            f32::MAX,
            f32::INFINITY,
        ),
        row(
            "checks::same_type",
            "type-mismatch",
            "differ in type",
            |other| add([Some(f32s(&[2])), Some(other)]),
            f32s(&[2]),
            i8s(&[2]),
        ),
        row(
            "checks::same_elem",
            "quantization-differs",
            "same scale and zero point",
            |scale| {
                one(
                    Op::Reshape(ReshapeOptions { new_shape: Some(vec![2]) }),
                    [i8s(&[1, 2])],
                    [quantized(i8(&[2]), scale, 0)],
                )
            },
            0.5,
            0.25,
        ),
        row(
            "checks::rank",
            "rank",
            "2 (outputs, inputs)",
            dense,
            weights(),
            constant(f32s(&[1, 3, 4])),
        )
        .stated(),
        list(
            "checks::nhwc",
            "rank",
            "4 (NHWC)",
            |shape: &[usize]| {
                let options = LocalResponseNormalizationOptions {
                    radius: 1,
                    bias: 1.0,
                    ..Default::default()
                };
                one(Op::LocalResponseNormalization(options), [f32s(shape)], [f32s(shape)])
            },
            &[1, 2, 2, 3],
            &[2, 2, 3],
        ),
        row("checks::rank_at_most", "rank", "0 to 6", |rank| relu(f32s(&vec![1; rank])), 6, 7),
        row(
            "checks::constant",
            "unusable",
            "sparse elements do not match",
            |columns| {
                let dimensions = [3, columns].map(|size| SparseDimension::Dense { size });
                let sparsity = Sparsity {
                    traversal_order: vec![0, 1],
                    block_map: vec![],
                    dimensions: dimensions.into(),
                };
                dense(Tensor { sparsity: Some(Arc::new(sparsity)), ..weights() })
            },
            4,
            5,
        ),
        row("checks::constant", "not-constant", "not constant", dense, weights(), f32s(&[3, 4])),
        row(
            "checks::constant",
            "unusable",
            "40 bytes of data do not fit",
            |bytes| dense(holding(f32s(&[3, 4]), vec![0; bytes])),
            48,
            40,
        ),
        row(
            "checks::constant_ints",
            "type",
            "i32 or i64",
            |axes| one(Op::ReverseV2, [f32s(&[2, 3]), axes], [f32s(&[2, 3])]),
            ints(&[1]),
            numbers(&[1.0]),
        ),
        row(
            "checks::per_dimension",
            "shape",
            "each of 2 dimensions",
            |starts| {
                one(Op::DynamicUpdateSlice, [f32s(&[2, 3]), f32s(&[1, 1]), starts], [f32s(&[2, 3])])
            },
            ints(&[0, 0]),
            ints(&[0, 0, 0]),
        ),
        row(
            "checks::axis",
            "attribute",
            "a dimension of the input",
            |axis| one(Op::ReverseV2, [f32s(&[2, 3]), ints(&[axis])], [f32s(&[2, 3])]),
            1,
            2,
        ),
        row(
            "checks::axis",
            "attribute",
            "a dimension of the input",
            |axis| one(Op::ReverseV2, [f32s(&[2, 3]), ints(&[axis])], [f32s(&[2, 3])]),
            -2,
            -3,
        ),
        row(
            "checks::one_axis",
            "shape",
            "must be one axis",
            |axis| one(cumsum.clone(), [f32s(&[2, 3]), axis], [f32s(&[2, 3])]),
            int(1),
            ints(&[0, 1]),
        ),
        row(
            "checks::positive",
            "attribute",
            "at least 1",
            |radius| {
                let options =
                    LocalResponseNormalizationOptions { radius, bias: 1.0, ..Default::default() };
                one(
                    Op::LocalResponseNormalization(options),
                    [f32s(&[1, 2, 2, 3])],
                    [f32s(&[1, 2, 2, 3])],
                )
            },
            1,
            0,
        ),
        row(
            "activation::activation",
            "attribute",
            "TANH for floats",
            |activation| {
                let options = ArithmeticOptions { activation, ..ArithmeticOptions::default() };
                one(Op::Add(options), [f32s(&[2]), f32s(&[2])], [f32s(&[2])])
            },
            Activation::Relu6,
            Activation::SignBit,
        ),
        row(
            "weights::quantized_weights",
            "not-quantized",
            "no scale",
            weighed,
            quantized(i8_weights(), 0.5, 0),
            i8_weights(),
        ),
        row(
            "weights::quantized_weights",
            "quantization",
            "signed per output channel",
            weighed,
            per_axis(i8_weights(), 3, 0),
            per_axis(i8_weights(), 2, 3),
        ),
        row(
            "weights::quantized_weights",
            "quantization",
            "as many scales as there are channels",
            weighed,
            per_axis(i8_weights(), 3, 0),
            per_axis(i8_weights(), 2, 0),
        ),
        row(
            "weights::quantized_weights",
            "quantization",
            "per tensor or per channel",
            weighed,
            quantized(i8_weights(), 0.5, 0),
            with(i8_weights(), Quantization::Other(1)),
        ),
        row(
            "weights::zero_points_are_zero",
            "zero-point",
            "0 for signed weights",
            |zero| weighed(quantized(i8_weights(), 0.5, zero)),
            0,
            1,
        ),
        row(
            "weights::requantization",
            "scale-ratio",
            "below 256",
            |scale| conv(quantized(i8_weights(), 1.0, 0), ints(&[0, 1, 2]), scale),
            255.9,
            256.0,
        ),
        row(
            "weights::bias",
            "shape",
            "must have 3 elements",
            |bias| conv(quantized(i8_weights(), 0.5, 0), bias, 0.5),
            ints(&[0, 1, 2]),
            ints(&[0, 1]),
        ),
        row(
            "weights::bias",
            "type",
            "supported: i32",
            |bias| conv(quantized(i8_weights(), 0.5, 0), bias, 0.5),
            ints(&[0, 1, 2]),
            numbers(&[0.0, 1.0, 2.0]),
        ),
        row(
            "weights::bias",
            "type",
            "supported: f32",
            |bias| {
                let op = Op::FullyConnected(FullyConnectedOptions::default());
                one(op, [f32s(&[1, 4]), weights(), bias], [f32s(&[1, 3])])
            },
            numbers(&[0.0, 1.0, 2.0]),
            ints(&[0, 1, 2]),
        ),
    ]
}
