//! Slices, splits, concatenations, pads and transpositions of tensors of random shapes, compared with naive loops: rows of few bytes and of many.

use std::fmt::Debug;
use std::sync::Arc;

use crate::fixture::{Fixture, f32, qint8};
use xnn_testing::Random;
use xnnpack::{
    Concatenate, ConstantPad, Element, EvenSplit, RuntimeOptions, Slice, TensorSpec, ThreadPool,
    Transpose,
};

use super::{one_in, one_to};

const ROUNDS: usize = 300;

/// A tensor's dimensions, as a tensor of type `T`.
type Spec = fn(&[usize]) -> TensorSpec;

fn spec_of_floats(dims: &[usize]) -> TensorSpec {
    f32(dims)
}

fn spec_of_bytes(dims: &[usize]) -> TensorSpec {
    qint8(dims, 0, 1.0)
}

fn dims(random: &mut Random) -> Vec<usize> {
    let mut dims: Vec<usize> = (0..one_to(4, random)).map(|_| one_to(7, random)).collect();
    // Sometimes rows are long.
    let most = if one_in(3, random) { 400 } else { 20 };
    *dims.last_mut().unwrap() = one_to(most, random);
    dims
}

fn options(random: &mut Random) -> RuntimeOptions {
    let threads = if one_in(8, random) { 2 } else { 1 };
    let threadpool = Some(Arc::new(ThreadPool::new(threads).unwrap()));
    RuntimeOptions { threadpool, ..RuntimeOptions::default() }
}

/// Positions of the elements of a part in the whole tensor.
fn positions(whole: &[usize], offsets: &[usize], sizes: &[usize]) -> Vec<usize> {
    let mut positions = vec![0];
    for ((&dim, &offset), &size) in whole.iter().zip(offsets).zip(sizes) {
        let within = |&outer: &usize| (offset..offset + size).map(move |at| outer * dim + at);
        positions = positions.iter().flat_map(within).collect();
    }
    positions
}

fn part<T: Copy>(data: &[T], whole: &[usize], offsets: &[usize], sizes: &[usize]) -> Vec<T> {
    positions(whole, offsets, sizes).into_iter().map(|at| data[at]).collect()
}

fn check_slice<T: Element + PartialEq + Debug>(
    spec: Spec,
    data: &[T],
    whole: &[usize],
    random: &mut Random,
) {
    let sizes: Vec<usize> = whole
        .iter()
        .map(|&dim| if one_in(2, random) { dim } else { one_to(dim, random) })
        .collect();
    let offsets: Vec<usize> =
        whole.iter().zip(&sizes).map(|(&dim, &size)| random.below(dim - size + 1)).collect();
    let mut fixture = Fixture::new();
    let input = fixture.input(spec(whole), data);
    let output = fixture.output(spec(&sizes));
    let node = Slice { offsets: offsets.clone(), sizes: sizes.clone(), input, output };
    let result = fixture.node(node).run_with::<T>(&options(random)).unwrap().swap_remove(0);
    assert_eq!(result, part(data, whole, &offsets, &sizes), "{offsets:?}, {sizes:?} of {whole:?}");
}

fn check_pad<T: Element + PartialEq + Debug>(
    spec: Spec,
    data: &[T],
    whole: &[usize],
    padding: T,
    random: &mut Random,
) {
    let mut amounts = || -> Vec<usize> {
        whole.iter().map(|_| if one_in(2, random) { 0 } else { random.below(5) }).collect()
    };
    let (before, after) = (amounts(), amounts());
    let sum = |((&dim, &before), &after): ((&usize, &usize), &usize)| before + dim + after;
    let padded: Vec<usize> = whole.iter().zip(&before).zip(&after).map(sum).collect();
    let mut expected = vec![padding; padded.iter().product()];
    for (at, &element) in positions(&padded, &before, whole).into_iter().zip(data) {
        expected[at] = element;
    }
    let mut fixture = Fixture::new();
    let input = fixture.input(spec(whole), data);
    let output = fixture.output(spec(&padded));
    let node =
        ConstantPad { before: before.clone(), after: after.clone(), value: -3.0, input, output };
    let result = fixture.node(node).run_with::<T>(&options(random)).unwrap().swap_remove(0);
    assert_eq!(result, expected, "{before:?} and {after:?} around {whole:?}");
}

/// Joins parts of different sizes, and splits the tensor in equal ones.
fn check_parts<T: Element + PartialEq + Debug>(
    spec: Spec,
    data: &[T],
    whole: &[usize],
    random: &mut Random,
) {
    let axis = random.below(whole.len());
    let cut = |start: usize, size: usize| {
        let (mut offsets, mut sizes) = (vec![0; whole.len()], whole.to_vec());
        (offsets[axis], sizes[axis]) = (start, size);
        (part(data, whole, &offsets, &sizes), sizes)
    };
    if whole[axis] > 1 {
        let first = one_to(whole[axis] - 1, random);
        let mut fixture = Fixture::new();
        let inputs = [(0, first), (first, whole[axis] - first)].map(|(start, size)| {
            let (data, dims) = cut(start, size);
            fixture.input(spec(&dims), &data)
        });
        let output = fixture.output(spec(whole));
        let axis = i32::try_from(axis).unwrap();
        let node = Concatenate { axis, inputs: inputs.to_vec(), output };
        let result = fixture.node(node).run_with::<T>(&options(random)).unwrap().swap_remove(0);
        assert_eq!(result, data, "{first} of axis {axis} of {whole:?}");
    }
    for count in [2, 3, 4].into_iter().filter(|&count| whole[axis].is_multiple_of(count)) {
        let size = whole[axis] / count;
        let parts: Vec<_> = (0..count).map(|at| cut(at * size, size)).collect();
        let mut fixture = Fixture::new();
        let input = fixture.input(spec(whole), data);
        let outputs = parts.iter().map(|(_, dims)| fixture.output(spec(dims))).collect();
        let axis = i32::try_from(axis).unwrap();
        let fixture = fixture.node(EvenSplit { axis, input, outputs });
        let results = fixture.run_with::<T>(&options(random)).unwrap();
        for (result, (expected, dims)) in results.iter().zip(&parts) {
            assert_eq!(result, expected, "{dims:?} of {whole:?}");
        }
    }
}

fn check<T: Element + PartialEq + Debug>(
    spec: Spec,
    padding: T,
    draw: impl Fn(usize, &mut Random) -> Vec<T>,
    seed: u64,
) {
    let random = &mut Random::new(seed);
    for _ in 0..ROUNDS {
        let whole = dims(random);
        let data = draw(whole.iter().product(), random);
        check_slice(spec, &data, &whole, random);
        check_pad(spec, &data, &whole, padding, random);
        check_parts(spec, &data, &whole, random);
    }
}

/// Two dimensions that may be longer than tiles and vectors, and others, which make several matrices or larger elements.
fn check_transpose<T: Element + PartialEq + Debug>(
    spec: Spec,
    draw: impl Fn(usize, &mut Random) -> Vec<T>,
    seed: u64,
) {
    let random = &mut Random::new(seed);
    for _ in 0..ROUNDS {
        let mut dims: Vec<usize> = (0..1 + one_to(3, random)).map(|_| one_to(4, random)).collect();
        for _ in 0..2 {
            let at = random.below(dims.len());
            dims[at] = one_to([20, 70, 200][random.below(3)], random);
        }
        let mut perm: Vec<usize> = (0..dims.len()).collect();
        for at in 0..perm.len() {
            let other = random.below(perm.len());
            perm.swap(at, other);
        }
        let data = draw(dims.iter().product(), random);
        let stride = |dim: &usize| dims[dim + 1..].iter().product::<usize>();
        let mut expected = vec![0];
        for dim in &perm {
            let along = |&at: &usize| (0..dims[*dim]).map(move |i| at + i * stride(dim));
            expected = expected.iter().flat_map(along).collect();
        }
        let expected: Vec<T> = expected.into_iter().map(|at| data[at]).collect();
        let permuted: Vec<usize> = perm.iter().map(|&dim| dims[dim]).collect();
        let mut fixture = Fixture::new();
        let input = fixture.input(spec(&dims), &data);
        let output = fixture.output(spec(&permuted));
        let node = Transpose { perm: perm.clone(), input, output };
        let result = fixture.node(node).run_with::<T>(&options(random)).unwrap().swap_remove(0);
        assert_eq!(result, expected, "{perm:?} of {dims:?}");
    }
}

#[test]
fn transpositions() {
    check_transpose(spec_of_floats, |count, random| random.f32s(count, -9.0, 9.0), 53);
    check_transpose(spec_of_bytes, |count, random| random.i8s(count), 54);
}

#[test]
fn moves_of_floats() {
    check(spec_of_floats, -3.0, |count, random| random.f32s(count, -9.0, 9.0), 51);
}

#[test]
fn moves_of_bytes() {
    check(spec_of_bytes, -3, |count, random| random.i8s(count), 52);
}
