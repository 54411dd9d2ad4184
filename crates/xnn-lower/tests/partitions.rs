//! Which operators that can be delegated are delegated, and in which partitions.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use xnn_lower::{Decision, PartitionOptions, Partitioning, Unchecked, WhyNot, partition};
use xnn_model::op::{CustomOptions, GatherOptions, Op, PackOptions};
use xnn_model::{DType, Quantization, TensorId, ZeroPoints, infer};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::GraphBuilder;

/// An operator that cannot be delegated.
fn other() -> Op {
    Op::Custom(CustomOptions { code: "Mine".into(), ..CustomOptions::default() })
}

fn decide(graph: GraphBuilder, options: &PartitionOptions) -> Partitioning {
    let model = graph.build_model();
    partition(&infer(Arc::clone(model.main().unwrap())).unwrap(), options, &mut Unchecked)
        .unwrap()
        .0
}

/// `x → other → middle → other`, with fp32 tensors of these sizes around the operators that
/// `middle` adds.
fn between(
    [from, to]: [usize; 2],
    middle: impl FnOnce(&mut GraphBuilder, TensorId, TensorId),
) -> GraphBuilder {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, from]);
    let a = graph.tensor("a", DType::F32, &[1, from]);
    let b = graph.tensor("b", DType::F32, &[1, to]);
    let y = graph.tensor("y", DType::F32, &[1, to]);
    graph.op(other(), &[x], &[a]);
    middle(&mut graph, a, b);
    graph.op(other(), &[b], &[y]).output(y);
    graph
}

fn reshape(graph: &mut GraphBuilder, from: TensorId, to: TensorId) {
    let shape = graph.constant_i32("shape", &[2], &[1, 12]);
    graph.op(Op::Reshape(Default::default()), &[from, shape], &[to]);
}

fn slice(size: i32) -> impl FnOnce(&mut GraphBuilder, TensorId, TensorId) {
    move |graph, from, to| {
        let begin = graph.constant_i32("begin", &[2], &[0, 0]);
        let size = graph.constant_i32("size", &[2], &[1, size]);
        graph.op(Op::Slice, &[from, begin, size], &[to]);
    }
}

/// A GATHER of the first `count` columns.
fn gather(count: i32) -> impl FnOnce(&mut GraphBuilder, TensorId, TensorId) {
    move |graph, from, to| {
        let columns: Vec<i32> = (0..count).collect();
        let columns = graph.constant_i32("columns", &[columns.len()], &columns);
        let options = GatherOptions { axis: 1, ..GatherOptions::default() };
        graph.op(Op::Gather(options), &[from, columns], &[to]);
    }
}

#[track_caller]
fn assert_not_delegated(graph: GraphBuilder) {
    let partitioning = decide(graph, &PartitionOptions::default());
    let why = &partitioning.decisions[1];
    assert!(matches!(why, Decision::NotDelegated(WhyNot::NotWorthIt { macs: 0, .. })), "{why:?}");
}

#[track_caller]
fn assert_delegated(graph: GraphBuilder, options: &PartitionOptions) {
    let partitioning = decide(graph, options);
    assert_eq!(partitioning.decisions[1], Decision::Delegated { partition: 0 });
}

#[test]
fn partitions_that_change_no_byte_are_not_delegated() {
    let defaults = PartitionOptions::default();
    assert_not_delegated(between([12, 12], reshape));
    assert_delegated(
        between([12, 12], |graph, from, to| {
            let t = graph.tensor("t", DType::F32, &[1, 12]);
            reshape(graph, from, t);
            graph.op(Op::Tanh, &[t], &[to]);
        }),
        &defaults,
    );
    let mut options = PartitionOptions::default();
    options.keep_small = true;
    assert_delegated(between([12, 12], reshape), &options);
}

#[test]
fn a_boundary_may_have_16_bytes_for_each_element() {
    // 3 elements of 12: 60 bytes of boundary tensors. 4 of 12: 64.
    assert_not_delegated(between([12, 3], slice(3)));
    assert_delegated(between([12, 4], slice(4)), &PartitionOptions::default());
    assert_not_delegated(between([12, 3], gather(3)));
    assert_delegated(between([12, 4], gather(4)), &PartitionOptions::default());
}

#[test]
fn work_counts_elements_read() {
    let sum = |graph: &mut GraphBuilder, from, to| {
        let axes = graph.constant_i32("axes", &[1], &[1]);
        let options = xnn_model::op::ReducerOptions { keep_dims: true };
        graph.op(Op::Sum(options), &[from, axes], &[to]);
    };
    assert_delegated(between([1000, 1], sum), &PartitionOptions::default());
}

#[test]
fn fully_delegated_models_are_always_worth_it() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[2, 6]);
    let y = graph.tensor("y", DType::F32, &[1, 12]);
    reshape(&mut graph, x, y);
    graph.output(y);
    let partitioning = decide(graph, &PartitionOptions::default());
    assert!(partitioning.is_full());
}

#[test]
fn options_limit_size_and_number() {
    let chain = || {
        let mut graph = GraphBuilder::new("main");
        let mut last = graph.input("x", DType::F32, &[1, 8]);
        for size in [8, 4] {
            let weights = graph.constant_f32("w", &[size, 8], &vec![0.5; size * 8]);
            let t = graph.tensor("t", DType::F32, &[1, size]);
            let u = graph.tensor("u", DType::F32, &[1, 8]);
            graph.op(Op::FullyConnected(Default::default()), &[last, weights], &[t]);
            graph.op(other(), &[t], &[u]);
            last = u;
        }
        graph.output(last);
        graph
    };
    let taken = |set: &dyn Fn(&mut PartitionOptions)| {
        let mut options = PartitionOptions::default();
        set(&mut options);
        let decisions = decide(chain(), &options).decisions;
        [0, 2].map(|index: usize| matches!(decisions[index], Decision::Delegated { .. }))
    };
    assert_eq!(taken(&|_| {}), [true, true]);
    assert_eq!(taken(&|options| options.min_partition_macs = 33), [true, false]);
    assert_eq!(taken(&|options| options.min_partition_macs = 64), [true, false]);
    assert_eq!(taken(&|options| options.min_partition_macs = 65), [false, false]);
    assert_eq!(taken(&|options| options.max_partitions = Some(1)), [true, false]);
    assert_eq!(taken(&|options| options.max_partitions = Some(0)), [false, false]);
    assert_eq!(taken(&|options| options.disable = vec!["FULLY_CONNECTED".into()]), [false, false]);
}

#[test]
fn partitions_do_not_reach_around_state() {
    // Reading, computing, writing; then reading again what was written.
    let mut graph = GraphBuilder::new("main");
    let handle = graph.tensor("handle", DType::Resource, &[1]);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.tensor(name, DType::F32, &[1, 4]));
    graph.op(Op::VarHandle(Default::default()), &[], &[handle]);
    graph.op(Op::ReadVariable, &[handle], &[a]).op(Op::Tanh, &[a], &[b]);
    graph.op(Op::AssignVariable, &[handle, b], &[]);
    graph.op(Op::ReadVariable, &[handle], &[c]).op(Op::Abs, &[c], &[d]).output(d);
    let partitions = decide(graph, &PartitionOptions::default()).partitions;
    let operators: Vec<&[usize]> = partitions.iter().map(|p| p.operators.as_slice()).collect();
    assert_eq!(operators, [&[2][..], &[5]]);
}

/// A tensor of which only the rank is asked for, which is a size of another.
struct Ranked {
    dtype: DType,
    shape: Vec<usize>,
    quantization: Option<Quantization>,
}

impl Ranked {
    fn new(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: shape.to_vec(), quantization: None }
    }

    fn quantized(self, scale: f32, zero_point: i64) -> Self {
        Self { quantization: Some(Quantization::PerTensor { scale, zero_point }), ..self }
    }

    fn decide(&self) -> Partitioning {
        let rank = self.shape.len();
        let mut graph = GraphBuilder::new("main");
        let ranked = graph.input("ranked", self.dtype, &self.shape);
        if let Some(quantization) = &self.quantization {
            graph.quantization(ranked, quantization.clone());
        }
        let x = graph.input("x", DType::F32, &[42]);
        let rows = graph.tensor("rows", DType::I32, &[]);
        let columns = graph.constant_i32("columns", &[], &[-1]);
        let shape = graph.tensor("shape", DType::I32, &[2]);
        let [a, b] = ["a", "b"].map(|name| graph.tensor(name, DType::F32, &[rank, 42 / rank]));
        graph
            .op(Op::Rank, &[ranked], &[rows])
            .op(Op::Pack(PackOptions { values_count: 2, axis: 0 }), &[rows, columns], &[shape])
            .op(Op::Reshape(Default::default()), &[x, shape], &[a])
            .op(Op::Tanh, &[a], &[b])
            .output(b);
        decide(graph, &PartitionOptions::default())
    }

    /// It goes, and runs take the tensor as it is.
    #[track_caller]
    fn assert_delegated(&self) {
        let partitioning = self.decide();
        assert!(partitioning.is_full(), "{:?}", partitioning.decisions);
        let graph = partitioning.partitions[0].graph.clone();
        let program = Program::new(graph, &ProgramOptions::default()).unwrap();
        let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
        let elements = self.shape.iter().product();
        assert_eq!(Some(session.input_mut(0).len()), self.dtype.byte_size(elements));
        session.run().unwrap();
    }

    /// The others go without it.
    #[track_caller]
    fn assert_not_delegated(&self, code: &str) {
        let partitioning = self.decide();
        let why = &partitioning.decisions[0];
        assert!(matches!(why, Decision::NotDelegated(why) if why.code() == code), "{why:?}");
        assert_eq!(partitioning.delegated(), 3);
        assert_eq!(partitioning.partitions[0].inputs, [1]);
    }
}

#[test]
fn tensors_whose_shapes_are_known_are_inputs_that_graphs_can_have() {
    use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, Resource, U8};
    for dtype in [F32, F16, I32, I8, U8, Bool] {
        Ranked::new(dtype, &[1, 8]).assert_delegated();
    }
    for dtype in [I64, I16, F64, Resource] {
        Ranked::new(dtype, &[1, 8]).assert_not_delegated("type");
    }
    Ranked::new(F32, &[1; 6]).assert_delegated();
    Ranked::new(F32, &[1; 7]).assert_not_delegated("rank");
    Ranked::new(F32, &[1, 0]).assert_not_delegated("empty");
    Ranked::new(I8, &[2, 3]).quantized(0.5, 127).assert_delegated();
    Ranked::new(I8, &[2, 3]).quantized(0.5, 128).assert_not_delegated("zero-point");
    let (scales, zero_points) = (vec![0.5; 3].into(), ZeroPoints::default());
    let quantization = Some(Quantization::PerAxis { scales, zero_points, axis: 1 });
    Ranked { quantization, ..Ranked::new(I8, &[2, 3]) }.assert_not_delegated("quantization");
}
