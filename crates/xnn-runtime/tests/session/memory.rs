//! Memory of inputs and outputs.

use super::*;

#[test]
fn tensors_have_names_shapes_and_aligned_memory() {
    let mut session = session();
    assert_eq!((session.input_index("rows"), session.output_index("z")), (Some(0), Some(1)));
    assert_eq!((session.input_index("z"), session.input_index("")), (None, None));
    assert_eq!(session.inputs()[0].dims, [1, 2]);
    assert_eq!(session.inputs()[0].byte_size(), 8);
    assert_eq!(session.outputs()[1].dims, [1, 1]);
    assert_eq!(session.input_mut(0).len(), 8);
    assert_eq!(session.input_mut(0).as_ptr().addr() % 64, 0);
    assert!(session.input_mut(1).is_empty());
    assert!(session.output(2).is_empty());
}

#[test]
fn elements_are_viewed_only_as_their_type() {
    let mut session = session();
    assert!(session.input_as_mut::<f32>(0).is_ok());
    let error = session.input_as_mut::<i8>(0).unwrap_err();
    assert_eq!(error.kind(), RuntimeErrorKind::InvalidArgument);
    assert!(session.output_as::<f32>(2).is_err());
}

#[test]
fn callers_may_bring_their_own_memory() {
    let mut session = session();
    let [rows, z] = [session.inputs()[0].id, session.outputs()[1].id];
    let input = AlignedBuffer::of(&[3f32, 4.0]);
    let mut output = AlignedBuffer::new(4);
    session
        .run_with([Binding::Input(rows, input.input()), Binding::Output(z, output.output())])
        .unwrap();
    assert_eq!(output.elements::<f32>().unwrap(), [43.5]);
    // The other output is still in the session's memory.
    assert_eq!(session.output_as::<f32>(0).unwrap(), [43.5]);

    // Back in the session's own memory.
    set(&mut session, &[0.0, 0.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(1).unwrap(), [0.5]);
}

#[test]
fn callers_may_bring_all_memory_without_a_copy_of_bindings() {
    let mut session = session();
    let [rows, y, z] = [session.inputs()[0].id, session.outputs()[0].id, session.outputs()[1].id];
    let input = AlignedBuffer::of(&[3f32, 4.0]);
    let [mut first, mut second] = [0, 1].map(|_| AlignedBuffer::new(4));
    let mut bindings = [
        Binding::Output(z, second.output()),
        Binding::Input(rows, input.input()),
        Binding::Output(y, first.output()),
    ];
    let missing = session.run_bound(&mut bindings[..2]).unwrap_err();
    assert!(missing.to_string().contains("is not bound"), "{missing}");
    session.run_bound(&mut bindings).unwrap();
    assert_eq!(first.elements::<f32>().unwrap(), [43.5]);
    assert_eq!(second.elements::<f32>().unwrap(), [43.5]);
}

#[test]
fn memory_that_does_not_match_is_refused() {
    let mut session = session();
    let [rows, z] = [session.inputs()[0].id, session.outputs()[1].id];
    let mut run = |bindings: Vec<Binding<'_>>| session.run_with(bindings).map_err(|e| e.kind());
    let buffer = AlignedBuffer::of(&[3f32, 4.0]);
    assert_eq!(run(vec![Binding::Input(rows, buffer.input())]), Ok(()));
    let large = AlignedBuffer::new(12);
    assert!(run(vec![Binding::Input(rows, large.input())]).is_err());
    let mut small = AlignedBuffer::new(3);
    assert!(run(vec![Binding::Output(z, small.output())]).is_err());
    // Eight bytes without padding.
    let bare = AlignedBuffer::new(64);
    let end = PaddedSlice::within(bare.as_slice(), 56..64).unwrap();
    assert!(run(vec![Binding::Input(rows, end)]).is_err());
    // One tensor bound twice, and an input bound as an output.
    assert!(
        run(vec![Binding::Input(rows, buffer.input()), Binding::Input(rows, buffer.input())])
            .is_err()
    );
    let mut output = AlignedBuffer::new(8);
    assert!(run(vec![Binding::Output(rows, output.output())]).is_err());
}
