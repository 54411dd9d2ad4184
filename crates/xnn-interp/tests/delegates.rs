//! A delegate that adds, and how the interpreter uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::error::Error as StdError;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Builder, load};
use xnn_interp::{
    Claim, CompiledClaim, CompiledPartition, Delegate, Entry, Error, InterpOptions, Interpreter,
    OperatorSet, Output, PaddedRef, PartitionSession, SharedValues, TensorBuf, TensorView,
};
use xnn_model::op::{ArithmeticOptions, WhileOptions};
use xnn_model::{DType, Model, Op, Subgraph, TensorId};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Claims given sets of ADD operators, and counts its runs.
struct Adder {
    claims: Vec<Vec<usize>>,
    known: Vec<TensorId>,
    /// Whether claims are deferred.
    deferred: bool,
    /// Whether deferred claims accept their inputs.
    accepts: Arc<AtomicBool>,
    fails_to_compile: bool,
    runs: Arc<AtomicUsize>,
    memory: Arc<Mutex<Vec<Vec<usize>>>>,
    sets: Arc<Mutex<Vec<OperatorSet>>>,
    /// Number of earlier calls that were given the values of the same interpreter, for each session.
    earlier: Arc<Mutex<Vec<usize>>>,
}

impl Adder {
    fn new(claims: &[&[usize]]) -> Self {
        Self {
            claims: claims.iter().map(|claim| claim.to_vec()).collect(),
            known: Vec::new(),
            deferred: false,
            accepts: Arc::default(),
            fails_to_compile: false,
            runs: Arc::default(),
            memory: Arc::default(),
            sets: Arc::default(),
            earlier: Arc::default(),
        }
    }
}

/// Counts a call, and returns the number of earlier ones.
fn count(shared: &mut SharedValues) -> usize {
    let earlier = shared.get::<usize>().unwrap_or(0);
    shared.insert(earlier + 1);
    earlier
}

impl Delegate for Adder {
    fn name(&self) -> &str {
        "adder"
    }

    fn partition(
        &self,
        graph: &Arc<Subgraph>,
        shared: &mut SharedValues,
    ) -> Result<Vec<CompiledClaim>, BoxError> {
        count(shared);
        let compiled = |operators: &Vec<usize>| {
            let (operators, known) = (operators.clone(), self.known.clone());
            let claim = Claim { operators, known, deferred: self.deferred };
            let compiled: Result<Arc<dyn CompiledPartition>, BoxError> = if self.fails_to_compile {
                Err("cannot compile".into())
            } else {
                Ok(Arc::new(Compiled {
                    graph: Arc::clone(graph),
                    accepts: self.accepts.clone(),
                    runs: self.runs.clone(),
                    memory: self.memory.clone(),
                    sets: self.sets.clone(),
                    earlier: self.earlier.clone(),
                }))
            };
            CompiledClaim { claim, compiled }
        };
        // Conditions of loops and their callers have a single operator.
        let claims = if graph.operators.len() > 1 { self.claims.as_slice() } else { &[] };
        Ok(claims.iter().map(compiled).collect())
    }
}

struct Compiled {
    graph: Arc<Subgraph>,
    accepts: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
    memory: Arc<Mutex<Vec<Vec<usize>>>>,
    sets: Arc<Mutex<Vec<OperatorSet>>>,
    earlier: Arc<Mutex<Vec<usize>>>,
}

impl CompiledPartition for Compiled {
    fn session(
        &self,
        set: &OperatorSet,
        shared: &mut SharedValues,
    ) -> Result<Box<dyn PartitionSession>, BoxError> {
        self.sets.lock().unwrap().push(set.clone());
        self.earlier.lock().unwrap().push(count(shared));
        Ok(Box::new(Running {
            graph: Arc::clone(&self.graph),
            set: set.clone(),
            accepts: self.accepts.clone(),
            shapes: vec![vec![2]; set.outputs.len()],
            runs: self.runs.clone(),
            memory: self.memory.clone(),
        }))
    }
}

struct Running {
    graph: Arc<Subgraph>,
    set: OperatorSet,
    accepts: Arc<AtomicBool>,
    shapes: Vec<Vec<usize>>,
    runs: Arc<AtomicUsize>,
    /// Addresses of inputs and outputs in each run.
    memory: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl PartitionSession for Running {
    fn accept(&mut self, inputs: &[TensorView<'_>]) -> Option<&[Vec<usize>]> {
        assert!(inputs.iter().all(|input| input.shape == [2]));
        self.accepts.load(Ordering::Relaxed).then_some(&self.shapes)
    }

    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), BoxError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let read = inputs.iter().map(|t| (t.padded().as_ptr_range(), t.view().bytes.len()));
        let mut places: Vec<_> = read.collect();
        places.extend(outputs.iter_mut().map(|t| {
            let bytes = t.view_mut().bytes.len();
            (t.padded_mut().as_ptr_range(), bytes)
        }));
        assert!(places.iter().all(|(p, bytes)| p.end.addr() - p.start.addr() >= bytes + 128));
        let (read, written) = places.split_at(inputs.len());
        let are_apart =
            |a: &Range<*const u8>, b: &Range<*const u8>| a.end <= b.start || b.end <= a.start;
        assert!(read.iter().all(|(a, _)| written.iter().all(|(b, _)| are_apart(a, b))));
        let addresses = places.iter().map(|(place, _)| place.start.addr()).collect();
        self.memory.lock().unwrap().push(addresses);
        let mut values = vec![None; self.graph.tensors.len()];
        for (&id, input) in self.set.inputs.iter().zip(inputs) {
            values[id] = Some(input.view().as_slice::<f32>().unwrap().to_vec());
        }
        for &operator in &self.set.operators {
            let operator = &self.graph.operators[operator];
            let value = |position: usize| {
                let id = operator.input(position).unwrap();
                values[id].clone().or_else(|| self.graph.tensor(id).constant_floats()).unwrap()
            };
            let sum = value(0).iter().zip(value(1)).map(|(a, b)| a + b).collect();
            values[operator.outputs[0]] = Some(sum);
        }
        for (&id, output) in self.set.outputs.iter().zip(outputs) {
            assert_eq!(output.shape(), [2], "shape inference reaches through partitions");
            let target: &mut [f32] = output.view_mut().into_slice().unwrap();
            target.copy_from_slice(values[id].as_ref().unwrap());
        }
        Ok(())
    }
}

/// Computes x → +1 → neg → +2 → +x, with operators 0 to 3.
fn chain() -> Model {
    let add = || Op::Add(ArithmeticOptions::default());
    let mut b = Builder::new();
    let x = b.input(DType::F32, &[2]);
    let one = b.constant(&[2], &[1.0f32, 1.0]);
    let two = b.constant(&[2], &[2.0f32, 2.0]);
    let t: Vec<usize> = (0..4).map(|_| b.tensor(DType::F32, &[2])).collect();
    b.op(add(), &[x, one], &[t[0]]);
    b.op(Op::Neg, &[t[0]], &[t[1]]);
    b.op(add(), &[t[1], two], &[t[2]]);
    b.op(add(), &[t[2], x], &[t[3]]);
    b.graph.outputs.push(t[3]);
    b.model()
}

fn load_with(adder: Adder) -> Result<Interpreter, Error> {
    let options = InterpOptions { delegates: vec![Arc::new(adder)], ..Default::default() };
    Interpreter::new(&chain(), Entry::Main, &options)
}

fn run(interpreter: &mut Interpreter) -> Vec<f32> {
    interpreter.set_input(0, TensorBuf::from_slice(&[2], &[5.0f32, 7.0]).unwrap()).unwrap();
    interpreter.run().unwrap();
    interpreter.output(0).unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn partitions_have_the_results_of_kernels() {
    let expected = run(&mut load(&chain()).unwrap());
    assert_eq!(expected, [1.0, 1.0]);
    let adder = Adder::new(&[&[0], &[3, 2]]);
    let (runs, sets) = (adder.runs.clone(), adder.sets.clone());
    let mut interpreter = load_with(adder).unwrap();
    assert_eq!(interpreter.delegated_operators(), 3);
    assert_eq!(run(&mut interpreter), expected);
    assert_eq!(run(&mut interpreter), expected);
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    let sets = sets.lock().unwrap();
    assert_eq!(sets[0], OperatorSet { operators: vec![0], inputs: vec![0], outputs: vec![3] });
    let second = OperatorSet { operators: vec![2, 3], inputs: vec![4, 0], outputs: vec![6] };
    assert_eq!(sets[1], second);
}

#[test]
fn calls_for_the_same_interpreter_share_values() {
    let adder = Adder::new(&[&[0], &[2, 3]]);
    let earlier = adder.earlier.clone();
    let first = load_with(adder).unwrap();
    let _second = first.fork().unwrap();
    assert_eq!(*earlier.lock().unwrap(), [1, 2, 0, 1]);
}

#[test]
fn tensors_of_partitions_keep_their_addresses() {
    let adder = Adder::new(&[&[0], &[2], &[3]]);
    let memory = adder.memory.clone();
    let mut interpreter = load_with(adder).unwrap();
    (0..4).for_each(|_| interpreter.run().unwrap());
    let memory = memory.lock().unwrap();
    let runs: Vec<_> = memory.chunks(3).collect();
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    assert!(memory.iter().flatten().all(|address| address % 64 == 0));
}

/// Three steps of `(i, x) → (i + 1, x + x)`.
fn doubling() -> Model {
    let add = || Op::Add(ArithmeticOptions::default());
    let mut main = Builder::new();
    let inputs = [main.input(DType::I32, &[1]), main.input(DType::F32, &[2])];
    let results = [main.tensor(DType::I32, &[1]), main.tensor(DType::F32, &[2])];
    main.op(Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 2 }), &inputs, &results);
    main.graph.outputs.push(results[1]);
    let mut condition = Builder::new();
    let [i, _] = [condition.input(DType::I32, &[1]), condition.input(DType::F32, &[2])];
    let three = condition.constant(&[1], &[3i32]);
    let less = condition.tensor(DType::Bool, &[1]);
    condition.op(Op::Less, &[i, three], &[less]);
    condition.graph.outputs.push(less);
    let mut body = Builder::new();
    let [i, x] = [body.input(DType::I32, &[1]), body.input(DType::F32, &[2])];
    let one = body.constant(&[1], &[1i32]);
    let [next, sum] = [body.tensor(DType::I32, &[1]), body.tensor(DType::F32, &[2])];
    body.op(add(), &[i, one], &[next]);
    body.op(add(), &[x, x], &[sum]);
    body.graph.outputs.extend([next, sum]);
    common::model(vec![main.graph, condition.graph, body.graph])
}

#[test]
fn small_state_of_loops_keeps_its_address_in_partitions() {
    let adder = Adder::new(&[&[1]]);
    let memory = adder.memory.clone();
    let options = InterpOptions { delegates: vec![Arc::new(adder)], ..Default::default() };
    let mut interpreter = Interpreter::new(&doubling(), Entry::Main, &options).unwrap();
    for _ in 0..2 {
        interpreter.set_input(1, TensorBuf::from_slice(&[2], &[5.0f32, 7.0]).unwrap()).unwrap();
        interpreter.run().unwrap();
        assert_eq!(interpreter.output(0).unwrap().as_slice::<f32>().unwrap(), [40.0, 56.0]);
    }
    let memory = memory.lock().unwrap();
    assert_eq!(memory.len(), 6);
    assert!(memory.iter().all(|run| *run == memory[0]), "{memory:?}");
}

#[test]
fn sets_that_are_not_convex_are_refused() {
    let error = load_with(Adder::new(&[&[0, 2]])).unwrap_err().to_string();
    assert!(error.contains("convex"), "{error}");
}

#[test]
fn operators_are_claimed_once() {
    assert!(load_with(Adder::new(&[&[0], &[0]])).is_err());
    assert!(load_with(Adder::new(&[&[9]])).is_err());
}

#[test]
fn known_tensors_have_no_other_readers() {
    // The negation writes tensor 5, which operator 2 reads; operator 0 writes 3, which the negation
    // reads.
    for (known, is_sound) in [(5, true), (3, false)] {
        let mut adder = Adder::new(&[&[0]]);
        adder.known.push(known);
        let loaded = load_with(adder).map_err(|error| error.to_string());
        assert_eq!(loaded.is_ok(), is_sound, "{:?}", loaded.err());
    }
}

#[test]
fn kernels_run_operators_that_do_not_compile() {
    let mut adder = Adder::new(&[&[0], &[2, 3]]);
    adder.fails_to_compile = true;
    let mut interpreter = load_with(adder).unwrap();
    assert_eq!(interpreter.delegated_operators(), 0);
    assert_eq!(run(&mut interpreter), [1.0, 1.0]);
}

#[test]
fn deferred_partitions_run_if_they_accept_their_inputs() {
    let expected = run(&mut load(&chain()).unwrap());
    let mut adder = Adder::new(&[&[0], &[3, 2]]);
    adder.deferred = true;
    let (accepts, runs) = (adder.accepts.clone(), adder.runs.clone());
    let mut interpreter = load_with(adder).unwrap();
    assert_eq!((interpreter.delegated_operators(), interpreter.deferred_operators()), (0, 3));
    for accepted in [false, true, true, false, false, true] {
        accepts.store(accepted, Ordering::Relaxed);
        let before = runs.load(Ordering::Relaxed);
        assert_eq!(run(&mut interpreter), expected);
        assert_eq!(runs.load(Ordering::Relaxed) - before, if accepted { 2 } else { 0 });
        let mut seen = Vec::new();
        interpreter.run_observed(&mut |step| seen.push(step.operators().to_vec())).unwrap();
        let together = [vec![0], vec![1], vec![2, 3]];
        let apart = [vec![0], vec![1], vec![2], vec![3]];
        assert_eq!(seen, if accepted { &together[..] } else { &apart });
    }
}

#[test]
fn operators_of_deferred_partitions_need_kernels() {
    let mut model = chain();
    let graph = Arc::make_mut(&mut model.subgraphs[0]);
    graph.operators[2].op = Op::Unknown { code: 999 };
    let mut adder = Adder::new(&[&[2, 3]]);
    adder.deferred = true;
    let options = InterpOptions { delegates: vec![Arc::new(adder)], ..Default::default() };
    let error = Interpreter::new(&model, Entry::Main, &options).unwrap_err().to_string();
    assert!(error.contains("operator 2 "), "{error}");
}
