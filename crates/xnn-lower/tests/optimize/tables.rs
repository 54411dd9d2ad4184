//! Tests of the pass `tables`.

use xnn_format::{Datatype, Graph, NodeOp, UnaryOp, ValueId};

use crate::net::{EXACT, Net, ONE_STEP, check};

/// More elements than there are 8-bit integers.
const DIMS: [usize; 2] = [4, 400];

/// Type of a value in a chain: 8-bit integers with a scale and a zero point, or floats.
type Type = Option<(Datatype, f32, i32)>;

const I8: Type = Some((Datatype::QInt8, 0.05, 3));
/// [`I8`] with 128 added.
const U8: Type = Some((Datatype::QUint8, 0.05, 131));
const F32: Type = None;

fn q(scale: f32, zero_point: i32) -> Type {
    Some((Datatype::QInt8, scale, zero_point))
}

fn value(net: &mut Net, ty: Type) -> ValueId {
    match ty {
        Some((datatype, scale, zero_point)) => net.q8(datatype, scale, zero_point, &DIMS),
        None => net.f32(&DIMS),
    }
}

/// A chain of functions. Each result has the type beside the function.
fn chain(from: Type, links: &[(UnaryOp, Type)]) -> (Net, Vec<ValueId>) {
    let mut net = Net::new();
    let input = value(&mut net, from);
    let mut values = vec![net.input(input)];
    for &(op, to) in links {
        let output = value(&mut net, to);
        let input = *values.last().unwrap();
        net.push(NodeOp::Unary { op, input, output });
        values.push(output);
    }
    net.output(*values.last().unwrap());
    (net, values)
}

#[track_caller]
fn check_chain(from: Type, links: &[(UnaryOp, Type)], changes: usize) -> Graph {
    check(chain(from, links).0, "tables", changes, ONE_STEP)
}

/// The function of the only remaining node.
#[track_caller]
fn becomes(from: Type, links: &[(UnaryOp, Type)]) -> UnaryOp {
    let optimized = check_chain(from, links, 1);
    match optimized.nodes.as_slice() {
        [node] => match node.op {
            NodeOp::Unary { op, .. } => op,
            _ => panic!("{}", node.op.kind()),
        },
        nodes => panic!("{} nodes", nodes.len()),
    }
}

use UnaryOp::{Abs, Clamp, Convert, Negate, Sigmoid, SquareRoot, Tanh};

#[test]
fn functions_between_conversions_become_functions_of_integers() {
    let ops = [
        Abs,
        UnaryOp::Elu { alpha: 0.5 },
        UnaryOp::Exp,
        UnaryOp::Gelu,
        UnaryOp::HardSwish,
        UnaryOp::LeakyRelu { negative_slope: 0.2 },
        Negate,
        Sigmoid,
        UnaryOp::Square,
        Tanh,
    ];
    for op in ops {
        let floats = [(Convert, F32), (op, F32)];
        assert_eq!(becomes(I8, &[&floats[..], &[(Convert, q(0.04, 1))]].concat()), op);
        let unsigned = Some((Datatype::QUint8, 0.04, 120));
        assert_eq!(becomes(U8, &[&floats[..], &[(Convert, unsigned)]].concat()), op);
        // XNNPACK has no function between these types.
        check_chain(I8, &[&floats[..], &[(Convert, unsigned)]].concat(), 0);
    }
}

/// The square root of some integers is NaN.
#[test]
fn functions_with_nan_stay() {
    let links = [(Convert, F32), (SquareRoot, F32), (Convert, q(0.04, -128))];
    assert_eq!(becomes(q(0.05, -128), &links), SquareRoot);
    check_chain(I8, &links, 0);
}

#[test]
fn consecutive_conversions_are_merged() {
    assert_eq!(becomes(I8, &[(Convert, U8), (Convert, q(0.05, -90))]), Convert);
    assert_eq!(becomes(I8, &[(Convert, F32), (Convert, q(0.07, 0))]), Convert);
    // The result is the operand.
    let optimized = check(chain(I8, &[(Convert, U8), (Convert, I8)]).0, "tables", 1, EXACT);
    assert_eq!(optimized.nodes.len(), 1);
    // The first conversion loses information.
    check_chain(I8, &[(Convert, q(0.4, 0)), (Convert, I8)], 0);
    check_chain(I8, &[(Convert, q(0.02, 0)), (Convert, I8)], 0);
}

/// A chain that rounds twice is not replaced by a function that rounds once: later operators may
/// amplify the difference.
#[test]
fn functions_absorb_neighbouring_conversions() {
    let logistic = (Sigmoid, q(1.0 / 256.0, -128));
    assert_eq!(becomes(I8, &[logistic, (Convert, q(1.0 / 256.0, -100))]), Sigmoid);
    assert_eq!(becomes(I8, &[(Convert, U8), (Convert, I8), logistic]), Sigmoid);
    check_chain(I8, &[logistic, (Convert, q(1.0 / 64.0, -128))], 0);
    check_chain(I8, &[logistic, (Convert, q(1.0 / 2048.0, -128))], 0);
}

#[test]
fn functions_absorb_functions_without_further_effect() {
    assert_eq!(becomes(I8, &[(Abs, I8), (Abs, I8)]), Abs);
    assert_eq!(becomes(I8, &[(Convert, F32), (Abs, F32), (Abs, F32), (Convert, I8)]), Abs);
    check_chain(I8, &[(Abs, I8), (Negate, I8)], 0);
    check_chain(I8, &[(Tanh, q(1.0 / 128.0, 0)), (Abs, q(1.0 / 128.0, 0))], 0);
}

/// Bounds equal to the limits of the integers are not needed.
#[test]
fn bounds_implied_by_saturation_are_removed() {
    let clamped = |from: Type, to: Type, max: f32, changes: usize| {
        let mut net = Net::new();
        let input = value(&mut net, from);
        let input = net.input(input);
        let floats = value(&mut net, F32);
        net.convert(input, floats);
        let bounded = net.clamp(floats, 0.0, max);
        let output = value(&mut net, to);
        net.convert(bounded, output);
        net.output(output);
        let optimized = check(net, "tables", changes, ONE_STEP);
        match optimized.nodes[0].op {
            NodeOp::Unary { op, .. } if changes > 0 => Some(op),
            _ => None,
        }
    };
    let relu6 = q(6.0 / 255.0, -128);
    assert_eq!(clamped(I8, relu6, 6.0, 1), Some(Convert));
    assert_eq!(clamped(I8, relu6, 3.0, 0), None);
    // One step below 0 exceeds the bounds.
    assert_eq!(clamped(I8, q(6.0 / 254.0, -127), 6.0, 0), None);
    assert_eq!(clamped(I8, I8, 3.0, 1), Some(Clamp));
}

/// A value with another reader is still needed, so that merging saves nothing. A conversion to
/// floats can be repeated.
#[test]
fn values_with_other_readers_stay() {
    let logistic = (Sigmoid, q(1.0 / 256.0, -128));
    let (mut net, values) = chain(I8, &[logistic, (Convert, q(1.0 / 256.0, -100))]);
    net.output(values[1]);
    check(net, "tables", 0, EXACT);
    let (mut net, values) = chain(I8, &[(Convert, F32), (Tanh, F32), (Convert, q(0.01, 0))]);
    net.output(values[1]);
    let optimized = check(net, "tables", 1, ONE_STEP);
    assert_eq!(optimized.nodes.len(), 2);
}
