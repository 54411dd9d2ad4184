use crate::fixture::{any_f32, assert_close, f32, ramp};
use xnnpack::{
    AlignedBuffer, ExternalId, PaddedSlice, Role, Runtime, RuntimeOptions, Subgraph, Unary, UnaryOp,
};

#[test]
fn raw_pointers() {
    let (x, y) = (ExternalId(0), ExternalId(1));
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[4]).role(Role::Input(x))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(y))).unwrap();
    graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
    let mut runtime = Runtime::new(graph, &RuntimeOptions::default()).unwrap();
    runtime.reshape().unwrap();

    let mut input = AlignedBuffer::of(&ramp(4));
    let mut output = AlignedBuffer::new(16);
    let input_pointer = input.as_mut_slice().as_mut_ptr().cast();
    let output_pointer = output.as_mut_slice().as_mut_ptr().cast();
    let all = [(x, input_pointer), (y, output_pointer)];
    // SAFETY: the buffers have the right size and padding; a call without one of them is refused.
    unsafe {
        assert!(runtime.run_raw(&all[..1]).is_err());
        assert!(runtime.run_raw(&[(ExternalId(5), input_pointer)]).is_err());
        runtime.run_raw(&all).unwrap();
    }
    assert_close(output.elements().unwrap(), &[0.0, -1.0, -2.0, -3.0], 0.0);
}

#[test]
fn padding_guaranteed_by_the_caller() {
    let buffer = AlignedBuffer::new(100);
    // SAFETY: the buffer is longer than the slice by more than that.
    let slice = unsafe { PaddedSlice::new_unchecked(&buffer.as_slice()[..10], 16) };
    assert_eq!(slice.len(), 10);
    assert!(!slice.is_empty());
}
