use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, f32, qint8, quint8};
use xnnpack::{
    Binary, BinaryOp, Copy, Datatype, OutputRange, Quantization, RuntimeOptions, Softmax, Status,
    TensorSpec, Unary, UnaryOp,
};

fn unary(op: UnaryOp, data: &[f32]) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[data.len()]), data);
    let output = fixture.output(any_f32());
    fixture.node(Unary { op, input, output }).run()
}

#[test]
fn every_float_unary_operation() {
    let cases: &[(UnaryOp, f32, f32)] = &[
        (UnaryOp::Convert, 1.25, 1.25),
        (UnaryOp::Clamp { min: -1.0, max: 1.0 }, 3.0, 1.0),
        (UnaryOp::Abs, -2.5, 2.5),
        (UnaryOp::BankersRounding, 2.5, 2.0),
        (UnaryOp::Ceiling, 1.2, 2.0),
        (UnaryOp::Elu { alpha: 0.5 }, -1.0, 0.5 * (0.367_879_44 - 1.0)),
        (UnaryOp::Exp, 1.0, std::f32::consts::E),
        (UnaryOp::Floor, -1.2, -2.0),
        (UnaryOp::Gelu, 1.0, 0.841_344_8),
        (UnaryOp::HardSwish, 1.0, 4.0 / 6.0),
        (UnaryOp::LeakyRelu { negative_slope: 0.1 }, -2.0, -0.2),
        (UnaryOp::Log, std::f32::consts::E, 1.0),
        (UnaryOp::Negate, 2.0, -2.0),
        (UnaryOp::Sigmoid, 0.0, 0.5),
        (UnaryOp::Square, -3.0, 9.0),
        (UnaryOp::SquareRoot, 9.0, 3.0),
        (UnaryOp::ReciprocalSquareRoot, 4.0, 0.5),
        (UnaryOp::Tanh, 0.5, 0.462_117_16),
        (UnaryOp::CubeRoot, 27.0, 3.0),
        (UnaryOp::Cosine, 0.0, 1.0),
        (UnaryOp::Sine, std::f32::consts::FRAC_PI_2, 1.0),
        (UnaryOp::Sign, -7.0, -1.0),
    ];
    for &(op, input, expected) in cases {
        let output = unary(op, &[input; 9]);
        assert_close(&output, &[expected; 9], 2e-6);
    }
}

#[test]
fn integer_unary_operations() {
    let cases: &[(UnaryOp, i32, i32)] = &[
        (UnaryOp::CountLeadingZeros, 1, 31),
        (UnaryOp::BitwiseNot, 5, -6),
        (UnaryOp::Popcount, 0b1011, 3),
        (UnaryOp::Negate, 4, -4),
        (UnaryOp::Abs, -4, 4),
    ];
    for &(op, value, expected) in cases {
        let mut fixture = Fixture::new();
        let input = fixture.input(TensorSpec::new(Datatype::I32, &[3]), &[value; 3]);
        let output = fixture.output(TensorSpec::inferred(Datatype::I32));
        assert_eq!(fixture.node(Unary { op, input, output }).run::<i32>(), [expected; 3], "{op:?}");
    }
}

#[test]
fn eight_bit_unary_goes_through_a_table() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[4], 0, 0.5), &[-4i8, -1, 2, 6]);
    let output = fixture.output(any_qint8(1, 0.25));
    let result = fixture.node(Unary { op: UnaryOp::Abs, input, output }).run::<i8>();
    assert_eq!(result, [9, 3, 5, 13]);
}

#[test]
fn quantize_and_dequantize() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[4]), &[-1.0f32, 0.0, 0.3, 100.0]);
    let output = fixture.output(any_qint8(2, 0.1));
    let result = fixture.node(Unary { op: UnaryOp::Convert, input, output }).run::<i8>();
    assert_eq!(result, [-8, 2, 5, 127]);

    let mut fixture = Fixture::new();
    let input = fixture.input(quint8(&[3], 128, 0.5), &[0u8, 128, 130]);
    let output = fixture.output(any_f32());
    let result = fixture.node(Unary { op: UnaryOp::Convert, input, output }).run::<f32>();
    assert_close(&result, &[-64.0, 0.0, 1.0], 0.0);
}

#[test]
fn every_float_binary_operation() {
    let cases: &[(BinaryOp, f32)] = &[
        (BinaryOp::Add, 3.5),
        (BinaryOp::Subtract, -6.5),
        (BinaryOp::Multiply, -7.5),
        (BinaryOp::Divide, -0.3),
        (BinaryOp::Maximum, 5.0),
        (BinaryOp::Minimum, -1.5),
        (BinaryOp::CopySign, 1.5),
        (BinaryOp::SquaredDifference, 42.25),
        (BinaryOp::Prelu, -7.5),
        (BinaryOp::Modulus, -1.5),
        (BinaryOp::Atan2, -0.291_456_8),
        (BinaryOp::Pow, -7.593_75),
    ];
    for &(op, expected) in cases {
        let mut fixture = Fixture::new();
        let a = fixture.input(f32(&[2, 3]), &[-1.5f32; 6]);
        let b = fixture.input(f32(&[3]), &[5.0f32; 3]);
        let output = fixture.output(any_f32());
        let output_range = OutputRange::default();
        let result = fixture.node(Binary { op, output_range, a, b, output }).run::<f32>();
        assert_close(&result, &[expected; 6], 2e-6);
    }
}

#[test]
fn integer_binary_operations() {
    let cases: &[(BinaryOp, i32)] = &[
        (BinaryOp::Add, -4),
        (BinaryOp::Multiply, -21),
        (BinaryOp::Maximum, 3),
        (BinaryOp::BitwiseAnd, 1),
        (BinaryOp::BitwiseOr, -5),
        (BinaryOp::BitwiseXor, -6),
        (BinaryOp::ShiftLeft, -56),
        (BinaryOp::ShiftRightLogical, 0x1fff_ffff),
        (BinaryOp::ShiftRightArithmetic, -1),
    ];
    for &(op, expected) in cases {
        let mut fixture = Fixture::new();
        let a = fixture.input(TensorSpec::new(Datatype::I32, &[2]), &[-7i32; 2]);
        let b = fixture.input(TensorSpec::new(Datatype::I32, &[2]), &[3i32; 2]);
        let output = fixture.output(TensorSpec::inferred(Datatype::I32));
        let output_range = OutputRange::default();
        let result = fixture.node(Binary { op, output_range, a, b, output }).run::<i32>();
        assert_eq!(result, [expected; 2], "{op:?}");
    }
}

#[test]
fn integer_division_is_refused() {
    for op in [BinaryOp::Divide, BinaryOp::Modulus] {
        let mut fixture = Fixture::new();
        let a = fixture.input(TensorSpec::new(Datatype::I32, &[1]), &[i32::MIN]);
        let b = fixture.input(TensorSpec::new(Datatype::I32, &[1]), &[-1i32]);
        let output = fixture.internal(TensorSpec::inferred(Datatype::I32));
        fixture.refusal(Binary { op, output_range: OutputRange::default(), a, b, output });
    }
}

#[test]
fn binary_output_is_clipped() {
    let mut fixture = Fixture::new();
    let a = fixture.input(f32(&[3]), &[1.0f32, 5.0, -9.0]);
    let b = fixture.input(f32(&[3]), &[1.0f32; 3]);
    let output = fixture.output(any_f32());
    let output_range = OutputRange { min: 0.0, max: 6.0 };
    let node = Binary { op: BinaryOp::Add, output_range, a, b, output };
    assert_close(&fixture.node(node).run::<f32>(), &[2.0, 6.0, 0.0], 0.0);
}

#[test]
fn eight_bit_addition() {
    let mut fixture = Fixture::new();
    let a = fixture.input(qint8(&[3], 0, 0.5), &[2i8, -4, 100]);
    let b = fixture.input(qint8(&[3], 1, 0.25), &[5i8, 1, 101]);
    let output = fixture.output(any_qint8(-1, 0.5));
    let output_range = OutputRange::default();
    let node = Binary { op: BinaryOp::Add, output_range, a, b, output };
    assert_eq!(fixture.node(node).run::<i8>(), [3, -5, 127]);
}

/// XNNPACK joins the two nodes to one lookup table.
#[test]
fn eight_bit_products_of_tensors_with_functions_of_them() {
    let all: Vec<u8> = (0..=255).collect();
    // The function's result is an output in the first case, so the nodes are not joined, and
    // internal in the second.
    let run = |datatype: Datatype, op: UnaryOp, first: bool, keeps: bool| -> Vec<Vec<u8>> {
        let mut fixture = Fixture::new();
        let offset = if datatype == Datatype::Quint8 { 128 } else { 0 };
        let spec = |zero_point: i32, scale| {
            let quantization = Quantization::PerTensor { zero_point: zero_point + offset, scale };
            TensorSpec::new(datatype, &[16, 16]).quantized(quantization)
        };
        let x = match datatype {
            Datatype::Quint8 => fixture.input(spec(-3, 0.05), &all),
            _ => fixture
                .input(spec(-3, 0.05), &all.iter().map(|x| x.cast_signed()).collect::<Vec<_>>()),
        };
        let factor = spec(if op == UnaryOp::Sigmoid { -128 } else { 0 }, 1.0 / 256.0);
        let product = fixture.output(spec(-100, 0.03));
        let factor = if keeps { fixture.output(factor) } else { fixture.internal(factor) };
        fixture.graph.define(Unary { op, input: x, output: factor }).unwrap();
        let (a, b) = if first { (factor, x) } else { (x, factor) };
        let range = OutputRange::default();
        let multiply =
            Binary { op: BinaryOp::Multiply, output_range: range, a, b, output: product };
        let fixture = fixture.node(multiply);
        let options = RuntimeOptions::default();
        match datatype {
            Datatype::Quint8 => fixture.run_with::<u8>(&options).unwrap(),
            _ => {
                let outputs = fixture.run_with::<i8>(&options).unwrap();
                outputs
                    .into_iter()
                    .map(|y| y.into_iter().map(i8::cast_unsigned).collect())
                    .collect()
            }
        }
    };
    for datatype in [Datatype::Qint8, Datatype::Quint8] {
        for op in [UnaryOp::Sigmoid, UnaryOp::Tanh] {
            for first in [false, true] {
                let apart = run(datatype, op, first, true);
                assert_eq!(run(datatype, op, first, false)[0], apart[0], "{datatype} {op:?}");
                assert!(apart[0].iter().any(|&y| y != apart[0][0]));
            }
        }
    }
}

#[test]
fn softmax_of_rows() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 2]), &[0.0f32, 0.0, 0.0, 3f32.ln()]);
    let output = fixture.output(any_f32());
    let result = fixture.node(Softmax { input, output }).run::<f32>();
    assert_close(&result, &[0.5, 0.5, 0.25, 0.75], 1e-6);
}

#[test]
fn copies() {
    let mut fixture = Fixture::new();
    let input = fixture.input(quint8(&[2, 2], 3, 0.5), &[1u8, 2, 3, 4]);
    let output = fixture.output(quint8(&[2, 2], 3, 0.5));
    assert_eq!(fixture.node(Copy { input, output }).run::<u8>(), [1, 2, 3, 4]);
}

#[test]
fn wrong_elementwise_nodes_are_refused() {
    let mut fixture = Fixture::new();
    let float = fixture.input(f32(&[2, 3]), &[0.0f32; 6]);
    let other = fixture.input(f32(&[2]), &[0.0f32; 2]);
    let byte = fixture.input(qint8(&[2, 3], 0, 0.5), &[0i8; 6]);
    let int = fixture.input(TensorSpec::new(Datatype::I32, &[2, 3]), &[0i32; 6]);
    let scalar = fixture.input(f32(&[]), &[0.0f32]);
    let out = fixture.internal(any_f32());
    let byte_out = fixture.internal(any_qint8(0, 0.5));
    let int_out = fixture.internal(TensorSpec::inferred(Datatype::I32));
    let coarse = fixture.internal(any_qint8(0, 5000.0));
    let range = OutputRange::default();

    let nan = UnaryOp::Clamp { min: f32::NAN, max: 1.0 };
    fixture.refusal(Unary { op: nan, input: float, output: out });
    let swapped = UnaryOp::Clamp { min: 2.0, max: 1.0 };
    fixture.refusal(Unary { op: swapped, input: float, output: out });
    let infinite = UnaryOp::Elu { alpha: f32::INFINITY };
    fixture.refusal(Unary { op: infinite, input: float, output: out });
    fixture.refusal(Unary { op: UnaryOp::Abs, input: float, output: byte_out });
    fixture.refusal(Unary { op: UnaryOp::Convert, input: byte, output: coarse });
    fixture.refusal(Unary { op: UnaryOp::Abs, input: float, output: float });

    let binary = |op, a, b, output| Binary { op, output_range: range, a, b, output };
    fixture.refusal(binary(BinaryOp::Add, float, other, out));
    fixture.refusal(binary(BinaryOp::Add, float, byte, out));
    fixture.refusal(binary(BinaryOp::Add, byte, byte, coarse));
    let clipped = OutputRange { min: 0.0, max: 1.0 };
    let node = Binary { output_range: clipped, ..binary(BinaryOp::Add, int, int, int_out) };
    fixture.refusal(node);
    fixture.refusal(Softmax { input: scalar, output: out });
    fixture.refusal(Softmax { input: byte, output: byte_out });
    fixture.refusal(Copy { input: byte, output: coarse });
    let error = fixture.refusal(Copy { input: int, output: int_out });
    assert_eq!(error.status(), Status::UnsupportedParameter);
    assert_eq!(error.node().unwrap().kind, "copy");
    assert_eq!(
        error.to_string(),
        "cannot define node at node 0 (copy): value 3 has datatype int32; expected one of fp32, fp16, qint8, quint8"
    );
}

#[test]
fn rows_of_dynamic_quantization_must_exist() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &[0.0f32; 6]);
    let rows = Quantization::Dynamic { nonbatch_dims: 3 };
    let output = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(rows));
    fixture.refusal(Unary { op: UnaryOp::Convert, input, output });
}
