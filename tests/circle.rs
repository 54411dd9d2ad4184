//! Models in the other dialect, and files that other tools write: same decisions, same
//! results, reasons for what does not run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, WIPOffset};
use xnn_delegate::lower::Delegation;
use xnn_delegate::model::{Dialect, to_circle, to_tflite};
use xnn_delegate::runtime::Session;
use xnn_delegate::{DType, Model, PartitionOptions, Runner, SessionOptions, TensorSpec};
use xnn_model::op::{FullyConnectedOptions, GatherOptions, RunModelOptions, WeightsFormat};
use xnn_model::{Op, Tensor};
use xnn_testing::{GraphBuilder, ModelBuilder, Random, files_below, shared_dir};

/// Decisions about the operators, with the delegation that made them.
fn decisions(model: &Model) -> (String, Delegation) {
    let delegation = Delegation::new(model.main().unwrap(), &PartitionOptions::default()).unwrap();
    (format!("{:?}", delegation.partitioning().decisions), delegation)
}

/// Fills an input's memory, with the same elements each time.
fn fill(dtype: DType, memory: &mut [u8]) {
    let mut random = Random::new(5);
    if dtype == DType::F32 {
        for element in memory.as_chunks_mut::<4>().0 {
            *element = (random.below(2001) as f32 / 1000.0 - 1.0).to_ne_bytes();
        }
    } else {
        memory.fill_with(|| random.below(100) as u8);
    }
}

/// All outputs of a model that runs in any way.
fn outputs(model: &Model) -> Result<Vec<Vec<u8>>, xnn_delegate::Error> {
    let mut runner = Runner::from_model(model)?;
    for index in 0..runner.inputs().len() {
        fill(runner.inputs()[index].dtype, runner.input_bytes_mut(index).unwrap());
    }
    runner.run()?;
    Ok((0..runner.outputs().len())
        .map(|index| runner.output_bytes(index).unwrap().to_vec())
        .collect())
}

/// All outputs, and the decisions. Compiles fully delegated models only once.
fn results(model: &Model) -> (String, Vec<Vec<u8>>) {
    let (decisions, delegation) = decisions(model);
    let Ok(program) = delegation.whole() else { return (decisions, outputs(model).unwrap()) };
    let mut session = Session::new(program, &SessionOptions::default()).unwrap();
    for index in 0..session.inputs().len() {
        fill(TensorSpec::from(&session.inputs()[index]).dtype, session.input_mut(index));
    }
    session.run().unwrap();
    let outputs = (0..session.outputs().len()).map(|index| session.output(index).to_vec());
    (decisions, outputs.collect())
}

#[track_caller]
fn assert_survives_circle(path: &Path) {
    let model = Model::open(path).unwrap();
    let circle = Model::from_bytes(to_circle(&model).unwrap()).unwrap();
    let back = Model::from_bytes(to_tflite(&circle).unwrap()).unwrap();
    let name = path.display();
    assert!(back == model, "{name} comes back changed");
    assert_eq!(circle.subgraphs, model.subgraphs, "{name}");
    let (of_circle, of_tflite) = (results(&circle), results(&model));
    assert_eq!(of_circle.0, of_tflite.0, "{name}");
    assert!(of_circle.1 == of_tflite.1, "{name} computes otherwise");
}

#[test]
fn the_demo_models_survive_circle() {
    for path in files_below(Path::new("models"), &["tflite"]) {
        assert_survives_circle(&path);
    }
}

#[test]
fn mobilenets_survive_circle() {
    let Some(models) = shared_dir("models") else { return };
    let files = files_below(&models, &["tflite"]);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mobilenets: Vec<_> =
        files.iter().filter(|path| name(path).starts_with("mobilenet_")).collect();
    assert!(mobilenets.len() >= 10, "{mobilenets:?}");
    for path in mobilenets {
        assert_survives_circle(path);
    }
}

/// Circle files that do not run, and a part of the reason.
const REFUSED: [(&str, &str); 3] = [
    (
        "test_with_metadata.circle",
        "its data has 1728 bytes, but f32 of shape [1, 3, 3, 3] take 108",
    ),
    ("while_000.circle", "BatchMatMulV2"),
    ("while_000_old.circle", "BatchMatMulV2"),
];

#[test]
fn real_circle_files_run_or_say_why_not() {
    let dirs = ["circle", "models"].map(shared_dir);
    let files: Vec<_> =
        dirs.iter().flatten().flat_map(|dir| files_below(dir, &["circle"])).collect();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let result = Model::open(path).map_err(Into::into).and_then(|model| outputs(&model));
        let refused = REFUSED.iter().find(|(file, _)| *file == name);
        match (result, refused) {
            (Ok(outputs), None) => assert!(!outputs.is_empty(), "{name}"),
            (Err(error), Some((_, reason))) => {
                assert!(error.to_string().contains(reason), "{name}: {error}");
            }
            (result, expected) => panic!("{name}: {result:?}, expected: {expected:?}"),
        }
    }
}

/// A Circle model of one operator with fp32 input `x` and weights of this type.
fn one_operator(op: Op, weights: Tensor) -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let weights = graph.add(weights);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    graph.op(op, &[x, weights], &[y]).output(y);
    ModelBuilder::new(Dialect::Circle).subgraph(graph).build()
}

fn weights(dtype: DType) -> Tensor {
    let data = vec![0; dtype.byte_size(16).unwrap_or(18)].into();
    Tensor { data: Some(data), ..Tensor::new("weights", dtype, &[4, 4]) }
}

#[test]
fn what_only_circle_has_is_refused_with_a_reason() {
    let fully_connected = |weights_format| {
        Op::FullyConnected(FullyConnectedOptions { weights_format, ..Default::default() })
    };
    let plain = || fully_connected(WeightsFormat::Default);
    let run_model =
        Op::RunModel(RunModelOptions { location: "/etc/passwd".into(), signature: String::new() });
    let compressed =
        Tensor { unusable: Some("its data is compressed (HUFFMAN)".into()), ..weights(DType::F32) };
    for (model, reason) in [
        (one_operator(run_model, weights(DType::F32)), "RUN_MODEL"),
        (one_operator(Op::Unknown { code: -20 }, weights(DType::F32)), "UNKNOWN(-20)"),
        (one_operator(Op::BcqGather(Default::default()), weights(DType::I32)), "BCQ_GATHER"),
        (
            one_operator(Op::BcqFullyConnected(Default::default()), weights(DType::I32)),
            "BCQ_FULLY_CONNECTED",
        ),
        (one_operator(plain(), weights(DType::Other(-2))), "other(-2)"),
        (one_operator(plain(), weights(DType::Other(-6))), "other(-6)"),
        (one_operator(plain(), compressed), "compressed (HUFFMAN)"),
        (
            one_operator(fully_connected(WeightsFormat::Shuffled16x1Float32), weights(DType::F32)),
            "Shuffled16x1Float32",
        ),
    ] {
        // Neither XNNPACK nor a reference kernel takes it, and both say why.
        let (report, _) = decisions(&model);
        assert!(report.contains("NotDelegated"), "{reason}: {report}");
        let error = outputs(&model).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
    assert!(outputs(&one_operator(plain(), weights(DType::F32))).is_ok());
}

#[test]
fn constants_need_no_alignment() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let numbers: Vec<f32> = (0..16).map(|n| n as f32 / 7.0).collect();
    let weights = graph.constant_f32("weights", &[4, 4], &numbers);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let indices = graph.constant("i", DType::I64, &[2], [3i64, 1].map(i64::to_le_bytes).concat());
    let z = graph.tensor("z", DType::F32, &[1, 2]);
    let gather = GatherOptions { axis: 1, batch_dims: 0 };
    graph.op(Op::FullyConnected(Default::default()), &[x, weights], &[y]);
    graph.op(Op::Gather(gather), &[y, indices], &[z]).output(z);
    let file = ModelBuilder::new(Dialect::Circle).subgraph(graph).build_file();
    let expected = outputs(&Model::from_bytes(file.clone()).unwrap()).unwrap();
    for shift in [4, 8, 12] {
        let moved = Bytes::from([&vec![0; shift][..], &file].concat()).slice(shift..);
        assert_eq!(outputs(&Model::from_bytes(moved).unwrap()).unwrap(), expected, "{shift}");
    }
}

/// A file as writers of the first schemas left it: an operator code of a byte
/// and nothing else, no `quantized_dimension`, no names, no options, no
/// metadata, no signatures. FULLY_CONNECTED of uint8 with these weights.
fn old_tflite(weights: &[u8; 4], bias: &[i32; 2]) -> Vec<u8> {
    let b = &mut FlatBufferBuilder::new();
    let table = |b: &mut FlatBufferBuilder<'_>, fields: &[(u16, Field)]| {
        let start = b.start_table();
        for (slot, field) in fields {
            let slot = 4 + 2 * slot;
            match *field {
                Field::Byte(value) => b.push_slot_always(slot, value),
                Field::Int(value) => b.push_slot_always(slot, value),
                Field::Offset(value) => b.push_slot_always(slot, WIPOffset::<()>::new(value)),
            }
        }
        b.end_table(start).value()
    };
    let tables = |b: &mut FlatBufferBuilder<'_>, list: &[u32]| {
        let list: Vec<_> =
            list.iter().map(|&at| WIPOffset::<ForwardsUOffset<()>>::new(at)).collect();
        Field::Offset(b.create_vector(&list).value())
    };
    macro_rules! numbers {
        ($list:expr) => {
            Field::Offset(b.create_vector($list).value())
        };
    }

    let bytes: Vec<u8> = bias.iter().flat_map(|v| v.to_le_bytes()).collect();
    let contents = [numbers!(weights), numbers!(&bytes)];
    let mut buffers = vec![table(b, &[])];
    for content in contents {
        buffers.push(table(b, &[(0, content)]));
    }
    let mut tensors = Vec::new();
    for (shape, dtype, buffer, scale, zero_point) in [
        (&[1, 2][..], 3, 0, 0.5f32, 10i64),
        (&[2, 2], 3, 1, 0.25, 128),
        (&[2], 2, 2, 0.125, 0),
        (&[1, 2], 3, 0, 1.0, 100),
    ] {
        let (scale, zero_point) = (numbers!(&[scale]), numbers!(&[zero_point]));
        let quantization = Field::Offset(table(b, &[(2, scale), (3, zero_point)]));
        let shape = numbers!(shape);
        tensors.push(table(
            b,
            &[(0, shape), (1, Field::Byte(dtype)), (2, Field::Int(buffer)), (4, quantization)],
        ));
    }
    let (inputs, outputs) = (numbers!(&[0, 1, 2]), numbers!(&[3]));
    let operators = [table(b, &[(1, inputs), (2, outputs)])];
    let (operators, tensors) = (tables(b, &operators), tables(b, &tensors));
    let (inputs, outputs) = (numbers!(&[0]), numbers!(&[3]));
    let graph = table(b, &[(0, tensors), (1, inputs), (2, outputs), (3, operators)]);
    let code = table(b, &[(0, Field::Byte(9))]);
    let (codes, graphs, buffers) = (tables(b, &[code]), tables(b, &[graph]), tables(b, &buffers));
    let model = table(b, &[(0, Field::Int(3)), (1, codes), (2, graphs), (4, buffers)]);
    b.finish(WIPOffset::<()>::new(model), Some("TFL3"));
    b.finished_data().to_vec()
}

/// Value in a slot of a table.
#[derive(Clone, Copy)]
enum Field {
    Byte(i8),
    Int(i32),
    Offset(u32),
}

#[test]
fn files_of_the_first_schemas_run() {
    let model = Model::from_bytes(old_tflite(&[128, 132, 124, 130], &[8, -16])).unwrap();
    let mut runner = Runner::from_model(&model).unwrap();
    assert!(runner.coverage().is_whole(), "{}", runner.coverage());
    runner.input_bytes_mut(0).unwrap().copy_from_slice(&[20, 30]);
    runner.run().unwrap();
    // x = [5, 10], weights [[0, 1], [-1, 0.5]], bias [1, -2]: [11, -2].
    assert_eq!(runner.output_bytes(0).unwrap(), [111, 98]);
    let circle = Model::from_bytes(to_circle(&model).unwrap()).unwrap();
    assert_eq!(circle.subgraphs, model.subgraphs);
}
