//! Writes models and reads them back.

use crate::graph::{Dialect, Model};
use crate::op::{Op, RopeOptions};
use crate::types::DType;
use crate::write::{to_circle, to_tflite};

/// The operators with these codes, with default options.
fn ops(codes: std::ops::RangeInclusive<i32>) -> Vec<Op> {
    codes.filter_map(Op::from_code).collect()
}

/// A model of a chain of operators.
fn chain(dialect: Dialect, ops: Vec<Op>) -> Model {
    let operator = |(i, op)| crate::Operator {
        op,
        version: 1,
        inputs: vec![Some(i), None],
        outputs: vec![i + 1],
        intermediates: vec![],
    };
    let graph = crate::Subgraph {
        name: "main".to_owned(),
        tensors: vec![crate::Tensor::new("t", DType::F32, &[1]); ops.len() + 1],
        inputs: vec![0],
        outputs: vec![ops.len()],
        operators: ops.into_iter().enumerate().map(operator).collect(),
    };
    let version = if dialect == Dialect::Tflite { 3 } else { 0 };
    Model { dialect, version, ..Model::from(graph) }
}

#[test]
fn all_operators_round_trip() {
    let model = chain(Dialect::Tflite, ops(0..=209));
    assert_eq!(Model::from_bytes(to_tflite(&model).unwrap()).unwrap(), model);
    let model = chain(Dialect::Circle, ops(-8..=205));
    assert_eq!(Model::from_bytes(to_circle(&model).unwrap()).unwrap(), model);
}

#[test]
fn options_round_trip() {
    use crate::op::*;
    let model = chain(
        Dialect::Circle,
        vec![
            Op::BatchMatMul(BatchMatMulOptions { adj_x: false, adj_y: true, ..Default::default() }),
            Op::Rope(RopeOptions { interleaved: true }),
            Op::Conv2d(Conv2dOptions {
                padding: Padding::Valid,
                stride_w: 2,
                stride_h: 3,
                dilation_w: 4,
                dilation_h: 5,
                activation: Activation::Relu6,
                quantized_bias_type: Some(DType::I64),
            }),
            Op::FullyConnected(FullyConnectedOptions {
                weights_format: WeightsFormat::Shuffled16x1Float32,
                keep_num_dims: true,
                ..Default::default()
            }),
            Op::Lstm(LstmOptions { cell_clip: 1.5, basic: true, ..Default::default() }),
            Op::Reshape(ReshapeOptions { new_shape: Some(vec![-1, 7]) }),
            Op::Squeeze(SqueezeOptions { squeeze_dims: vec![0, -2] }),
            Op::StridedSlice(StridedSliceOptions {
                begin_mask: 1,
                end_mask: 2,
                ellipsis_mask: 3,
                new_axis_mask: 4,
                shrink_axis_mask: 5,
                offset: true,
            }),
            Op::VarHandle(VarHandleOptions { container: "a".into(), shared_name: "b".into() }),
            Op::Bucketize(BucketizeOptions { boundaries: vec![0.5, 1.5] }),
            Op::Cast(CastOptions { from: DType::U4, to: DType::I64 }),
            Op::Custom(CustomOptions { code: "Mine".into(), options: vec![1, 2, 3].into() }),
        ],
    );
    assert_eq!(Model::from_bytes(to_circle(&model).unwrap()).unwrap(), model);
}

#[test]
fn unsupported_operators_are_not_written() {
    let error = |result: Result<Vec<u8>, crate::Error>| result.unwrap_err().to_string();
    let rope = chain(Dialect::Circle, vec![Op::Rope(RopeOptions::default())]);
    assert!(error(to_tflite(&rope)).contains("operator 0 (ROPE): TFLite does not have"));
    let composite = chain(Dialect::Tflite, vec![Op::StablehloComposite(Default::default())]);
    assert!(error(to_circle(&composite)).contains("Circle does not have this operator"));
    let unknown = chain(Dialect::Tflite, vec![Op::Unknown { code: 162 }]);
    assert!(error(to_tflite(&unknown)).contains("its options are unknown"));
}

#[test]
fn codes_of_one_dialect_are_not_written_to_the_other() {
    use crate::op::{FullyConnectedOptions, WeightsFormat};
    let ggml = |dialect| {
        let mut model = chain(dialect, vec![]);
        std::sync::Arc::make_mut(&mut model.subgraphs[0]).tensors[0].dtype = DType::Other(-2);
        model
    };
    assert!(to_circle(&ggml(Dialect::Circle)).is_ok());
    let error = to_tflite(&ggml(Dialect::Circle)).unwrap_err().to_string();
    assert_eq!(
        error,
        "subgraph 0: tensor 0 (\"t\"): TFLite does not have Circle's element type -2"
    );
    assert!(to_circle(&ggml(Dialect::Tflite)).is_err());

    let shuffled = |weights_format| {
        let options = FullyConnectedOptions { weights_format, ..Default::default() };
        chain(Dialect::Circle, vec![Op::FullyConnected(options)])
    };
    assert!(to_tflite(&shuffled(WeightsFormat::Shuffled4x16Int8)).is_ok());
    let error = to_tflite(&shuffled(WeightsFormat::Shuffled16x1Float32)).unwrap_err().to_string();
    assert!(
        error.contains("operator 0 (FULLY_CONNECTED): ") && error.contains("SHUFFLED16x1FLOAT32"),
        "{error}"
    );
}

#[test]
fn constants_are_aligned_in_written_files() {
    let mut model = chain(Dialect::Tflite, vec![]);
    let graph = std::sync::Arc::make_mut(&mut model.subgraphs[0]);
    for len in [1, 5, 16, 33, 100] {
        let mut tensor = crate::Tensor::new("c", DType::U8, &[len]);
        tensor.data = Some(vec![len as u8; len].into());
        graph.tensors.push(tensor);
    }
    let file = bytes::Bytes::from(to_tflite(&model).unwrap());
    let again = Model::from_bytes(file.clone()).unwrap();
    for tensor in &again.subgraphs[0].tensors[1..] {
        let data = tensor.data.as_ref().unwrap();
        assert_eq!((data.as_ptr() as usize - file.as_ptr() as usize) % 16, 0, "{}", data.len());
    }
}

#[test]
fn custom_options_are_aligned_like_blobs() {
    let custom = |len| {
        Op::Custom(crate::op::CustomOptions { code: "Mine".into(), options: vec![7; len].into() })
    };
    let lens = [1, 64, 5, 4095, 100, 4096, 9999];
    for write in [to_tflite, to_circle] {
        let model = chain(Dialect::Tflite, lens.map(custom).into());
        let file = bytes::Bytes::from(write(&model).unwrap());
        let again = Model::from_bytes(file.clone()).unwrap();
        for (operator, len) in again.subgraphs[0].operators.iter().zip(lens) {
            let Op::Custom(custom) = &operator.op else { panic!() };
            assert_eq!(custom.options, vec![7; len]);
            let offset = custom.options.as_ptr() as usize - file.as_ptr() as usize;
            let alignment = if len < 4096 { 64 } else { 4096 };
            assert!(offset.is_multiple_of(alignment), "{len} bytes at {offset}");
        }
    }
}

/// Data of one element does not make a tensor whose dimensions vary a scalar.
#[test]
fn shape_signatures_without_a_shape_round_trip() {
    let mut model = chain(Dialect::Tflite, ops(0..=0));
    let graph = std::sync::Arc::make_mut(&mut model.subgraphs[0]);
    let mut tensor = crate::Tensor::new("varies", DType::F32, &[]);
    (tensor.shape, tensor.shape_signature) = (None, Some(vec![-1, 3]));
    tensor.data = Some(vec![0; 4].into());
    graph.tensors.push(tensor);
    let once = Model::from_bytes(to_tflite(&model).unwrap()).unwrap();
    assert_eq!(once, model);
    assert_eq!(Model::from_bytes(to_circle(&once).unwrap()).unwrap().subgraphs, model.subgraphs);
}
