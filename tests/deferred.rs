//! Operators whose shapes only a run tells: behind WHERE they run on XNNPACK all the same, and give what the kernels give.

#![allow(clippy::unwrap_used, reason = "tests")]

use half::f16;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::lower::Delegation;
use xnn_delegate::verify::Verifier;
use xnn_delegate::{Model, PartitionOptions, Runner, RunnerBuilder, RunnerOptions, SessionOptions};
use xnn_model::op::*;
use xnn_model::{DType, Dialect, TensorId};
use xnn_testing::{GraphBuilder, ModelBuilder, Random, assert_close};

/// Rows of which some are found.
const ROWS: usize = 256;

/// A graph that picks rows of this shape by a mask, which is its second input.
struct Finder {
    graph: GraphBuilder,
    random: Random,
    /// Rows that were found.
    found: TensorId,
}

impl Finder {
    fn new(row: &[usize]) -> Self {
        let mut graph = GraphBuilder::new("main");
        let x = graph.input("x", DType::F32, &[&[ROWS], row].concat());
        let mask = graph.input("mask", DType::Bool, &[ROWS]);
        let places = graph.tensor("places", DType::I64, &[1, 1]);
        let found = graph.tensor("found", DType::F32, &[&[1], row].concat());
        graph.op(Op::Where, &[mask], &[places]).op(Op::GatherNd, &[x, places], &[found]);
        Self { graph, random: Random::new(1), found }
    }

    /// A tensor of floats with one row per row that was found.
    fn tensor(&mut self, row: &[usize]) -> TensorId {
        self.graph.tensor("t", DType::F32, &[&[1], row].concat())
    }

    fn constant(&mut self, shape: &[usize]) -> TensorId {
        let count = shape.iter().product();
        let scale = (3.0 / shape.iter().skip(1).product::<usize>() as f32).sqrt();
        let values = self.random.f32s(count, -scale, scale);
        self.graph.constant_f32("c", shape, &values)
    }

    /// An operator that gives one tensor of such rows.
    fn then(&mut self, op: Op, inputs: &[TensorId], row: &[usize]) -> TensorId {
        let output = self.tensor(row);
        self.graph.op(op, inputs, &[output]);
        output
    }

    fn layer(&mut self, input: TensorId, [inputs, outputs]: [usize; 2]) -> TensorId {
        let weights = [self.constant(&[outputs, inputs]), self.constant(&[outputs])];
        let options = FullyConnectedOptions { activation: Activation::Relu, ..Default::default() };
        self.then(Op::FullyConnected(options), &[input, weights[0], weights[1]], &[outputs])
    }

    fn convolution(&mut self, input: TensorId, size: usize, [from, to]: [usize; 2]) -> TensorId {
        let weights = [self.constant(&[to, 3, 3, from]), self.constant(&[to])];
        let options = Conv2dOptions { stride_w: 1, stride_h: 1, ..Default::default() };
        self.then(Op::Conv2d(options), &[input, weights[0], weights[1]], &[size, size, to])
    }

    /// The sizes of a tensor, computed in the run, with the first one and others in its place.
    fn first_size_and(&mut self, input: TensorId, others: &[i32]) -> TensorId {
        let [all, first, shape] =
            [4, 0, others.len() + 1].map(|len| self.graph.tensor("s", DType::I32, &[len]));
        let bounds = [[0], [1], [1]].map(|value| self.graph.constant_i32("b", &[1], &value));
        let slice = StridedSliceOptions { shrink_axis_mask: 1, ..Default::default() };
        let mut sizes = vec![first];
        sizes.extend(others.iter().map(|&size| self.graph.constant_i32("n", &[], &[size])));
        let pack = PackOptions { values_count: sizes.len() as i32, axis: 0 };
        self.graph
            .op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[input], &[all])
            .op(Op::StridedSlice(slice), &[all, bounds[0], bounds[1], bounds[2]], &[first])
            .op(Op::Pack(pack), &sizes, &[shape]);
        shape
    }

    fn model(mut self, output: TensorId) -> Model {
        self.graph.output(output);
        self.graph.build_model()
    }
}

/// Three layers.
fn layers() -> Model {
    let mut f = Finder::new(&[64]);
    let mut last = f.found;
    for sizes in [[64, 128], [128, 128], [128, 10]] {
        last = f.layer(last, sizes);
    }
    f.model(last)
}

/// Two convolutions.
fn convolutions() -> Model {
    let mut f = Finder::new(&[6, 6, 3]);
    let first = f.convolution(f.found, 6, [3, 16]);
    let second = f.convolution(first, 6, [16, 8]);
    f.model(second)
}

/// Shapes that are computed from shapes, also in front of a transposed convolution.
fn reshapes() -> Model {
    let mut f = Finder::new(&[6, 6, 3]);
    let pixels = f.convolution(f.found, 6, [3, 4]);
    let flat = f.first_size_and(pixels, &[6 * 6 * 4]);
    let flat = f.then(Op::Reshape(ReshapeOptions { new_shape: None }), &[pixels, flat], &[144]);
    let features = f.layer(flat, [144, 36]);
    let image = f.first_size_and(features, &[6, 6, 1]);
    let image =
        f.then(Op::Reshape(ReshapeOptions { new_shape: None }), &[features, image], &[6, 6, 1]);
    let (size, weights) = (f.first_size_and(image, &[12, 12, 2]), f.constant(&[2, 2, 2, 1]));
    let options = TransposeConvOptions { stride_w: 2, stride_h: 2, ..Default::default() };
    let large = f.then(Op::TransposeConv(options), &[size, weights, image], &[12, 12, 2]);
    f.model(large)
}

/// Operators of many kinds, which rearrange rows, too.
fn mixture() -> Model {
    let mut f = Finder::new(&[4, 6]);
    let order = f.graph.constant_i32("order", &[3], &[1, 0, 2]);
    let axis = f.graph.constant_i32("axis", &[1], &[2]);
    let two = f.constant(&[1, 1, 6]);
    let softmax = f.then(Op::Softmax(SoftmaxOptions { beta: 1.0 }), &[f.found], &[4, 6]);
    let sum = f.then(Op::Add(ArithmeticOptions::default()), &[softmax, two], &[4, 6]);
    let turned = f.then(Op::Transpose, &[sum, order], &[1, 6]);
    let tanh = f.then(Op::Tanh, &[turned], &[1, 6]);
    let back = f.then(Op::Transpose, &[tanh, order], &[4, 6]);
    let mean = f.then(Op::Mean(ReducerOptions { keep_dims: true }), &[back, axis], &[4, 1]);
    let joined = ConcatenationOptions { axis: 2, ..Default::default() };
    let joined = f.then(Op::Concatenation(joined), &[back, mean, f.found], &[4, 13]);
    f.model(joined)
}

/// Places of as many rows as are to be found.
fn mask(random: &mut Random, count: usize) -> Vec<u8> {
    let mut mask = vec![0; ROWS];
    while mask.iter().filter(|&&is_set| is_set == 1).count() < count {
        mask[random.below(ROWS)] = 1;
    }
    mask
}

fn runner(model: &Model, threads: usize) -> Runner {
    let session = SessionOptions { threads, ..SessionOptions::default() };
    RunnerBuilder::from_model(model).session(session).build().unwrap()
}

fn reference(model: &Model) -> Interpreter {
    Interpreter::new(model, Entry::Main, &InterpOptions::default()).unwrap()
}

/// Runs with as many rows as are to be found, one time after the other, and compares with the kernels.
fn compare(model: &Model, runner: &mut Runner, counts: impl IntoIterator<Item = usize>) {
    let (mut reference, mut random) = (reference(model), Random::new(2));
    for count in counts {
        let elements = runner.inputs()[0].dims.iter().product();
        let inputs = [random.tensor(DType::F32, elements), mask(&mut random, count)];
        for (position, input) in inputs.iter().enumerate() {
            runner.input_bytes_mut(position).unwrap().copy_from_slice(input);
            reference.input_mut(position).unwrap().bytes.copy_from_slice(input);
        }
        runner.run().unwrap();
        reference.run().unwrap();
        let expected = reference.output(0).unwrap();
        assert_eq!(runner.outputs()[0].dims, expected.shape, "{count} rows");
        let actual = runner.output_reals(0).unwrap();
        assert_close(&actual, expected.as_slice::<f32>().unwrap(), 1e-4);
    }
}

#[test]
fn rows_that_are_found_go_with_any_number_of_them() {
    for (model, deferred) in [(layers(), 3), (convolutions(), 2), (reshapes(), 4), (mixture(), 7)] {
        for threads in [1, 2] {
            let mut runner = runner(&model, threads);
            assert_eq!(runner.coverage().deferred, deferred, "{}", runner.coverage());
            compare(&model, &mut runner, [0, 1, 5, 256, 5, 5, 0, 0, 1, 1, 256, 2, 2, 7, 7]);
        }
    }
}

#[test]
fn numbers_of_rows_that_change_all_the_time_go() {
    for model in [layers(), convolutions(), reshapes(), mixture()] {
        let mut random = Random::new(3);
        let mut runner = runner(&model, 1);
        // Each twice, so that small ones are compiled, too.
        compare(&model, &mut runner, (0..30).flat_map(|_| [random.below(ROWS + 1); 2]));
        compare(&model, &mut runner, (0..30).map(|_| random.below(20)));
    }
}

#[test]
fn runners_of_one_model_find_rows_of_their_own() {
    let model = layers();
    let mut first = runner(&model, 1);
    compare(&model, &mut first, [200, 200]);
    let mut second = first.fork().unwrap();
    for _ in 0..3 {
        compare(&model, &mut first, [200, 3, 3]);
        compare(&model, &mut second, [100, 5, 200]);
    }
}

/// GATHER of so many features is left, which is known only where its shape is.
#[test]
fn what_xnnpack_does_not_take_is_computed_between() {
    let mut f = Finder::new(&[64]);
    let first = f.layer(f.found, [64, 300]);
    let picked: Vec<i32> = (0..300).map(|at| at * 7 % 300).collect();
    let picked = f.graph.constant_i32("picked", &[300], &picked);
    let gather = GatherOptions { axis: 1, batch_dims: 0 };
    let gathered = f.then(Op::Gather(gather), &[first, picked], &[300]);
    let last = f.layer(gathered, [300, 64]);
    let model = f.model(last);
    let mut runner = runner(&model, 1);
    assert_eq!(runner.coverage().deferred, 3);
    compare(&model, &mut runner, [0, 256, 5, 5, 256, 1, 17, 17]);
}

#[test]
fn filters_in_fp16_go_along() {
    let mut f = Finder::new(&[128]);
    let weights = f.random.f32s(128 * 160, -0.2, 0.2);
    let weights: Vec<u8> = weights.iter().flat_map(|&w| f16::from_f32(w).to_le_bytes()).collect();
    let halves = f.graph.constant("halves", DType::F16, &[160, 128], weights);
    let floats = f.graph.tensor("floats", DType::F32, &[160, 128]);
    f.graph.op(Op::Dequantize, &[halves], &[floats]);
    let bias = f.constant(&[160]);
    let layer = Op::FullyConnected(FullyConnectedOptions::default());
    let first = f.then(layer, &[f.found, floats, bias], &[160]);
    let last = f.layer(first, [160, 8]);
    let model = f.model(last);
    let mut runner = runner(&model, 1);
    assert_eq!(runner.coverage().deferred, 2);
    compare(&model, &mut runner, [256, 3, 3, 200, 8, 8, 9, 9, 256, 100, 7, 7]);
}

/// A loop of three iterations. Its body finds rows, applies a layer to them, and adds the sum of
/// the layer's results to all rows.
fn controlled() -> Model {
    let places = |graph: &mut GraphBuilder| {
        let x = graph.input("x", DType::F32, &[ROWS, 8]);
        let mask = graph.input("mask", DType::Bool, &[ROWS]);
        (x, mask)
    };
    let mut main = GraphBuilder::new("main");
    let (x, m) = places(&mut main);
    let start = main.constant_i32("start", &[1], &[0]);
    let [count, y, kept] =
        [(DType::I32, &[1][..]), (DType::F32, &[ROWS, 8]), (DType::Bool, &[ROWS])]
            .map(|(dtype, shape)| main.tensor("t", dtype, shape));
    let options = WhileOptions { cond_subgraph: 1, body_subgraph: 2 };
    main.op(Op::While(options), &[start, x, m], &[count, y, kept]).output(y);

    let mut condition = GraphBuilder::new("condition");
    let count = condition.input("count", DType::I32, &[1]);
    places(&mut condition);
    let three = condition.constant_i32("three", &[1], &[3]);
    let less = condition.tensor("less", DType::Bool, &[1]);
    condition.op(Op::Less, &[count, three], &[less]).output(less);

    let mut body = GraphBuilder::new("body");
    let count = body.input("count", DType::I32, &[1]);
    let (x, m) = places(&mut body);
    let (one, next) = (body.constant_i32("one", &[1], &[1]), body.tensor("n", DType::I32, &[1]));
    let [found, layer, sums] = [[1, 8], [1, 8], [1, 8]].map(|s| body.tensor("t", DType::F32, &s));
    let at = body.tensor("places", DType::I64, &[1, 1]);
    let weights = Random::new(4).f32s(64, -0.004, 0.004);
    let weights =
        [body.constant_f32("w", &[8, 8], &weights), body.constant_f32("b", &[8], &[0.001; 8])];
    let axis = body.constant_i32("axis", &[1], &[0]);
    let y = body.tensor("y", DType::F32, &[ROWS, 8]);
    body.op(Op::Add(ArithmeticOptions::default()), &[count, one], &[next])
        .op(Op::Where, &[m], &[at])
        .op(Op::GatherNd, &[x, at], &[found])
        .op(
            Op::FullyConnected(FullyConnectedOptions::default()),
            &[found, weights[0], weights[1]],
            &[layer],
        )
        .op(Op::Sum(ReducerOptions { keep_dims: true }), &[layer, axis], &[sums])
        .op(Op::Add(ArithmeticOptions::default()), &[x, sums], &[y]);
    body.output(next).output(y).output(m);
    [main, condition, body]
        .into_iter()
        .fold(ModelBuilder::new(Dialect::Tflite), ModelBuilder::subgraph)
        .build()
}

#[test]
fn bodies_of_loops_find_rows() {
    let model = controlled();
    let body = Delegation::new(&model.subgraphs[2], &PartitionOptions::default()).unwrap();
    assert_eq!(body.deferred().len(), 1, "{}", body.report());
    for threads in [1, 2] {
        compare(&model, &mut runner(&model, threads), [1, 5, 0, 256, 5, 17]);
    }
}

#[test]
fn limits_hold_for_what_only_a_run_sizes() {
    let model = layers();
    let limited = |bytes| {
        let mut options = RunnerOptions::default();
        options.limits.max_tensor_bytes = bytes;
        RunnerBuilder::from_model(&model).options(options).build().unwrap()
    };
    // All rows, and their first layer.
    let layer = ROWS * 128 * 4;
    compare(&model, &mut limited(layer), [256, 256, 5]);
    let mut runner = limited(layer - 1);
    compare(&model, &mut runner, [255, 255, 5]);
    for _ in 0..3 {
        runner.input_bytes_mut(1).unwrap().fill(1);
        let error = runner.run().unwrap_err().to_string();
        assert!(error.contains("limit of") && error.contains("FULLY_CONNECTED"), "{error}");
    }
    compare(&model, &mut runner, [200, 5, 5]);
}

#[test]
fn reports_tell_what_may_go_in_a_run() {
    let model = layers();
    let mut options = PartitionOptions::default();
    let delegation = Delegation::new(model.main().unwrap(), &options).unwrap();
    let report = delegation.report();
    assert!(report.summary.ends_with(", 3 more deferred until their shapes are known"));
    assert!(report.to_string().contains("deferred 0"), "{report}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["nodes"][2]["deferred"], &json["nodes"][1]["deferred"]),
        (&0.into(), &serde_json::Value::Null)
    );
    assert_eq!(json["nodes"][2]["reason"]["code"], "unknown-shape");
    assert!(delegation.whole().is_err());

    options.max_partitions = Some(0);
    let delegation = Delegation::new(model.main().unwrap(), &options).unwrap();
    assert!(delegation.deferred().is_empty());
    options = PartitionOptions::default();
    options.disable = vec!["FULLY_CONNECTED".into()];
    let delegation = Delegation::new(model.main().unwrap(), &options).unwrap();
    assert!(delegation.deferred().is_empty(), "{}", delegation.report());
}

#[test]
fn each_operator_is_verified_with_the_rows_of_the_run() {
    for (model, layers) in [(layers(), 3), (reshapes(), 1), (controlled(), 1)] {
        for count in [0, 9] {
            let mut verifier = Verifier::new(&model, &RunnerOptions::default()).unwrap();
            let mut random = Random::new(5);
            let reference = verifier.reference_mut();
            let elements = reference.inputs()[0].dims.iter().product();
            let inputs = [random.tensor(DType::F32, elements), mask(&mut random, count)];
            for (position, input) in inputs.iter().enumerate() {
                reference.input_bytes_mut(position).unwrap().copy_from_slice(input);
            }
            let verification = verifier.verify().unwrap();
            let compared = verification.operators.iter().filter(|it| it.op == "FULLY_CONNECTED");
            assert_eq!(compared.count(), if count > 0 { layers } else { 0 });
            // Layers without rows are skipped, because they have nothing to compare.
            assert_eq!(verification.skipped.is_empty(), count > 0, "{:?}", verification.skipped);
            let mut all = verification.operators.iter().chain(&verification.outputs);
            assert!(all.all(|it| it.is_within(1.0, 1e-4)), "{verification:?}");
        }
    }
}
