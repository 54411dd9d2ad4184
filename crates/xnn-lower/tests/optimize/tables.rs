//! Chains of functions of 8-bit integers.

use xnn_format::{Datatype, Graph, NodeOp, UnaryOp, ValueId};

use crate::net::{EXACT, Net, ONE_STEP, check};

/// More than there are integers of 8 bits.
const DIMS: [usize; 2] = [4, 400];

/// What a chain goes through: a type with its scale and zero point, or floats.
type Through = Option<(Datatype, f32, i32)>;

const I8: Through = Some((Datatype::QInt8, 0.05, 3));
/// [`I8`] with 128 added.
const U8: Through = Some((Datatype::QUint8, 0.05, 131));
const F32: Through = None;

fn q(scale: f32, zero_point: i32) -> Through {
    Some((Datatype::QInt8, scale, zero_point))
}

fn value(net: &mut Net, through: Through) -> ValueId {
    match through {
        Some((datatype, scale, zero_point)) => net.q8(datatype, scale, zero_point, &DIMS),
        None => net.f32(&DIMS),
    }
}

/// Functions one behind the other, each into a value of the type beside it.
fn chain(from: Through, links: &[(UnaryOp, Through)]) -> (Net, Vec<ValueId>) {
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
fn check_chain(from: Through, links: &[(UnaryOp, Through)], changes: usize) -> Graph {
    check(chain(from, links).0, "tables", changes, ONE_STEP)
}

/// The only node that is left.
#[track_caller]
fn becomes(from: Through, links: &[(UnaryOp, Through)]) -> UnaryOp {
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
        // XNNPACK has no function from the one to the other.
        check_chain(I8, &[&floats[..], &[(Convert, unsigned)]].concat(), 0);
    }
}

/// The square root of some of the integers is no number.
#[test]
fn functions_that_are_not_defined_everywhere_stay() {
    let links = [(Convert, F32), (SquareRoot, F32), (Convert, q(0.04, -128))];
    assert_eq!(becomes(q(0.05, -128), &links), SquareRoot);
    check_chain(I8, &links, 0);
}

#[test]
fn conversions_in_a_row_become_one() {
    assert_eq!(becomes(I8, &[(Convert, U8), (Convert, q(0.05, -90))]), Convert);
    assert_eq!(becomes(I8, &[(Convert, F32), (Convert, q(0.07, 0))]), Convert);
    // What comes back is what there was.
    let optimized = check(chain(I8, &[(Convert, U8), (Convert, I8)]).0, "tables", 1, EXACT);
    assert_eq!(optimized.nodes.len(), 1);
    // What the first conversion loses does not come back.
    check_chain(I8, &[(Convert, q(0.4, 0)), (Convert, I8)], 0);
    check_chain(I8, &[(Convert, q(0.02, 0)), (Convert, I8)], 0);
}

/// What rounds twice is not rounded once: operators behind it may make much of one step.
#[test]
fn a_function_takes_over_the_conversion_beside_it() {
    let logistic = (Sigmoid, q(1.0 / 256.0, -128));
    assert_eq!(becomes(I8, &[logistic, (Convert, q(1.0 / 256.0, -100))]), Sigmoid);
    assert_eq!(becomes(I8, &[(Convert, U8), (Convert, I8), logistic]), Sigmoid);
    check_chain(I8, &[logistic, (Convert, q(1.0 / 64.0, -128))], 0);
    check_chain(I8, &[logistic, (Convert, q(1.0 / 2048.0, -128))], 0);
}

#[test]
fn a_function_takes_over_one_that_changes_nothing_more() {
    assert_eq!(becomes(I8, &[(Abs, I8), (Abs, I8)]), Abs);
    assert_eq!(becomes(I8, &[(Convert, F32), (Abs, F32), (Abs, F32), (Convert, I8)]), Abs);
    check_chain(I8, &[(Abs, I8), (Negate, I8)], 0);
    check_chain(I8, &[(Tanh, q(1.0 / 128.0, 0)), (Abs, q(1.0 / 128.0, 0))], 0);
}

/// Integers that end where the bounds are need no bounds.
#[test]
fn bounds_that_saturation_keeps_go() {
    let clamped = |from: Through, to: Through, max: f32, changes: usize| {
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
    // One step below 0 is too much.
    assert_eq!(clamped(I8, q(6.0 / 254.0, -127), 6.0, 0), None);
    assert_eq!(clamped(I8, I8, 3.0, 1), Some(Clamp));
}

/// Others that read what lies in between still need it, so that nothing would be saved; but floats
/// are read from integers as well as once more.
#[test]
fn what_others_read_stays() {
    let logistic = (Sigmoid, q(1.0 / 256.0, -128));
    let (mut net, values) = chain(I8, &[logistic, (Convert, q(1.0 / 256.0, -100))]);
    net.output(values[1]);
    check(net, "tables", 0, EXACT);
    let (mut net, values) = chain(I8, &[(Convert, F32), (Tanh, F32), (Convert, q(0.01, 0))]);
    net.output(values[1]);
    let optimized = check(net, "tables", 1, ONE_STEP);
    assert_eq!(optimized.nodes.len(), 2);
}
