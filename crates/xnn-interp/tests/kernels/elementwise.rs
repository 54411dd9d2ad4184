//! Elementwise operators.

use xnn_interp::{Element, Interpreter, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{Builder, bools, expect, expect_close, floats, load, plain, quantized, run_op};

#[test]
fn arithmetic() {
    let a = || floats(&[2, 2], &[1., -2., 3., 4.]);
    let b = || floats(&[2], &[10., 20.]);
    let add = || Op::Add(ArithmeticOptions::default());
    expect(run_op(add(), &[a(), b()], F32), &[2, 2], &[11.0f32, 18., 13., 24.]);
    let sub = Op::Sub(ArithmeticOptions { activation: Activation::Relu, ..Default::default() });
    expect(run_op(sub, &[a(), b()], F32), &[2, 2], &[0.0f32; 4]);
    let mul = || Op::Mul(ActivationOptions::default());
    expect(run_op(mul(), &[a(), b()], F32), &[2, 2], &[10.0f32, -40., 30., 80.]);
    let div = || Op::Div(ActivationOptions::default());
    expect(run_op(div(), &[b(), b()], F32), &[2], &[1.0f32, 1.]);
    let whole = |values: &[i32]| plain(&[values.len()], values);
    let i32s = (DType::I32, None);
    expect(run_op(div(), &[whole(&[7, -7]), whole(&[2])], i32s), &[2], &[3i32, -3]);
    assert!(run_op(div(), &[whole(&[7]), whole(&[0])], i32s).is_err());
    let floor_div = run_op(Op::FloorDiv, &[whole(&[7, -7]), whole(&[2])], i32s);
    expect(floor_div, &[2], &[3i32, -4]);
    // 9.9999998 rounds to 10 as a float.
    let tenth = run_op(Op::FloorDiv, &[floats(&[1], &[1.0]), floats(&[1], &[0.1])], F32);
    expect(tenth, &[1], &[9.0f32]);
    let floor_mod = run_op(Op::FloorMod, &[whole(&[7, -7]), whole(&[3])], i32s);
    expect(floor_mod, &[2], &[1i32, 2]);
    expect(run_op(Op::Pow, &[whole(&[2, 3]), whole(&[5])], i32s), &[2], &[32i32, 243]);
    expect(run_op(add(), &[whole(&[i32::MAX]), whole(&[1])], i32s), &[1], &[i32::MIN]);
    // In real numbers: 2 + 1 = 3, 4 * 0.5 = 2.
    let x = || quantized(&[1], &[24i8], 0.1, 4);
    let y = || quantized(&[1], &[5i8], 0.2, 0);
    expect(run_op(add(), &[x(), y()], (DType::I8, Some((0.1, -3)))), &[1], &[27i8]);
    // Powers of two that shifts alone do not support.
    let x = || quantized(&[1], &[100i16], 0.25, 0);
    let exact = ArithmeticOptions { pot_scale_int16: false, ..Default::default() };
    let sum = run_op(Op::Add(exact), &[x(), x()], (DType::I16, Some((0.5, 0))));
    expect(sum, &[1], &[100i16]);
    let x = quantized(&[1], &[40u8], 0.1, 0);
    let y = quantized(&[1], &[130u8], 0.05, 120);
    expect(run_op(mul(), &[x, y], (DType::U8, Some((0.1, 10)))), &[1], &[30u8]);
}

#[test]
fn comparisons_and_logic() {
    let a = || plain(&[3], &[1i32, 2, 3]);
    let b = || plain(&[1], &[2i32]);
    let truth = (DType::Bool, None);
    expect(run_op(Op::Less, &[a(), b()], truth), &[3], &[1u8, 0, 0]);
    expect(run_op(Op::LessEqual, &[a(), b()], truth), &[3], &[1u8, 1, 0]);
    expect(run_op(Op::NotEqual, &[a(), b()], truth), &[3], &[1u8, 0, 1]);
    let nan = || floats(&[1], &[f32::NAN]);
    let with_nan =
        |op, holds| expect(run_op(op, &[floats(&[1], &[0.]), nan()], truth), &[1], &[holds]);
    for op in [Op::Equal, Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual] {
        with_nan(op, 0u8);
    }
    with_nan(Op::NotEqual, 1);
    // 10 * 0.1 against 5 * 0.2.
    let x = quantized(&[1], &[10i8], 0.1, 0);
    let y = quantized(&[1], &[5i8], 0.2, 0);
    expect(run_op(Op::Equal, &[x, y], truth), &[1], &[1u8]);
    let (p, q) = (bools(&[2], &[1, 0]), bools(&[2], &[1, 1]));
    expect(run_op(Op::LogicalAnd, &[p, q], truth), &[2], &[1u8, 0]);
    let shifted = run_op(
        Op::RightShift,
        &[plain(&[2], &[-8i32, 8]), plain(&[2], &[1i32, 40])],
        (DType::I32, None),
    );
    expect(shifted, &[2], &[-4i32, 0]);
}

#[test]
fn functions() {
    let x = || floats(&[3], &[-1., 0., 2.]);
    expect(run_op(Op::Relu, &[x()], F32), &[3], &[0.0f32, 0., 2.]);
    expect(run_op(Op::ReluN1To1, &[x()], F32), &[3], &[-1.0f32, 0., 1.]);
    expect(run_op(Op::Sign, &[x()], F32), &[3], &[-1.0f32, 0., 1.]);
    expect(run_op(Op::HardSwish, &[x()], F32), &[3], &[-2.0f32 / 6., 0., 10. / 6.]);
    let leaky = Op::LeakyRelu(LeakyReluOptions { alpha: 0.5 });
    expect(run_op(leaky, &[x()], F32), &[3], &[-0.5f32, 0., 2.]);
    expect_close(run_op(Op::Logistic, &[x()], F32), &[3], &[0.268_941_43, 0.5, 0.880_797_1]);
    let gelu = |approximate| Op::Gelu(GeluOptions { approximate });
    let exact = [-0.158_655_25, 0., 1.954_499_7];
    expect_close(run_op(gelu(false), &[x()], F32), &[3], &exact);
    let tanh = [-0.158_808_01, 0., 1.954_597_7];
    expect_close(run_op(gelu(true), &[x()], F32), &[3], &tanh);
    expect(run_op(Op::Round, &[floats(&[3], &[0.5, 1.5, -2.5])], F32), &[3], &[0.0f32, 2., -2.]);
    // Logistic of -2.0, 0.0, 2.0 in steps of 1/256 from -128.
    let q = quantized(&[3], &[-20i8, 0, 20], 0.1, 0);
    let result = run_op(Op::Logistic, &[q], (DType::I8, Some((1.0 / 256.0, -128))));
    expect(result, &[3], &[-97i8, 0, 97]);
}

#[test]
fn conversions() {
    let to_i8 = (DType::I8, Some((0.5, 1)));
    let result = run_op(Op::Quantize, &[floats(&[4], &[0., 0.25, -0.25, 1000.])], to_i8);
    expect(result, &[4], &[1i8, 2, 0, 127]);
    let q = quantized(&[2], &[3i8, -1], 0.5, 1);
    expect(run_op(Op::Dequantize, &[q], F32), &[2], &[1.0f32, -1.]);
    let cast = |from, to| Op::Cast(CastOptions { from, to });
    let result = run_op(
        cast(DType::F32, DType::I32),
        &[floats(&[3], &[1.9, -1.9, 1e20])],
        (DType::I32, None),
    );
    expect(result, &[3], &[1i32, -1, i32::MAX]);
    let result =
        run_op(cast(DType::I32, DType::Bool), &[plain(&[2], &[0i32, 5])], (DType::Bool, None));
    expect(result, &[2], &[0u8, 1]);
}

/// Builds a model of one operator on two tensors of this type and shape, and loads it.
fn pair(op: &Op, (from, to): (DType, DType), shape: &[usize]) -> Interpreter {
    let mut b = Builder::new();
    let inputs = [0; 2].map(|_| b.input(from, shape));
    let output = b.tensor(to, shape);
    if from == DType::I8 {
        inputs.iter().for_each(|&input| b.quantize(input, 0.5, 3));
    }
    if to == DType::I8 {
        b.quantize(output, 0.75, -2);
    }
    b.op(op.clone(), &inputs, &[output]);
    b.graph.outputs.push(output);
    load(&b.model()).unwrap()
}

/// The results of operators on all pairs of values at once, and on one pair after another.
fn compare_single<T: Element, O: Element + std::fmt::Debug>(ops: &[Op], values: &[T]) {
    let types = (T::DTYPES[T::DTYPES.len() - 1], O::DTYPES[O::DTYPES.len() - 1]);
    let pairs = || values.iter().flat_map(|&a| values.iter().map(move |&b| [a, b]));
    let count = pairs().count();
    for op in ops {
        let run = |interpreter: &mut Interpreter, shape: &[usize], operands: [Vec<T>; 2]| {
            for (index, operand) in operands.iter().enumerate() {
                let tensor = TensorBuf::from_slice(shape, operand).unwrap();
                let input = interpreter.input_mut(index).unwrap();
                input.bytes.copy_from_slice(tensor.view().bytes);
            }
            interpreter.run().unwrap();
            interpreter.output(0).unwrap().bytes.to_vec()
        };
        let operands = [0, 1].map(|side| pairs().map(|pair| pair[side]).collect());
        let expected = run(&mut pair(op, types, &[count]), &[count], operands);
        for shape in [&[][..], &[1, 1]] {
            let mut single = pair(op, types, shape);
            let results = pairs().flat_map(|[a, b]| run(&mut single, shape, [vec![a], vec![b]]));
            assert_eq!(results.collect::<Vec<u8>>(), expected, "{op} of {types:?}");
        }
    }
}

/// From the second run on, single elements take a shorter way.
#[test]
fn single_elements_have_the_results_of_many() {
    let arithmetic = [
        Op::Add(ArithmeticOptions::default()),
        Op::Sub(ArithmeticOptions { activation: Activation::Relu6, ..Default::default() }),
        Op::Mul(ActivationOptions::default()),
        Op::Maximum,
        Op::Minimum,
    ];
    let comparisons =
        [Op::Equal, Op::NotEqual, Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual];
    compare_single::<i32, i32>(&arithmetic, &[i32::MIN, -7, 0, 1, 5, i32::MAX]);
    compare_single::<i64, i64>(&arithmetic, &[i64::MIN, -7, 0, 1, 5, i64::MAX]);
    compare_single::<f32, f32>(&arithmetic, &[-f32::INFINITY, -0.5, 0.0, 3.0, f32::NAN]);
    compare_single::<i8, i8>(&arithmetic, &[-128, -3, 3, 40, 127]);
    compare_single::<i32, u8>(&comparisons, &[i32::MIN, -1, 0, 7]);
    compare_single::<f32, u8>(&comparisons, &[-1.0, -0.0, 0.0, f32::INFINITY, f32::NAN]);
    compare_single::<u8, u8>(&[Op::LogicalAnd, Op::LogicalOr], &[0, 1]);
}
