//! Functions that are spelled out.

use xnn_format::{BinaryOp, UnaryOp, ValueId};

use crate::net::{EXACT, Net, check, kinds};

/// Of the range.
const ROUNDING: f32 = 1e-6;

/// Checks what becomes of a function of one operand.
#[track_caller]
fn becomes(wanted: &[&str], changes: usize, build: impl FnOnce(&mut Net, ValueId) -> ValueId) {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 40, 5]);
    let y = build(&mut net, x);
    net.output(y);
    assert_eq!(kinds(&check(net, "patterns", changes, ROUNDING)), wanted);
}

/// `clamp(x * slope + shift, 0, height)`.
fn gate(net: &mut Net, x: ValueId, [slope, shift, height]: [f32; 3]) -> ValueId {
    let [slope_value, shift] = [slope, shift].map(|number| net.scalar(number));
    let x = if slope == 1.0 { x } else { net.binary(BinaryOp::Multiply, x, slope_value) };
    let sum = net.binary(BinaryOp::Add, x, shift);
    net.clamp(sum, 0.0, height)
}

#[test]
fn hard_swish() {
    use BinaryOp::{Divide, Multiply};
    const RELU6: [f32; 3] = [1.0, 3.0, 6.0];
    let sixth = |net: &mut Net| net.scalar(1.0 / 6.0);
    becomes(&["Hardswish"], 1, |net, x| {
        let gate = gate(net, x, RELU6);
        let product = net.binary(Multiply, x, gate);
        let sixth = sixth(net);
        net.binary(Multiply, product, sixth)
    });
    becomes(&["Hardswish"], 1, |net, x| {
        let gate = gate(net, x, RELU6);
        let sixth = sixth(net);
        let gate = net.binary(Multiply, gate, sixth);
        net.binary(Multiply, gate, x)
    });
    becomes(&["Hardswish"], 1, |net, x| {
        let gate = gate(net, x, RELU6);
        let six = net.scalar(6.0);
        let gate = net.binary(Divide, gate, six);
        net.binary(Multiply, x, gate)
    });
    becomes(&["Hardswish"], 1, |net, x| {
        let gate = gate(net, x, [1.0 / 6.0, 0.5, 1.0]);
        net.binary(Multiply, x, gate)
    });
}

#[test]
fn nearly_hard_swish() {
    for (numbers, factor) in [
        ([1.0, 2.5, 6.0], 1.0 / 6.0),
        ([1.0, 3.0, 5.0], 1.0 / 6.0),
        ([1.0, 3.0, 6.0], 0.2),
        ([0.2, 0.5, 1.0], 1.0),
    ] {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 40, 5]);
        let gate = gate(&mut net, x, numbers);
        let y = net.binary(BinaryOp::Multiply, x, gate);
        let factor = net.scalar(factor);
        let y = net.binary(BinaryOp::Multiply, y, factor);
        net.output(y);
        check(net, "patterns", 0, EXACT);
    }
}

/// The ways in which models write it: with slopes or with negative slopes, and
/// the sign in either place.
#[test]
fn prelu() {
    let relu = |net: &mut Net, x| net.clamp(x, 0.0, f32::INFINITY);
    for (op, negated) in [
        (BinaryOp::Add, false),
        (BinaryOp::Add, true),
        (BinaryOp::Subtract, false),
        (BinaryOp::Subtract, true),
    ] {
        becomes(&["PReLU"], 1, |net, x| {
            let positive = relu(net, x);
            let mirrored = net.unary(UnaryOp::Negate, x);
            let mut negative = relu(net, mirrored);
            if negated {
                negative = net.unary(UnaryOp::Negate, negative);
            }
            let slopes = net.weights(&[1, 1, 5]);
            let negative = net.binary(BinaryOp::Multiply, negative, slopes);
            net.binary(op, positive, negative)
        });
    }
}

#[test]
fn leaky_relu() {
    let build = |slope: f32| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 40, 5]);
        let slope = net.scalar(slope);
        let scaled = net.binary(BinaryOp::Multiply, x, slope);
        let y = net.binary(BinaryOp::Maximum, x, scaled);
        net.output(y);
        net
    };
    assert_eq!(kinds(&check(build(0.1), "patterns", 1, EXACT)), ["LeakyReLU"]);
    check(build(1.5), "patterns", 0, EXACT);
    check(build(-0.5), "patterns", 0, EXACT);
}

#[test]
fn squares_and_signs() {
    becomes(&["Square"], 1, |net, x| net.binary(BinaryOp::Multiply, x, x));
    becomes(&["Sin", "Subtract"], 1, |net, x| {
        let y = net.unary(UnaryOp::Sine, x);
        let y = net.unary(UnaryOp::Negate, y);
        net.binary(BinaryOp::Add, x, y)
    });
    becomes(&["Sin", "Subtract"], 1, |net, x| {
        let y = net.unary(UnaryOp::Sine, x);
        let z = net.unary(UnaryOp::Negate, x);
        net.binary(BinaryOp::Add, z, y)
    });
    becomes(&["Sin", "Add"], 1, |net, x| {
        let y = net.unary(UnaryOp::Sine, x);
        let y = net.unary(UnaryOp::Negate, y);
        net.binary(BinaryOp::Subtract, x, y)
    });
}
