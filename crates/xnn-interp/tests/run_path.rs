//! Runs do not allocate once shapes are settled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::path::Path;

use common::{Builder, load};
use xnn_interp::{Interpreter, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Model, Op, Subgraph};
use xnn_testing::{CountingAllocator, allocations, shared_dir};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Number of allocations of a run, after runs that settle shapes and places.
fn allocations_of(interpreter: &mut Interpreter) -> usize {
    (0..2).for_each(|_| interpreter.run().unwrap());
    allocations(|| interpreter.run().unwrap())
}

/// Concatenates the last four inputs with the newest one, as streaming models do.
fn window() -> Model {
    let handle =
        || Op::VarHandle(VarHandleOptions { shared_name: "last".into(), ..Default::default() });
    let mut init = Builder::new();
    let resource = init.tensor(DType::Resource, &[1]);
    let start = init.constant(&[1, 4, 1], &[0.0f32; 4]);
    init.op(handle(), &[], &[resource]);
    init.op(Op::AssignVariable, &[resource, start], &[]);
    let mut main = Builder::new();
    let x = main.input(DType::F32, &[1, 1, 1]);
    let resource = main.tensor(DType::Resource, &[1]);
    let bounds = [[0i32, 1, 0], [0, 5, 1], [1; 3]].map(|values| main.constant(&[3], &values));
    let [old, all, new] = [4, 5, 4].map(|length| main.tensor(DType::F32, &[1, length, 1]));
    main.op(Op::CallOnce(CallOptions { subgraph: 1 }), &[], &[]);
    main.op(handle(), &[], &[resource]);
    main.op(Op::ReadVariable, &[resource], &[old]);
    let options = ConcatenationOptions { axis: 1, ..Default::default() };
    main.op(Op::Concatenation(options), &[old, x], &[all]);
    let options = StridedSliceOptions { begin_mask: 1, end_mask: 1, ..Default::default() };
    main.op(Op::StridedSlice(options), &[all, bounds[0], bounds[1], bounds[2]], &[new]);
    main.op(Op::AssignVariable, &[resource, new], &[]);
    main.graph.outputs.push(all);
    common::model(vec![main.graph, init.graph])
}

#[test]
fn streaming_models_do_not_allocate() {
    let mut interpreter = load(&window()).unwrap();
    for step in 1..9 {
        let input: &mut [f32] = interpreter.input_mut(0).unwrap().into_slice().unwrap();
        input.fill(step as f32);
        let count = allocations(|| interpreter.run().unwrap());
        assert!(step < 3 || count == 0, "{count} in step {step}");
        let expected: [f32; 5] = std::array::from_fn(|i| (step - 4 + i as i32).max(0) as f32);
        assert_eq!(interpreter.output(0).unwrap().as_slice::<f32>().unwrap(), expected);
    }
    // Values that were reset are allocated once again.
    interpreter.reset_variables();
    assert_eq!(allocations_of(&mut interpreter), 0);
}

/// Computes `x, y = y, x + y` for `iterations` times, in a branch in a call.
fn fibonacci(size: usize, iterations: i32) -> Model {
    let pair = |b: &mut Builder| [0; 2].map(|_| b.input(DType::I32, &[size]));
    let results = |b: &mut Builder| [0; 2].map(|_| b.tensor(DType::I32, &[size]));
    let mut main = Builder::new();
    let inputs = pair(&mut main);
    let outputs = results(&mut main);
    main.op(Op::Call(CallOptions { subgraph: 1 }), &inputs, &outputs);
    main.graph.outputs.extend(outputs);

    let mut branching = Builder::new();
    let [x, y] = pair(&mut branching);
    let flag = branching.constant(&[1], &[1u8]);
    branching.graph.tensors[flag].dtype = DType::Bool;
    let outputs = results(&mut branching);
    let options = IfOptions { then_subgraph: 2, else_subgraph: 2 };
    branching.op(Op::If(options), &[flag, x, y], &outputs);
    branching.graph.outputs.extend(outputs);

    let mut looping = Builder::new();
    let [x, y] = pair(&mut looping);
    let [x, y] = [x, y].map(|x| {
        let copy = looping.tensor(DType::I32, &[size]);
        looping.op(Op::Add(ArithmeticOptions::default()), &[x, x], &[copy]);
        copy
    });
    let [zero, end] = [looping.constant(&[1], &[0i32]), looping.tensor(DType::I32, &[1])];
    let [z, w] = results(&mut looping);
    let options = WhileOptions { cond_subgraph: 3, body_subgraph: 4 };
    looping.op(Op::While(options), &[zero, x, y], &[end, z, w]);
    looping.graph.outputs.extend([z, w]);

    let mut condition = Builder::new();
    let i = condition.input(DType::I32, &[1]);
    pair(&mut condition);
    let limit = condition.constant(&[1], &[iterations]);
    let less = condition.tensor(DType::Bool, &[1]);
    condition.op(Op::Less, &[i, limit], &[less]);
    condition.graph.outputs.push(less);

    let mut body = Builder::new();
    let i = body.input(DType::I32, &[1]);
    let [x, y] = pair(&mut body);
    let (one, next) = (body.constant(&[1], &[1i32]), body.tensor(DType::I32, &[1]));
    let sum = body.tensor(DType::I32, &[size]);
    body.op(Op::Add(ArithmeticOptions::default()), &[i, one], &[next]);
    body.op(Op::Add(ArithmeticOptions::default()), &[x, y], &[sum]);
    body.graph.outputs.extend([next, y, sum]);
    let graphs = [main, branching, looping, condition, body];
    common::model(graphs.into_iter().map(|b| b.graph).collect())
}

/// Tests tensors that are copied between subgraphs, and tensors that move.
#[test]
fn control_operators_do_not_allocate() {
    for size in [3, 2000] {
        let first_run = |iterations| {
            let mut interpreter = load(&fibonacci(size, iterations)).unwrap();
            let count = allocations(|| interpreter.run().unwrap());
            // Memory moves from tensor to tensor until each has some.
            (0..6).for_each(|_| interpreter.run().unwrap());
            assert_eq!(allocations_of(&mut interpreter), 0, "{size}: {iterations} iterations");
            count
        };
        // Later iterations need no more than the first ones.
        assert_eq!(first_run(3), first_run(100), "{size}");
    }
}

#[test]
fn runs_with_other_shapes_settle() {
    let mut b = Builder::new();
    let x = b.input(DType::F32, &[2, 3]);
    let one = b.constant(&[], &[1.0f32]);
    let y = b.tensor(DType::F32, &[2, 3]);
    let z = b.tensor(DType::F32, &[2, 3]);
    b.op(Op::Add(ArithmeticOptions::default()), &[x, one], &[y]);
    b.op(Op::Neg, &[y], &[z]);
    b.graph.outputs.push(z);
    let mut interpreter = load(&b.model()).unwrap();
    assert_eq!(allocations_of(&mut interpreter), 0);
    let value = TensorBuf::from_slice(&[4, 3], &[0.0f32; 12]).unwrap();
    interpreter.set_input(0, value).unwrap();
    assert_ne!(allocations(|| interpreter.run().unwrap()), 0);
    assert_eq!(allocations_of(&mut interpreter), 0);
}

/// A model of a single operator, whose first input is the model's input.
fn alone(graph: &Subgraph, index: usize) -> Model {
    let operator = graph.operators[index].clone();
    let inputs = vec![operator.inputs[0].unwrap()];
    let outputs = operator.outputs.clone();
    let alone = Subgraph { inputs, outputs, operators: vec![operator], ..graph.clone() };
    common::model(vec![alone])
}

/// Tests floats, floats with 8-bit weights, and integers.
#[test]
fn recurrent_operators_do_not_allocate() {
    let Some(folder) = shared_dir("models") else { return };
    let mut found = 0;
    for name in ["mnist_lstm_fp32", "mnist_lstm_int8", "dtln_noise_int8", "keyword_scrambled_svdf"]
    {
        let model = Model::open(folder.join(format!("{name}.tflite"))).unwrap();
        let graph = &model.subgraphs[0];
        for (index, operator) in graph.operators.iter().enumerate() {
            if !["UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "SVDF"].contains(&operator.op.name()) {
                continue;
            }
            let mut interpreter = load(&alone(graph, index)).unwrap();
            let count = allocations_of(&mut interpreter);
            assert_eq!(count, 0, "{name}: operator {index} ({})", operator.op.name());
            found += 1;
        }
    }
    assert!(found > 8, "{found}");
}

/// A unit with float or 8-bit weights.
fn rnn(hybrid: bool) -> Model {
    let mut b = Builder::new();
    let x = b.input(DType::F32, &[2, 3]);
    let matrices = [[4, 3], [4, 4]].map(|shape: [usize; 2]| {
        let count = shape.iter().product();
        if !hybrid {
            return b.constant(&shape, &vec![0.25f32; count]);
        }
        let id = b.constant(&shape, &vec![32i8; count]);
        b.quantize(id, 1.0 / 128.0, 0);
        id
    });
    let bias = b.constant(&[4], &[0.5f32; 4]);
    let state = b.variable(DType::F32, &[2, 4]);
    let y = b.tensor(DType::F32, &[2, 4]);
    let options = RnnOptions { activation: Activation::Tanh, ..Default::default() };
    b.op(Op::Rnn(options), &[x, matrices[0], matrices[1], bias, state], &[y]);
    b.graph.outputs.push(y);
    b.model()
}

#[test]
fn simple_recurrent_units_do_not_allocate() {
    for hybrid in [false, true] {
        let mut interpreter = load(&rnn(hybrid)).unwrap();
        interpreter.input_mut(0).unwrap().into_slice::<f32>().unwrap().fill(1.0);
        assert_eq!(allocations_of(&mut interpreter), 0, "hybrid: {hybrid}");
    }
}

/// Operators whose kernels allocate temporary memory: layers, which are usually delegated, and
/// rearrangements by tables.
const ALLOCATING: &[&str] = &[
    "ADD_N",
    "AVERAGE_POOL_2D",
    "BATCH_MATMUL",
    "BATCH_TO_SPACE_ND",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "L2_POOL_2D",
    "MAX_POOL_2D",
    "MEAN",
    "MIRROR_PAD",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "REDUCE_PROD",
    "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
    "REVERSE_V2",
    "SPACE_TO_BATCH_ND",
    "SUM",
    "TRANSPOSE_CONV",
];

#[test]
fn most_operators_do_not_allocate() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/operators");
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let model = Model::open(path.join("model.tflite")).unwrap();
        let name = model.subgraphs[0].operators[0].op.name();
        // Some operators have no reference kernel.
        let Ok(mut interpreter) = load(&model) else { continue };
        for position in 0..interpreter.inputs() {
            let input = interpreter.input_mut(position).unwrap();
            match input.dtype {
                DType::F32 => input.into_slice::<f32>().unwrap().fill(1.0),
                DType::I8 | DType::U8 => input.bytes.fill(3),
                _ => {}
            }
        }
        let count = allocations_of(&mut interpreter);
        *found.entry(name.to_owned()).or_insert(0) += count;
    }
    let allocating: Vec<&str> =
        found.iter().filter(|(_, count)| **count > 0).map(|(name, _)| name.as_str()).collect();
    assert!(found.len() > 80);
    assert_eq!(allocating, ALLOCATING, "{found:?}");
}
