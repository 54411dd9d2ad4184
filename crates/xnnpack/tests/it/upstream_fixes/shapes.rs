//! Bugs that lead to accesses out of bounds.

use super::{OTHER, add, convert, dense, small};
use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, deconv, f32, qint8, ramp};
use crate::runtime::{X, Y};
use xnn_testing::Random;
use xnnpack::{
    AlignedBuffer, BatchMatMul, Binding, Concatenate, Datatype, Deconv2d, DepthToSpace2d,
    EvenSplit, ExpandDims, Flags, FullyConnected, MaxPool2d, OutputRange, Padding2d, Quantization,
    ReduceOp, Reshape, ResizeBilinear2d, Role, Runtime, RuntimeOptions, Slice, StaticReduce,
    Subgraph, TensorSpec, Unary, UnaryOp, ValueId,
};

/// XNNPACK computes a sum in place of its first operand, even when that becomes one that is
/// broadcast (b12ed13b4e).
#[test]
fn sums_in_place_are_planned_again_when_an_operand_is_broadcast() {
    let mut graph = Subgraph::new().unwrap();
    let [a, b] =
        [X, OTHER].map(|id| graph.define_tensor(f32(&[4, 4]).role(Role::Input(id))).unwrap());
    let [first, second, sum] = [(); 3].map(|()| graph.define_tensor(any_f32()).unwrap());
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: a, output: first }).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input: b, output: second }).unwrap();
    graph.define(add(first, second, sum)).unwrap();
    graph.define(Unary { op: UnaryOp::Abs, input: sum, output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    for shapes in [[[4, 4], [4, 4]], [[1, 4], [4, 4]], [[4, 4], [4, 1]], [[4, 1], [1, 4]]] {
        runtime.reshape_external(X, &shapes[0]).unwrap();
        runtime.reshape_external(OTHER, &shapes[1]).unwrap();
        runtime.reshape().unwrap();
        let data = shapes.map(|dims| ramp(dims.iter().product()));
        let [x, other] = data.each_ref().map(|data| AlignedBuffer::of(data));
        let mut result = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
        runtime
            .run(&mut [
                Binding::Input(X, x.input()),
                Binding::Input(OTHER, other.input()),
                Binding::Output(Y, result.output()),
            ])
            .unwrap();
        let element = |index: usize, operand: usize| {
            let [rows, columns] = shapes[operand];
            data[operand][index / 4 % rows * columns + index % 4 % columns]
        };
        let expected: Vec<f32> = (0..16).map(|at| element(at, 0) + element(at, 1)).collect();
        assert_close(result.elements::<f32>().unwrap(), &expected, 0.0);
    }
}

/// Largest elements of dilated windows along one dimension; `None` if a window has no element.
fn largest(input: &[f32], window: [usize; 5]) -> Option<Vec<f32>> {
    let [kernel, dilation, stride, before, after] = window;
    let reach = (kernel - 1) * dilation + 1;
    let count = (input.len() + before + after - reach) / stride + 1;
    let at = |start: usize| {
        let elements = (0..kernel).map(|element| (start + element * dilation).checked_sub(before));
        elements.flatten().filter_map(|at| input.get(at)).copied().reduce(f32::max)
    };
    (0..count).map(|output| at(output * stride)).collect()
}

/// XNNPACK substitutes a pixel for one in the padding without checking that it is inside
/// (fb94622507, 53cffb59d0).
#[test]
fn dilated_windows_read_no_pixels_beyond_the_image() {
    let (mut computed, mut refused) = (0, 0);
    let mut random = Random::new(37);
    for _ in 0..4000 {
        let [kernel, dilation, stride] = [3, 3, 2].map(|bound| 1 + random.below(bound));
        let [before, after] = [(); 2].map(|()| random.below(5));
        let length = 1 + random.below(6);
        // XNNPACK does not support strides larger than the kernel.
        if stride > kernel || length + before + after < (kernel - 1) * dilation + 1 {
            continue;
        }
        let data = small(&mut random, length);
        let expected = largest(&data, [kernel, dilation, stride, before, after]);
        let is_row = random.below(2) == 1;
        let along = |size: usize, other: u32| {
            let size = u32::try_from(size).unwrap();
            if is_row { [other, size] } else { [size, other] }
        };
        let [[top, left], [bottom, right]] = [along(before, 0), along(after, 0)];
        // Windows of two pixels along the other dimension, the second of which is the larger one.
        let dims = if is_row { [1, 2, length, 1] } else { [1, length, 2, 1] };
        let data: Vec<f32> = if is_row {
            data.iter().map(|value| value - 9.0).chain(data.iter().copied()).collect()
        } else {
            data.iter().flat_map(|&value| [value - 9.0, value]).collect()
        };
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&dims), &data);
        let output = fixture.output(any_f32());
        let node = MaxPool2d {
            padding: Padding2d { top, right, bottom, left },
            pooling: along(kernel, 2),
            stride: along(stride, 1),
            dilation: along(dilation, 1),
            output_range: OutputRange::default(),
            input,
            output,
            flags: Flags::NONE,
        };
        if fixture.graph.define(node).is_err() {
            refused += 1;
            // Models have padding of less than a dilation.
            assert!(expected.is_none() || before.max(after) >= dilation);
            continue;
        }
        // Without dilation the pixel at the border is used for windows without elements.
        let Some(expected) = expected.filter(|_| dilation > 1) else { continue };
        computed += 1;
        assert_close(&fixture.run::<f32>(), &expected, 0.0);
    }
    assert_eq!((computed, refused), (777, 1206), "computed and refused");
}

/// XNNPACK skips a split whose first part is not read (8c7d7e7a67).
#[test]
fn splits_with_unused_parts_are_computed() {
    for unread in 0..3 {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[2, 3]), &ramp(6));
        let part = |fixture: &mut Fixture, at: usize| match at == unread {
            true => fixture.internal(any_f32()),
            false => fixture.output(any_f32()),
        };
        let outputs = (0..3).map(|at| part(&mut fixture, at)).collect();
        let results = fixture
            .node(EvenSplit { axis: 1, input, outputs })
            .run_with::<f32>(&RuntimeOptions::default())
            .unwrap();
        let parts = [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]];
        let read = parts.iter().enumerate().filter(|(at, _)| *at != unread);
        for (result, (_, part)) in results.iter().zip(read) {
            assert_close(result, part, 0.0);
        }
    }
}

/// XNNPACK writes out of bounds for shapes that differ in other dimensions (6062dc0841).
#[test]
fn concatenated_shapes_differ_only_in_the_axis() {
    let mut graph = Subgraph::new().unwrap();
    let inputs =
        [X, OTHER].map(|id| graph.define_tensor(f32(&[2, 3]).role(Role::Input(id))).unwrap());
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    graph.define(Concatenate { axis: 0, inputs: inputs.to_vec(), output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    for (dims, fits) in
        [(&[5, 3][..], true), (&[2, 4][..], false), (&[2, 3, 1][..], false), (&[1, 3][..], true)]
    {
        runtime.reshape_external(OTHER, dims).unwrap();
        assert_eq!(runtime.reshape().is_ok(), fits, "{dims:?}");
    }
}

/// XNNPACK writes out of bounds for an input without dimensions (1ec2e64aae).
#[test]
fn fully_connected_layers_have_dimensions() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[]), &[2.0f32]);
    let filter = fixture.constant(f32(&[3, 1]), &[1.0f32, 2.0, 3.0]);
    let output = fixture.output(any_f32());
    let node = dense(input, filter, output);
    fixture.refusal(node.clone());
    let node = FullyConnected { flags: Flags::RESHAPE_2D, ..node };
    assert_close(&fixture.node(node).run::<f32>(), &[2.0, 4.0, 6.0], 0.0);
}

/// XNNPACK copies any number of dimensions to arrays of six (28e1a13d49, 3d7a7d6da1).
#[test]
fn tensors_have_at_most_six_dimensions() {
    let mut fixture = Fixture::new();
    let six = fixture.input(f32(&[1, 1, 1, 1, 2, 2]), &ramp(4));
    let output = fixture.output(any_f32());
    let input = six;
    fixture.refusal(Slice { offsets: vec![0; 7], sizes: vec![1; 7], input, output });
    fixture.refusal(Reshape { dims: vec![1, 1, 1, 1, 1, 2, 2], is_open: false, input, output });
    fixture.refusal(ExpandDims { axes: vec![0], input, output });
    fixture.graph.define_tensor(f32(&[1; 7]).role(Role::Input(OTHER))).unwrap_err();
    let node = BatchMatMul { a: six, b: six, output, flags: Flags::NONE };
    assert_close(&fixture.node(node).run::<f32>(), &[2.0, 3.0, 6.0, 11.0], 0.0);
}

/// XNNPACK counts a dimension that does not exist as reduced (c89e13a22e), and counts elements in
/// 32 bits (9175dd9f28).
#[test]
fn reduced_dimensions_exist_once_and_are_not_too_long() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let output = fixture.output(any_f32());
    let sum = |axes: &[i64], input: ValueId| {
        let (op, axes) = (ReduceOp::Sum, axes.to_vec());
        StaticReduce { op, axes, input, output, flags: Flags::NONE }
    };
    for axes in [&[2][..], &[-3], &[0, 2], &[1, -1], &[0; 7], &[]] {
        fixture.refusal(sum(axes, input));
    }
    let long = f32(&[1 << 31, 1]).role(Role::Input(OTHER));
    let long = fixture.graph.define_tensor(long).unwrap();
    fixture.refusal(sum(&[0], long));
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let output = fixture.output(any_f32());
    let node =
        StaticReduce { op: ReduceOp::Sum, axes: vec![-2], input, output, flags: Flags::NONE };
    assert_close(&fixture.node(node).run::<f32>(), &[3.0, 5.0, 7.0], 0.0);
}

/// XNNPACK counts channels of transposed convolutions in 32 bits (136be7b005).
#[test]
fn channels_of_transposed_convolutions_are_counted() {
    // No 32-bit process has as many.
    let Ok(group_output_channels) = usize::try_from(1u64 << 32) else { return };
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 1, 1]), &[1.0f32]);
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &ramp(4));
    let output = fixture.output(any_f32());
    let node = deconv(input, filter, None, output);
    let error = fixture.refusal(Deconv2d { group_output_channels, ..node.clone() });
    assert!(error.reason().contains("channels"), "{error}");
    assert_close(&fixture.node(node).run::<f32>(), &ramp(4), 0.0);
}

/// XNNPACK divides by the pixels of a block, which it counts in 32 bits (2b6f6dfa9a).
#[test]
fn pixels_of_blocks_are_counted() {
    let Ok(channels) = usize::try_from(1u64 << 32) else { return };
    let mut fixture = Fixture::new();
    let scalars = |dims: &[usize]| qint8(dims, 0, 1.0).role(Role::Input(OTHER));
    let input = fixture.graph.define_tensor(scalars(&[1, 1, 1, channels])).unwrap();
    let output = fixture.internal(any_qint8(0, 1.0));
    fixture.refusal(DepthToSpace2d { block_size: 1 << 16, input, output });
    fixture.graph.define(DepthToSpace2d { block_size: 1 << 15, input, output }).unwrap();
}

/// XNNPACK rounds positions up to one outside the image if sides are long (14663846eb).
#[test]
fn sides_of_resized_images_are_limited() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 894, 1, 1]), &ramp(894));
    let output = fixture.internal(any_f32());
    let flags = Flags::TENSORFLOW_LEGACY;
    // The last row would be row 894.
    fixture.refusal(ResizeBilinear2d { size: [13_492_360, 1], input, output, flags });
    fixture.graph.define(ResizeBilinear2d { size: [1 << 22, 1], input, output, flags }).unwrap();
}

/// XNNPACK reads transposed blockwise weights with the wrong row stride (91c4f32d52).
#[test]
fn transposed_weights_in_blocks_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 64]), &ramp(64));
    let rows = Quantization::Dynamic { nonbatch_dims: 1 };
    let rows = TensorSpec::inferred(Datatype::Qdint8).quantized(rows);
    let rows = fixture.internal(rows);
    let mut fixture = fixture.node(convert(input, rows));
    let scales = vec![0x3f80; 128].into();
    let blocks = Quantization::Blockwise { zero_point: 8, axis: 0, block_size: 32, scales };
    let filter = TensorSpec::new(Datatype::Qbint4, &[64, 64]).quantized(blocks);
    let filter = fixture.constant(filter, &[0x99u8; 2048]);
    let output = fixture.output(any_f32());
    let node = dense(rows, filter, output);
    let flags = Flags::TRANSPOSE_WEIGHTS;
    fixture.refusal(FullyConnected { flags, ..node.clone() });
    assert_close(&fixture.node(node).run::<f32>(), &[2016.0; 64], 10.0);
}
