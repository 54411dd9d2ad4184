//! Control operators, variables, limits, and shapes that are known only in a run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Builder, load, model};
use xnn_interp::{Entry, ErrorKind, InterpOptions, Interpreter, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Model, ModelLimits, Op, Signature, Subgraph};

fn add() -> Op {
    Op::Add(ArithmeticOptions::default())
}

/// Adds `value + step`.
fn adder(step: i32) -> Subgraph {
    let mut b = Builder::new();
    let x = b.input(DType::I32, &[1]);
    let step = b.constant(&[1], &[step]);
    let y = b.tensor(DType::I32, &[1]);
    b.op(add(), &[x, step], &[y]);
    b.graph.outputs.push(y);
    b.graph
}

/// Adds the condition `value < limit`.
fn below(limit: i32) -> Subgraph {
    let mut b = Builder::new();
    let x = b.input(DType::I32, &[1]);
    let limit = b.constant(&[1], &[limit]);
    let y = b.tensor(DType::Bool, &[1]);
    b.op(Op::Less, &[x, limit], &[y]);
    b.graph.outputs.push(y);
    b.graph
}

/// A main subgraph that passes its inputs to one control operator.
fn main_with(op: Op, inputs: &[(DType, &[usize])]) -> Subgraph {
    let mut b = Builder::new();
    let ids: Vec<usize> = inputs.iter().map(|(dtype, shape)| b.input(*dtype, shape)).collect();
    let y = b.tensor(DType::I32, &[1]);
    b.op(op, &ids, &[y]);
    b.graph.outputs.push(y);
    b.graph
}

fn run_ints(interpreter: &mut Interpreter, value: i32) -> i32 {
    interpreter.set_input(0, TensorBuf::from_slice(&[1], &[value]).unwrap()).unwrap();
    interpreter.run().unwrap();
    interpreter.output(0).unwrap().as_slice::<i32>().unwrap()[0]
}

fn counting_loop(step: i32, limit: i32) -> Model {
    let op = Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 2 });
    model(vec![main_with(op, &[(DType::I32, &[1])]), below(limit), adder(step)])
}

#[test]
fn loops_run_while_their_condition_holds() {
    let mut interpreter = load(&counting_loop(3, 10)).unwrap();
    assert_eq!(run_ints(&mut interpreter, 0), 12);
    assert_eq!(run_ints(&mut interpreter, 11), 11);
}

/// A loop of three iterations over a vector whose size its subgraphs leave open. `grow` adds
/// operators that compute the next vector.
fn open_loop(size: usize, grow: impl Fn(&mut Builder, usize) -> usize) -> Model {
    let open = |b: &mut Builder, id: usize| b.graph.tensors[id].shape_signature = Some(vec![-1]);
    let mut main = Builder::new();
    let inputs = [main.input(DType::I32, &[1]), main.input(DType::I32, &[size])];
    let outputs = [main.tensor(DType::I32, &[1]), main.tensor(DType::I32, &[1])];
    open(&mut main, outputs[1]);
    main.op(Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 2 }), &inputs, &outputs);
    main.graph.outputs.push(outputs[1]);
    let [mut condition, mut body] = [Builder { graph: below(3) }, Builder { graph: adder(1) }];
    for b in [&mut condition, &mut body] {
        let vector = b.input(DType::I32, &[1]);
        open(b, vector);
    }
    let vector = body.graph.inputs[1];
    let next = grow(&mut body, vector);
    open(&mut body, next);
    body.graph.outputs.push(next);
    model(vec![main.graph, condition.graph, body.graph])
}

fn run_loop(model: &Model, vector: &[i32]) -> Vec<i32> {
    let mut interpreter = load(model).unwrap();
    let vector = TensorBuf::from_slice(&[vector.len()], vector).unwrap();
    interpreter.set_input(1, vector).unwrap();
    interpreter.run().unwrap();
    let output = interpreter.output(0).unwrap();
    assert_eq!(output.shape.len(), 1);
    output.as_slice::<i32>().unwrap().to_vec()
}

#[test]
fn loops_get_open_sizes_from_their_arguments() {
    let pairs = open_loop(4, |b, vector| {
        let [by_two, flat] = [b.constant(&[2], &[2i32, 2]), b.constant(&[1], &[4i32])];
        let matrix = b.tensor(DType::I32, &[1, 1]);
        b.op(Op::Reshape(ReshapeOptions::default()), &[vector, by_two], &[matrix]);
        let (sum, next) = (b.tensor(DType::I32, &[1, 1]), b.tensor(DType::I32, &[1]));
        b.op(add(), &[matrix, matrix], &[sum]);
        b.op(Op::Reshape(ReshapeOptions::default()), &[sum, flat], &[next]);
        next
    });
    assert_eq!(run_loop(&pairs, &[1, 2, 3, 4]), [8, 16, 24, 32]);
    let shapes: Vec<_> = load(&pairs)
        .unwrap()
        .subgraphs()
        .map(|(_, graph)| graph.tensor(*graph.inputs.last().unwrap()).shape.clone())
        .collect();
    assert_eq!(shapes, [Some(vec![4]), Some(vec![4]), Some(vec![4])]);
}

#[test]
fn sizes_may_change_between_iterations() {
    let growing = open_loop(1, |b, vector| {
        let next = b.tensor(DType::I32, &[1]);
        let axis = ConcatenationOptions { axis: 0, ..Default::default() };
        b.op(Op::Concatenation(axis), &[vector, vector], &[next]);
        next
    });
    assert_eq!(run_loop(&growing, &[7]), [7; 8]);
}

#[test]
fn observers_see_every_step_of_every_subgraph() {
    let mut interpreter = load(&counting_loop(3, 8)).unwrap();
    let ids: Vec<usize> = interpreter.subgraphs().map(|(id, _)| id).collect();
    assert_eq!(ids, [0, 1, 2]);
    let mut seen = vec![];
    interpreter
        .run_observed(&mut |executed| {
            let &[index] = executed.operators() else { panic!("one operator at a time") };
            let operator = &executed.subgraph().operators[index];
            let value = |id| executed.tensor(id).unwrap().bytes[0];
            let given = (value(operator.inputs[0].unwrap()), value(operator.outputs[0]));
            seen.push((executed.subgraph_id(), operator.op.name().to_owned(), given));
        })
        .unwrap();
    let condition = |value, holds| (1, "LESS".to_owned(), (value, holds));
    let body = |value| (2, "ADD".to_owned(), (value, value + 3));
    let iterations = [0, 3, 6].into_iter().flat_map(|value| [condition(value, 1), body(value)]);
    let expected: Vec<_> =
        iterations.chain([condition(9, 0), (0, "WHILE".to_owned(), (0, 9))]).collect();
    assert_eq!(seen, expected);
}

#[test]
fn endless_loops_stop_at_the_limit() {
    let mut options = InterpOptions::default();
    options.limits.max_loop_iterations = 100;
    let mut interpreter = Interpreter::new(&counting_loop(0, 10), Entry::Main, &options).unwrap();
    let error = interpreter.run().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 100, .. }), "{error}");
}

#[test]
fn endless_loops_can_be_cancelled() {
    let mut interpreter = load(&counting_loop(0, 10)).unwrap();
    let flag = interpreter.cancel_flag();
    let canceller = std::thread::spawn(move || flag.raise());
    let error = interpreter.run().unwrap_err();
    canceller.join().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
    interpreter.cancel_flag().lower();
    assert_eq!(run_ints(&mut interpreter, 20), 20);
}

#[test]
fn branches_run_one_subgraph() {
    let op = Op::If(IfOptions { then_subgraph: 1, else_subgraph: 2 });
    let main = main_with(op, &[(DType::Bool, &[1]), (DType::I32, &[1])]);
    let mut interpreter = load(&model(vec![main, adder(1), adder(-1)])).unwrap();
    for (condition, expected) in [(1u8, 6), (0, 4)] {
        let flag = TensorBuf::from_bytes(DType::Bool, &[1], &[condition]).unwrap();
        interpreter.set_input(0, flag).unwrap();
        interpreter.set_input(1, TensorBuf::from_slice(&[1], &[5i32]).unwrap()).unwrap();
        interpreter.run().unwrap();
        assert_eq!(interpreter.output(0).unwrap().as_slice::<i32>().unwrap(), [expected]);
    }
}

#[test]
fn recursive_calls_are_bounded() {
    let call = || Op::Call(CallOptions { subgraph: 0 });
    let mut interpreter = load(&model(vec![main_with(call(), &[(DType::I32, &[1])])])).unwrap();
    let error = interpreter.run().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{error}");
    let nested = main_with(Op::Call(CallOptions { subgraph: 1 }), &[(DType::I32, &[1])]);
    let mut interpreter = load(&model(vec![nested, adder(2)])).unwrap();
    assert_eq!(run_ints(&mut interpreter, 1), 3);
}

/// A counter in a variable: CALL_ONCE sets it, and each run adds the input.
fn counter() -> Model {
    let handle =
        || Op::VarHandle(VarHandleOptions { shared_name: "counter".into(), ..Default::default() });
    let mut init = Builder::new();
    let resource = init.tensor(DType::Resource, &[1]);
    let start = init.constant(&[1], &[100i32]);
    init.op(handle(), &[], &[resource]);
    init.op(Op::AssignVariable, &[resource, start], &[]);
    let mut main = Builder::new();
    let x = main.input(DType::I32, &[1]);
    let resource = main.tensor(DType::Resource, &[1]);
    let old = main.tensor(DType::I32, &[1]);
    let new = main.tensor(DType::I32, &[1]);
    main.op(Op::CallOnce(CallOptions { subgraph: 1 }), &[], &[]);
    main.op(handle(), &[], &[resource]);
    main.op(Op::ReadVariable, &[resource], &[old]);
    main.op(add(), &[old, x], &[new]);
    main.op(Op::AssignVariable, &[resource, new], &[]);
    main.graph.outputs.push(new);
    model(vec![main.graph, init.graph])
}

#[test]
fn variables_keep_their_value_between_runs() {
    let mut interpreter = load(&counter()).unwrap();
    assert_eq!(run_ints(&mut interpreter, 1), 101);
    assert_eq!(run_ints(&mut interpreter, 2), 103);
    interpreter.reset_variables();
    assert_eq!(run_ints(&mut interpreter, 1), 101);
}

#[test]
fn invalid_handles_are_refused() {
    let mut b = Builder::new();
    let resource = b.input(DType::Resource, &[1]);
    let y = b.tensor(DType::I32, &[1]);
    b.op(Op::ReadVariable, &[resource], &[y]);
    b.graph.outputs.push(y);
    let error = load(&b.model()).unwrap().run().unwrap_err().to_string();
    assert!(error.contains("handle 0 does not belong to a variable"), "{error}");
}

#[test]
fn interpreters_do_not_share_variables() {
    let model = counter();
    let (mut a, mut b) = (load(&model).unwrap(), load(&model).unwrap());
    assert_eq!(run_ints(&mut a, 1), 101);
    assert_eq!(run_ints(&mut b, 5), 105);
    let mut c = a.fork().unwrap();
    assert_eq!(run_ints(&mut c, 7), 107);
    assert_eq!(run_ints(&mut a, 1), 102);
}

/// An RNN of one unit, whose state becomes the tanh of input and previous state.
#[test]
fn recurrent_state_is_kept_until_it_is_reset() {
    let mut b = Builder::new();
    let x = b.input(DType::F32, &[1, 1]);
    let weights = b.constant(&[1, 1], &[1.0f32]);
    let recurrent = b.constant(&[1, 1], &[0.5f32]);
    let bias = b.constant(&[1], &[0.25f32]);
    let state = b.variable(DType::F32, &[1, 1]);
    let y = b.tensor(DType::F32, &[1, 1]);
    let options = RnnOptions { activation: Activation::Tanh, ..Default::default() };
    b.op(Op::Rnn(options), &[x, weights, recurrent, bias, state], &[y]);
    b.graph.outputs.push(y);
    let mut interpreter = load(&b.model()).unwrap();
    let mut run = || {
        interpreter.set_input(0, TensorBuf::from_slice(&[1, 1], &[1.0f32]).unwrap()).unwrap();
        interpreter.run().unwrap();
        interpreter.output(0).unwrap().as_slice::<f32>().unwrap()[0]
    };
    let first = run();
    assert_eq!(first, 1.25f32.tanh());
    assert_eq!(run(), (1.25 + 0.5 * first).tanh());
    interpreter.reset_variables();
    interpreter.run().unwrap();
    assert_eq!(interpreter.output(0).unwrap().as_slice::<f32>().unwrap(), [first]);
}

#[test]
fn hash_tables_of_integers() {
    let mut b = Builder::new();
    let keys = b.input(DType::I64, &[2]);
    let table = b.tensor(DType::Resource, &[1]);
    let known = b.constant(&[2], &[10i64, 20]);
    let values = b.constant(&[2], &[1i64, 2]);
    let default = b.constant(&[1], &[-1i64]);
    let found = b.tensor(DType::I64, &[2]);
    let size = b.tensor(DType::I64, &[1]);
    let options = HashtableOptions { table_id: 1, key_dtype: DType::I64, value_dtype: DType::I64 };
    b.op(Op::Hashtable(options), &[], &[table]);
    b.op(Op::HashtableImport, &[table, known, values], &[]);
    b.op(Op::HashtableFind, &[table, keys, default], &[found]);
    b.op(Op::HashtableSize, &[table], &[size]);
    b.graph.outputs.extend([found, size]);
    let mut interpreter = load(&b.model()).unwrap();
    interpreter.set_input(0, TensorBuf::from_slice(&[2], &[20i64, 30]).unwrap()).unwrap();
    interpreter.run().unwrap();
    assert_eq!(interpreter.output(0).unwrap().as_slice::<i64>().unwrap(), [2, -1]);
    assert_eq!(interpreter.output(1).unwrap().as_slice::<i64>().unwrap(), [2]);
}

#[test]
fn inputs_can_be_resized() {
    let mut interpreter = load(&model(vec![adder(1)])).unwrap();
    let shapes: [(&[usize], &[i32]); 4] =
        [(&[1], &[1]), (&[2, 1], &[1, 1]), (&[2, 1], &[1, 1]), (&[1], &[1])];
    for (shape, expected) in shapes {
        interpreter.resize_input(0, shape).unwrap();
        interpreter.run().unwrap();
        let output = interpreter.output(0).unwrap();
        assert_eq!((output.shape, output.as_slice::<i32>().unwrap()), (shape, expected));
    }
    let error = interpreter.resize_input(0, &[usize::MAX, 2]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{error}");
}

#[test]
fn sizes_beyond_the_limit_are_refused_before_allocation() {
    let mut b = Builder::new();
    let x = b.input(DType::I32, &[2]);
    let value = b.constant(&[], &[0i32]);
    let y = b.tensor(DType::I32, &[]);
    b.graph.tensors[y].shape = None;
    b.op(Op::Fill, &[x, value], &[y]);
    b.graph.outputs.push(y);
    let mut interpreter = load(&b.model()).unwrap();
    let dims = TensorBuf::from_slice(&[2], &[i32::MAX, i32::MAX]).unwrap();
    interpreter.set_input(0, dims).unwrap();
    let error = interpreter.run().unwrap_err();
    assert_eq!(error.operator().unwrap().2, "FILL");
    let small = ModelLimits::default();
    assert!(small.max_tensor_bytes < i32::MAX as usize * i32::MAX as usize);
    for dims in [[2, 3], [4, 1], [2, 3]] {
        interpreter.set_input(0, TensorBuf::from_slice(&[2], &dims).unwrap()).unwrap();
        interpreter.run().unwrap();
        assert_eq!(interpreter.output(0).unwrap().shape, dims.map(|d: i32| d as usize));
    }
}

#[test]
fn inputs_are_found_by_signature_name() {
    let mut model = model(vec![adder(1), adder(10)]);
    model.signatures.push(Signature {
        key: "ten".into(),
        subgraph: 1,
        inputs: vec![("value".into(), 0)],
        outputs: vec![("sum".into(), 2)],
    });
    let options = InterpOptions::default();
    let mut interpreter = Interpreter::new(&model, Entry::Signature("ten"), &options).unwrap();
    assert_eq!(interpreter.input_index("value"), Some(0));
    assert_eq!(interpreter.output_index("sum"), Some(0));
    assert_eq!(interpreter.input_index("other"), None);
    assert_eq!(run_ints(&mut interpreter, 1), 11);
    assert!(Interpreter::new(&model, Entry::Signature("none"), &options).is_err());
    assert!(Interpreter::new(&model, Entry::Subgraph(7), &options).is_err());
}

/// Three calls, each on an input that its caller reads again.
fn nested_calls() -> Model {
    let graph = |callee: Option<usize>| {
        let mut b = Builder::new();
        let x = b.input(DType::F32, &[1 << 18]);
        let [y, sum] = [0; 2].map(|_| b.tensor(DType::F32, &[1 << 18]));
        match callee {
            Some(subgraph) => b.op(Op::Call(CallOptions { subgraph }), &[x], &[y]),
            None => b.op(Op::Neg, &[x], &[y]),
        }
        b.op(add(), &[x, y], &[sum]);
        b.graph.outputs.push(sum);
        b.graph
    };
    model(vec![graph(Some(1)), graph(Some(2)), graph(Some(3)), graph(None)])
}

#[test]
fn callers_count_towards_the_memory_of_what_they_call() {
    let run = |free_bytes: u64| {
        let mut options = InterpOptions::default();
        options.limits.amplification.free_bytes = free_bytes;
        options.limits.amplification.bytes_per_byte = 0;
        let mut interpreter = Interpreter::new(&nested_calls(), Entry::Main, &options)?;
        (0..3).try_for_each(|_| interpreter.run())
    };
    // Each subgraph alone takes 3 MiB.
    run(16 << 20).unwrap();
    let error = run(5 << 20).unwrap_err().to_string();
    assert!(error.contains("limit"), "{error}");
}
