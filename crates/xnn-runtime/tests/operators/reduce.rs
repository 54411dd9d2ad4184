//! Reductions, compared with results calculated by hand.

use xnn_format::{NodeOp, ReduceOp, flags};
use xnn_runtime::Result;

use crate::support::{Builder, range};

const INPUT: [f32; 12] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];

fn reduce(op: ReduceOp, axes: &[usize], flags: u32) -> Result<(Vec<usize>, Vec<f32>)> {
    let mut builder = Builder::new();
    let input = builder.input_f32(&[2, 3, 2]);
    let output = builder.output_f32(&[]);
    builder.node(NodeOp::StaticReduce { op, axes: axes.to_vec(), input, output }).flags = flags;
    let mut session = builder.session()?;
    session.input_as_mut::<f32>(0)?.copy_from_slice(&INPUT);
    session.run()?;
    Ok((session.outputs()[0].dims.clone(), session.output_as::<f32>(0)?.to_vec()))
}

#[test]
fn sums_and_means_over_any_axes() {
    assert_eq!(reduce(ReduceOp::Sum, &[1], 0).unwrap(), (vec![2, 2], vec![9.0, 12.0, 27.0, 30.0]));
    assert_eq!(
        reduce(ReduceOp::Mean, &[0, 2], flags::KEEP_DIMS).unwrap(),
        (vec![1, 3, 1], vec![4.5, 6.5, 8.5])
    );
}

#[test]
fn axes_must_exist() {
    assert!(reduce(ReduceOp::Sum, &[2], 0).is_ok());
    assert!(reduce(ReduceOp::Sum, &[3], 0).is_err());
    assert!(reduce(ReduceOp::Sum, &[usize::MAX], 0).is_err());
}

/// A mean that stands for a pooling accepts another batch, but no image of another size.
#[test]
fn global_mean_of_one_size_or_of_all() {
    for (flags, is_fixed) in
        [(flags::KEEP_DIMS, false), (flags::KEEP_DIMS | flags::FIXED_SIZE, true)]
    {
        let mut builder = Builder::new();
        let input = builder.input_f32(&[1, 2, 3, 2]);
        let output = builder.output_f32(&[]);
        builder.node(NodeOp::GlobalAveragePooling2d { input, output }).flags = flags;
        let mut session = builder.session().unwrap();
        session.resize_inputs([(0, &[4, 2, 3, 2][..])]).unwrap();
        session.run().unwrap();
        assert_eq!(session.outputs()[0].dims, [4, 1, 1, 2]);
        for dims in [[4, 4, 3, 2], [4, 2, 6, 2], [4, 3, 2, 2]] {
            assert_eq!(session.resize_inputs([(0, &dims[..])]).is_err(), is_fixed, "{dims:?}");
        }
    }
}

#[test]
fn global_mean_with_and_without_its_dimensions() {
    for (flags, dims) in [(0, vec![1, 2]), (flags::KEEP_DIMS, vec![1, 1, 1, 2])] {
        let mut builder = Builder::new();
        let input = builder.input_f32(&[1, 2, 2, 2]);
        let output = builder.output_f32(&[]);
        let node = builder.node(NodeOp::GlobalAveragePooling2d { input, output });
        node.flags = flags;
        node.output_range = range(f32::NEG_INFINITY, f32::INFINITY);
        let mut session = builder.session().unwrap();
        assert_eq!(session.outputs()[0].dims, dims);
        session.input_as_mut::<f32>(0).unwrap().copy_from_slice(&INPUT[..8]);
        session.run().unwrap();
        assert_eq!(session.output_as::<f32>(0).unwrap(), [4.0, 5.0]);
    }
}
