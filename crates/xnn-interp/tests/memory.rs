//! Intermediate tensors share one arena.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Builder, load};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_interp::{Entry, InterpOptions, Interpreter, TensorBuf};
use xnn_model::op::{ArithmeticOptions, ConcatenationOptions, SplitOptions};
use xnn_model::{DType, Model, Op, TensorId};

/// Operators on rows of 3 floats at random: concatenations, splits, sums and negations.
fn random_model(rng: &mut ChaCha8Rng) -> Model {
    let mut b = Builder::new();
    let axis = b.constant(&[], &[0i32]);
    let x = b.input(DType::F32, &[4, 3]);
    let mut open: Vec<(TensorId, usize)> = vec![(x, 4)];
    for _ in 0..rng.random_range(4..25) {
        let (a, rows) = open[rng.random_range(0..open.len())];
        let (c, others) = open[rng.random_range(0..open.len())];
        let mut tensor = |rows: usize| b.tensor(DType::F32, &[rows, 3]);
        match rng.random_range(0..4) {
            0 if rows + others < 40 => {
                let y = tensor(rows + others);
                let options = ConcatenationOptions { axis: 0, ..Default::default() };
                b.op(Op::Concatenation(options), &[a, c], &[y]);
                open.push((y, rows + others));
            }
            1 if rows % 2 == 0 => {
                let halves = [tensor(rows / 2), tensor(rows / 2)];
                b.op(Op::Split(SplitOptions { num_splits: 2 }), &[axis, a], &halves);
                open.extend(halves.map(|half| (half, rows / 2)));
            }
            2 if rows == others => {
                let y = tensor(rows);
                b.op(Op::Add(ArithmeticOptions::default()), &[a, c], &[y]);
                open.push((y, rows));
            }
            _ => {
                let y = tensor(rows);
                b.op(Op::Neg, &[a], &[y]);
                open.push((y, rows));
            }
        }
    }
    let outputs = open.iter().rev().take(3).map(|(id, _)| *id);
    b.graph.outputs.extend(outputs);
    b.model()
}

fn results(interpreter: &mut Interpreter, rng: &mut ChaCha8Rng, rows: usize) -> Vec<TensorBuf> {
    let input: Vec<f32> = (0..rows * 3).map(|_| rng.random_range(-1.0..1.0)).collect();
    interpreter.set_input(0, TensorBuf::from_slice(&[rows, 3], &input).unwrap()).unwrap();
    interpreter.run().unwrap();
    (0..interpreter.outputs()).map(|i| interpreter.output(i).unwrap().to_buf()).collect()
}

#[test]
fn tensors_that_are_alive_do_not_share_memory() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for seed in 0..60 {
        let model = random_model(&mut rng);
        let mut shared = load(&model).unwrap();
        let options = InterpOptions { keep_intermediates: true, ..Default::default() };
        let mut apart = Interpreter::new(&model, Entry::Main, &options).unwrap();
        // The arena is first planned for 4 rows.
        for rows in [4, 4, 12, 12, 8, 16, 4] {
            let [a, b] = [&mut shared, &mut apart].map(|interpreter| {
                results(interpreter, &mut ChaCha8Rng::seed_from_u64(seed), rows)
            });
            for (a, b) in a.iter().zip(&b) {
                assert_eq!((a.shape(), a.view().bytes), (b.shape(), b.view().bytes));
            }
        }
        let (shared, apart) = (shared.memory(), apart.memory());
        assert_eq!(shared.tensor_bytes, apart.tensor_bytes);
        assert!(shared.arena_bytes <= shared.tensor_bytes);
        assert_eq!(apart.arena_bytes, apart.tensor_bytes);
    }
}

/// `x`, negated `n` times.
fn chain(n: usize) -> Model {
    let mut b = Builder::new();
    let mut last = b.input(DType::F32, &[16]);
    for _ in 0..n {
        let next = b.tensor(DType::F32, &[16]);
        b.op(Op::Neg, &[last], &[next]);
        last = next;
    }
    b.graph.outputs.push(last);
    b.model()
}

#[test]
fn a_chain_takes_two_places() {
    let mut interpreter = load(&chain(10)).unwrap();
    assert_eq!(interpreter.memory().arena_bytes, 0);
    interpreter.run().unwrap();
    // One line for 16 floats and two lines of padding.
    let memory = interpreter.memory();
    assert_eq!((memory.arena_bytes, memory.tensor_bytes), (2 * 3 * 64, 9 * 3 * 64));
    interpreter.resize_input(0, &[17]).unwrap();
    (0..2).for_each(|_| interpreter.run().unwrap());
    assert_eq!(interpreter.memory().arena_bytes, 2 * 4 * 64);
}

#[test]
fn operators_that_write_a_tensor_twice_are_refused() {
    let mut b = Builder::new();
    let axis = b.constant(&[], &[0i32]);
    let x = b.input(DType::F32, &[4]);
    let half = b.tensor(DType::F32, &[2]);
    let y = b.tensor(DType::F32, &[2]);
    b.op(Op::Split(SplitOptions { num_splits: 2 }), &[axis, x], &[half, half]);
    b.op(Op::Neg, &[half], &[y]);
    b.graph.outputs.push(y);
    let error = load(&b.model()).unwrap_err().to_string();
    assert!(error.contains("operator 0 (SPLIT): writes tensor \"t2\" twice"), "{error}");
}
