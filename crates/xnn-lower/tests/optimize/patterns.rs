//! Tests of the pass `patterns`.

use xnn_format::{BinaryOp, NodeOp, OutputRange, ReduceOp, UnaryOp, ValueId, flags};

use crate::net::{EXACT, Net, check, kinds};

/// Tolerance as a part of the range.
const ROUNDING: f32 = 1e-6;

/// Checks the nodes of an optimized function of one operand.
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

/// All forms in models: with slopes or negative slopes, and with the sign in either place.
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
    // Zero times infinity is NaN.
    check(build(0.0), "patterns", 0, EXACT);
}

/// A function of `x` and a constant with two equal elements in a new first dimension, which the
/// result has too.
fn twofold(net: &mut Net, op: BinaryOp, x: ValueId, number: f32) -> ValueId {
    let numbers = net.constant(&[2, 1, 1, 1], &[number; 2]);
    let output = net.shaped(x, &[2, 2, 40, 5]);
    net.push(NodeOp::Binary { op, inputs: [x, numbers], output });
    output
}

#[test]
fn constants_that_enlarge_the_result() {
    use BinaryOp::{Add, Maximum, Multiply};
    becomes(&["Multiply", "Maximum"], 0, |net, x| {
        let scaled = twofold(net, Multiply, x, 0.1);
        net.binary(Maximum, scaled, x)
    });
    becomes(&["Add", "Clamp", "Multiply", "Multiply"], 0, |net, x| {
        let gate = gate(net, x, [1.0, 3.0, 6.0]);
        let product = net.binary(Multiply, x, gate);
        twofold(net, Multiply, product, 1.0 / 6.0)
    });
    becomes(&["Tanh", "Add", "Multiply", "Multiply"], 0, |net, x| {
        let (tanh, one) = (net.unary(UnaryOp::Tanh, x), net.scalar(1.0));
        let gate = net.binary(Add, tanh, one);
        let product = net.binary(Multiply, x, gate);
        twofold(net, Multiply, product, 0.5)
    });
}

/// Bounds of an inner node, as from a fused activation.
#[test]
fn bounds_of_inner_nodes_are_kept() {
    let range = Some(OutputRange { min: -1.0, max: 1.0 });
    becomes(&["Add", "Clamp", "Multiply", "Multiply"], 0, |net, x| {
        let [three, sixth] = [3.0, 1.0 / 6.0].map(|number| net.scalar(number));
        let sum = net.binary(BinaryOp::Add, x, three);
        net.last().output_range = range;
        let gate = net.clamp(sum, 0.0, 6.0);
        let product = net.binary(BinaryOp::Multiply, x, gate);
        net.binary(BinaryOp::Multiply, product, sixth)
    });
    becomes(&["Clamp", "Negate", "Clamp", "Multiply", "Subtract"], 0, |net, x| {
        let positive = net.clamp(x, 0.0, f32::INFINITY);
        let mirrored = net.unary(UnaryOp::Negate, x);
        let negative = net.clamp(mirrored, 0.0, f32::INFINITY);
        let slopes = net.weights(&[1, 1, 5]);
        let negative = net.binary(BinaryOp::Multiply, negative, slopes);
        net.last().output_range = range;
        net.binary(BinaryOp::Subtract, positive, negative)
    });
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

#[test]
fn logistic_functions() {
    use BinaryOp::{Add, Multiply};
    let half_of_tanh = |net: &mut Net, x: ValueId| {
        let tanh = net.unary(UnaryOp::Tanh, x);
        let half = net.scalar(0.5);
        let halved = net.binary(Multiply, tanh, half);
        net.binary(Add, halved, half)
    };
    becomes(&["Sigmoid"], 1, |net, x| {
        let half = net.scalar(0.5);
        let halved = net.binary(Multiply, x, half);
        half_of_tanh(net, halved)
    });
    becomes(&["Multiply", "Sigmoid"], 1, half_of_tanh);
    // Other constants make another function.
    for (factor, shift) in [(0.4, 0.5), (0.5, 0.6)] {
        becomes(&["Tanh", "Multiply", "Add"], 0, |net, x| {
            let tanh = net.unary(UnaryOp::Tanh, x);
            let [factor, shift] = [factor, shift].map(|number| net.scalar(number));
            let scaled = net.binary(Multiply, tanh, factor);
            net.binary(Add, scaled, shift)
        });
    }
}

/// A gate for each row.
#[test]
fn gates_may_broadcast() {
    use BinaryOp::{Add, Multiply};
    becomes(&["StaticReduce", "Multiply", "Sigmoid", "Multiply"], 1, |net, x| {
        let mean = mean_of_rows(net, x);
        let (tanh, one) = (net.unary(UnaryOp::Tanh, mean), net.scalar(1.0));
        let (gate, half) = (net.binary(Add, tanh, one), net.scalar(0.5));
        let product = net.binary(Multiply, x, gate);
        net.binary(Multiply, product, half)
    });
}

/// `x * (1 + tanh(0.8 * (x + 0.04 * x ^ 3)))` with a constant factor at one of three places.
fn tanh_gelu(net: &mut Net, x: ValueId, place: usize, number: f32) -> ValueId {
    use BinaryOp::{Add, Multiply, Pow};
    let [three, cubic, scale, one, number] =
        [3.0, 0.04, 0.8, 1.0, number].map(|number| net.scalar(number));
    let cube = net.binary(Pow, x, three);
    let cube = net.binary(Multiply, cube, cubic);
    let sum = net.binary(Add, x, cube);
    let argument = net.binary(Multiply, sum, scale);
    let tanh = net.unary(UnaryOp::Tanh, argument);
    let mut factors = [net.binary(Add, tanh, one), x];
    if let Some(factor) = factors.get_mut(place) {
        *factor = net.binary(Multiply, *factor, number);
        return net.binary(Multiply, factors[0], factors[1]);
    }
    let product = net.binary(Multiply, factors[1], factors[0]);
    net.binary(Multiply, product, number)
}

#[test]
fn gelu_with_tanh() {
    for place in 0..3 {
        let wanted = ["Square", "Multiply", "Multiply", "Add", "Multiply", "Sigmoid", "Multiply"];
        // One change for the power, and one for the gate.
        becomes(&wanted, 2, |net, x| tanh_gelu(net, x, place, 0.5));
        let mut net = Net::new();
        let x = net.input_f32(&[2, 40, 5]);
        let y = tanh_gelu(&mut net, x, place, 0.25);
        net.output(y);
        let optimized = check(net, "patterns", 1, ROUNDING);
        assert!(kinds(&optimized).contains(&"Tanh"));
    }
}

#[test]
fn powers() {
    for (exponent, wanted) in
        [(2.0, &["Square"][..]), (3.0, &["Square", "Multiply"]), (2.5, &["Pow"])]
    {
        becomes(wanted, usize::from(wanted != ["Pow"]), |net, x| {
            let exponent = net.scalar(exponent);
            net.binary(BinaryOp::Pow, x, exponent)
        });
    }
}

fn mean_of_rows(net: &mut Net, x: ValueId) -> ValueId {
    let mean = net.shaped(x, &[2, 40, 1]);
    let axes = vec![2];
    net.push(NodeOp::StaticReduce { op: ReduceOp::Mean, axes, input: x, output: mean }).flags =
        flags::KEEP_DIMS;
    mean
}

/// `x * gain + (offset - mean * gain)`, with the mean of rows, or with another value instead at one
/// of its places.
fn normalization(net: &mut Net, x: ValueId, same: bool) -> ValueId {
    use BinaryOp::{Add, Multiply, Subtract};
    let mean = mean_of_rows(net, x);
    let gain = net.unary(UnaryOp::Exp, mean);
    let other = if same { gain } else { net.unary(UnaryOp::Square, mean) };
    let offset = net.weights(&[1, 1, 5]);
    let scaled = net.binary(Multiply, x, gain);
    let shift = net.binary(Multiply, mean, other);
    let rest = net.shaped(x, &[2, 40, 5]);
    net.push(NodeOp::Binary { op: Subtract, inputs: [offset, shift], output: rest });
    net.binary(Add, scaled, rest)
}

#[test]
fn normalizations() {
    const PRODUCTS: usize = 2;
    for same in [true, false] {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 40, 5]);
        let y = normalization(&mut net, x, same);
        net.output(y);
        let optimized = check(net, "patterns", usize::from(same), 1e-5);
        let products = kinds(&optimized).iter().filter(|kind| **kind == "Multiply").count();
        assert_eq!(products, PRODUCTS - usize::from(same));
    }
}
