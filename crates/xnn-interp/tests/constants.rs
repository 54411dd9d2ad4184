//! Constant folding, and its bounds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use bytes::Bytes;
use common::Builder;
use xnn_interp::{
    Element, Entry, InterpOptions, Interpreter, TensorBuf, fold_constants, fold_constants_again,
};
use xnn_model::DType::{F16, F32, I32};
use xnn_model::op::{CastOptions, RandomOptions, ShapeOptions, SplitOptions};
use xnn_model::{DType, Op, TensorId, infer};

/// The values of all tensors that are known before a run.
fn folded(builder: Builder) -> Vec<Option<Bytes>> {
    let mut inferred = infer(builder.graph.into()).unwrap();
    fold_constants(&mut inferred).unwrap();
    inferred.values
}

fn elements<T: Element>(value: Option<&Bytes>) -> Vec<T> {
    bytemuck::pod_collect_to_vec(value.unwrap())
}

/// Adds an operator that reads a tensor, so that the tensor is not an output.
fn intermediate(builder: &mut Builder, dtype: DType, shape: &[usize]) -> TensorId {
    builder.tensor(dtype, shape)
}

#[test]
fn chains_of_operators_are_folded() {
    let mut b = Builder::new();
    let halves = b.tensor(F16, &[2, 3]);
    let bits = [0x3c00u16, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600];
    b.graph.tensors[halves].data = Some(bits.iter().flat_map(|h| h.to_le_bytes()).collect());
    let order = b.constant(&[2], &[1i32, 0]);
    let two = b.constant(&[1], &[2i32]);
    let [turned, scaled] = [0; 2].map(|_| intermediate(&mut b, F32, &[3, 2]));
    let floats = intermediate(&mut b, F32, &[2, 3]);
    let factor = intermediate(&mut b, F32, &[1]);
    let x = b.input(F32, &[3, 2]);
    let y = b.tensor(F32, &[3, 2]);
    b.op(Op::Dequantize, &[halves], &[floats]);
    b.op(Op::Transpose, &[floats, order], &[turned]);
    b.op(Op::Cast(CastOptions { to: F32, ..CastOptions::default() }), &[two], &[factor]);
    b.op(Op::Mul(Default::default()), &[turned, factor], &[scaled]);
    b.op(Op::Add(Default::default()), &[x, scaled], &[y]);
    b.graph.outputs.push(y);
    let values = folded(b);
    assert_eq!(elements::<f32>(values[scaled].as_ref()), [2.0f32, 8.0, 4.0, 10.0, 6.0, 12.0]);
    assert_eq!(values[y], None);
}

#[test]
fn values_of_other_input_shapes_are_reused() {
    let mut b = Builder::new();
    let order = b.constant(&[2], &[1i32, 0]);
    let weights = b.constant(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let turned = intermediate(&mut b, F32, &[2, 2]);
    let x = b.input(F32, &[2, 2]);
    let y = b.tensor(F32, &[2, 2]);
    b.op(Op::Transpose, &[weights, order], &[turned]);
    b.op(Op::Add(Default::default()), &[x, turned], &[y]);
    b.graph.outputs.push(y);
    b.graph.tensors[x].shape = Some(vec![3, 2, 2]);
    let again = |earlier: &[Option<Bytes>]| {
        let mut inferred = infer(b.graph.clone().into()).unwrap();
        fold_constants_again(&mut inferred, earlier).unwrap();
        assert_eq!(inferred.values[y], None);
        inferred.values
    };
    let first = again(&[]);
    assert_eq!(elements::<f32>(first[turned].as_ref()), [1.0f32, 3.0, 2.0, 4.0]);
    let pointer = |values: &[Option<Bytes>]| values[turned].as_ref().map(|value| value.as_ptr());
    assert_eq!(pointer(&again(&first)), pointer(&first));
    // A value of another size is computed again, and no other operator's result is used.
    let mut wrong = first.clone();
    wrong[turned] = Some(Bytes::from_static(&[0; 4]));
    wrong[y] = Some(Bytes::from_static(&[0; 48]));
    assert_eq!(again(&wrong)[turned], first[turned]);
}

#[test]
fn all_outputs_of_an_operator_are_folded() {
    let mut b = Builder::new();
    let axis = b.constant(&[], &[0i32]);
    let weights = b.constant(&[4], &[1.0f32, 2.0, 3.0, 4.0]);
    let [low, high] = [0; 2].map(|_| intermediate(&mut b, F32, &[2]));
    b.op(Op::Split(SplitOptions { num_splits: 2 }), &[axis, weights], &[low, high]);
    let values = folded(b);
    assert_eq!(elements::<f32>(values[low].as_ref()), [1.0, 2.0]);
    assert_eq!(elements::<f32>(values[high].as_ref()), [3.0, 4.0]);
}

/// Operators that depend on them are not folded either.
#[test]
fn fp16_weights_are_not_folded() {
    for (count, is_left) in [(64, true), (63, false)] {
        let mut b = Builder::new();
        let shape = [count, 256];
        let halves = b.tensor(F16, &shape);
        b.graph.tensors[halves].data = Some([0x00, 0x3c].repeat(count * 256).into());
        let floats = intermediate(&mut b, F32, &shape);
        let ones = b.constant(&[1, 256], &[1.0f32; 256]);
        let sums = intermediate(&mut b, F32, &[1, count]);
        let x = b.input(F32, &[1, count]);
        let y = b.tensor(F32, &[1, count]);
        b.op(Op::Dequantize, &[halves], &[floats]);
        b.op(Op::FullyConnected(Default::default()), &[ones, floats], &[sums]);
        b.op(Op::Add(Default::default()), &[x, sums], &[y]);
        b.graph.outputs.push(y);
        let values = folded(b);
        assert_eq!([floats, sums].map(|id| values[id].is_none()), [is_left; 2]);
        if !is_left {
            assert_eq!(elements::<f32>(values[sums].as_ref()), vec![256.0; count]);
        }
    }
}

/// Only operators that depend on constants alone are folded.
#[test]
fn values_that_may_change_are_not_folded() {
    let mut b = Builder::new();
    let shape = b.constant(&[1], &[4i32]);
    let [drawn, sum, counted, output] = [0; 4].map(|_| b.tensor(F32, &[4]));
    b.op(Op::RandomUniform(RandomOptions::default()), &[shape], &[drawn]);
    b.op(Op::Add(Default::default()), &[drawn, drawn], &[sum]);
    // An input may be resized.
    let x = b.input(F32, &[4]);
    let dims = b.tensor(I32, &[1]);
    let one = b.constant(&[], &[1.0f32]);
    b.op(Op::Shape(ShapeOptions { out_type: I32 }), &[x], &[dims]);
    b.op(Op::Fill, &[dims, one], &[counted]);
    // An operator must write outputs.
    b.op(Op::Fill, &[shape, one], &[output]);
    b.graph.outputs.push(output);
    // The value of a variable is its last assignment.
    let variable = b.variable(F32, &[4]);
    let read = b.tensor(F32, &[4]);
    b.op(Op::Neg, &[variable], &[read]);
    let values = folded(b);
    for id in [drawn, sum, counted, output, read] {
        assert_eq!(values[id], None, "tensor {id}");
    }
}

/// Whether a sum of a column and a row, which has the size of their product, is folded.
fn is_sum_known(size: usize) -> bool {
    let mut b = Builder::new();
    let column = b.constant(&[size, 1], &vec![1.0f32; size]);
    let row = b.constant(&[1, size], &vec![2.0f32; size]);
    let sum = intermediate(&mut b, F32, &[size, size]);
    b.op(Op::Add(Default::default()), &[column, row], &[sum]);
    folded(b)[sum].is_some()
}

/// Whether `size` elements, padded with as many zeros and `more`, are folded.
fn is_padded_known(size: usize, more: usize) -> bool {
    let mut b = Builder::new();
    let weights = b.constant(&[size], &vec![1.0f32; size]);
    let paddings = b.constant(&[1, 2], &[0, (size + more) as i32]);
    let padded = intermediate(&mut b, F32, &[2 * size + more]);
    b.op(Op::Pad, &[weights, paddings], &[padded]);
    folded(b)[padded].is_some()
}

#[test]
fn small_constants_do_not_become_large() {
    assert!(is_sum_known(128) && !is_sum_known(129));
    // The two elements of the padding count as operands.
    assert!(is_padded_known(10_000, 4) && !is_padded_known(10_000, 5));
}

#[test]
fn the_total_size_of_folded_constants_is_bounded() {
    let mut b = Builder::new();
    let mut last = b.constant(&[1 << 16], &vec![1.0f32; 1 << 16]);
    for _ in 0..40 {
        let next = intermediate(&mut b, F32, &[1 << 16]);
        b.op(Op::Neg, &[last], &[next]);
        last = next;
    }
    let known = folded(b).iter().flatten().count();
    assert!((8..20).contains(&known), "{known}");
}

#[test]
fn multiplications_are_bounded() {
    let is_known = |size: usize| {
        let mut b = Builder::new();
        let [x, w] = [0; 2].map(|_| b.constant(&[size, size], &vec![1.0f32; size * size]));
        let y = intermediate(&mut b, F32, &[size, size]);
        b.op(Op::FullyConnected(Default::default()), &[x, w], &[y]);
        let values = folded(b);
        let product = values[y].as_ref().map(|value| elements::<f32>(Some(value)));
        product.inspect(|product| assert!(product.iter().all(|&sum| sum == size as f32))).is_some()
    };
    assert!(is_known(64) && !is_known(1024));
}

#[test]
fn repeated_operators_share_their_result() {
    let mut b = Builder::new();
    let quantized = b.constant(&[3], &[1i8, 2, 3]);
    b.quantize(quantized, 0.5, 1);
    let [first, second] = [0; 2].map(|_| intermediate(&mut b, F32, &[3]));
    let other = b.quantized(DType::I8, &[3], 0.25, 0);
    b.op(Op::Dequantize, &[quantized], &[first]);
    b.op(Op::Dequantize, &[quantized], &[second]);
    b.op(Op::Quantize, &[quantized], &[other]);
    let values = folded(b);
    assert_eq!(elements::<f32>(values[first].as_ref()), [0.0, 0.5, 1.0]);
    assert_eq!(
        values[first].as_ref().map(|v| v.as_ptr()),
        values[second].as_ref().map(|v| v.as_ptr())
    );
    assert_eq!(elements::<i8>(values[other].as_ref()), [0, 2, 4]);
}

/// Results that depend only on constants are kept between runs, outside of the arena.
#[test]
fn constant_operators_run_once() {
    let mut b = Builder::new();
    let weights = b.constant(&[2], &[1.0f32, 2.0]);
    let negative = intermediate(&mut b, F32, &[2]);
    let x = b.input(F32, &[2]);
    let [sum, y] = [0; 2].map(|_| b.tensor(F32, &[2]));
    b.op(Op::Neg, &[weights], &[negative]);
    b.op(Op::Add(Default::default()), &[x, negative], &[sum]);
    b.op(Op::Abs, &[sum], &[y]);
    b.graph.outputs.push(y);
    let mut interpreter =
        Interpreter::new(&b.model(), Entry::Main, &InterpOptions::default()).unwrap();
    for (x, y) in [([0.0f32, 0.0], [1.0f32, 2.0]), ([5.0, 1.0], [4.0, 1.0])] {
        interpreter.set_input(0, TensorBuf::from_slice(&[2], &x).unwrap()).unwrap();
        interpreter.run().unwrap();
        assert_eq!(interpreter.output(0).unwrap().as_slice::<f32>().unwrap(), y);
        let kept = [negative, sum].map(|id| interpreter.tensor(id).is_some());
        assert_eq!(kept, [true, false]);
    }
}
