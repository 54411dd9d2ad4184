//! Normalizations, reductions, conversions, choices and attention.

use xnn_model::op::{
    Activation, ActivationOptions, ArgMinMaxOptions, CastOptions, CompositeOptions, CumsumOptions,
    InstanceNormOptions, LocalResponseNormalizationOptions, Op, ReducerOptions, RmsNormOptions,
    RopeOptions, SoftmaxOptions,
};
use xnn_model::{DType, Tensor};

use super::{Constraint, Model, f32s, i8s, int, ints, list, numbers, one, quantized, row, tensor};

fn alike(op: Op, shape: &[usize]) -> Model {
    one(op, [f32s(shape)], [f32s(shape)])
}

fn rope(row: usize, table: usize) -> Model {
    let op = Op::Rope(RopeOptions { interleaved: false });
    one(op, [f32s(&[2, row]), f32s(&[table]), f32s(&[table])], [f32s(&[2, row])])
}

fn instance_norm(activation: Activation) -> Model {
    let options = InstanceNormOptions { epsilon: 0.1, activation };
    one(
        Op::InstanceNorm(options),
        [f32s(&[1, 2, 2, 3]), f32s(&[3]), f32s(&[1])],
        [f32s(&[1, 2, 2, 3])],
    )
}

fn rms_norm(shape: &[usize], gain: usize, epsilon: f32) -> Model {
    one(Op::RmsNorm(RmsNormOptions { epsilon }), [f32s(shape), f32s(&[gain])], [f32s(shape)])
}

fn places(axis: usize, dtype: DType) -> Model {
    let op = Op::ArgMax(ArgMinMaxOptions { output_type: dtype });
    one(op, [f32s(&[3, axis]), int(1)], [tensor(dtype, &[3])])
}

fn cast(from: Tensor) -> Model {
    let op = Op::Cast(CastOptions { from: from.dtype, to: DType::F32 });
    one(op, [from], [f32s(&[2])])
}

fn select(condition: Tensor, branch: f32, output: &[usize]) -> Model {
    one(Op::SelectV2, [condition, numbers(&[branch]), numbers(&[0.5])], [f32s(output)])
}

/// FlexBuffers of `{"scale": 0.5}` and of nothing.
const SCALE: &[u8] = b"scale\0\x01\x07\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x3f\x0e\x05\x26\x01";
const NOTHING: &[u8] = b"\0\0\x24\x01";

fn attention(version: i32, attributes: &'static [u8], key_heads: usize) -> Model {
    let options = CompositeOptions {
        name: "odml.scaled_dot_product_attention".into(),
        attributes: attributes.into(),
        version,
        // Another subgraph than this one, which is not there.
        decomposition_subgraph: 1,
    };
    let [query, key] = [3, key_heads].map(|heads| f32s(&[1, 2, heads, 4]));
    one(Op::StablehloComposite(options), [query.clone(), key.clone(), key], [query])
}

pub fn constraints() -> Vec<Constraint> {
    let truth = |shape: &[usize]| tensor(DType::Bool, shape);
    vec![
        row(
            "attention::rope",
            "shape",
            "rows of an even length",
            |length| rope(length, length),
            4,
            3,
        ),
        row("attention::rope", "shape", "does not end [2, 4]", |table| rope(4, table), 4, 2),
        row(
            "attention::composite",
            "unsupported-operator",
            "(version 1)",
            |version| attention(version, SCALE, 3),
            0,
            1,
        ),
        row(
            "attention::composite",
            "shape",
            "does not match queries",
            |heads| attention(0, SCALE, heads),
            1,
            2,
        ),
        row(
            "attention::composite",
            "attribute",
            "a finite number; a positive number or none",
            |attributes| attention(0, attributes, 3),
            SCALE,
            NOTHING,
        ),
        row(
            "normalization::l2_normalization",
            "attribute",
            "supported: NONE",
            |activation| alike(Op::L2Normalization(ActivationOptions { activation }), &[2, 3]),
            Activation::None,
            Activation::Relu,
        ),
        list(
            "normalization::normalization",
            "rank",
            "1 to 6",
            |shape: &[usize]| alike(Op::LogSoftmax, shape),
            &[3],
            &[],
        ),
        row(
            "normalization::instance_norm",
            "attribute",
            "is TANH",
            instance_norm,
            Activation::Relu6,
            Activation::Tanh,
        ),
        list(
            "normalization::rms_norm",
            "rank",
            "1 to 6",
            |shape: &[usize]| rms_norm(shape, 1, 0.1),
            &[3],
            &[],
        ),
        row(
            "normalization::floats",
            "shape",
            "must have 1 or 3 elements",
            |gain| rms_norm(&[2, 3], gain, 0.1),
            3,
            2,
        ),
        row(
            "normalization::epsilon",
            "attribute",
            "not negative",
            |epsilon| rms_norm(&[2, 3], 3, epsilon),
            0.0,
            -f32::MIN_POSITIVE,
        ),
        row(
            "normalization::epsilon",
            "attribute",
            "a finite number",
            |epsilon| rms_norm(&[2, 3], 3, epsilon),
            9.0,
            f32::INFINITY,
        ),
        row(
            "normalization::local_response",
            "attribute",
            "a radius up to 4096",
            |radius| {
                let options =
                    LocalResponseNormalizationOptions { radius, bias: 1.0, alpha: 0.1, beta: 0.5 };
                alike(Op::LocalResponseNormalization(options), &[1, 2, 2, 3])
            },
            4096,
            4097,
        ),
        row(
            "normalization::local_response",
            "attribute",
            "finite numbers",
            |beta| {
                let options =
                    LocalResponseNormalizationOptions { radius: 1, bias: 1.0, alpha: 0.1, beta };
                alike(Op::LocalResponseNormalization(options), &[1, 2, 2, 3])
            },
            0.5,
            f32::NAN,
        ),
        list(
            "softmax::softmax",
            "rank",
            "1 to 6",
            |shape: &[usize]| alike(Op::Softmax(SoftmaxOptions { beta: 1.0 }), shape),
            &[3],
            &[],
        ),
        row(
            "softmax::softmax",
            "attribute",
            "a finite number, not negative",
            |beta| alike(Op::Softmax(SoftmaxOptions { beta }), &[3]),
            2.0,
            -0.5,
        ),
        row(
            "quantize::cast",
            "quantization",
            "casts ignore it",
            cast,
            tensor(DType::I8, &[2]),
            quantized(tensor(DType::I8, &[2]), 0.5, 0),
        ),
        row(
            "quantize::cast",
            "type",
            "f32, f16, i32, i8, u8 or bool",
            |dtype| cast(tensor(dtype, &[2])),
            DType::I32,
            DType::I64,
        ),
        list(
            "reduce::reduce",
            "shape",
            "must contain an axis",
            |axes: &[i32]| {
                one(
                    Op::Mean(ReducerOptions { keep_dims: true }),
                    [f32s(&[1, 3]), ints(axes)],
                    [f32s(&[1, 3])],
                )
            },
            &[0],
            &[],
        ),
        row(
            "reduce::reduce",
            "shape",
            "8-bit elements in a sum",
            |count| {
                one(
                    Op::Mean(ReducerOptions { keep_dims: true }),
                    [i8s(&[1, count]), ints(&[1])],
                    [i8s(&[1, 1])],
                )
            },
            8_421_504,
            8_421_505,
        ),
        row(
            "reduce::arg_reduce",
            "type",
            "supported: i32",
            |dtype| places(4, dtype),
            DType::I32,
            DType::I64,
        ),
        row(
            "reduce::arg_reduce",
            "shape",
            "elements along the axis 1, not 1",
            |length| places(length, DType::I32),
            2,
            1,
        ),
        row(
            "reduce::cumsum",
            "shape",
            "at least 2 elements",
            |length| {
                let op = Op::Cumsum(CumsumOptions { exclusive: true, reverse: false });
                one(op, [f32s(&[length]), int(0)], [f32s(&[length])])
            },
            2,
            1,
        ),
        row(
            "select::select",
            "type",
            "supported: bool",
            |dtype| select(tensor(dtype, &[2]), 0.0, &[2]),
            DType::Bool,
            DType::I32,
        ),
        row(
            "select::select",
            "unusable",
            "not finite",
            |branch| select(truth(&[2]), branch, &[2]),
            f32::MAX,
            f32::INFINITY,
        ),
        list(
            "select::select",
            "shape",
            "does not choose among",
            |output: &[usize]| select(truth(&[2]), 0.0, output),
            &[2],
            &[3],
        )
        .stated(),
    ]
}
