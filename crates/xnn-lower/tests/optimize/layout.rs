//! Tests of the passes `identities`, `reshapes`, `transposes` and `duplicates`.

use xnn_format::{
    BinaryOp, Datatype, Graph, NodeOp, Quantization, ReduceOp, UnaryOp, Value, ValueId, flags,
};

use crate::net::{EXACT, Net, check, kinds};

const TO_NCHW: &[usize] = &[0, 3, 1, 2];
const TO_NHWC: &[usize] = &[0, 2, 3, 1];
/// Tolerance as a part of the range, for sums in another order.
const ROUNDING: f32 = 1e-6;

#[test]
fn nodes_that_change_nothing_are_removed() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 6]);
    let y = net.unary(UnaryOp::Copy, x);
    let y = net.reshape(y, &[0, 6]);
    let y = net.transpose(y, &[0, 1]);
    let y = net.clamp(y, f32::NEG_INFINITY, f32::INFINITY);
    let output = net.like(y);
    net.push(NodeOp::StaticSlice { offsets: vec![0, 0], sizes: vec![0, 0], input: y, output });
    let y = net.unary(UnaryOp::Abs, output);
    let output = net.like(y);
    net.push(NodeOp::StaticConstantPad {
        pre_paddings: vec![0, 0],
        post_paddings: vec![0, 0],
        padding_value: 1.0,
        input: y,
        output,
    });
    net.output(output);
    assert_eq!(kinds(&check(net, "identities", 6, EXACT)), ["Abs"]);
}

/// A slice may be a part of a larger batch, a conversion to another scale is needed, and external
/// values stay.
#[test]
fn nodes_that_change_something_are_kept() {
    let mut net = Net::new();
    let x = net.input_f32(&[1, 6]);
    let output = net.like(x);
    net.push(NodeOp::StaticSlice { offsets: vec![0, 0], sizes: vec![1, 6], input: x, output });
    net.output(output);
    let copy = net.unary(UnaryOp::Copy, x);
    net.output(copy);
    let y = net.unary(UnaryOp::Abs, x);
    net.output(y);
    let copy = net.unary(UnaryOp::Copy, y);
    net.output(copy);
    let q = net.q8(Datatype::QInt8, 0.5, 0, &[1, 6]);
    let q = net.input(q);
    let other = net.q8(Datatype::QInt8, 0.25, 0, &[1, 6]);
    let other = net.convert(q, other);
    net.output(other);
    check(net, "identities", 0, EXACT);
}

#[test]
fn consecutive_reshapes_are_merged() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 3, 4]);
    let y = net.reshape(x, &[0, 12]);
    let z = net.reshape(y, &[0, 4, 3]);
    let z = net.transpose(z, &[0, 2, 1]);
    let z = net.unary(UnaryOp::Abs, z);
    net.output(z);
    assert_eq!(check(net, "reshapes", 1, EXACT).nodes.len(), 3);
}

/// A dimension that the model leaves open depends on more than the batch. It stays open if only the
/// shape in between is removed, but not if a transpose could move dimensions other than of size 1.
#[test]
fn open_dimensions_stay_open_or_follow_the_batch() {
    let is_open = |graph: Graph| {
        graph.nodes.iter().map(|node| node.flags & flags::OPEN_DIMENSION != 0).collect::<Vec<_>>()
    };
    let open = |net: &mut Net, input: ValueId, new_shape: &[usize]| {
        let output = net.reshape(input, new_shape);
        net.graph.nodes.last_mut().unwrap().flags |= flags::OPEN_DIMENSION;
        output
    };
    let mut net = Net::new();
    let x = net.input_f32(&[2, 3, 4]);
    let y = net.reshape(x, &[0, 12]);
    let z = open(&mut net, y, &[1, 0, 3]);
    net.output(z);
    assert_eq!(is_open(check(net, "reshapes", 1, EXACT)), [true]);
    let mut net = Net::new();
    let x = net.input_f32(&[2, 1, 3, 4]);
    let y = net.transpose(x, &[0, 2, 1, 3]);
    let z = open(&mut net, y, &[1, 0, 4]);
    net.output(z);
    assert_eq!(is_open(check(net, "reshapes", 1, EXACT)), [false]);
    // With twice the height the result has twice as many images, instead of larger ones.
    for (is_removed, flag) in [(1, 0), (0, flags::OPEN_DIMENSION)] {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 3, 4]);
        let a = net.unary(UnaryOp::Abs, x);
        let y = net.reshape(a, &[0, 3, 4]);
        net.graph.nodes.last_mut().unwrap().flags |= flag;
        let z = net.unary(UnaryOp::Negate, y);
        net.output(z);
        check(net, "identities", is_removed, EXACT);
    }
}

#[test]
fn transposes_of_dimensions_of_size_1_are_reshapes() {
    let build = |dims: &[usize]| {
        let mut net = Net::new();
        let x = net.input_f32(dims);
        let y = net.transpose(x, TO_NCHW);
        let z = net.reshape(y, &[0, dims[1] * dims[2] * dims[3]]);
        net.output(z);
        net
    };
    assert_eq!(kinds(&check(build(&[2, 1, 1, 5]), "reshapes", 1, EXACT)), ["StaticReshape"]);
    check(build(&[2, 1, 2, 5]), "reshapes", 0, EXACT);
    let build = |perm: &[usize]| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 3, 5]);
        let y = net.reshape(x, &[0, 3, 5, 1]);
        let z = net.transpose(y, perm);
        net.output(z);
        net
    };
    assert_eq!(kinds(&check(build(&[0, 1, 3, 2]), "reshapes", 1, EXACT)), ["StaticReshape"]);
    check(build(&[0, 2, 1, 3]), "reshapes", 0, EXACT);
}

/// A layer of a model with channels first, with all kinds of nodes that transposes are moved
/// behind.
#[test]
fn transposes_cancel_out() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 6, 7, 4]);
    let skip = net.transpose(x, TO_NCHW);
    let y = net.unary(UnaryOp::Abs, skip);
    let y = net.binary(BinaryOp::Add, y, skip);
    let channels = net.weights(&[4, 1, 1]);
    let y = net.binary(BinaryOp::Multiply, y, channels);
    let plane = net.weights(&[6, 7]);
    let y = net.binary(BinaryOp::Subtract, y, plane);
    let slopes = net.weights(&[4, 1, 1]);
    let y = net.binary(BinaryOp::Prelu, y, slopes);
    let joined = net.shaped(y, &[2, 8, 6, 7]);
    net.push(NodeOp::Concatenate { axis: 1, inputs: vec![y, skip], output: joined });
    let padded = net.shaped(joined, &[2, 8, 9, 7]);
    net.push(NodeOp::StaticConstantPad {
        pre_paddings: vec![0, 0, 1, 0],
        post_paddings: vec![0, 0, 2, 0],
        padding_value: 0.5,
        input: joined,
        output: padded,
    });
    let cut = net.shaped(padded, &[2, 5, 9, 4]);
    net.push(NodeOp::StaticSlice {
        offsets: vec![0, 2, 0, 3],
        sizes: vec![0, 5, 0, 4],
        input: padded,
        output: cut,
    });
    let y = net.transpose(cut, TO_NHWC);
    let y = net.conv(y, 1, 3);
    net.output(y);
    let graph = net.graph.clone();
    let optimized = check(net, "transposes", 9, EXACT);
    let left = kinds(&optimized);
    assert!(!left.contains(&"StaticTranspose"), "{left:?} of {:?}", kinds(&graph));
}

/// The sum has one dimension more than the transpose, so that the transpose cannot move.
#[test]
fn transposes_stay_before_operands_of_more_dimensions() {
    let build = |dims: &[usize]| {
        let mut net = Net::new();
        let x = net.input_f32(&[2, 3, 5]);
        let y = net.transpose(x, &[0, 2, 1]);
        let addend = net.weights(dims);
        let output = net.shaped(y, &[vec![1; dims.len() - 3], vec![2, 5, 3]].concat());
        net.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [y, addend], output });
        net.output(output);
        kinds(&check(net, "transposes", usize::from(dims.len() == 3), EXACT))
    };
    assert_eq!(build(&[1, 1, 5, 3]), ["StaticTranspose", "Add"]);
    assert_eq!(build(&[1, 5, 3]), ["Add", "StaticTranspose"]);
}

/// Exported models add a width of 1 to sequences before each convolution, and remove it again.
#[test]
fn transposes_move_behind_reshapes_that_add_and_remove_dimensions() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 7, 4]);
    let y = net.transpose(x, &[0, 2, 1]);
    let y = net.reshape(y, &[0, 4, 7, 1]);
    let y = net.transpose(y, &[0, 2, 3, 1]);
    let y = net.unary(UnaryOp::Abs, y);
    let y = net.transpose(y, TO_NCHW);
    let y = net.reshape(y, &[0, 4, 7]);
    let y = net.transpose(y, &[0, 2, 1]);
    let y = net.unary(UnaryOp::Negate, y);
    net.output(y);
    let optimized = check(net, "transposes", 7, EXACT);
    assert_eq!(kinds(&optimized), ["StaticReshape", "Abs", "StaticReshape", "Negate"]);
}

/// Moving the transpose would need two.
#[test]
fn transposes_with_other_readers_stay() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 3, 4]);
    let y = net.transpose(x, &[0, 2, 1]);
    net.output(y);
    let z = net.unary(UnaryOp::Abs, y);
    net.output(z);
    let other = net.transpose(x, &[1, 0, 2]);
    let [a, b] = [other, x].map(|id| net.unary(UnaryOp::Negate, id));
    net.output(b);
    let sum = net.transpose(a, &[2, 1, 0]);
    let sum = net.reshape(sum, &[24]);
    net.output(sum);
    // Only the last pair is moved behind the negation and merged.
    check(net, "transposes", 2, EXACT);
}

#[test]
fn reductions_move_before_transposes() {
    for keep in [false, true] {
        for axes in [vec![2, 3], vec![1], vec![1, 3]] {
            let mut net = Net::new();
            let x = net.input_f32(&[2, 3, 5, 4]);
            let y = net.transpose(x, TO_NCHW);
            let mut dims = net.dims_of(y);
            for &axis in axes.iter().rev() {
                if keep {
                    dims[axis] = 1;
                } else {
                    dims.remove(axis);
                }
            }
            let mean = net.shaped(y, &dims);
            let is_image = axes == [2, 3];
            net.push(NodeOp::StaticReduce { op: ReduceOp::Mean, axes, input: y, output: mean });
            net.last().flags = if keep { flags::KEEP_DIMS } else { 0 };
            net.output(mean);
            let optimized = check(net, "transposes", 1, ROUNDING);
            assert_eq!(kinds(&optimized)[0] == "GlobalAvgPooling2d", is_image);
        }
    }
}

#[test]
fn products_transpose_their_second_operand() {
    for flag in [0, flags::TRANSPOSE_WEIGHTS] {
        let mut net = Net::new();
        let a = net.input_f32(&[2, 3, 4]);
        let b = net.input_f32(if flag == 0 { &[2, 5, 4] } else { &[2, 4, 5] });
        let b = net.transpose(b, &[0, 2, 1]);
        let output = net.f32(&[2, 3, 5]);
        net.push(NodeOp::BatchMatrixMultiply { inputs: [a, b], output }).flags = flag;
        net.output(output);
        let optimized = check(net, "transposes", 1, ROUNDING);
        assert_eq!(kinds(&optimized), ["BatchMatrixMultiply"]);
    }
}

#[test]
fn duplicates_are_merged() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 4]);
    let mut branch = |number: f32| {
        let number = net.scalar(number);
        let y = net.binary(BinaryOp::Multiply, x, number);
        let y = net.unary(UnaryOp::Exp, y);
        net.output(y);
    };
    // Both outputs stay, so only the product is shared.
    branch(0.5);
    branch(0.5);
    branch(0.25);
    let y = net.clamp(x, 0.0, 1.0);
    let z = net.clamp(x, 0.0, 2.0);
    net.output(y);
    net.output(z);
    let quantization = Quantization::None;
    let f16 = net.graph.push_value(Value::new(Datatype::F16, quantization, &[2, 4]));
    net.convert(x, f16);
    assert_eq!(check(net, "duplicates", 1, EXACT).nodes.len(), 7);
}
