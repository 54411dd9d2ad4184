//! Tests of the passes `paddings`, `clamps`, `affine` and `conversions`.

use xnn_format::{BinaryOp, Datatype, Graph, NodeOp, OutputRange, UnaryOp, ValueId, flags};

use crate::net::{EXACT, Net, ONE_STEP, check, kinds};

/// Tolerance as a part of the range: weights are rounded once more.
const ROUNDING: f32 = 1e-5;

#[test]
fn convolutions_pad() {
    // Some windows of three would only contain the three rows of zeros, which graphs do not
    // support.
    for (padding, padded) in [([1, 2, 2, 0], 1), ([1, 2, 3, 0], 0), ([1, 3, 2, 0], 0)] {
        for depthwise in [false, true] {
            let mut net = Net::new();
            let x = net.input_f32(&[2, 5, 6, 4]);
            let y = net.pad(x, padding);
            let y = if depthwise { net.depthwise(y, 1) } else { net.conv(y, 2, 6) };
            net.output(y);
            assert_eq!(check(net, "paddings", padded, EXACT).nodes.len(), 2 - padded);
        }
    }
}

#[test]
fn convolutions_pad_only_images_with_zeros() {
    let build = |change: fn(&mut NodeOp), flag: u32| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 5, 6, 4]);
        let y = net.pad(x, [1, 0, 1, 0]);
        change(&mut net.last().op);
        let z = net.conv(y, 1, 3);
        net.last().flags = flag;
        if flag != 0 {
            let dims = [2, net.dims_of(y)[1], net.dims_of(y)[2], 3];
            net.graph.values[z.index()].dims = dims.to_vec();
        }
        net.output(z);
        net
    };
    let ones = |op: &mut NodeOp| {
        if let NodeOp::StaticConstantPad { padding_value, .. } = op {
            *padding_value = 1.0;
        }
    };
    let batch = |op: &mut NodeOp| {
        if let NodeOp::StaticConstantPad { pre_paddings, .. } = op {
            pre_paddings[0] = 1;
        }
    };
    check(build(|_| (), 0), "paddings", 1, EXACT);
    check(build(ones, 0), "paddings", 0, EXACT);
    check(build(batch, 0), "paddings", 0, EXACT);
    check(build(|_| (), flags::TENSORFLOW_SAME_PADDING), "paddings", 0, EXACT);
}

/// A maximum pooling, with windows of 3 and a stride of 2, of an image with a border.
fn maximum_with_border(image: fn(&mut Net) -> ValueId, around: [usize; 4], by: f32) -> Net {
    let mut net = Net::new();
    let x = image(&mut net);
    let y = net.pad(x, around);
    if let NodeOp::StaticConstantPad { padding_value, .. } = &mut net.last().op {
        *padding_value = by;
    }
    let y = net.max_pool(y, 3, 2);
    net.output(y);
    net
}

fn bounded_image(net: &mut Net) -> ValueId {
    let x = net.input_f32(&[2, 7, 8, 4]);
    net.clamp(x, 0.5, f32::INFINITY)
}

fn integer_image(net: &mut Net) -> ValueId {
    let q = net.q8(Datatype::QInt8, 0.5, -128, &[2, 7, 8, 4]);
    net.input(q)
}

#[test]
fn maxima_pad_if_no_element_is_lower() {
    let free = |net: &mut Net| net.input_f32(&[2, 7, 8, 4]);
    let check = |net, changes| check(net, "paddings", changes, EXACT).nodes.len();
    for around in [[1, 1, 1, 1], [2, 0, 0, 2]] {
        assert_eq!(check(maximum_with_border(bounded_image, around, 0.5), 1), 2);
        assert_eq!(check(maximum_with_border(integer_image, around, 0.0), 1), 1);
        assert_eq!(check(maximum_with_border(free, around, f32::NEG_INFINITY), 1), 1);
    }
    // An element may be lower, or a window may contain no element.
    check(maximum_with_border(bounded_image, [1; 4], 0.6), 0);
    check(maximum_with_border(integer_image, [1; 4], 0.5), 0);
    check(maximum_with_border(free, [1; 4], 0.0), 0);
    check(maximum_with_border(bounded_image, [3, 0, 0, 0], 0.5), 0);
}

/// A function of a constant and a value, in this order.
fn bounded(net: &mut Net, op: BinaryOp, bound: ValueId, value: ValueId) -> ValueId {
    let output = net.like(value);
    net.push(NodeOp::Binary { op, inputs: [bound, value], output });
    output
}

/// If the constant is last, interpreters return it for NaN, while a clamp keeps NaN.
#[test]
fn bounds_after_their_operand_stay() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 5, 6, 4]);
    let y = net.conv(x, 1, 3);
    let [zero, one] = [0.0, 1.0].map(|number| net.scalar(number));
    let y = net.binary(BinaryOp::Maximum, y, zero);
    let y = net.binary(BinaryOp::Minimum, y, one);
    net.output(y);
    check(net, "clamps", 0, EXACT);
}

#[test]
fn bounds_move_into_the_node_before() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 5, 6, 4]);
    let y = net.conv(x, 1, 3);
    net.last().output_range = Some(OutputRange { min: -1.0, max: 2.0 });
    let [zero, one] = [0.0, 1.0].map(|number| net.scalar(number));
    let y = bounded(&mut net, BinaryOp::Maximum, zero, y);
    let y = bounded(&mut net, BinaryOp::Minimum, one, y);
    net.output(y);
    let optimized = check(net, "clamps", 4, EXACT);
    assert_eq!(optimized.nodes.len(), 1);
    let range = optimized.nodes[0].output_range;
    assert_eq!(range, Some(OutputRange { min: 0.0, max: 1.0 }));
}

/// Another reader needs the unbounded result, or the bounds exclude each other.
#[test]
fn some_bounds_stay() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 5, 6, 4]);
    let y = net.conv(x, 1, 3);
    let z = net.clamp(y, 0.0, 1.0);
    let z = net.clamp(z, 2.0, 3.0);
    net.output(y);
    net.output(z);
    let row = net.weights(&[4]);
    let z = net.binary(BinaryOp::Maximum, x, row);
    net.output(z);
    check(net, "clamps", 0, EXACT);
}

/// Affine functions before and after a layer.
fn scaled(layer: fn(&mut Net, ValueId) -> ValueId) -> Graph {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 5, 6, 4]);
    let before = net.weights(&[1, 1, 1, 4]);
    let x = net.binary(BinaryOp::Multiply, x, before);
    let y = layer(&mut net, x);
    let channels = *net.dims_of(y).last().unwrap();
    let [scale, shift] = [(); 2].map(|()| net.weights(&[channels]));
    let [divisor, one] = [4.0, 1.0].map(|number| net.scalar(number));
    let y = net.binary(BinaryOp::Multiply, y, scale);
    let y = net.binary(BinaryOp::Add, y, shift);
    let y = net.binary(BinaryOp::Divide, y, divisor);
    let output = net.like(y);
    net.push(NodeOp::Binary { op: BinaryOp::Subtract, inputs: [one, y], output });
    net.output(output);
    check(net, "affine", 5, ROUNDING)
}

#[test]
fn layers_absorb_products_and_sums() {
    assert_eq!(kinds(&scaled(|net, x| net.conv(x, 1, 6))), ["Conv2d"]);
    assert_eq!(kinds(&scaled(|net, x| net.conv(x, 2, 6))), ["Conv2d"]);
    assert_eq!(kinds(&scaled(|net, x| net.depthwise(x, 1))), ["DepthwiseConv2d"]);
    assert_eq!(kinds(&scaled(|net, x| net.depthwise(x, 3))), ["DepthwiseConv2d"]);
    assert_eq!(kinds(&scaled(|net, x| net.fully_connected(x, 3, false))), ["FullyConnected"]);
    assert_eq!(kinds(&scaled(|net, x| net.fully_connected(x, 3, true))), ["FullyConnected"]);
}

#[test]
fn layers_absorb_sums_after_a_reshape() {
    let build = |shape: &[usize]| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 5, 6, 4]);
        let y = net.conv(x, 1, 4);
        let y = net.reshape(y, shape);
        let constant = net.weights(&[*shape.last().unwrap()]);
        let y = net.binary(BinaryOp::Add, y, constant);
        net.output(y);
        net
    };
    let optimized = check(build(&[0, 12, 4]), "affine", 1, ROUNDING);
    assert_eq!(kinds(&optimized), ["Conv2d", "StaticReshape"]);
    check(build(&[0, 12, 2, 2]), "affine", 0, EXACT);
}

#[test]
fn some_affine_functions_stay() {
    let build = |op: BinaryOp, dims: &[usize], bounded: bool| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 5, 6, 4]);
        let y = net.conv(x, 1, 4);
        if bounded {
            net.last().output_range = Some(OutputRange { min: 0.0, max: 6.0 });
        }
        let constant = net.weights(dims);
        let y = net.binary(op, y, constant);
        net.output(y);
        net
    };
    check(build(BinaryOp::Add, &[1, 4], false), "affine", 1, ROUNDING);
    check(build(BinaryOp::Add, &[1, 4], true), "affine", 0, EXACT);
    check(build(BinaryOp::Add, &[3, 1, 1], false), "affine", 0, EXACT);
    check(build(BinaryOp::Maximum, &[4], false), "affine", 0, EXACT);

    // A sum before the layer would be padded with zeros.
    let mut net = Net::new();
    let x = net.input_f32(&[2, 5, 6, 4]);
    let shift = net.weights(&[4]);
    let y = net.binary(BinaryOp::Add, x, shift);
    let y = net.conv(y, 1, 4);
    net.output(y);
    check(net, "affine", 0, EXACT);
}

#[test]
fn round_trips_through_floats_are_removed() {
    let mut net = Net::new();
    let q = net.q8(Datatype::QInt8, 0.5, 3, &[2, 8]);
    let q = net.input(q);
    let x = net.f32(&[2, 8]);
    let x = net.convert(q, x);
    let back = net.like(q);
    let y = net.convert(x, back);
    let y = net.unary(UnaryOp::Abs, y);
    net.output(y);
    assert_eq!(check(net, "conversions", 1, EXACT).nodes.len(), 1);
}

#[test]
fn sums_between_conversions_become_sums_of_integers() {
    for op in [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply] {
        let mut net = Net::new();
        let [a, b] = [(0.05, 3), (0.02, -7)].map(|(scale, zero_point)| {
            let q = net.q8(Datatype::QInt8, scale, zero_point, &[2, 400]);
            let q = net.input(q);
            let x = net.f32(&[2, 400]);
            net.convert(q, x)
        });
        let y = net.binary(op, a, b);
        net.last().output_range = Some(OutputRange { min: -3.0, max: 2.5 });
        let result = net.q8(Datatype::QInt8, 0.04, 1, &[2, 400]);
        let y = net.convert(y, result);
        net.output(y);
        assert_eq!(check(net, "conversions", 1, ONE_STEP).nodes.len(), 1, "{op:?}");
    }
}

/// The types differ, the function has no 8-bit form, the scales are too different, or another node
/// reads the floats.
#[test]
fn other_functions_stay_between_conversions() {
    let build = |op: BinaryOp, to: Datatype, scale: f32, read: bool| {
        let mut net = Net::new();
        let q = net.q8(Datatype::QInt8, 0.05, 3, &[2, 8]);
        let q = net.input(q);
        let x = net.f32(&[2, 8]);
        let x = net.convert(q, x);
        let y = net.binary(op, x, x);
        let result = net.q8(to, scale, 1, &[2, 8]);
        let z = net.convert(y, result);
        net.output(z);
        if read {
            net.output(y);
        }
        net
    };
    check(build(BinaryOp::Add, Datatype::QInt8, 0.05, false), "conversions", 1, ONE_STEP);
    check(build(BinaryOp::Add, Datatype::QUint8, 0.05, false), "conversions", 0, EXACT);
    check(build(BinaryOp::Divide, Datatype::QInt8, 0.05, false), "conversions", 0, EXACT);
    check(build(BinaryOp::Add, Datatype::QInt8, 100.0, false), "conversions", 0, EXACT);
    check(build(BinaryOp::Add, Datatype::QInt8, 0.05, true), "conversions", 0, EXACT);
}
