//! Files of models that go to XNNPACK in part: what they keep, what they compute, and what of them
//! is refused.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod entries;
mod stored;

use bytes::Bytes;
use xnn_delegate::blob::{Blob, CUSTOM_OPERATOR, Compat};
use xnn_delegate::model::Subgraph;
use xnn_delegate::{
    ConvertOptions, Converted, DType, Error, Model, Runner, RunnerBuilder, SessionOptions, Source,
    convert,
};
use xnn_model::Dialect;
use xnn_model::op::{CustomOptions, Op, SoftmaxOptions};
use xnn_testing::{GraphBuilder, ModelBuilder, Random, files_below, shared_dir};

use entries::two_signatures;

/// Models whose reference kernels take long in this profile.
const SLOW: [&str; 4] = ["conformer", "cartoon_gan", "edsr", "yamnet"];

fn runner(model: &Model, threads: usize) -> Result<Runner, Error> {
    let session = SessionOptions { threads, threads_by_work: false, ..SessionOptions::default() };
    RunnerBuilder::from_model(model).session(session).build()
}

fn converted(model: &Model) -> Result<Converted, Error> {
    convert(model, &Source::default(), &ConvertOptions::default())
}

/// Converts a model, which must be partially delegated.
#[track_caller]
fn partial(model: &Model) -> Model {
    match converted(model).unwrap() {
        Converted::Partial(file) => Model::from_bytes(file).unwrap(),
        Converted::Whole(_) => panic!("the model goes whole"),
    }
}

/// Outputs of two runs on random inputs, the second with the state that the first left.
fn outputs(runner: &mut Runner) -> Result<Vec<Vec<u8>>, String> {
    let mut random = Random::new(17);
    let mut all = Vec::new();
    for _ in 0..2 {
        for position in 0..runner.inputs().len() {
            let spec = runner.inputs()[position].clone();
            // Indices and flags stay 0, which is always valid.
            if matches!(spec.dtype, DType::F32 | DType::I8 | DType::U8) {
                let elements = random.tensor(spec.dtype, spec.dims.iter().product());
                runner.input_bytes_mut(position).unwrap().copy_from_slice(&elements);
            }
        }
        runner.run().map_err(|error| error.to_string())?;
        all.extend((0..runner.outputs().len()).map(|at| runner.output_bytes(at).unwrap().to_vec()));
    }
    Ok(all)
}

/// Everything but operators and constants is what it was.
fn assert_same_surface(name: &str, original: &Model, converted: &Model) {
    assert_eq!(converted.dialect, original.dialect, "{name}");
    assert_eq!(converted.metadata, original.metadata, "{name}");
    assert_eq!(converted.description, original.description, "{name}");
    assert_eq!(converted.subgraphs.len(), original.subgraphs.len(), "{name}");
    let tensors = |graph: &Subgraph, ids: &[usize]| -> Vec<_> {
        let tensors = ids.iter().map(|&id| graph.tensor(id));
        let parts = |t: &xnn_model::Tensor| {
            (t.name.clone(), t.dtype, t.quantization.clone(), t.shape_signature.clone())
        };
        tensors.map(parts).collect()
    };
    for (a, b) in original.subgraphs.iter().zip(&converted.subgraphs) {
        assert_eq!(a.name, b.name, "{name}");
        assert_eq!(tensors(a, &a.inputs), tensors(b, &b.inputs), "{name}");
        assert_eq!(tensors(a, &a.outputs), tensors(b, &b.outputs), "{name}");
    }
    assert_eq!(converted.signatures.len(), original.signatures.len(), "{name}");
    for (a, b) in original.signatures.iter().zip(&converted.signatures) {
        assert_eq!((&a.key, a.subgraph), (&b.key, b.subgraph), "{name}");
        let (from, to) = (&original.subgraphs[a.subgraph], &converted.subgraphs[b.subgraph]);
        for (a, b) in a.inputs.iter().zip(&b.inputs).chain(a.outputs.iter().zip(&b.outputs)) {
            assert_eq!(a.0, b.0, "{name}");
            assert_eq!(from.tensor(a.1).name, to.tensor(b.1).name, "{name}");
        }
    }
}

/// How many models were converted in part, run, and gave the same bits.
fn check(paths: &[std::path::PathBuf], dialect: Option<Dialect>) -> usize {
    let mut count = 0;
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(mut model) = Model::open(path) else { continue };
        model.dialect = dialect.unwrap_or(model.dialect);
        let file = match converted(&model) {
            Ok(Converted::Partial(file)) => Bytes::from(file),
            // Fully delegated models are tested elsewhere. Some models are not delegated at all, or
            // have operators that only the other dialect has.
            _ => continue,
        };
        let again = Model::from_bytes(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same_surface(&name, &model, &again);
        // Operators that nobody takes are refused in the file as they are in the model.
        let Ok(mut expected) = runner(&model, 1) else {
            assert!(runner(&again, 1).is_err(), "{name}");
            continue;
        };
        let coverage = expected.coverage();
        let expected = outputs(&mut expected);
        for threads in [1, 2] {
            let mut actual = runner(&again, threads).unwrap_or_else(|e| panic!("{name}: {e}"));
            let stored = actual.coverage();
            assert_eq!(stored.partitions, coverage.partitions, "{name}");
            assert_eq!(
                stored.operators - stored.delegated,
                coverage.operators - coverage.delegated,
                "{name}"
            );
            assert!(outputs(&mut actual) == expected, "{name}: {threads} threads");
        }
        count += usize::from(expected.is_ok());
    }
    count
}

#[test]
fn files_compute_what_their_models_compute() {
    let (Some(models), Some(circle)) = (shared_dir("models"), shared_dir("circle")) else { return };
    let mut paths = files_below(&models, &["tflite", "circle"]);
    paths.extend(files_below(&circle, &["circle"]));
    paths.retain(|path| !SLOW.iter().any(|slow| path.to_string_lossy().contains(slow)));
    let count = check(&paths, None);
    println!("{count} models");
    assert!(count >= 15, "{count}");
}

#[test]
fn circle_files_compute_what_their_models_compute() {
    let Some(models) = shared_dir("models") else { return };
    let names = ["ssd_mobilenet_v1_coco_quant", "mnist_lstm_fp32", "microwakeword_okay_nabu"];
    let paths = names.map(|name| models.join(name).with_extension("tflite"));
    assert_eq!(check(&paths, Some(Dialect::Circle)), 3);
}

/// Contents of the first operator, which is an XNNGraph.
fn stored(model: &Model) -> &CustomOptions {
    match &model.subgraphs[0].operators[0].op {
        Op::Custom(custom) => custom,
        op => panic!("{op}"),
    }
}

/// `x → MUL weights → WHERE`, and `weights → WHERE` if they are shared.
fn mul_and_where(shared: bool) -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let weights = graph.constant_f32("weights", &[1, 4], &[1.0, 0.0, 2.0, 0.0]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", DType::I64, &[]);
    graph.op(Op::Mul(Default::default()), &[x, weights], &[y]).op(Op::Where, &[y], &[z]).output(z);
    if shared {
        let w = graph.tensor("w", DType::I64, &[]);
        graph.op(Op::Where, &[weights], &[w]).output(w);
    }
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(graph)
        .signature("main", 0, &[("in", x)], &[("out", z)])
        .metadata("notes", "kept".as_bytes())
        .build()
}

#[test]
fn constants_stay_where_others_use_them() {
    for shared in [false, true] {
        let model = partial(&mul_and_where(shared));
        let graph = &model.subgraphs[0];
        let names: Vec<&str> = graph.tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names.contains(&"weights"), shared, "{names:?}");
        assert_eq!(graph.operators[0].op.name(), CUSTOM_OPERATOR);
        assert_eq!(graph.operators[1].op, Op::Where);
        assert_eq!(model.metadata[0].data, "kept".as_bytes());
        let blob = Blob::from_bytes(stored(&model).options.clone()).unwrap();
        assert_eq!(blob.graph().origin.input_names, ["x"]);
    }
}

#[test]
fn constants_of_mapped_files_are_aligned() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = converted(&mul_and_where(false)).unwrap().into_bytes();
    std::fs::write(file.path(), bytes).unwrap();
    let model = Model::open(file.path()).unwrap();
    let blob = Blob::from_bytes(stored(&model).options.clone()).unwrap();
    let constants: Vec<&Bytes> =
        blob.graph().values.iter().filter_map(|v| v.data.as_ref()).collect();
    assert_eq!(constants.len(), 1);
    assert!(constants[0].as_ptr().addr().is_multiple_of(64));
}

#[test]
fn what_does_not_go_whole_fails_on_request() {
    let mut options = ConvertOptions::default();
    options.require_full = true;
    let error = convert(&mul_and_where(false), &Source::default(), &options).unwrap_err();
    assert!(matches!(error, Error::Incomplete(_)));
    assert!(error.to_string().contains("operator 1 (WHERE)"), "{error}");
    // Where nothing goes there is nothing to write, either.
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4]);
    let y = graph.tensor("y", DType::I64, &[]);
    graph.op(Op::Where, &[x], &[y]).output(y);
    let error = converted(&graph.build_model()).unwrap_err();
    assert!(error.to_string().contains("operator 0 (WHERE)"), "{error}");
}

#[test]
fn other_readers_get_no_models_with_graphs_inside() {
    let mut options = ConvertOptions::default();
    options.compat = Compat::Executorch;
    let convert = |model: &Model| convert(model, &Source::default(), &options);
    let error = convert(&mul_and_where(false)).unwrap_err();
    assert!(matches!(error, Error::Incomplete(_)));
    assert!(error.to_string().contains("operator 1 (WHERE)"), "{error}");
    // Other readers get the first of several entry points.
    assert!(matches!(convert(&two_signatures()).unwrap(), Converted::Whole(_)));
    // Forms with nodes that they do not know are not chosen.
    let mut graph = GraphBuilder::new("main");
    let (x, y) = (graph.input("x", DType::I8, &[8, 4]), graph.tensor("y", DType::I8, &[8, 4]));
    graph.quantize(x, 0.1, 0).quantize(y, 1.0 / 256.0, -128);
    graph.op(Op::Softmax(SoftmaxOptions { beta: 1.0 }), &[x], &[y]).output(y);
    assert!(matches!(convert(&graph.build_model()).unwrap(), Converted::Whole(_)));
}

#[test]
fn models_that_are_no_graph_say_why() {
    let refusal = |change: fn(&mut GraphBuilder, usize, usize)| {
        let mut graph = GraphBuilder::new("main");
        let (x, y) = (graph.input("x", DType::F32, &[2]), graph.tensor("y", DType::F32, &[2]));
        change(&mut graph, x, y);
        let mut options = ConvertOptions::default();
        options.require_full = true;
        let error = convert(&graph.build_model(), &Source::default(), &options).unwrap_err();
        error.to_string().lines().last().unwrap().trim().to_owned()
    };
    let none = refusal(|graph, x, _| {
        graph.output(x);
    });
    assert_eq!(none, "it has no operators");
    let unread = refusal(|graph, x, y| {
        graph.input("spare", DType::F32, &[2]);
        graph.op(Op::Abs, &[x], &[y]).output(y);
    });
    assert_eq!(unread, "input \"spare\" is read by no operator");
    let through = refusal(|graph, x, y| {
        graph.op(Op::Abs, &[x], &[y]).output(y).output(x);
    });
    assert_eq!(through, "output \"x\" is an input or a constant");
}
