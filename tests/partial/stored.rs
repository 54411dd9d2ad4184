//! Models that hold graphs: converted again, changed, resized.

use std::sync::Arc;

use super::{converted, mul_and_where, outputs, partial, runner, stored};
use bytes::Bytes;
use xnn_delegate::blob::{Blob, CUSTOM_OPERATOR};
use xnn_delegate::lower::Delegation;
use xnn_delegate::model::Subgraph;
use xnn_delegate::{ConvertOptions, DType, Model, PartitionOptions, Runner, Source, convert};
use xnn_model::op::{CustomOptions, Op};
use xnn_model::{Dialect, Operator};
use xnn_testing::{GraphBuilder, ModelBuilder, Random};

#[test]
fn converting_again_changes_nothing() {
    let mut options = ConvertOptions::default();
    options.partition.disable = vec!["MUL".into()];
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4]);
    let [a, b, c] = ["a", "b", "c"].map(|name| graph.tensor(name, DType::F32, &[4]));
    graph.op(Op::Tanh, &[x], &[a]).op(Op::Mul(Default::default()), &[a, a], &[b]);
    graph.op(Op::Abs, &[b], &[c]).output(c);
    let first = convert(&graph.build_model(), &Source::default(), &options).unwrap();
    let first = Model::from_bytes(first.into_bytes()).unwrap();
    let error = convert(&first, &Source::default(), &options).unwrap_err().to_string();
    assert!(error.contains("[disabled]"), "{error}");
    assert!(error.contains("graphs that the model holds already: 2"), "{error}");
    // Operators that the first conversion did not delegate are delegated now, beside the stored
    // graphs.
    let second = convert(&first, &Source::default(), &ConvertOptions::default()).unwrap();
    let second = Model::from_bytes(second.into_bytes()).unwrap();
    let names: Vec<&str> = second.subgraphs[0].operators.iter().map(|o| o.op.name()).collect();
    assert_eq!(names, [CUSTOM_OPERATOR; 3]);
    assert_eq!(first.subgraphs[0].operators[0], second.subgraphs[0].operators[0]);
    let mut runners = [first, second].map(|model| runner(&model, 1).unwrap());
    assert_eq!(runners.each_ref().map(|r| r.coverage().partitions), [3, 3]);
    let [a, b] = runners.each_mut().map(|runner| outputs(runner).unwrap());
    assert_eq!(a, b);
}

#[test]
fn stored_graphs_tell_how_much_they_compute() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[7, 3]);
    let weights = graph.constant_f32("weights", &[5, 3], &[0.5f32; 15]);
    let y = graph.tensor("y", DType::F32, &[7, 5]);
    let z = graph.tensor("z", DType::I64, &[]);
    graph.op(Op::FullyConnected(Default::default()), &[x, weights], &[y]);
    graph.op(Op::Where, &[y], &[z]).output(z);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    for model in [partial(&model), model] {
        let delegation = Delegation::new(&model.subgraphs[0], &PartitionOptions::default());
        let report = delegation.unwrap().report();
        let macs: Vec<u64> = report.partitions.iter().map(|partition| partition.macs).collect();
        assert_eq!(macs, [7 * 5 * 3]);
        assert_eq!(report.partitions[0].optimization.nodes_after, 1);
    }
}

/// The model with its first XNNGraph changed.
fn changed(change: impl Fn(&mut Operator, &mut CustomOptions, &mut Subgraph)) -> Model {
    let mut model = partial(&mul_and_where(false));
    let mut custom = stored(&model).clone();
    let graph = Arc::make_mut(&mut model.subgraphs[0]);
    let mut operator = graph.operators[0].clone();
    change(&mut operator, &mut custom, graph);
    operator.op = Op::Custom(custom);
    graph.operators[0] = operator;
    model
}

#[test]
fn graphs_that_cannot_be_used_are_refused_with_their_operator() {
    let refusal = |model: Model| {
        let error = runner(&model, 1).unwrap_err().to_string();
        assert!(error.starts_with("subgraph 0: operator 0 (XNNGraph): "), "{error}");
        let incomplete = converted(&model).unwrap_err().to_string();
        assert!(incomplete.contains("operator 0 (XNNGraph)"), "{incomplete}");
        error
    };
    let options = |options: &[u8]| CustomOptions {
        code: CUSTOM_OPERATOR.into(),
        options: Bytes::copy_from_slice(options),
    };
    // Damage stays damage, whatever else could be converted.
    let damaged = changed(|operator, custom, graph| {
        custom.options.truncate(9);
        let y = graph.tensors.len();
        graph.tensors.push(graph.tensor(operator.outputs[0]).clone());
        graph.operators.push(Operator {
            op: Op::Tanh,
            version: 1,
            inputs: vec![Some(operator.outputs[0])],
            outputs: vec![y],
            intermediates: vec![],
        });
        graph.outputs.push(y);
    });
    refusal(damaged);
    let good = changed(|_, _, _| {});
    assert!(runner(&good, 1).is_ok());
    for garbage in [&b""[..], b"not a blob", &[0; 64]] {
        refusal(changed(|_, custom, _| *custom = options(garbage)));
    }
    let size = Blob::from_bytes(stored(&good).options.clone()).unwrap().info().constants.end;
    for part in 0..8 {
        let end = usize::try_from(size).unwrap() * part / 8;
        refusal(changed(|_, custom, _| custom.options.truncate(end)));
    }
    let error = refusal(changed(|operator, _, _| operator.inputs.clear()));
    assert!(error.contains("inputs: expected 1 as in the graph, found 0"), "{error}");
    let error = refusal(changed(|operator, _, _| operator.inputs[0] = None));
    assert!(error.contains("an input is missing"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        graph.tensors[operator.inputs[0].unwrap()].dtype = DType::I32;
    }));
    assert!(error.contains("input 0 of the graph is fp32, but tensor \"x\" is"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        graph.tensors[operator.inputs[0].unwrap()].shape = Some(vec![4, 1]);
    }));
    assert!(error.contains("of the graph has the shape [1, 4], but"), "{error}");
    let error = refusal(changed(|operator, _, graph| {
        let spare = graph.tensors[operator.outputs[0]].clone();
        graph.tensors.push(spare);
        operator.outputs.push(graph.tensors.len() - 1);
    }));
    assert!(error.contains("outputs: expected 1 as in the graph, found 2"), "{error}");
}

#[test]
fn files_can_be_resized_where_their_models_can() {
    let model = mul_and_where(false);
    let results = [&model, &partial(&model)].map(|model| {
        let mut runner = runner(model, 1).unwrap();
        runner.resize_inputs(&[(0, &[3, 4])]).unwrap();
        let input: Vec<u8> = Random::new(2).tensor(DType::F32, 12);
        runner.input_bytes_mut(0).unwrap().copy_from_slice(&input);
        runner.run().unwrap();
        (runner.outputs()[0].dims.clone(), runner.output_bytes(0).unwrap().to_vec())
    });
    assert_eq!(results[0].0, [6, 2]);
    assert_eq!(results[0], results[1]);
}

#[test]
fn files_are_told_apart_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("misnamed.xnn");
    std::fs::write(&path, converted(&mul_and_where(false)).unwrap().bytes()).unwrap();
    assert_eq!(Runner::open(&path).unwrap().coverage().partitions, 1);
}
