//! Reads old, unusual and invalid files, which the writer does not produce.

use flatbuffers::FlatBufferBuilder;

use crate::dialect::fields::opcode;
use crate::generated::{cir, tfl};
use crate::graph::Model;
use crate::op::{CompositeOptions, InstanceNormOptions, Op, Padding};
use crate::types::Quantization;

/// A file with one operator, one input and one output, as raw fields.
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

/// The operator of a model.
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
fn each_dialect_has_its_own_codes() {
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
    // RELU has no options.
    assert_eq!(op(tflite(&Raw { code: (19, 19), options: pool, ..Raw::default() })), Op::Relu);
}

#[test]
fn versions_other_than_3_are_refused() {
    let old = Raw { version: 2, ..Raw::default() };
    assert_eq!(tflite(&old).unwrap_err(), "unsupported schema version 2");
    assert_eq!(circle(&old).unwrap().version, 2, "Circle tools ignore the version");
}

#[test]
fn channels_first_is_refused() {
    assert!(circle(&Raw { data_format: 0, ..Raw::default() }).is_ok());
    let error = circle(&Raw { data_format: 1, ..Raw::default() }).unwrap_err();
    assert!(error.contains("subgraph 0: ") && error.contains("CHANNELS_FIRST"), "{error}");
}

#[test]
fn unusable_data_is_marked() {
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
fn data_may_follow_the_flatbuffer() {
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
fn shapes_may_be_unknown() {
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
fn files_with_values_off_by_four_bytes_are_read() {
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
