//! Files that no tool of ours writes: old ones, odd ones, wrong ones.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

use flatbuffers::FlatBufferBuilder;

use super::read::opcode;
use crate::generated::{cir, tfl};
use crate::graph::{Dialect, Model};
use crate::op::{CompositeOptions, InstanceNormOptions, Op, Padding, RopeOptions};
use crate::types::{DType, Quantization};
use crate::write::{to_circle, to_tflite};

/// One operator with one input and one output, described as the wire has it.
struct Raw {
    version: u32,
    /// `deprecated_builtin_code` and `builtin_code`.
    code: (i8, i32),
    /// Tag of the options union; the table is empty.
    options: u8,
    shape: Option<Vec<i32>>,
    signature: Option<Vec<i32>>,
    /// Scales and `quantized_dimension` of the input.
    quantization: (Vec<f32>, i32),
    /// `offset` and `size` of the input's buffer.
    outside: (u64, u64),
    /// Slot 10 of the input: external buffer, or compression.
    slot_10: u8,
    /// Slot 5 of the subgraph, in Circle: the data format.
    data_format: i8,
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            version: 3,
            code: (0, 0),
            options: 0,
            shape: Some(vec![2]),
            signature: None,
            quantization: (vec![], 0),
            outside: (0, 0),
            slot_10: 0,
            data_format: 0,
        }
    }
}

macro_rules! raw_file {
    ($name:ident, $schema:ident, $(tensor $slot_10:ident: $slot_10_of:expr,)? $(graph $format:ident: $format_of:expr,)?) => {
        fn $name(raw: &Raw) -> Vec<u8> {
            use $schema::*;
            let mut b = FlatBufferBuilder::new();
            let b = &mut b;
            let code = OperatorCodeArgs {
                deprecated_builtin_code: raw.code.0,
                builtin_code: BuiltinOperator(raw.code.1),
                ..Default::default()
            };
            let codes = [OperatorCode::create(b, &code)];
            let empty = Buffer::create(b, &BufferArgs::default());
            let (offset, size) = raw.outside;
            let outside = Buffer::create(b, &BufferArgs { offset, size, ..Default::default() });
            let buffers = [empty, outside];

            let quantization = QuantizationParametersArgs {
                scale: Some(b.create_vector(&raw.quantization.0)),
                quantized_dimension: raw.quantization.1,
                ..Default::default()
            };
            let quantization = Some(QuantizationParameters::create(b, &quantization));
            let input = TensorArgs {
                shape: raw.shape.as_ref().map(|s| b.create_vector(s)),
                shape_signature: raw.signature.as_ref().map(|s| b.create_vector(s)),
                buffer: 1,
                quantization,
                $($slot_10: $slot_10_of(raw.slot_10),)?
                ..Default::default()
            };
            let tensors = [Tensor::create(b, &input), Tensor::create(b, &TensorArgs::default())];
            let table = b.start_table();
            let table = b.end_table(table).as_union_value();
            let operator = OperatorArgs {
                inputs: Some(b.create_vector(&[0])),
                outputs: Some(b.create_vector(&[1])),
                builtin_options_type: BuiltinOptions(raw.options),
                builtin_options: (raw.options != 0).then_some(table),
                ..Default::default()
            };
            let operators = [Operator::create(b, &operator)];
            let graph = SubGraphArgs {
                tensors: Some(b.create_vector(&tensors)),
                inputs: Some(b.create_vector(&[0])),
                outputs: Some(b.create_vector(&[1])),
                operators: Some(b.create_vector(&operators)),
                $($format: $format_of(raw.data_format),)?
                ..Default::default()
            };
            let graphs = [SubGraph::create(b, &graph)];
            let model = ModelArgs {
                version: raw.version,
                operator_codes: Some(b.create_vector(&codes)),
                subgraphs: Some(b.create_vector(&graphs)),
                buffers: Some(b.create_vector(&buffers)),
                ..Default::default()
            };
            let model = Model::create(b, &model);
            finish_model_buffer(b, model);
            b.finished_data().to_vec()
        }
    };
}

raw_file!(tflite_file, tfl, tensor external_buffer: u32::from,);
raw_file!(circle_file, cir,
    tensor compression_type: |c: u8| CompressionType(c.cast_signed()),
    graph data_format: DataFormat,);

fn tflite(raw: &Raw) -> Result<Model, String> {
    Model::from_bytes(tflite_file(raw)).map_err(|e| e.to_string())
}

fn circle(raw: &Raw) -> Result<Model, String> {
    Model::from_bytes(circle_file(raw)).map_err(|e| e.to_string())
}

/// The operator that a file with this code has.
fn op(model: Result<Model, String>) -> Op {
    model.unwrap().subgraphs[0].operators[0].op.clone()
}

#[test]
fn operator_codes_come_from_either_field() {
    assert_eq!(opcode(3, 0), 3, "files older than the wide field");
    assert_eq!(opcode(3, 3), 3, "new files fill in both");
    assert_eq!(opcode(127, 150), 150);
    assert_eq!(opcode(0, 6), 6, "files of writers that know the wide field alone");
    assert_eq!(opcode(0, 150), 150);
    assert_eq!(opcode(-2, 0), -2, "Circle's own codes, not the larger of the two");
}

#[test]
fn each_dialect_has_codes_of_its_own() {
    let norm = Raw { code: (-2, -2), ..Raw::default() };
    assert_eq!(op(circle(&norm)), Op::InstanceNorm(InstanceNormOptions::default()));
    assert_eq!(op(tflite(&norm)), Op::Unknown { code: -2 });
    let composite = Raw { code: (127, 206), ..Raw::default() };
    assert_eq!(op(tflite(&composite)), Op::StablehloComposite(CompositeOptions::default()));
    assert_eq!(op(circle(&composite)), Op::Unknown { code: 206 });
    let wide_alone = Raw { code: (0, 19), ..Raw::default() };
    assert_eq!([op(tflite(&wide_alone)), op(circle(&wide_alone))], [Op::Relu, Op::Relu]);
}

#[test]
fn missing_options_are_the_defaults() {
    let conv = Raw { code: (3, 0), ..Raw::default() };
    let Op::Conv2d(options) = op(tflite(&conv)) else { unreachable!("not a CONV_2D") };
    assert_eq!((options.padding, options.dilation_w), (Padding::Same, 1));
}

#[test]
fn options_of_another_operator_are_refused() {
    let pool = tfl::BuiltinOptions::Pool2DOptions.0;
    let error = tflite(&Raw { code: (3, 3), options: pool, ..Raw::default() }).unwrap_err();
    assert_eq!(
        error,
        "subgraph 0: operator 0 (CONV_2D): its options are a Pool2DOptions, which belongs to \
         another operator"
    );
    let unknown = Raw { code: (3, 3), options: 200, ..Raw::default() };
    assert!(tflite(&unknown).unwrap_err().contains("unknown tags 200 and 0"));
    // RELU has no options that could be wrong.
    assert_eq!(op(tflite(&Raw { code: (19, 19), options: pool, ..Raw::default() })), Op::Relu);
}

#[test]
fn versions_other_than_3_are_refused() {
    let old = Raw { version: 2, ..Raw::default() };
    assert_eq!(tflite(&old).unwrap_err(), "unsupported schema version 2");
    assert_eq!(circle(&old).unwrap().version, 2, "Circle tools do not look at it");
}

#[test]
fn channels_first_is_refused() {
    assert!(circle(&Raw { data_format: 0, ..Raw::default() }).is_ok());
    let error = circle(&Raw { data_format: 1, ..Raw::default() }).unwrap_err();
    assert!(error.contains("subgraph 0: ") && error.contains("CHANNELS_FIRST"), "{error}");
}

#[test]
fn data_that_cannot_be_used_is_marked() {
    let unusable =
        |model: Result<Model, String>| model.unwrap().subgraphs[0].tensors[0].unusable.clone();
    assert_eq!(unusable(tflite(&Raw::default())), None);
    let marked = Raw { slot_10: 1, ..Raw::default() };
    assert!(unusable(tflite(&marked)).unwrap().contains("external buffer 1"));
    assert!(unusable(circle(&marked)).unwrap().contains("HUFFMAN"));
    let short = |slot_10| circle(&Raw { slot_10, outside: (4, 3), ..Raw::default() });
    assert!(short(0).unwrap_err().contains("its data has 3 bytes"));
    assert!(unusable(short(1)).is_some(), "compressed data has a size of its own");
}

#[test]
fn data_may_lie_behind_the_flatbuffer() {
    let len = tflite_file(&Raw { outside: (9999, 8), ..Raw::default() }).len() as u64;
    let with = |outside| {
        let mut file = tflite_file(&Raw { outside, ..Raw::default() });
        file.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        Model::from_bytes(file).map_err(|e| e.to_string())
    };
    let model = with((len, 8)).unwrap();
    assert_eq!(model.subgraphs[0].tensors[0].data.as_deref().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    for outside in [(len + 1, 8), (len, 9), (u64::MAX, 8), (u64::MAX - 4, u64::MAX)] {
        assert!(with(outside).unwrap_err().contains("beyond the end of the file"), "{outside:?}");
    }
    assert!(with((1, 8)).unwrap().subgraphs[0].tensors[0].data.is_none(), "offsets count above 1");
}

#[test]
fn the_quantized_dimension_fits_the_shape() {
    let quantization = |shape: &[i32], scales: &[f32], axis| {
        let raw = Raw {
            shape: Some(shape.to_vec()),
            quantization: (scales.to_vec(), axis),
            ..Raw::default()
        };
        tflite(&raw).map(|m| m.subgraphs[0].tensors[0].quantization.clone())
    };
    let axis = |result: Result<Option<Quantization>, String>| match result.unwrap() {
        Some(Quantization::PerAxis { axis, .. }) => axis,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(quantization(&[3], &[], 0).unwrap(), None);
    assert!(matches!(
        quantization(&[3], &[0.5], 7).unwrap(),
        Some(Quantization::PerTensor { zero_point: 0, .. })
    ));
    assert_eq!(axis(quantization(&[2, 3], &[1.0, 2.0, 3.0], 1)), 1);
    assert_eq!(axis(quantization(&[3], &[1.0, 2.0, 3.0], 3)), 0, "one dimension: no doubt");
    for (shape, dimension) in [(&[2, 3][..], 0), (&[2, 3], 2), (&[2, 3], -1), (&[4], 0)] {
        let error = quantization(shape, &[1.0, 2.0, 3.0], dimension).unwrap_err();
        assert!(error.contains("tensor 0") && error.contains("3 scales"), "{error}");
    }
}

#[test]
fn shapes_may_be_open() {
    let shape = |shape: Option<&[i32]>, signature: Option<&[i32]>| {
        let raw = Raw {
            shape: shape.map(<[_]>::to_vec),
            signature: signature.map(<[_]>::to_vec),
            ..Raw::default()
        };
        let tensor = tflite(&raw)?.subgraphs[0].tensors[0].clone();
        Ok::<_, String>((tensor.shape, tensor.shape_signature))
    };
    let open_rank = Some(vec![]);
    assert_eq!(shape(None, None).unwrap(), (None, open_rank.clone()));
    assert_eq!(shape(Some(&[]), None).unwrap(), (Some(vec![]), open_rank));
    assert_eq!(shape(Some(&[1, 4]), Some(&[])).unwrap(), (Some(vec![1, 4]), None));
    assert_eq!(shape(Some(&[1, 4]), Some(&[1, 4])).unwrap(), (Some(vec![1, 4]), None));
    let open = Some(vec![-1, 4]);
    assert_eq!(shape(Some(&[1, 4]), Some(&[-1, 4])).unwrap(), (Some(vec![1, 4]), open.clone()));
    assert_eq!(shape(Some(&[-1, 4]), None).unwrap(), (None, open));
    assert!(shape(Some(&[-2, 4]), None).unwrap_err().contains("negative entry -2"));
    assert!(shape(Some(&[1]), Some(&[-1, 4])).unwrap_err().contains("differ in rank"));
}

#[test]
fn a_file_whose_numbers_are_all_off_by_four_is_read() {
    let raw = Raw { outside: (4, 8), ..Raw::default() };
    let straight = tflite_file(&raw);
    let mut crooked =
        (u32::from_le_bytes(*straight.first_chunk().unwrap()) + 4).to_le_bytes().to_vec();
    crooked.extend(b"TFL3");
    crooked.extend(&straight[4..]);
    let model = Model::from_bytes(crooked.clone()).unwrap();
    let data = model.subgraphs[0].tensors[0].data.clone().unwrap();
    assert_eq!(data, crooked[4..12], "offsets outside the flatbuffer count in the file as it was");
}

/// Every operator that a dialect has, with its default options.
fn ops(codes: std::ops::RangeInclusive<i32>) -> Vec<Op> {
    codes.filter_map(Op::from_code).collect()
}

/// A model of operators in a row.
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
fn every_operator_survives_a_file() {
    let model = chain(Dialect::Tflite, ops(0..=209));
    assert_eq!(Model::from_bytes(to_tflite(&model).unwrap()).unwrap(), model);
    let model = chain(Dialect::Circle, ops(-8..=205));
    assert_eq!(Model::from_bytes(to_circle(&model).unwrap()).unwrap(), model);
}

#[test]
fn options_survive_a_file() {
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
fn what_a_dialect_lacks_is_not_written() {
    let error = |result: Result<Vec<u8>, crate::Error>| result.unwrap_err().to_string();
    let rope = chain(Dialect::Circle, vec![Op::Rope(RopeOptions::default())]);
    assert!(error(to_tflite(&rope)).contains("operator 0 (ROPE): TFLite does not have"));
    let composite = chain(Dialect::Tflite, vec![Op::StablehloComposite(Default::default())]);
    assert!(error(to_circle(&composite)).contains("Circle does not have this operator"));
    let unknown = chain(Dialect::Tflite, vec![Op::Unknown { code: 162 }]);
    assert!(error(to_tflite(&unknown)).contains("its options are unknown"));
}

#[test]
fn codes_of_one_dialect_do_not_reach_the_other() {
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
fn custom_options_are_aligned_as_files_are() {
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
