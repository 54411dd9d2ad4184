//! Random numbers: sequences and distributions. `tests/kernels.rs` of the facade compares with
//! LiteRT.

use xnn_interp::{Error, Interpreter};
use xnn_model::op::RandomOptions;
use xnn_model::{DType, Op};

use super::common::{Builder, load};

fn interpreter(op: Op, shape: &[i32]) -> Interpreter {
    let mut b = Builder::new();
    let shape = b.constant(&[shape.len()], shape);
    let output = b.tensor(DType::F32, &[]);
    b.graph.tensors[output].shape = None;
    b.graph.outputs.push(output);
    b.op(op, &[shape], &[output]);
    load(&b.model()).unwrap()
}

fn draw(interpreter: &mut Interpreter) -> Vec<f32> {
    interpreter.run().unwrap();
    interpreter.output(0).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn uniform(seed: i64) -> Op {
    Op::RandomUniform(RandomOptions { seed, seed2: 0 })
}

#[test]
fn sequences_continue_until_reset() {
    let mut first = interpreter(uniform(1), &[5]);
    let numbers = [draw(&mut first), draw(&mut first)];
    assert_ne!(numbers[0], numbers[1]);
    // Another interpreter of the same plan begins anew.
    let mut other = first.fork().unwrap();
    assert_eq!(draw(&mut other), numbers[0]);
    first.reset_variables();
    assert_eq!([draw(&mut first), draw(&mut first)], numbers);
    assert_ne!(draw(&mut interpreter(uniform(2), &[5])), numbers[0]);
    // Seeds of 0 give random sequences.
    assert_ne!(draw(&mut interpreter(uniform(0), &[5])), draw(&mut interpreter(uniform(0), &[5])));
}

#[test]
fn each_operator_has_its_own_sequence() {
    let mut b = Builder::new();
    let shape = b.constant(&[1], &[4i32]);
    let outputs = [(); 2].map(|()| b.tensor(DType::F32, &[4]));
    outputs.iter().for_each(|&output| b.op(uniform(1), &[shape], &[output]));
    b.graph.outputs = outputs.to_vec();
    let mut interpreter = load(&b.model()).unwrap();
    interpreter.run().unwrap();
    let output = |at| interpreter.output(at).unwrap().as_slice::<f32>().unwrap().to_vec();
    assert_eq!(output(0), output(1));
}

#[test]
fn moments_match_the_distribution() {
    let moments = |op| {
        let numbers = draw(&mut interpreter(op, &[100, 1000]));
        let count = numbers.len() as f64;
        let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let spread = numbers.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        (mean, spread)
    };
    let (mean, spread) = moments(uniform(0));
    assert!((mean - 0.5).abs() < 0.01 && (spread - 1.0 / 12.0).abs() < 0.002, "{mean} {spread}");
    let (mean, spread) = moments(Op::RandomStandardNormal(RandomOptions::default()));
    assert!(mean.abs() < 0.02 && (spread - 1.0).abs() < 0.03, "{mean} {spread}");
}

fn choose(shape: &[usize], logits: &[f32], samples: i32) -> Result<Vec<i64>, Error> {
    let mut b = Builder::new();
    let logits = b.constant(shape, logits);
    let samples = b.constant(&[], &[samples]);
    let output = b.tensor(DType::I64, &[]);
    b.graph.tensors[output].shape = None;
    b.graph.outputs.push(output);
    b.op(Op::Multinomial(RandomOptions { seed: 1, seed2: 2 }), &[logits, samples], &[output]);
    let mut interpreter = load(&b.model())?;
    interpreter.run()?;
    Ok(interpreter.output(0)?.as_slice::<i64>().unwrap().to_vec())
}

#[test]
fn classes_are_drawn_by_their_logits() {
    let never = f32::NEG_INFINITY;
    let chosen = choose(&[2, 3], &[0.0, never, 0.0, never, 5.0, f32::NAN], 1000).unwrap();
    let (first, second) = chosen.split_at(1000);
    let ones = first.iter().filter(|&&class| class == 0).count();
    assert!(
        first.iter().all(|class| [0, 2].contains(class)) && (400..600).contains(&ones),
        "{ones}"
    );
    assert!(second.iter().all(|&class| class == 1));
    assert!(choose(&[1, 2], &[1.0, 2.0], 0).unwrap().is_empty());
    assert!(choose(&[1, 2], &[1.0, 2.0], -1).unwrap_err().to_string().contains("-1 is not a size"));
    assert!(choose(&[1, 0], &[], 1).unwrap_err().to_string().contains("no classes"));
    assert!(choose(&[2], &[1.0, 2.0], 1).unwrap_err().to_string().contains("rank 1"));
}
