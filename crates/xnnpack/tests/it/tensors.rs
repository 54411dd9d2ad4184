use std::sync::Arc;

use crate::fixture::{Fixture, any_f32, f32, qint8};
use xnnpack::{
    AlignedBuffer, Binary, BinaryOp, Copy, Datatype, ExternalId, MAX_TENSOR_BYTES, OutputRange,
    Quantization, Role, Runtime, RuntimeOptions, StaticData, Status, Subgraph, TensorSpec, Unary,
    UnaryOp,
};

fn refused(spec: TensorSpec) -> String {
    Subgraph::new().unwrap().define_tensor(spec).expect_err("refused").to_string()
}

#[test]
fn impossible_shapes_are_refused() {
    let input = |dims: &[usize]| f32(dims).role(Role::Input(ExternalId(0)));
    assert!(refused(input(&[2, 0])).contains("dimension of 0"));
    assert!(refused(input(&[1; 7])).contains("limit of 6"));
    assert!(refused(input(&[usize::MAX, 2])).contains("too many elements"));
    assert!(refused(input(&[MAX_TENSOR_BYTES / 4 + 1])).contains("too large"));
    assert!(
        refused(TensorSpec::inferred(Datatype::F32).role(Role::Persistent))
            .contains("a shape is required")
    );
    let mut graph = Subgraph::new().unwrap();
    graph.define_tensor(input(&[MAX_TENSOR_BYTES / 4])).unwrap();
}

#[test]
fn data_must_have_the_length_of_the_shape() {
    let data = |bytes: usize| Role::Static(StaticData::from(AlignedBuffer::new(bytes)));
    assert!(refused(f32(&[3]).role(data(11))).contains("expected 12 bytes of data, found 11"));
    assert!(refused(f32(&[3]).role(data(13))).contains("found 13"));
    Subgraph::new().unwrap().define_tensor(f32(&[3]).role(data(12))).unwrap();
}

#[test]
fn quantization_must_fit_the_datatype() {
    let tensor = |zero_point, scale| qint8(&[2], zero_point, scale);
    assert!(refused(tensor(128, 1.0)).contains("zero point 128"));
    assert!(refused(tensor(0, 0.0)).contains("scale 0"));
    assert!(refused(tensor(0, -1.0)).contains("scale -1"));
    assert!(refused(tensor(0, f32::NAN)).contains("scale NaN"));
    assert!(refused(tensor(0, f32::MIN_POSITIVE / 2.0)).contains("not positive"));
    assert!(refused(TensorSpec::new(Datatype::Qint8, &[2])).contains("this kind of quantization"));
    let per_tensor = Quantization::PerTensor { zero_point: 1, scale: 1.0 };
    assert!(refused(f32(&[2]).quantized(per_tensor.clone())).contains("this kind of quantization"));
    refused(TensorSpec::new(Datatype::Qint32, &[2]).quantized(per_tensor));
}

#[test]
fn scales_must_be_as_many_as_channels() {
    let channels = |axis, scales: &[f32]| {
        let quantization = Quantization::PerChannel { zero_point: 0, axis, scales: scales.into() };
        TensorSpec::new(Datatype::Qcint8, &[2, 3]).quantized(quantization)
    };
    assert!(refused(channels(0, &[1.0; 3])).contains("3 scales for 2 channels"));
    assert!(refused(channels(2, &[1.0; 3])).contains("quantized dimension 2"));
    assert!(refused(channels(1, &[1.0, 1.0, f32::INFINITY])).contains("inf"));
    Subgraph::new().unwrap().define_tensor(channels(1, &[1.0; 3])).unwrap();
}

#[test]
fn blocks_must_divide_rows() {
    let blocks = |dims: &[usize], axis, block_size, count: usize| {
        let scales = vec![0x3f80; count].into();
        let quantization = Quantization::Blockwise { zero_point: 8, axis, block_size, scales };
        TensorSpec::new(Datatype::Qbint4, dims).quantized(quantization)
    };
    refused(blocks(&[2, 64], 0, 0, 4));
    refused(blocks(&[2, 64], 0, 48, 4));
    refused(blocks(&[2, 64], 0, 32, 3));
    refused(blocks(&[2, 64], 1, 32, 4));
    refused(blocks(&[128], 0, 32, 4));
    Subgraph::new().unwrap().define_tensor(blocks(&[2, 64], 0, 32, 4)).unwrap();
}

#[test]
fn four_bit_rows_are_even() {
    let scales: Arc<[f32]> = Arc::new([1.0]);
    let tensor = |columns| {
        let quantization =
            Quantization::PerChannel { zero_point: 8, axis: 0, scales: scales.clone() };
        TensorSpec::new(Datatype::Qcint4, &[1, columns]).quantized(quantization)
    };
    assert!(refused(tensor(3)).contains("even length"));
    let four = StaticData::from(AlignedBuffer::new(2));
    let mut graph = Subgraph::new().unwrap();
    graph.define_tensor(tensor(4).role(Role::Static(four))).unwrap();
}

#[test]
fn dynamic_quantization_is_limited_to_internal_tensors() {
    let rows = |nonbatch_dims| {
        TensorSpec::new(Datatype::Qdint8, &[2, 3])
            .quantized(Quantization::Dynamic { nonbatch_dims })
    };
    assert!(refused(rows(1).role(Role::Input(ExternalId(0)))).contains("only internal"));
    assert!(refused(rows(3)).contains("rows of 3 dimensions"));
    Subgraph::new().unwrap().define_tensor(rows(2)).unwrap();
}

#[test]
fn external_ids_are_unique() {
    let mut graph = Subgraph::new().unwrap();
    let id = ExternalId(u32::MAX);
    graph.define_tensor(f32(&[1]).role(Role::Input(id))).unwrap();
    let error = graph.define_tensor(f32(&[1]).role(Role::Output(id))).unwrap_err();
    assert!(error.to_string().contains("already in use"), "{error}");
}

#[test]
fn values_belong_to_their_subgraph() {
    let mut other = Fixture::new();
    other.input(f32(&[1]), &[1.0f32]);
    let foreign = other.input(f32(&[1]), &[1.0f32]);
    let mut fixture = Fixture::new();
    let output = fixture.internal(any_f32());
    let error = fixture.refusal(Unary { op: UnaryOp::Abs, input: foreign, output });
    assert!(error.reason().contains("does not belong"), "{error}");
    assert_eq!(fixture.graph.shape(foreign), None);
}

#[test]
fn order_and_producers_are_checked() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1]), &[1.0f32]);
    let constant = fixture.constant(f32(&[1]), &[1.0f32]);
    let middle = fixture.internal(any_f32());
    let end = fixture.internal(any_f32());
    let abs = |input, output| Unary { op: UnaryOp::Abs, input, output };
    let early = fixture.refusal(abs(middle, end));
    assert!(early.reason().contains("not computed by an earlier node"), "{early}");
    fixture.refusal(abs(input, constant));
    fixture.refusal(abs(constant, input));
    fixture.graph.define(abs(input, middle)).unwrap();
    let twice = fixture.refusal(abs(constant, middle));
    assert!(twice.reason().contains("already computed"), "{twice}");
    assert_eq!(twice.node().unwrap().index, 1);
    let cycle = fixture.refusal(abs(middle, middle));
    assert!(cycle.reason().contains("already computed"), "{cycle}");
    fixture.graph.define(abs(middle, end)).unwrap();
}

#[test]
fn a_given_shape_must_have_as_many_elements() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &[0.0f32; 6]);
    let wrong = fixture.internal(f32(&[2, 2]));
    let other_rank = fixture.internal(f32(&[6]));
    fixture.refusal(Copy { input, output: wrong });
    fixture.graph.define(Copy { input, output: other_rank }).unwrap();
    assert_eq!(fixture.graph.shape(other_rank).unwrap(), [2, 3]);
}

#[test]
fn incomplete_subgraphs_are_refused() {
    let options = RuntimeOptions::default();
    let refused = |fixture: Fixture| {
        let error = Runtime::new(fixture.graph, &options).expect_err("refused");
        error.reason().to_owned()
    };
    assert!(refused(Fixture::new()).contains("no nodes"));
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1]), &[1.0f32]);
    let internal = fixture.internal(any_f32());
    fixture.graph.define(Copy { input, output: internal }).unwrap();
    fixture.output(f32(&[1]));
    assert!(refused(fixture).contains("output 1 is not computed"));
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1]), &[1.0f32]);
    let internal = fixture.internal(any_f32());
    assert!(refused(fixture.node(Copy { input, output: internal })).contains("no output"));
}

#[test]
fn unpadded_and_misaligned_constants_are_copied() {
    // Ten floats at an odd address, without padding.
    let floats: Vec<u8> = (0..10u8).flat_map(|index| f32::from(index).to_ne_bytes()).collect();
    let parent = bytes::Bytes::from([&[0u8][..], &floats].concat());
    let data = StaticData::from_slice_of(&parent, 1..41).unwrap();
    assert_eq!(data.readable_after(), 0);
    assert!(StaticData::from_slice_of(&parent, 1..42).is_err());

    let mut fixture = Fixture::new();
    let a = fixture.input(f32(&[10]), &[1.0f32; 10]);
    let b = fixture.graph.define_tensor(f32(&[10]).role(Role::Static(data))).unwrap();
    let output = fixture.output(any_f32());
    let output_range = OutputRange::default();
    let node = Binary { op: BinaryOp::Add, output_range, a, b, output };
    let expected: Vec<f32> = (1..11u8).map(f32::from).collect();
    assert_eq!(fixture.node(node).run::<f32>(), expected);
}

#[test]
fn buffers_beyond_all_memory_are_an_error() {
    assert_eq!(AlignedBuffer::try_new(100).unwrap().len(), 100);
    assert_eq!(AlignedBuffer::try_new(usize::MAX).unwrap_err().status(), Status::OutOfMemory);
}
