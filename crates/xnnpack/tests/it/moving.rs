use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, f32, qint8, ramp};
use xnnpack::{
    Concatenate, ConstantPad, DepthToSpace2d, EvenSplit, ExpandDims, Flags, Reshape,
    ResizeBilinear2d, RuntimeOptions, Slice, SpaceToDepth2d, Transpose,
};

#[test]
fn constant_pad() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[2, 2], 1, 0.5), &[1i8, 2, 3, 4]);
    let output = fixture.output(qint8(&[2, 4], 1, 0.5));
    let (before, after) = (vec![0, 1], vec![0, 1]);
    let node = ConstantPad { before, after, value: 2.0, input, output };
    assert_eq!(fixture.node(node).run::<i8>(), [5, 1, 2, 5, 5, 3, 4, 5]);
}

#[test]
fn expand_dims_and_reshape() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let expanded = fixture.internal(any_f32());
    let output = fixture.output(any_f32());
    fixture.graph.define(ExpandDims { axes: vec![0, 2], input, output: expanded }).unwrap();
    assert_eq!(fixture.graph.shape(expanded).unwrap(), [1, 2, 1, 3]);
    let node = Reshape { dims: vec![3, 0], is_open: false, input: expanded, output };
    fixture.graph.define(node).unwrap();
    assert_eq!(fixture.graph.shape(output).unwrap(), [3, 2]);
    assert_close(&fixture.run::<f32>(), &ramp(6), 0.0);
}

#[test]
fn slice() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[3, 4]), &ramp(12));
    let output = fixture.output(any_f32());
    let node = Slice { offsets: vec![1, 2], sizes: vec![2, 2], input, output };
    assert_close(&fixture.node(node).run::<f32>(), &[6.0, 7.0, 10.0, 11.0], 0.0);
}

#[test]
fn slice_of_whole_dimensions() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let output = fixture.output(any_f32());
    let node = Slice { offsets: vec![0, 1], sizes: vec![0, 2], input, output };
    assert_close(&fixture.node(node).run::<f32>(), &[1.0, 2.0, 4.0, 5.0], 0.0);
}

#[test]
fn transpose() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let output = fixture.output(f32(&[3, 2]));
    let node = Transpose { perm: vec![1, 0], input, output };
    assert_close(&fixture.node(node).run::<f32>(), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0], 0.0);
}

#[test]
fn concatenate_2_to_5() {
    for count in 2u8..=5 {
        let mut fixture = Fixture::new();
        let inputs = (0..count)
            .map(|index| fixture.input(f32(&[2, 1]), &[f32::from(index), 10.0 + f32::from(index)]))
            .collect();
        let output = fixture.output(any_f32());
        let result = fixture.node(Concatenate { axis: -1, inputs, output }).run::<f32>();
        let row = |start: f32| (0..count).map(move |index| start + f32::from(index));
        assert_close(&result, &row(0.0).chain(row(10.0)).collect::<Vec<_>>(), 0.0);
    }
}

#[test]
fn even_split_2_to_4() {
    for count in 2..=4 {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[2, count]), &ramp(2 * count));
        let outputs = (0..count).map(|_| fixture.output(any_f32())).collect();
        let fixture = fixture.node(EvenSplit { axis: 1, input, outputs });
        let results = fixture.run_with::<f32>(&RuntimeOptions::default()).unwrap();
        let rows = ramp(2 * count);
        for (index, result) in results.iter().enumerate() {
            assert_close(result, &[rows[index], rows[index + count]], 0.0);
        }
    }
}

#[test]
fn depth_to_space_and_back() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 2, 4]), &ramp(8));
    let output = fixture.output(f32(&[1, 2, 4, 1]));
    let result = fixture.node(DepthToSpace2d { block_size: 2, input, output }).run::<f32>();
    assert_close(&result, &[0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0], 0.0);

    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 2, 4, 1]), &result);
    let output = fixture.output(f32(&[1, 1, 2, 4]));
    let node = SpaceToDepth2d { block_size: 2, input, output };
    assert_close(&fixture.node(node).run::<f32>(), &ramp(8), 0.0);
}

#[test]
fn resize_in_three_modes() {
    let cases = [
        (Flags::ALIGN_CORNERS, [0.0, 1.0, 2.0, 3.0]),
        (Flags::TENSORFLOW_LEGACY, [0.0, 1.5, 3.0, 3.0]),
        (Flags::NONE, [0.0, 0.75, 2.25, 3.0]),
    ];
    for (flags, expected) in cases {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, 1, 2, 1]), &[0.0f32, 3.0]);
        let output = fixture.output(any_f32());
        let node = ResizeBilinear2d { size: [1, 4], input, output, flags };
        assert_close(&fixture.node(node).run::<f32>(), &expected, 1e-6);
    }
}

#[test]
fn wrong_moves_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[3, 4]), &ramp(12));
    let image = fixture.input(f32(&[1, 2, 2, 2]), &ramp(8));
    let scalar = fixture.input(f32(&[]), &[1.0f32]);
    let bytes = fixture.input(qint8(&[3, 4], 0, 1.0), &[0i8; 12]);
    let deep = fixture.input(f32(&[1, 1, 1, 1, 1, 1]), &[0.0f32]);
    let output = fixture.internal(any_f32());
    let second = fixture.internal(any_f32());
    let third = fixture.internal(any_f32());
    let other_scale = fixture.internal(any_qint8(0, 2.0));

    let pad = |before: &[usize], after: &[usize]| ConstantPad {
        before: before.to_vec(),
        after: after.to_vec(),
        value: 0.0,
        input,
        output,
    };
    fixture.refusal(pad(&[1], &[1, 1]));
    fixture.refusal(pad(&[1, 1], &[1]));
    fixture.refusal(pad(&[usize::MAX, 0], &[0, 0]));
    fixture.refusal(pad(&[1 << 30, 1 << 30], &[0, 0]));

    fixture.refusal(ExpandDims { axes: vec![], input, output });
    fixture.refusal(ExpandDims { axes: vec![4], input, output });
    fixture.refusal(ExpandDims { axes: vec![1, 1], input, output });
    fixture.refusal(ExpandDims { axes: vec![0], input: deep, output });

    fixture.refusal(Reshape { dims: vec![5, 0], is_open: false, input, output });
    fixture.refusal(Reshape { dims: vec![0, 0], is_open: false, input, output });
    fixture.refusal(Reshape { dims: vec![3, 5], is_open: false, input, output });
    fixture.refusal(Reshape { dims: vec![usize::MAX, 2, 0], is_open: false, input, output });
    fixture.refusal(Reshape { dims: vec![1, 1, 1, 1, 1, 1, 12], is_open: false, input, output });

    let slice = |offsets: &[usize], sizes: &[usize]| Slice {
        offsets: offsets.to_vec(),
        sizes: sizes.to_vec(),
        input,
        output,
    };
    fixture.refusal(slice(&[3, 0], &[1, 1]));
    fixture.refusal(slice(&[0, 0], &[4, 1]));
    fixture.refusal(slice(&[1, 0], &[0, 1]));
    fixture.refusal(slice(&[usize::MAX, 0], &[2, 1]));
    fixture.refusal(slice(&[0], &[1]));
    fixture.refusal(slice(&[0; 100], &[1; 100]));
    fixture.refusal(Slice { offsets: vec![], sizes: vec![], input: scalar, output });

    fixture.refusal(Transpose { perm: vec![0], input, output });
    fixture.refusal(Transpose { perm: vec![0, 0], input, output });
    fixture.refusal(Transpose { perm: vec![0, 2], input, output });
    fixture.refusal(Transpose { perm: vec![1, 0], input: bytes, output: other_scale });

    fixture.refusal(Concatenate { axis: 0, inputs: vec![input], output });
    fixture.refusal(Concatenate { axis: 0, inputs: vec![input; 6], output });
    fixture.refusal(Concatenate { axis: 2, inputs: vec![input, input], output });
    fixture.refusal(Concatenate { axis: i32::MIN, inputs: vec![input, input], output });
    fixture.refusal(Concatenate { axis: 0, inputs: vec![input, image], output });

    let parts = vec![output, second, third];
    fixture.refusal(EvenSplit { axis: 1, input, outputs: parts.clone() });
    fixture.refusal(EvenSplit { axis: -3, input, outputs: parts.clone() });
    fixture.refusal(EvenSplit { axis: 0, input, outputs: vec![output] });
    fixture.refusal(EvenSplit { axis: 1, input, outputs: vec![output, output] });

    fixture.refusal(DepthToSpace2d { block_size: 0, input: image, output });
    fixture.refusal(DepthToSpace2d { block_size: 2, input: image, output });
    fixture.refusal(DepthToSpace2d { block_size: u32::MAX, input: image, output });
    fixture.refusal(SpaceToDepth2d { block_size: 3, input: image, output });
    fixture.refusal(SpaceToDepth2d { block_size: 1, input: image, output });

    let resize = |size, flags| ResizeBilinear2d { size, input: image, output, flags };
    fixture.refusal(resize([0, 4], Flags::NONE));
    fixture.refusal(resize([1 << 24, 4], Flags::NONE));
    fixture.refusal(resize([4, 4], Flags::ALIGN_CORNERS | Flags::TENSORFLOW_LEGACY));
    fixture.graph.define(EvenSplit { axis: 0, input, outputs: parts }).unwrap();
}
