//! Models that go to XNNPACK in part: the interpreter with XNNPACK plugged in.
//!
//! Rounding differences grow from operator to operator, so that a bound for a whole model says
//! little. Instead: each delegated operator alone, on the inputs that it has in a run of the
//! reference kernels, agrees with them; and each partition gave, in a run of the whole model, the
//! bits that its program alone gives for the same inputs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter, XnnpackDelegate};
use xnn_delegate::lower::{Decision, Delegation};
use xnn_delegate::model::Subgraph;
use xnn_delegate::runtime::{Program, Session};
use xnn_delegate::verify::{Deviation, Skipped, Verifier};
use xnn_delegate::{
    Coverage, Model, PartitionOptions, Runner, RunnerBuilder, RunnerOptions, SessionOptions,
};
use xnn_model::op::{
    CustomOptions, FullyConnectedOptions, Op, ReducerOptions, ReshapeOptions, ShapeOptions,
};
use xnn_model::{DType, Dialect, TensorId};
use xnn_testing::{
    FP32_PART as PART, GraphBuilder, ModelBuilder, Q8_STEPS as STEPS, Random, files_below,
    shared_dir,
};

/// Operators with tensors for which nobody defines a result: scales that differ by 10^9, for which the multiplier of TFLite's
/// kernels overflows, so that 1 - 0 is less than 1 - 1 there.
const UNDEFINED: [(&str, &str); 1] =
    [("SUB", "wa/m/encoder/layer.0/attention/self/Where_output_0_where_condition_inv")];

#[test]
fn delegated_operators_agree_with_the_reference_kernels() {
    let Some(models) = shared_dir("models") else { return };
    let paths = partial_models(&models);
    assert!(paths.len() >= 10, "{paths:?}");
    let mut failures = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy();
        match check(&path) {
            Ok(compared) => println!("{name}: {compared} operators"),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Models that load, and that neither engine runs alone.
fn partial_models(folder: &Path) -> Vec<PathBuf> {
    let files = files_below(folder, &["tflite", "circle"]).into_iter();
    files
        .filter(|path| {
            let Ok(model) = Model::open(path) else { return false };
            let Ok(delegation) = delegation(model.main().unwrap()) else { return false };
            let delegates = !delegation.programs().is_empty() && delegation.whole().is_err();
            delegates && interpreter(&model, true).is_ok()
        })
        .collect()
}

fn delegation(graph: &Arc<Subgraph>) -> Result<Delegation, xnn_delegate::Error> {
    Delegation::new(graph, &PartitionOptions::default())
}

/// An interpreter that keeps all tensors, with XNNPACK or without.
fn interpreter(model: &Model, xnnpack: bool) -> Result<Interpreter, xnn_delegate::Error> {
    let delegate = XnnpackDelegate::new(PartitionOptions::default(), SessionOptions::default())?;
    let mut options = InterpOptions { keep_intermediates: true, ..InterpOptions::default() };
    if xnnpack {
        options.delegates.push(Arc::new(delegate));
    }
    Ok(Interpreter::new(model, Entry::Main, &options)?)
}

/// How many tensors were compared.
fn check(path: &Path) -> Result<usize, String> {
    let model = Model::open(path).unwrap();
    let mut verifier = Verifier::new(&model, &RunnerOptions::default()).unwrap();
    let reference = verifier.reference_mut();
    let mut random = Random::new(11);
    for position in 0..reference.inputs().len() {
        let spec = reference.inputs()[position].clone();
        fill(&mut random, spec.dtype, &spec.dims, reference.input_bytes_mut(position).unwrap());
    }
    let verification = verifier.verify().map_err(|error| error.to_string())?;
    let is_undefined = |it: &Deviation| UNDEFINED.contains(&(it.op.as_str(), it.name.as_str()));
    // Rounding explains deviations of layers that quantize an input at run time: a difference in
    // the last bit may change the quantized value by a step.
    let is_far =
        |it: &&Deviation| !it.is_within(STEPS, PART) && !it.is_rounding() && !is_undefined(it);
    if let Some(far) = verification.operators.iter().find(is_far) {
        return Err(format!("{far:?}"));
    }
    // Subgraphs that the entry point runs, such as bodies of loops, have decisions of their own.
    let at_entry = verification.operators.iter().filter(|it| it.subgraph == 0);
    let compared: BTreeSet<_> = at_entry.filter_map(|it| it.operator).collect();
    let skipped = verification.skipped.iter().filter(|it| it.subgraph == 0).count();
    let delegation = delegation(model.main().unwrap()).unwrap();
    let deferred: usize = delegation.deferred().iter().map(|it| it.operators.len()).sum();
    assert_eq!(compared.len() + skipped, delegation.partitioning().delegated() + deferred);
    let is_deferred =
        |operator| delegation.deferred().iter().any(|it| it.operators.contains(&operator));
    // The kernels have computed nothing where no rows were found, or a loop has not written any yet.
    let has_reason = |it: &Skipped| {
        ["once", "[empty]"].iter().any(|reason| it.reason.contains(reason))
            || is_deferred(it.operator)
    };
    let unexplained = verification.skipped.iter().find(|it| !has_reason(it));
    assert!(unexplained.is_none(), "{unexplained:?}");

    let mut host = interpreter(&model, true).unwrap();
    let mut random = Random::new(11);
    for position in 0..host.inputs() {
        let input = host.input_mut(position).unwrap();
        fill(&mut random, input.dtype, input.shape, input.bytes);
    }
    host.run().map_err(|error| error.to_string())?;
    for (partition, program) in
        delegation.partitioning().partitions.iter().zip(delegation.programs())
    {
        let outputs = run_alone(program, &partition.inputs, &host)?;
        for (bytes, id) in outputs.iter().zip(&partition.outputs) {
            if host.tensor(*id).unwrap().bytes != bytes {
                return Err(format!("tensor {id}: in the interpreter another result than alone"));
            }
        }
    }
    Ok(compared.len())
}

/// Indices and flags stay 0, which is always valid.
fn fill(random: &mut Random, dtype: DType, dims: &[usize], bytes: &mut [u8]) {
    if matches!(dtype, DType::F32 | DType::I8 | DType::U8) {
        bytes.copy_from_slice(&random.tensor(dtype, dims.iter().product()));
    }
}

/// A program's outputs for inputs that an interpreter has.
fn run_alone(
    program: &Program,
    inputs: &[TensorId],
    values: &Interpreter,
) -> Result<Vec<Vec<u8>>, String> {
    let mut session = Session::new(program, &SessionOptions::default()).unwrap();
    for (position, &id) in inputs.iter().enumerate() {
        let value = values.tensor(id).ok_or_else(|| format!("tensor {id} has no value"))?;
        session.input_mut(position).copy_from_slice(value.bytes);
    }
    session.run().unwrap();
    Ok((0..session.outputs().len()).map(|position| session.output(position).to_vec()).collect())
}

#[test]
fn what_other_delegates_accept_and_cannot_run_runs() {
    let Some(folder) = shared_dir("models/accept_then_fail") else { return };
    let paths = files_below(&folder, &["tflite"]);
    assert_eq!(paths.len(), 27);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy();
        let model = Model::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut verifier = Verifier::new(&model, &RunnerOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for decision in &verifier.delegation().partitioning().decisions {
            match decision {
                Decision::Delegated { .. } => println!("{name}: delegated"),
                Decision::NotDelegated(why) => println!("{name}: left: [{}] {why}", why.code()),
            }
        }
        let left = verifier.delegation().partitioning().delegated() == 0;
        let reference = verifier.reference_mut();
        let mut random = Random::new(27);
        for position in 0..reference.inputs().len() {
            let spec = reference.inputs()[position].clone();
            fill(&mut random, spec.dtype, &spec.dims, reference.input_bytes_mut(position).unwrap());
        }
        let verification = verifier.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!verification.outputs.is_empty(), "{name}");
        let (steps, part) = if left { (0.0, 0.0) } else { (STEPS, PART) };
        for deviation in verification.operators.iter().chain(&verification.outputs) {
            assert!(deviation.is_within(steps, part), "{name}: {deviation:?}");
        }
    }
}

fn runner(model: &Model) -> Result<Runner, xnn_delegate::Error> {
    Runner::from_model(model)
}

#[test]
fn state_goes_on_until_it_is_reset() {
    let Some(models) = shared_dir("models") else { return };
    for name in ["microwakeword_okay_nabu", "dtln_noise_int8"] {
        let model = Model::open(models.join(name).with_extension("tflite")).unwrap();
        let mut runner = runner(&model).unwrap();
        let coverage = runner.coverage();
        assert!(!coverage.is_whole() && coverage.partitions > 0, "{name}: {coverage}");
        let mut five_runs = || -> Vec<Vec<u8>> {
            let mut random = Random::new(3);
            let runs = (0..5).map(|_| {
                for position in 0..runner.inputs().len() {
                    let spec = &runner.inputs()[position];
                    let elements = random.tensor(spec.dtype, spec.dims.iter().product());
                    runner.input_bytes_mut(position).unwrap().copy_from_slice(&elements);
                }
                runner.run().unwrap();
                (0..runner.outputs().len())
                    .flat_map(|at| runner.output_bytes(at).unwrap().to_vec())
                    .collect()
            });
            let runs = runs.collect();
            runner.reset_variables();
            runs
        };
        let first = five_runs();
        assert_eq!(first, five_runs(), "{name}");
    }
}

#[test]
fn state_makes_a_difference() {
    let Some(models) = shared_dir("models") else { return };
    // DTLN hands its state over as inputs and outputs; this one keeps it.
    let model = Model::open(models.join("microwakeword_okay_nabu.tflite")).unwrap();
    let mut runner = runner(&model).unwrap();
    let count = runner.inputs()[0].dims.iter().product();
    let elements = Random::new(4).tensor(runner.inputs()[0].dtype, count);
    runner.input_bytes_mut(0).unwrap().copy_from_slice(&elements);
    let outputs: BTreeSet<Vec<u8>> = (0..20)
        .map(|_| {
            runner.run().unwrap();
            runner.output_bytes(0).unwrap().to_vec()
        })
        .collect();
    assert!(outputs.len() > 1);
}

/// A model of `tanh`, which XNNPACK takes, and one more operator.
fn tanh_and(op: Op, dtype: DType, dims: &[usize]) -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", dtype, dims);
    graph.op(Op::Tanh, &[x], &[y]).op(op, &[y], &[z]).output(z);
    ModelBuilder::new(Dialect::Tflite).subgraph(graph).build()
}

#[test]
fn operators_that_nobody_takes_are_named_at_load() {
    let custom = CustomOptions { code: "Frobnicate".into(), ..CustomOptions::default() };
    let model = tanh_and(Op::Custom(custom), DType::F32, &[1, 4]);
    let error = runner(&model).unwrap_err().to_string();
    assert!(error.contains("operator 1 ") && error.contains("Frobnicate"), "{error}");
    assert!(runner(&tanh_and(Op::Logistic, DType::F32, &[1, 4])).is_ok());
}

#[test]
fn inputs_that_nothing_reads_keep_their_place() {
    let mut graph = GraphBuilder::new("main");
    graph.input("unread", DType::F32, &[1, 2]);
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    graph.op(Op::Tanh, &[x], &[y]).output(y);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    let mut runner = runner(&model).unwrap();
    let names: Vec<&str> = runner.inputs().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["unread", "x"]);
    assert_eq!(runner.coverage().delegated, 1);
    runner
        .input_bytes_mut(1)
        .unwrap()
        .copy_from_slice([0.5f32; 4].map(f32::to_ne_bytes).as_flattened());
    runner.run().unwrap();
    xnn_testing::assert_close(&runner.output_reals(0).unwrap(), &[0.5f32.tanh(); 4], 1e-6);
}

/// Every partition computes values that follow from shapes, and no partition passes them to
/// another.
#[test]
fn partitions_know_each_others_shapes() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[2, 3]);
    let floats = ["a", "b"].map(|name| graph.tensor(name, DType::F32, &[2, 3]));
    let flat = ["c", "d"].map(|name| graph.tensor(name, DType::F32, &[6]));
    let sizes = graph.tensor("sizes", DType::I32, &[2]);
    let axis = graph.constant_i32("axis", &[1], &[0]);
    let count = graph.tensor("count", DType::I32, &[1]);
    let product = Op::ReduceProd(ReducerOptions { keep_dims: true });
    graph
        .op(Op::Tanh, &[x], &[floats[0]])
        .op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[floats[0]], &[sizes])
        .op(product, &[sizes, axis], &[count])
        .op(Op::Logistic, &[floats[0]], &[floats[1]])
        .op(Op::Reshape(ReshapeOptions::default()), &[floats[1], count], &[flat[0]])
        .op(Op::Tanh, &[flat[0]], &[flat[1]])
        .output(flat[1]);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    let mut options = PartitionOptions::default();
    options.disable = vec!["LOGISTIC".into()];
    let mut runner = RunnerBuilder::from_model(&model).partition(options.clone()).build().unwrap();
    assert_eq!(
        runner.coverage(),
        Coverage { delegated: 5, operators: 6, partitions: 2, deferred: 0 }
    );
    let input = Random::new(6).f32s(6, -1.0, 1.0);
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_ne_bytes()).collect();
    runner.input_bytes_mut(0).unwrap().copy_from_slice(&bytes);
    runner.run().unwrap();
    let expected = input.iter().map(|x| (1.0 / (1.0 + (-x.tanh()).exp())).tanh());
    let output = runner.output_reals(0).unwrap();
    xnn_testing::assert_close(&output, &expected.collect::<Vec<_>>(), 1e-6);
}

#[test]
fn outputs_have_the_shape_of_the_last_run() {
    let mut runner = runner(&tanh_and(Op::Where, DType::I64, &[])).unwrap();
    assert!(!runner.coverage().is_whole());
    for (input, indices) in [([0.0f32, 1.0, 0.0, 2.0], &[0i64, 1, 0, 3][..]), ([0.0; 4], &[])] {
        let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_ne_bytes()).collect();
        runner.input_bytes_mut(0).unwrap().copy_from_slice(&bytes);
        runner.run().unwrap();
        assert_eq!(runner.outputs()[0].dims, [indices.len() / 2, 2]);
        let found = runner
            .output_bytes(0)
            .unwrap()
            .as_chunks()
            .0
            .iter()
            .map(|bytes| i64::from_ne_bytes(*bytes));
        assert_eq!(found.collect::<Vec<_>>(), indices);
    }
}

#[test]
fn whole_and_partial_models_take_other_shapes() {
    let model = tanh_and(Op::Logistic, DType::F32, &[1, 4]);
    for (disable, delegated) in [(vec![], 2), (vec!["LOGISTIC".into()], 1)] {
        let mut options = PartitionOptions::default();
        options.disable = disable;
        let mut runner =
            RunnerBuilder::from_model(&model).partition(options.clone()).build().unwrap();
        assert_eq!(
            runner.coverage(),
            Coverage { delegated, operators: 2, partitions: 1, deferred: 0 }
        );
        assert_eq!(runner.program().is_some(), delegated == 2);
        runner.resize_inputs(&[(0, &[3, 4])]).unwrap();
        assert_eq!(runner.inputs()[0].dims, [3, 4]);
        let input: Vec<f32> = Random::new(5).f32s(12, -1.0, 1.0);
        let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_ne_bytes()).collect();
        runner.input_bytes_mut("x").unwrap().copy_from_slice(&bytes);
        runner.run().unwrap();
        assert_eq!(runner.outputs()[0].dims, [3, 4]);
        let expected = input.iter().map(|x| 1.0 / (1.0 + (-x.tanh()).exp()));
        let output = runner.output_reals(runner.output_index("z").unwrap()).unwrap();
        xnn_testing::assert_close(&output, &expected.collect::<Vec<_>>(), 1e-6);
        assert!(runner.resize_inputs(&[(1, &[3, 4])]).is_err());
    }
}

#[test]
fn runners_of_one_model_have_memory_of_their_own() {
    let model = tanh_and(Op::Logistic, DType::F32, &[1, 4]);
    for disable in [vec![], vec!["LOGISTIC".into()]] {
        let mut options = PartitionOptions::default();
        options.disable = disable;
        let mut first = RunnerBuilder::from_model(&model).partition(options).build().unwrap();
        first
            .input_bytes_mut(0)
            .unwrap()
            .copy_from_slice(1.0f32.to_ne_bytes().repeat(4).as_slice());
        let mut second = first.fork().unwrap();
        assert_eq!((second.coverage(), second.inputs()), (first.coverage(), first.inputs()));
        second
            .input_bytes_mut(0)
            .unwrap()
            .copy_from_slice(2.0f32.to_ne_bytes().repeat(4).as_slice());
        second.run().unwrap();
        first.run().unwrap();
        for (runner, x) in [(&first, 1.0f64), (&second, 2.0)] {
            let expected = 1.0 / (1.0 + (-x.tanh()).exp());
            let outputs = runner.output_reals(0).unwrap();
            assert!(outputs.iter().all(|y| (f64::from(*y) - expected).abs() < 1e-5), "{outputs:?}");
        }
    }
}

/// A layer of `size` rows, inputs and outputs, and a logistic after it.
fn layer_and_logistic(size: usize) -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[size, size]);
    let weights = graph.constant_f32("weights", &[size, size], &vec![0.5; size * size]);
    let y = graph.tensor("y", DType::F32, &[size, size]);
    let z = graph.tensor("z", DType::F32, &[size, size]);
    let layer = Op::FullyConnected(FullyConnectedOptions::default());
    graph.op(layer, &[x, weights], &[y]).op(Op::Logistic, &[y], &[z]).output(z);
    ModelBuilder::new(Dialect::Tflite).subgraph(graph).build()
}

#[test]
fn runners_tell_how_many_threads_compute() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for (size, worth_it) in [(100, true), (8, false)] {
        let model = layer_and_logistic(size);
        for disable in [vec![], vec!["LOGISTIC".into()]] {
            let mut options = PartitionOptions::default();
            options.disable = disable;
            for threads in [1, 2, processors + 1] {
                let session = SessionOptions { threads, ..SessionOptions::default() };
                let runner = RunnerBuilder::from_model(&model)
                    .partition(options.clone())
                    .session(session)
                    .build()
                    .unwrap();
                let expected = if worth_it { threads.min(processors) } else { 1 };
                assert_eq!(runner.threads(), expected, "{size}, {threads}: {}", runner.coverage());
            }
        }
    }
    // Nothing of it goes to XNNPACK.
    let mut options = PartitionOptions::default();
    options.disable = vec!["LOGISTIC".into(), "FULLY_CONNECTED".into()];
    let session = SessionOptions { threads: 2, ..SessionOptions::default() };
    let runner = RunnerBuilder::from_model(&layer_and_logistic(100))
        .partition(options.clone())
        .session(session)
        .build()
        .unwrap();
    assert_eq!((runner.threads(), runner.coverage().partitions), (1, 0));
}
