//! A delegate that adds, and the interpreter around it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::error::Error as StdError;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Builder, load};
use xnn_interp::{
    Claim, CompiledPartition, Delegate, Entry, Error, InterpOptions, Interpreter, Output,
    PaddedRef, Partition, PartitionSession, TensorBuf, TensorView,
};
use xnn_model::op::ArithmeticOptions;
use xnn_model::{DType, Model, Op, Subgraph, TensorId};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Claims given sets of operators that are ADD, and counts its runs.
struct Adder {
    claims: Vec<Vec<usize>>,
    known: Vec<TensorId>,
    /// Whether it decides in each run.
    deferred: bool,
    /// How it decides.
    accepts: Arc<AtomicBool>,
    fails_to_compile: bool,
    runs: Arc<AtomicUsize>,
    memory: Arc<Mutex<Vec<Vec<usize>>>>,
    partitions: Arc<Mutex<Vec<Partition>>>,
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
            partitions: Arc::default(),
        }
    }
}

impl Delegate for Adder {
    fn name(&self) -> &str {
        "adder"
    }

    fn partition(&self, _: &Arc<Subgraph>) -> Result<Vec<Claim>, BoxError> {
        let claim = |operators: &Vec<usize>| Claim {
            operators: operators.clone(),
            known: self.known.clone(),
            deferred: self.deferred,
        };
        Ok(self.claims.iter().map(claim).collect())
    }

    fn compile(
        &self,
        graph: &Subgraph,
        partition: &Partition,
    ) -> Result<Arc<dyn CompiledPartition>, BoxError> {
        if self.fails_to_compile {
            return Err("not today".into());
        }
        self.partitions.lock().unwrap().push(partition.clone());
        Ok(Arc::new(Compiled {
            graph: graph.clone(),
            partition: partition.clone(),
            accepts: self.accepts.clone(),
            shapes: vec![vec![2]; partition.outputs.len()],
            runs: self.runs.clone(),
            memory: self.memory.clone(),
        }))
    }
}

#[derive(Clone)]
struct Compiled {
    graph: Subgraph,
    partition: Partition,
    accepts: Arc<AtomicBool>,
    shapes: Vec<Vec<usize>>,
    runs: Arc<AtomicUsize>,
    /// Addresses of inputs and outputs in each run.
    memory: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl CompiledPartition for Compiled {
    fn session(&self) -> Result<Box<dyn PartitionSession>, BoxError> {
        Ok(Box::new(self.clone()))
    }
}

impl PartitionSession for Compiled {
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
        for (&id, input) in self.partition.inputs.iter().zip(inputs) {
            values[id] = Some(input.view().as_slice::<f32>().unwrap().to_vec());
        }
        for &operator in &self.partition.operators {
            let operator = &self.graph.operators[operator];
            let value = |position: usize| {
                let id = operator.input(position).unwrap();
                values[id].clone().or_else(|| self.graph.tensor(id).constant_floats()).unwrap()
            };
            let sum = value(0).iter().zip(value(1)).map(|(a, b)| a + b).collect();
            values[operator.outputs[0]] = Some(sum);
        }
        for (&id, output) in self.partition.outputs.iter().zip(outputs) {
            assert_eq!(output.shape(), [2], "shape inference reaches through partitions");
            let target: &mut [f32] = output.view_mut().into_slice().unwrap();
            target.copy_from_slice(values[id].as_ref().unwrap());
        }
        Ok(())
    }
}

/// x → +1 → neg → +2 → +x, as operators 0 to 3.
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
fn partitions_give_what_kernels_give() {
    let expected = run(&mut load(&chain()).unwrap());
    assert_eq!(expected, [1.0, 1.0]);
    let adder = Adder::new(&[&[0], &[3, 2]]);
    let (runs, partitions) = (adder.runs.clone(), adder.partitions.clone());
    let mut interpreter = load_with(adder).unwrap();
    assert_eq!(interpreter.delegated_operators(), 3);
    assert_eq!(run(&mut interpreter), expected);
    assert_eq!(run(&mut interpreter), expected);
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    let partitions = partitions.lock().unwrap();
    assert_eq!(partitions[0], Partition { operators: vec![0], inputs: vec![0], outputs: vec![3] });
    let second = Partition { operators: vec![2, 3], inputs: vec![4, 0], outputs: vec![6] };
    assert_eq!(partitions[1], second);
}

#[test]
fn partitions_find_their_tensors_in_the_same_places() {
    let adder = Adder::new(&[&[0], &[2], &[3]]);
    let memory = adder.memory.clone();
    let mut interpreter = load_with(adder).unwrap();
    (0..4).for_each(|_| interpreter.run().unwrap());
    let memory = memory.lock().unwrap();
    let runs: Vec<_> = memory.chunks(3).collect();
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    assert!(memory.iter().flatten().all(|address| address % 64 == 0));
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
fn what_others_read_is_not_known() {
    // Tensor 5 goes from the negation to operator 2, 3 from operator 0 to the negation.
    for (known, is_sound) in [(5, true), (3, false)] {
        let mut adder = Adder::new(&[&[0]]);
        adder.known.push(known);
        let loaded = load_with(adder).map_err(|error| error.to_string());
        assert_eq!(loaded.is_ok(), is_sound, "{:?}", loaded.err());
    }
}

#[test]
fn what_does_not_compile_stays_with_the_kernels() {
    let mut adder = Adder::new(&[&[0], &[2, 3]]);
    adder.fails_to_compile = true;
    let mut interpreter = load_with(adder).unwrap();
    assert_eq!(interpreter.delegated_operators(), 0);
    assert_eq!(run(&mut interpreter), [1.0, 1.0]);
}

#[test]
fn deferred_partitions_run_where_they_are_accepted_and_kernels_elsewhere() {
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
