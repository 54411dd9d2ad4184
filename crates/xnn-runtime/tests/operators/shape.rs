//! Operators that move elements, compared with results calculated by hand.

use xnn_format::{NodeOp, ValueId, flags};
use xnn_runtime::Result;

use crate::support::{Builder, run_one};

const SIX: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// Shape and elements of the result for a `[2, 3]` input of 1 to 6.
fn run(op: impl FnOnce(ValueId, ValueId) -> NodeOp) -> Result<(Vec<usize>, Vec<f32>)> {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[2, 3]);
    let y = builder.output_f32(&[]);
    builder.node(op(x, y));
    let mut session = builder.session()?;
    session.input_as_mut::<f32>(0)?.copy_from_slice(&SIX);
    session.run()?;
    Ok((session.outputs()[0].dims.clone(), session.output_as::<f32>(0)?.to_vec()))
}

#[test]
fn reshape_infers_one_dimension() {
    let reshape = |dims: &[usize]| {
        let new_shape = dims.to_vec();
        run(|input, output| NodeOp::StaticReshape { new_shape, input, output })
    };
    assert_eq!(reshape(&[3, 2]).unwrap(), (vec![3, 2], SIX.to_vec()));
    assert_eq!(reshape(&[1, 0, 2]).unwrap(), (vec![1, 3, 2], SIX.to_vec()));
    assert!(reshape(&[4, 2]).is_err());
    assert!(reshape(&[0, 0]).is_err());
}

#[test]
fn expand_dims() {
    let expand = |axes: &[usize]| {
        let new_axes = axes.to_vec();
        run(|input, output| NodeOp::StaticExpandDims { new_axes, input, output })
    };
    assert_eq!(expand(&[0, 2]).unwrap(), (vec![1, 2, 1, 3], SIX.to_vec()));
    assert!(expand(&[7]).is_err());
}

#[test]
fn transpose() {
    let transpose = |perm: &[usize]| {
        let perm = perm.to_vec();
        run(|input, output| NodeOp::StaticTranspose { perm, input, output })
    };
    assert_eq!(transpose(&[1, 0]).unwrap(), (vec![3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert!(transpose(&[1, 1]).is_err());
    assert!(transpose(&[0]).is_err());
}

#[test]
fn slice_of_a_size_or_of_all() {
    let slice = |offsets: &[usize], sizes: &[usize]| {
        let (offsets, sizes) = (offsets.to_vec(), sizes.to_vec());
        run(|input, output| NodeOp::StaticSlice { offsets, sizes, input, output })
    };
    assert_eq!(slice(&[1, 0], &[1, 2]).unwrap(), (vec![1, 2], vec![4.0, 5.0]));
    assert_eq!(slice(&[0, 1], &[0, 2]).unwrap(), (vec![2, 2], vec![2.0, 3.0, 5.0, 6.0]));
    // XNNPACK supports "to the end" only with an offset of 0.
    assert_eq!(slice(&[0, 1], &[0, 0]).unwrap_err().failing_node(), Some(0));
    assert!(slice(&[1, 0], &[2, 1]).is_err());
    assert!(slice(&[2, 0], &[0, 0]).is_err());
}

/// Along dimensions that are not sliced.
#[test]
fn slices_follow_a_batch() {
    let mut builder = Builder::new();
    let input = builder.input_f32(&[2, 3]);
    let output = builder.output_f32(&[2, 2]);
    let (offsets, sizes) = (vec![0, 1], vec![0, 2]);
    builder.node(NodeOp::StaticSlice { offsets, sizes, input, output });
    let mut session = builder.session().unwrap();
    for (batch, expected) in [(1, &[2.0f32, 3.0][..]), (2, &[2.0, 3.0, 5.0, 6.0])] {
        session.resize_inputs([(0, &[batch, 3][..])]).unwrap();
        session.input_as_mut::<f32>(0).unwrap().copy_from_slice(&SIX[..3 * batch]);
        session.run().unwrap();
        assert_eq!(session.outputs()[0].dims, [batch, 2]);
        assert_eq!(session.output_as::<f32>(0).unwrap(), expected);
    }
    for columns in [2, 4] {
        let error = session.resize_inputs([(0, &[2, columns][..])]).unwrap_err().to_string();
        assert!(
            error.contains("is sliced") || error.contains("2 elements from offset 1"),
            "{error}"
        );
    }
    assert_eq!(session.inputs()[0].dims, [2, 3]);
}

/// If the inferred dimension is the one that changes.
#[test]
fn reshapes_follow_a_batch() {
    let with_flags = |flags: u32, new_shape: &[usize], resized: &[[usize; 3]]| {
        let mut builder = Builder::new();
        let (input, output) = (builder.input_f32(&[2, 3, 4]), builder.output_f32(&[]));
        builder.node(NodeOp::StaticReshape { new_shape: new_shape.to_vec(), input, output });
        builder.graph.nodes[0].flags = flags;
        let mut session = builder.session().unwrap();
        let resize = |dims: &[usize; 3]| {
            session.resize_inputs([(0, &dims[..])]).ok()?;
            session.run().unwrap();
            Some(session.outputs()[0].dims.clone())
        };
        resized.iter().map(resize).collect::<Vec<Option<Vec<usize>>>>()
    };
    let shapes = |new_shape: &[usize], resized: &[[usize; 3]]| with_flags(0, new_shape, resized);
    let (batch, rows, columns) = ([5, 3, 4], [2, 6, 4], [2, 3, 8]);
    let both = [4, 6, 4];
    let all = [batch, rows, columns, both];
    assert_eq!(shapes(&[0, 12], &all), [Some(vec![5, 12]), None, None, None]);
    assert_eq!(shapes(&[0, 1, 12], &all), [Some(vec![5, 1, 12]), None, None, None]);
    assert_eq!(
        shapes(&[0, 4], &all),
        [Some(vec![15, 4]), Some(vec![12, 4]), None, Some(vec![24, 4])]
    );
    assert_eq!(shapes(&[2, 0], &all)[1..], [Some(vec![2, 24]), Some(vec![2, 24]), None]);
    assert_eq!(shapes(&[0, 3, 2, 2], &all), [Some(vec![5, 3, 2, 2]), None, None, None]);
    assert_eq!(shapes(&[6, 4], &all), [const { None }; 4]);
    let open = |new_shape: &[usize]| with_flags(flags::OPEN_DIMENSION, new_shape, &all);
    assert_eq!(open(&[0, 1, 12]), [5, 4, 4, 8].map(|rows| Some(vec![rows, 1, 12])));
    assert_eq!(
        open(&[1, 0, 8]),
        [None, Some(6), Some(6), Some(12)].map(|rows| Some(vec![1, rows?, 8]))
    );
    assert_eq!(open(&[6, 4]), [const { None }; 4]);
}

#[test]
fn constant_pad() {
    let pad = |before: &[usize], after: &[usize]| {
        let (pre_paddings, post_paddings) = (before.to_vec(), after.to_vec());
        run(|input, output| NodeOp::StaticConstantPad {
            pre_paddings,
            post_paddings,
            padding_value: 9.0,
            input,
            output,
        })
    };
    assert_eq!(
        pad(&[1, 0], &[0, 1]).unwrap(),
        (vec![3, 4], vec![9.0, 9.0, 9.0, 9.0, 1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0, 9.0])
    );
    assert!(pad(&[1], &[0, 1]).is_err());
}

#[test]
fn concatenate_two_to_five() {
    let concatenate = |count: usize, axis: u32| {
        let mut builder = Builder::new();
        let inputs = (0..count).map(|_| builder.input_f32(&[2, 1])).collect();
        let output = builder.output_f32(&[]);
        builder.node(NodeOp::Concatenate { axis, inputs, output });
        let elements: Vec<[f32; 2]> = (0..count).map(|at| [at as f32, 10.0 + at as f32]).collect();
        builder.run_f32(&elements.iter().map(<[f32; 2]>::as_slice).collect::<Vec<_>>())
    };
    assert_eq!(concatenate(2, 0).unwrap(), [0.0, 10.0, 1.0, 11.0]);
    assert_eq!(concatenate(3, 1).unwrap(), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
    assert_eq!(concatenate(5, 0).unwrap().len(), 10);
    assert!(concatenate(6, 0).is_err());
    assert!(concatenate(2, 2).is_err());
    assert!(concatenate(2, u32::MAX).is_err());
}

#[test]
fn even_split() {
    let split = |count: usize| {
        let mut builder = Builder::new();
        let input = builder.input_f32(&[1, 6]);
        let outputs: Vec<ValueId> = (0..count).map(|_| builder.output_f32(&[])).collect();
        builder.node(NodeOp::EvenSplit { axis: 1, input, outputs });
        let mut session = builder.session()?;
        session.input_as_mut::<f32>(0)?.copy_from_slice(&SIX);
        session.run()?;
        (0..count).map(|at| Ok(session.output_as::<f32>(at)?.to_vec())).collect::<Result<Vec<_>>>()
    };
    assert_eq!(split(2).unwrap(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(split(3).unwrap(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    assert!(split(4).is_err());
}

#[test]
fn depth_to_space_and_back() {
    let channels = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let space = [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0];
    let to_space = |input, output| NodeOp::DepthToSpace2d { block_size: 2, input, output };
    let got = run_one((&[1, 1, 2, 4], &channels), &[1, 2, 4, 1], to_space, 0).unwrap();
    assert_eq!(got, space);
    let to_depth = |input, output| NodeOp::SpaceToDepth2d { block_size: 2, input, output };
    let got = run_one((&[1, 2, 4, 1], &space), &[1, 1, 2, 4], to_depth, 0).unwrap();
    assert_eq!(got, channels);
    assert!(run_one((&[1, 1, 2, 3], &SIX), &[], to_space, 0).is_err());
}
