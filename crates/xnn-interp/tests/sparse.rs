//! Sparse weights have the same results as dense ones in every storage order, and invalid ones are
//! refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Builder, load};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_interp::{Error, TensorBuf};
use xnn_model::op::{Conv2dOptions, DepthwiseConv2dOptions, FullyConnectedOptions};
use xnn_model::{DType, Op, SparseDimension, Sparsity, Tensor};

const ROUNDS: usize = 300;

/// A random storage of a tensor with this shape: blocks of some dimensions, any order, any
/// compressed dimensions except for blocks, whose size only dense storage states.
fn layout(
    rng: &mut ChaCha8Rng,
    shape: &[usize],
) -> (Vec<usize>, Vec<usize>, Vec<bool>, Vec<usize>) {
    let mut block_map: Vec<usize> = (0..shape.len()).filter(|_| rng.random_bool(0.4)).collect();
    block_map.shuffle(rng);
    let divisor = |rng: &mut ChaCha8Rng, size: usize| {
        let divisors: Vec<usize> = (1..=size).filter(|&block| size.is_multiple_of(block)).collect();
        divisors[rng.random_range(0..divisors.len())]
    };
    let blocks: Vec<usize> = block_map.iter().map(|&d| divisor(rng, shape[d])).collect();
    let mut order: Vec<usize> = (0..shape.len() + block_map.len()).collect();
    order.shuffle(rng);
    let compressed = order.iter().map(|&d| d < shape.len() && rng.random_bool(0.5)).collect();
    (order, block_map, compressed, blocks)
}

/// Stores dense elements of `width` bytes in a random layout.
fn stored(
    rng: &mut ChaCha8Rng,
    shape: &[usize],
    dense: &[u8],
    width: usize,
) -> (Sparsity, Vec<u8>) {
    let (traversal_order, block_map, compressed, blocks) = layout(rng, shape);
    let rank = shape.len();
    let block_of =
        |d: usize| block_map.iter().position(|&split| split == d).map_or(1, |at| blocks[at]);
    let size = |d: usize| if d < rank { shape[d] / block_of(d) } else { blocks[d - rank] };
    let stride = |d: usize| shape[d + 1..].iter().product::<usize>();
    let step =
        |d: usize| if d < rank { stride(d) * block_of(d) } else { stride(block_map[d - rank]) };
    // Positions of all elements with a prefix of indices, in the order of traversal.
    let places = |depth: usize, from: usize| {
        traversal_order[depth..].iter().fold(vec![from], |places, &d| {
            let along = |place: usize| (0..size(d)).map(move |i| place + i * step(d));
            places.into_iter().flat_map(along).collect()
        })
    };
    let is_there = |depth: usize, from: usize| {
        places(depth, from).iter().any(|at| dense[at * width..][..width].iter().any(|&b| b != 0))
    };
    let mut parents = vec![0];
    let mut dimensions = Vec::new();
    for (depth, (&d, &compressed)) in traversal_order.iter().zip(&compressed).enumerate() {
        let (mut children, mut segments, mut indices) = (Vec::new(), vec![0], Vec::new());
        for parent in parents {
            for i in 0..size(d) {
                let child = parent + i * step(d);
                if !compressed || is_there(depth + 1, child) {
                    children.push(child);
                    indices.push(i);
                }
            }
            segments.push(indices.len());
        }
        dimensions.push(match compressed {
            true => SparseDimension::Csr { segments, indices },
            false => SparseDimension::Dense { size: size(d) },
        });
        parents = children;
    }
    let data = parents.iter().flat_map(|at| dense[at * width..][..width].to_vec()).collect();
    (Sparsity { traversal_order, block_map, dimensions }, data)
}

/// Operators with weights, and the shapes of their input and weights.
fn operators() -> [(Op, Vec<usize>, Vec<usize>); 4] {
    let conv = Conv2dOptions { stride_w: 1, stride_h: 1, ..Default::default() };
    let depthwise = DepthwiseConv2dOptions {
        stride_w: 1,
        stride_h: 1,
        depth_multiplier: 1,
        ..Default::default()
    };
    [
        (Op::FullyConnected(FullyConnectedOptions::default()), vec![2, 12], vec![4, 12]),
        (Op::Conv2d(conv), vec![1, 3, 3, 4], vec![2, 2, 3, 4]),
        (Op::DepthwiseConv2d(depthwise), vec![1, 3, 3, 4], vec![1, 2, 2, 4]),
        (Op::Densify, vec![], vec![4, 6]),
    ]
}

/// The result of an operator with these weights.
fn run(op: &Op, shape: &[usize], weights: &Tensor) -> Result<TensorBuf, Error> {
    let is_float = weights.dtype == DType::F32;
    let mut b = Builder::new();
    let constant = b.graph.tensors.len();
    b.graph.tensors.push(weights.clone());
    let mut inputs = vec![constant];
    if *op != Op::Densify {
        inputs.insert(0, b.input(weights.dtype, shape));
    }
    if let (Op::DepthwiseConv2d(_), false) = (op, is_float) {
        let bias = b.constant(&[4], &[0i32; 4]);
        inputs.push(bias);
    }
    let output = b.tensor(weights.dtype, &[]);
    b.graph.tensors[output].shape = None;
    if !is_float {
        (0..=output).for_each(|id| b.quantize(id, 0.1, 0));
    }
    b.graph.outputs.push(output);
    b.op(op.clone(), &inputs, &[output]);
    let mut interpreter = load(&b.model())?;
    if *op != Op::Densify {
        match interpreter.input_mut(0)?.into_slice::<f32>() {
            Some(floats) => floats.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32 - 5.0),
            None => {
                let bytes = interpreter.input_mut(0)?.bytes;
                bytes.iter_mut().enumerate().for_each(|(i, x)| *x = i as u8);
            }
        }
    }
    interpreter.run()?;
    Ok(interpreter.output(0)?.to_buf())
}

/// Weights of which some elements are not 0.
fn weights(rng: &mut ChaCha8Rng, dtype: DType, shape: &[usize]) -> Vec<u8> {
    let density = rng.random_range(0.0..1.0);
    let element = |rng: &mut ChaCha8Rng| match (rng.random_bool(density), dtype) {
        (false, _) => vec![0; dtype.byte_size(1).unwrap()],
        (true, DType::F32) => rng.random_range(-1.0f32..1.0).to_le_bytes().to_vec(),
        (true, _) => vec![rng.random_range(1..=255)],
    };
    (0..shape.iter().product()).flat_map(|_| element(rng)).collect()
}

#[test]
fn sparse_weights_have_the_results_of_dense_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(37);
    for round in 0..ROUNDS {
        for (op, input, shape) in operators() {
            for dtype in [DType::F32, DType::I8] {
                let dense = weights(&mut rng, dtype, &shape);
                let width = dtype.byte_size(1).unwrap();
                let (sparsity, data) = stored(&mut rng, &shape, &dense, width);
                let mut tensor = Tensor::new("weights", dtype, &shape);
                tensor.data = Some(data.into());
                tensor.sparsity = Some(Arc::new(sparsity));
                let plain =
                    Tensor { data: Some(dense.clone().into()), sparsity: None, ..tensor.clone() };
                let found =
                    run(&op, &input, &tensor).unwrap_or_else(|e| panic!("{round} {op}: {e}"));
                if op == Op::Densify {
                    assert_eq!(found.view().bytes, dense, "{round}: {:?}", tensor.sparsity);
                }
                let expected = run(&op, &input, &plain).unwrap();
                assert_eq!(found.view().bytes, expected.view().bytes, "{round} {op} {dtype}");
            }
        }
    }
}

/// Changes one field of the sparsity, or the elements.
fn damage(rng: &mut ChaCha8Rng, tensor: &mut Tensor) {
    let odd = |rng: &mut ChaCha8Rng| [0, 1, 2, 7, 1 << 20, usize::MAX][rng.random_range(0..6)];
    let mut sparsity = Sparsity::clone(tensor.sparsity.as_deref().unwrap());
    let at = rng.random_range(0..sparsity.dimensions.len());
    match rng.random_range(0..6) {
        0 => sparsity.traversal_order[at] = odd(rng),
        1 => sparsity.block_map.push(odd(rng)),
        2 => {
            sparsity.dimensions.remove(at);
        }
        3 => {
            let mut data = tensor.data.take().unwrap().to_vec();
            data.resize(data.len().saturating_add_signed(rng.random_range(-9i32..9) as isize), 1);
            tensor.data = Some(Bytes::from(data));
        }
        _ => match &mut sparsity.dimensions[at] {
            SparseDimension::Dense { size } => *size = odd(rng),
            SparseDimension::Csr { segments, indices } => {
                let numbers = if rng.random() { segments } else { indices };
                if let Some(number) = numbers.last_mut() {
                    *number = odd(rng);
                }
            }
        },
    }
    tensor.sparsity = Some(Arc::new(sparsity));
}

#[test]
fn invalid_sparsity_is_refused_or_harmless() {
    let mut rng = ChaCha8Rng::seed_from_u64(38);
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..ROUNDS {
        for (op, input, shape) in operators() {
            let dense = weights(&mut rng, DType::F32, &shape);
            let (sparsity, data) = stored(&mut rng, &shape, &dense, 4);
            let mut tensor = Tensor::new("weights", DType::F32, &shape);
            tensor.data = Some(data.into());
            tensor.sparsity = Some(Arc::new(sparsity));
            damage(&mut rng, &mut tensor);
            match run(&op, &input, &tensor) {
                Ok(_) => ran += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert_eq!((refused, ran), (1077, 123), "refused and not");
}

#[test]
fn sparse_tensors_do_not_grow_beyond_the_limit() {
    let tensor = |columns: usize| {
        let mut tensor = Tensor::new("weights", DType::F32, &[1, columns]);
        tensor.data = Some(Bytes::new());
        tensor.sparsity = Some(Arc::new(Sparsity {
            traversal_order: vec![0, 1],
            block_map: vec![],
            dimensions: vec![
                SparseDimension::Dense { size: 1 },
                SparseDimension::Csr { segments: vec![0, 0], indices: vec![] },
            ],
        }));
        tensor
    };
    let op = Op::FullyConnected(FullyConnectedOptions::default());
    assert!(run(&op, &[1, 1 << 14], &tensor(1 << 14)).is_ok());
    let columns = (1 << 14) + 1;
    let error = run(&op, &[1, columns], &tensor(columns)).unwrap_err().to_string();
    assert!(error.contains("256 times their memory"), "{error}");
}
