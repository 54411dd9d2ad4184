//! Shapes that change.

use super::*;

#[test]
fn values_have_a_limit_in_all_shapes() {
    let program = |max_value_bytes| {
        let mut options = ProgramOptions::default();
        options.limits.max_value_bytes = max_value_bytes;
        Program::new(graph(), &options)
    };
    assert!(program(7).unwrap_err().to_string().contains("above the limit of 7"));
    let mut session = Session::new(&program(64).unwrap(), &SessionOptions::default()).unwrap();
    session.resize_inputs([(0, &[8, 2][..])]).unwrap();
    let error = session.resize_inputs([(0, &[9, 2][..])]).unwrap_err().to_string();
    assert!(error.contains("is 72, above the limit of 64"), "{error}");
    assert_eq!(session.inputs()[0].dims, [8, 2]);
    session.resize(0, &[3, 2]).unwrap();
    session.reshape().unwrap();
    session.run().unwrap();
}

#[test]
fn the_batch_may_change() {
    let mut session = session();
    for rows in [1usize, 7, 3, 16] {
        session.resize(0, &[rows, 2]).unwrap();
        if session.inputs()[0].dims != [rows, 2] {
            assert!(session.run().is_err(), "a reshape is due");
        }
        session.reshape().unwrap();
        assert_eq!(session.outputs()[1].dims, [rows, 1]);
        let input: Vec<f32> = (0..2 * rows).map(|at| at as f32).collect();
        set(&mut session, &input);
        session.run().unwrap();
        let expected: Vec<f32> = input.chunks(2).map(|row| row[0] + 10.0 * row[1] + 0.5).collect();
        assert_eq!(session.output_as::<f32>(1).unwrap(), expected);
    }
}

#[test]
fn a_refused_shape_keeps_the_former_one() {
    let mut session = session();
    assert!(session.resize(1, &[1, 2]).is_err());
    session.resize(0, &[1, 3]).unwrap();
    assert_eq!(session.reshape().unwrap_err().kind(), RuntimeErrorKind::InvalidArgument);
    assert_eq!(session.inputs()[0].dims, [1, 2]);
    set(&mut session, &[1.0, 1.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(0).unwrap(), [11.5]);
}

#[test]
fn the_batch_may_become_0_and_grow_again() {
    let mut session = session();
    for rows in [0, 3, 0, 0, 1] {
        session.resize_inputs([(0, &[rows, 2][..])]).unwrap();
        assert_eq!(session.is_empty(), rows == 0);
        assert_eq!(session.inputs()[0].dims, [rows, 2]);
        assert_eq!([0, 1].map(|at| session.outputs()[at].dims.clone()), [[rows, 1], [rows, 1]]);
        set(&mut session, &vec![1.0; 2 * rows]);
        session.run().unwrap();
        assert_eq!(session.output_as::<f32>(1).unwrap(), vec![11.5; rows]);
        // Raw memory of other shapes is refused.
        // SAFETY: no memory is given, so that the call fails.
        let raw = unsafe { session.raw().run(&[]) }.unwrap_err().to_string();
        assert_eq!(raw.contains("must be reshaped"), rows == 0, "{raw}");
    }
}

#[test]
fn refused_empty_shapes_keep_the_former_ones() {
    let mut session = session();
    for before in [0, 4] {
        session.resize_inputs([(0, &[before, 2][..])]).unwrap();
        for dims in [&[0, 3][..], &[2, 0], &[0], &[3, 3]] {
            let refused = session.resize_inputs([(0, dims)]);
            assert_eq!(refused.unwrap_err().kind(), RuntimeErrorKind::InvalidArgument, "{dims:?}");
            assert_eq!(session.inputs()[0].dims, [before, 2]);
            assert_eq!(session.outputs()[0].dims, [before, 1]);
            session.run().unwrap();
        }
    }
}

/// Sums over empty tensors are left to reference kernels.
#[test]
fn empty_inputs_with_outputs_that_are_not_empty_are_refused() {
    let mut graph = Graph::default();
    let (input, output) = (graph.push_value(f32s(&[2, 3])), graph.push_value(f32s(&[3])));
    push(&mut graph, NodeOp::StaticReduce { op: ReduceOp::Sum, axes: vec![0], input, output });
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
    let refused = session.resize_inputs([(0, &[0, 3][..])]).unwrap_err().to_string();
    assert!(refused.contains("an output with dimensions [3] is not"), "{refused}");
    session.resize_inputs([(0, &[2, 0][..])]).unwrap();
    assert_eq!(session.outputs()[0].dims, [0]);
}
