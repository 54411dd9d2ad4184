//! Models on both sides of constraints, for operators that are lowered to several nodes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{code, decide, decide_with};
use xnn_lower::PartitionOptions;
use xnn_model::op::{
    ArgMinMaxOptions, CastOptions, CompositeOptions, CumsumOptions, FakeQuantOptions,
    GatherOptions, GeluOptions, InstanceNormOptions, LocalResponseNormalizationOptions,
    MirrorPadOptions, Op, Padding, Pool2dOptions, ReducerOptions, ResizeOptions, RmsNormOptions,
    RopeOptions, StridedSliceOptions,
};
use xnn_model::{DType, TensorId};
use xnn_testing::GraphBuilder;

/// An operand of an operator.
enum Operand<'a> {
    /// An input of a type and shape.
    Fed(DType, &'a [usize]),
    Ints(&'a [usize], &'a [i32]),
    Floats(&'a [usize], &'a [f32]),
}
use Operand::{Fed, Floats, Ints};

/// Number of nodes of a delegated operator before optimization, or the code of the reason why it is
/// not delegated.
fn one(op: Op, operands: &[Operand<'_>], output: (DType, &[usize])) -> Result<usize, &'static str> {
    let mut g = GraphBuilder::new("main");
    let inputs: Vec<TensorId> = operands
        .iter()
        .map(|operand| match operand {
            Fed(dtype, shape) => g.input("x", *dtype, shape),
            Ints(shape, data) => g.constant_i32("ints", shape, data),
            Floats(shape, data) => g.constant_f32("floats", shape, data),
        })
        .collect();
    let y = g.tensor("y", output.0, output.1);
    g.op(op, &inputs, &[y]).output(y);
    let partitioning = decide(g);
    match code(&partitioning, 0) {
        None => Ok(partitioning.partitions[0].optimization.nodes_before),
        Some(code) => Err(code),
    }
}

const F32: DType = DType::F32;

#[test]
fn gather() {
    let gather = |indices: &[i32]| {
        let op = Op::Gather(GatherOptions { axis: 0, batch_dims: 0 });
        let output = [indices.len(), 2];
        one(op, &[Fed(F32, &[300, 2]), Ints(&[indices.len()], indices)], (F32, &output))
    };
    let whole: Vec<i32> = (0..300).collect();
    assert_eq!(gather(&whole), Ok(2), "a slice that says that these are all, and a reshape");
    assert_eq!(gather(&[3, 4, 5]), Ok(2));
    assert_eq!(gather(&[0, 1, 1, 2]), Ok(4), "two slices, joined");
    assert_eq!(gather(&[0, 300]), Err("shape"));
    assert_eq!(gather(&[-1]), Err("shape"));
    let scattered = |count: i32| (0..count).rev().map(|i| 2 * i).collect::<Vec<_>>();
    assert!(gather(&scattered(128)).is_ok());
    assert_eq!(gather(&scattered(129)), Err("attribute"));
    let fed = one(
        Op::Gather(GatherOptions { axis: 0, batch_dims: 0 }),
        &[Fed(F32, &[4]), Fed(DType::I32, &[2])],
        (F32, &[2]),
    );
    assert_eq!(fed, Err("not-constant"));
    let batches = one(
        Op::Gather(GatherOptions { axis: 1, batch_dims: 1 }),
        &[Fed(F32, &[2, 3]), Ints(&[2, 1], &[0, 2])],
        (F32, &[2, 1]),
    );
    assert_eq!(batches, Err("attribute"));
}

#[test]
fn reverse() {
    let reverse = |dim| one(Op::ReverseV2, &[Fed(F32, &[dim]), Ints(&[1], &[-1])], (F32, &[dim]));
    assert!(reverse(128).is_ok());
    assert_eq!(reverse(129), Err("attribute"));
    assert_eq!(reverse(1 << 40), Err("attribute"), "nothing of that size is allocated");
}

#[test]
fn strided_slice_with_steps() {
    let strided = |step: i32, begin: i32, end: i32, count: usize| {
        let op = Op::StridedSlice(StridedSliceOptions::default());
        let bounds = [begin, end, step].map(|value| [value]);
        let [b, e, s] = &bounds;
        let inputs = [Fed(F32, &[400]), Ints(&[1], b), Ints(&[1], e), Ints(&[1], s)];
        one(op, &inputs, (F32, &[count]))
    };
    assert_eq!(strided(1, 0, 400, 400), Ok(1));
    assert_eq!(strided(2, 0, 400, 200), Ok(4), "split, cut, and shaped twice");
    assert_eq!(strided(3, 0, 400, 134), Ok(5), "padded to a multiple of the step first");
    assert!(strided(-1, 127, -401, 128).is_ok());
    assert_eq!(strided(-1, 128, -401, 129), Err("attribute"));
    assert_eq!(strided(i32::MAX, 5, 400, 1), Ok(1), "a step that is not made");
}

#[test]
fn mirror_pad() {
    let pad = |amount: i32, dim: usize, symmetric| {
        let padded = [dim + 2 * amount.unsigned_abs() as usize];
        let op = Op::MirrorPad(MirrorPadOptions { symmetric });
        one(op, &[Fed(F32, &[dim]), Ints(&[1, 2], &[amount, amount])], (F32, &padded))
    };
    assert!(pad(3, 4, false).is_ok());
    assert_eq!(pad(4, 4, false), Err("shape"));
    assert!(pad(4, 4, true).is_ok());
    assert_eq!(pad(5, 4, true), Err("shape"));
    assert_eq!(pad(64, 99, true), Err("attribute"), "the interior is a run too");
    assert!(pad(63, 99, true).is_ok());
}

#[test]
fn resize_nearest_neighbor() {
    let resize = |from: usize, to: usize, options| {
        let size = [to as i32, 1];
        let op = Op::ResizeNearestNeighbor(options);
        one(op, &[Fed(F32, &[1, from, 1, 1]), Ints(&[2], &size)], (F32, &[1, to, 1, 1]))
    };
    let plain = || ResizeOptions { align_corners: false, half_pixel_centers: false };
    assert!(resize(300, 600, plain()).is_ok(), "each pixel twice");
    assert!(resize(100, 150, plain()).is_ok());
    assert!(resize(300, 450, plain()).is_ok(), "overlapping frames of three");
    assert_eq!(resize(300, 520, plain()), Err("attribute"), "too many pieces");
    assert!(resize(3, 7, ResizeOptions { align_corners: true, ..plain() }).is_ok());
    assert_eq!(resize(2, (1 << 16) + 2, plain()), Err("shape"));
}

#[test]
fn dynamic_update_slice_at_a_constant_position() {
    let update = |part: &[usize], starts: &[i32]| {
        let ones = vec![1.0; part.iter().product()];
        let inputs = [Fed(F32, &[4, 4]), Floats(part, &ones), Ints(&[starts.len()], starts)];
        one(Op::DynamicUpdateSlice, &inputs, (F32, &[4, 4]))
    };
    assert_eq!(update(&[4, 4], &[0, 0]), Ok(1));
    assert_eq!(update(&[1, 4], &[3, 0]), Ok(3));
    assert_eq!(update(&[5, 4], &[0, 0]), Err("shape"));
    assert_eq!(update(&[1, 4], &[0]), Err("shape"));
    let inputs = [Fed(F32, &[4]), Fed(F32, &[2]), Fed(DType::I32, &[1])];
    assert_eq!(one(Op::DynamicUpdateSlice, &inputs, (F32, &[4])), Err("not-constant"));
}

#[test]
fn fill_of_a_constant_shape() {
    let fill =
        |value: &[usize]| one(Op::Fill, &[Ints(&[2], &[2, 9]), Fed(F32, value)], (F32, &[2, 9]));
    assert!(fill(&[]).is_ok());
    assert_eq!(fill(&[2]), Err("shape"));
}

#[test]
fn arg_max_and_arg_min() {
    let arg = |dim: usize, dtype| {
        let op = Op::ArgMax(ArgMinMaxOptions { output_type: dtype });
        one(op, &[Fed(F32, &[2, dim]), Ints(&[], &[1])], (dtype, &[2]))
    };
    assert!(arg(2, DType::I32).is_ok());
    assert_eq!(arg(1, DType::I32), Err("shape"));
    assert_eq!(arg(2, DType::I64), Err("type"));
}

#[test]
fn casts_of_unquantized_values() {
    let cast = |from, q: Option<(f32, i64)>| {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", from, &[4]);
        if let Some((scale, zero_point)) = q {
            g.quantize(x, scale, zero_point);
        }
        let y = g.tensor("y", F32, &[4]);
        g.op(Op::Cast(CastOptions { from, to: F32 }), &[x], &[y]).output(y);
        code(&decide(g), 0)
    };
    for dtype in [F32, DType::F16, DType::I32, DType::I8, DType::U8, DType::Bool] {
        assert_eq!(cast(dtype, None), None, "{dtype}");
    }
    assert_eq!(cast(DType::U8, Some((1.0, 0))), None);
    assert_eq!(cast(DType::U8, Some((0.5, 0))), Some("quantization"));
    assert_eq!(cast(DType::I64, None), Some("type"));
    let back = CastOptions { from: F32, to: DType::I32 };
    assert_eq!(one(Op::Cast(back), &[Fed(F32, &[4])], (DType::I32, &[4])), Err("type"));
    let half = || Fed(DType::F16, &[4]);
    assert_eq!(one(Op::Dequantize, &[half()], (F32, &[4])), Ok(1));
    assert_eq!(one(Op::Relu, &[half()], (DType::F16, &[4])), Err("type"));
}

#[test]
fn floor_div_by_powers_of_two() {
    let floor_div =
        |divisor: Operand<'_>| one(Op::FloorDiv, &[Fed(F32, &[1, 2]), divisor], (F32, &[1, 2]));
    assert!(floor_div(Floats(&[2], &[0.125, -4.0])).is_ok());
    for divisor in [0.1, 3.0, 0.0, f32::INFINITY, f32::NAN] {
        assert_eq!(floor_div(Floats(&[1], &[divisor])), Err("unusable"), "{divisor}");
    }
    assert_eq!(floor_div(Fed(F32, &[2])), Err("not-constant"));
}

#[test]
fn floor_mod_by_finite_divisors() {
    let floor_mod =
        |divisor: Operand<'_>| one(Op::FloorMod, &[Fed(F32, &[1, 2]), divisor], (F32, &[1, 2]));
    assert!(floor_mod(Floats(&[2], &[0.5, -3.0])).is_ok());
    assert_eq!(floor_mod(Floats(&[2], &[0.5, f32::INFINITY])), Err("unusable"));
    assert_eq!(floor_mod(Fed(F32, &[2])), Err("not-constant"));
}

#[test]
fn select_of_finite_constants() {
    let select = |condition: (DType, &[usize]), branch: Operand<'_>| {
        let inputs = [Fed(condition.0, condition.1), branch, Floats(&[], &[-2.0])];
        one(Op::SelectV2, &inputs, (F32, &[2, 3]))
    };
    let truth: (DType, &[usize]) = (DType::Bool, &[2, 3]);
    assert!(select(truth, Floats(&[3], &[0.0, 1.0, -1e9])).is_ok());
    assert_eq!(select(truth, Floats(&[1], &[f32::NEG_INFINITY])), Err("unusable"));
    assert_eq!(select(truth, Fed(F32, &[2, 3])), Err("not-constant"));
    let rows = one(
        Op::Select,
        &[Fed(DType::Bool, &[2]), Floats(&[2, 1], &[1.0; 2]), Floats(&[2, 1], &[0.0; 2])],
        (F32, &[2, 1]),
    );
    assert_eq!(rows, Err("shape"), "a truth value for each row");
}

#[test]
fn atan2_of_equal_shapes() {
    let atan2 = |x: &[usize]| one(Op::Atan2, &[Fed(F32, &[2, 3]), Fed(F32, x)], (F32, &[2, 3]));
    assert_eq!(atan2(&[2, 3]), Ok(1));
    assert_eq!(atan2(&[3]), Err("shape"));
}

#[test]
fn add_n() {
    let add_n =
        |other: &[usize]| one(Op::AddN, &[Fed(F32, &[2, 2]), Fed(F32, other)], (F32, &[2, 2]));
    assert_eq!(add_n(&[2, 2]), Ok(1));
    assert_eq!(add_n(&[2]), Err("shape"));
    let cumsum = |dim: usize, exclusive| {
        let op = Op::Cumsum(CumsumOptions { exclusive, reverse: false });
        one(op, &[Fed(F32, &[dim]), Ints(&[], &[0])], (F32, &[dim]))
    };
    assert!(cumsum(1, false).is_ok());
    assert_eq!(cumsum(1, true), Err("shape"));
    assert!(cumsum(2, true).is_ok());
}

#[test]
fn fake_quant() {
    let fake_quant = |min, max, num_bits| {
        let options = FakeQuantOptions { min, max, num_bits, narrow_range: false };
        one(Op::FakeQuant(options), &[Fed(F32, &[2])], (F32, &[2])).err()
    };
    assert_eq!(fake_quant(-1.0, 1.0, 2), None);
    assert_eq!(fake_quant(-1.0, 1.0, 16), None);
    assert_eq!(fake_quant(-1.0, 1.0, 1), Some("attribute"));
    assert_eq!(fake_quant(-1.0, 1.0, 17), Some("attribute"));
    assert_eq!(fake_quant(1.0, 1.0, 8), Some("attribute"));
    assert_eq!(fake_quant(f32::NAN, 1.0, 8), Some("attribute"));
}

#[test]
fn reduce_prod_and_l2_pool() {
    let quantized = |op: Op, operands: &[(DType, &[usize])], axes: bool| {
        let mut g = GraphBuilder::new("main");
        let mut inputs: Vec<TensorId> =
            operands.iter().map(|(dtype, shape)| g.input("x", *dtype, shape)).collect();
        if axes {
            inputs.push(g.constant_i32("axes", &[1], &[1]));
        }
        let y = g.tensor("y", operands[0].0, &[1, 1, 1, 1]);
        for id in [inputs[0], y] {
            if operands[0].0 != F32 {
                g.quantize(id, 1.0, 0);
            }
        }
        g.op(op, &inputs, &[y]).output(y);
        code(&decide(g), 0)
    };
    let product = || Op::ReduceProd(ReducerOptions { keep_dims: true });
    assert_eq!(quantized(product(), &[(F32, &[1, 3, 1, 1])], true), None);
    assert_eq!(quantized(product(), &[(DType::I8, &[1, 3, 1, 1])], true), Some("type"));
    let pool = || {
        Op::L2Pool2d(Pool2dOptions {
            padding: Padding::Valid,
            stride_w: 1,
            stride_h: 1,
            filter_width: 1,
            filter_height: 3,
            activation: Default::default(),
        })
    };
    assert_eq!(quantized(pool(), &[(F32, &[1, 3, 1, 1])], false), None);
    assert_eq!(quantized(pool(), &[(DType::I8, &[1, 3, 1, 1])], false), Some("type"));
}

#[test]
fn poolings_with_gaps_between_windows() {
    let pool = |height: usize, rows: usize, padding| {
        let options = Pool2dOptions {
            padding,
            stride_w: 1,
            stride_h: 3,
            filter_width: 1,
            filter_height: 2,
            activation: Default::default(),
        };
        let input = [Fed(F32, &[1, height, 1, 1])];
        one(Op::MaxPool2d(options), &input, (F32, &[1, rows, 1, 1]))
    };
    assert!(pool(8, 3, Padding::Valid).is_ok());
    assert!(pool(8, 3, Padding::Same).is_ok(), "the last window ends with the image");
    assert_eq!(pool(7, 3, Padding::Same), Err("attribute"), "the last window exceeds the image");
    assert!(pool(7, 2, Padding::Valid).is_ok());
}

#[test]
fn normalizations() {
    let local = |radius| {
        let options = LocalResponseNormalizationOptions { radius, bias: 1., alpha: 1., beta: 0.5 };
        let shape: &[usize] = &[1, 1, 1, 4];
        one(Op::LocalResponseNormalization(options), &[Fed(F32, shape)], (F32, shape)).err()
    };
    assert_eq!(local(1), None);
    assert_eq!(local(0), Some("attribute"));
    assert_eq!(local(4096), None);
    assert_eq!(local(4097), Some("attribute"));
    let rms = |gain: &[usize], epsilon| {
        let op = Op::RmsNorm(RmsNormOptions { epsilon });
        one(op, &[Fed(F32, &[3, 4]), Fed(F32, gain)], (F32, &[3, 4])).err()
    };
    assert_eq!(rms(&[4], 1e-6), None);
    assert_eq!(rms(&[1], 0.0), None);
    assert_eq!(rms(&[3], 1e-6), Some("shape"));
    assert_eq!(rms(&[4], -1.0), Some("attribute"));
    let instance = |shape: &[usize]| {
        let op = Op::InstanceNorm(InstanceNormOptions::default());
        let channels = shape[shape.len() - 1];
        let inputs = [Fed(F32, shape), Fed(F32, &[channels]), Fed(F32, &[1])];
        one(op, &inputs, (F32, shape)).err()
    };
    assert_eq!(instance(&[1, 2, 2, 3]), None);
    assert_eq!(instance(&[2, 2, 3]), Some("rank"));
}

#[test]
fn rope() {
    let rope = |input: &[usize], table: &[usize]| {
        let op = Op::Rope(RopeOptions { interleaved: false });
        one(op, &[Fed(F32, input), Fed(F32, table), Fed(F32, table)], (F32, input)).err()
    };
    assert_eq!(rope(&[2, 3, 5, 4], &[1, 1, 5, 4]), None);
    assert_eq!(rope(&[2, 3, 5, 4], &[4]), None);
    assert_eq!(rope(&[2, 3, 5, 3], &[3]), Some("shape"), "odd rows");
    assert_eq!(rope(&[2, 3, 5, 4], &[3, 1, 4]), Some("shape"), "a dimension of 1 between others");
    assert_eq!(rope(&[2, 3, 5, 4], &[2]), Some("shape"));
}

/// `{"scale": 0.5}` as a FlexBuffer.
const SCALE: &[u8] = b"scale\0\x01\x07\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x3f\x0e\x05\x26\x01";

#[test]
fn attention() {
    let attention =
        |key_heads: usize, mask: Option<&[usize]>, name: &str, attributes: &'static [u8]| {
            let op = Op::StablehloComposite(CompositeOptions {
                name: name.into(),
                attributes: attributes.into(),
                ..CompositeOptions::default()
            });
            let (query, key): (&[usize], _) = (&[1, 3, 4, 2], [1, 5, key_heads, 2]);
            let mut inputs = vec![Fed(F32, query), Fed(F32, &key), Fed(F32, &key)];
            inputs.extend(mask.map(|shape| Fed(F32, shape)));
            one(op, &inputs, (F32, query))
        };
    let known = "odml.scaled_dot_product_attention";
    let mask: Option<&[usize]> = Some(&[1, 1, 3, 5]);
    assert!(attention(4, mask, known, SCALE).is_ok());
    assert!(attention(2, mask, known, SCALE).is_ok(), "two heads share a key");
    assert!(attention(4, None, known, SCALE).is_ok());
    assert_eq!(attention(3, mask, known, SCALE), Err("shape"));
    assert_eq!(attention(4, Some(&[1, 4, 3, 5]), known, SCALE), Err("shape"));
    assert_eq!(attention(4, mask, known, b""), Err("attribute"));
    assert_eq!(attention(4, mask, "odml.group_norm", SCALE), Err("unsupported-operator"));
}

#[test]
fn composed_operators_keep_rank_zero() {
    let fake = FakeQuantOptions { min: -1.0, max: 1.0, num_bits: 8, narrow_range: false };
    for (op, nodes) in [(Op::Gelu(GeluOptions { approximate: true }), 9), (Op::FakeQuant(fake), 12)]
    {
        for off in [false, true] {
            let mut g = GraphBuilder::new("main");
            let (x, y) = (g.input("x", F32, &[]), g.tensor("y", F32, &[]));
            g.op(op.clone(), &[x], &[y]).output(y);
            let mut options = PartitionOptions::default();
            options.optimize.off = off;
            let partitioning = decide_with(g, &options);
            let partition = &partitioning.partitions[0];
            assert_eq!(partition.optimization.nodes_before, nodes);
            assert!(partition.graph.values.iter().all(|value| value.dims.is_empty()));
            partition.graph.check().unwrap();
        }
    }
}
