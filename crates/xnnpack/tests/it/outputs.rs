//! Intermediate tensors may use the memory of outputs that are not written yet, and results that are only moved that of other
//! tensors, without an effect on results.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnnpack::{
    AlignedBuffer, Binary, BinaryOp, Binding, Concatenate, Copy, EvenSplit, ExternalId,
    OutputRange, OutputSlice, Role, Runtime, RuntimeOptions, Slice, StaticData, Subgraph,
    Transpose, Unary, UnaryOp, ValueId, Workspace,
};

use crate::fixture::{any_f32, f32, ramp};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);

#[derive(Clone, Copy)]
enum Kind {
    /// An operation on two operands.
    Binary(BinaryOp),
    /// Reads and writes at distant positions.
    Transpose,
    /// Quadruples an image: an output with capacity for several tensors.
    Stretch,
    /// Changes the sign, perhaps in place.
    Negate,
    Copy,
    /// One image.
    Slice(usize),
    /// Four images from two.
    Join,
}

/// An operation on one or two earlier values; value 0 is the input.
struct Step {
    kind: Kind,
    operands: [usize; 2],
    /// Number of images.
    batch: usize,
    is_output: bool,
}

impl Step {
    fn reads(&self) -> &[usize] {
        &self.operands[..if matches!(self.kind, Kind::Binary(_) | Kind::Join) { 2 } else { 1 }]
    }

    fn id(index: usize) -> ExternalId {
        ExternalId(u32::try_from(index + 1).unwrap())
    }
}

/// Steps on values of long or short lifetime. Values that no step reads are outputs.
fn steps(rng: &mut impl Rng) -> Vec<Step> {
    const KINDS: [Kind; 12] = [
        Kind::Binary(BinaryOp::Add),
        Kind::Binary(BinaryOp::Subtract),
        Kind::Binary(BinaryOp::Maximum),
        Kind::Transpose,
        Kind::Transpose,
        Kind::Stretch,
        Kind::Negate,
        Kind::Copy,
        Kind::Slice(0),
        Kind::Slice(0),
        Kind::Join,
        Kind::Join,
    ];
    let count: usize = rng.random_range(3..14);
    let mut steps: Vec<Step> = Vec::new();
    for index in 0..count {
        let operands: [usize; 2] =
            [(); 2].map(|()| rng.random_range(index.saturating_sub(4)..=index));
        let batches =
            operands.map(|operand| operand.checked_sub(1).map_or(1, |at| steps[at].batch));
        let kind = match *KINDS.choose(rng).unwrap() {
            Kind::Slice(_) => Kind::Slice(rng.random_range(0..batches[0])),
            Kind::Join if batches != [1, 1] => Kind::Binary(BinaryOp::Subtract),
            kind => kind,
        };
        let batch = match kind {
            Kind::Binary(_) => batches[0].max(batches[1]),
            Kind::Stretch | Kind::Join => 4,
            Kind::Slice(_) => 1,
            Kind::Transpose | Kind::Negate | Kind::Copy => batches[0],
        };
        steps.push(Step { kind, operands, batch, is_output: rng.random_bool(0.15) });
    }
    for index in 0..count {
        let is_read = steps.iter().any(|step| step.reads().contains(&(index + 1)));
        steps[index].is_output |= !is_read;
    }
    steps
}

/// A runtime of the steps. With `all`, every value is an output.
fn runtime(steps: &[Step], all: bool, options: &RuntimeOptions) -> Runtime {
    let mut graph = Subgraph::new().unwrap();
    let mut values = vec![graph.define_tensor(f32(&[1, 1, 1]).role(Role::Input(X))).unwrap()];
    let ones = Role::Static(StaticData::of(&[1.0_f32; 4]));
    let ones = graph.define_tensor(f32(&[4, 1, 1]).role(ones)).unwrap();
    for (index, step) in steps.iter().enumerate() {
        let spec = any_f32();
        let is_output = all || step.is_output;
        let spec = if is_output { spec.role(Role::Output(Step::id(index))) } else { spec };
        let output = graph.define_tensor(spec).unwrap();
        let [a, b] = step.operands.map(|operand| values[operand]);
        let output_range = OutputRange::default();
        let define = |op, a, b| Binary { op, output_range, a, b, output };
        match step.kind {
            Kind::Binary(op) => graph.define(define(op, a, b)),
            Kind::Transpose => graph.define(Transpose { perm: vec![0, 2, 1], input: a, output }),
            Kind::Stretch => graph.define(define(BinaryOp::Multiply, a, ones)),
            Kind::Negate => graph.define(Unary { op: UnaryOp::Negate, input: a, output }),
            Kind::Copy => graph.define(Copy { input: a, output }),
            Kind::Slice(at) => {
                let (offsets, sizes) = (vec![at, 0, 0], vec![1, 0, 0]);
                graph.define(Slice { offsets, sizes, input: a, output })
            }
            Kind::Join => graph.define(Concatenate { axis: 0, inputs: vec![a, b, b, a], output }),
        }
        .unwrap();
        values.push(output);
    }
    Runtime::new(graph, options).unwrap()
}

/// Returns the outputs, each in its own memory at an offset of this many floats.
fn run(
    runtime: &mut Runtime,
    outputs: &[ExternalId],
    input: &AlignedBuffer,
    shift: usize,
) -> Vec<Vec<u32>> {
    const PADDING: usize = 256;
    let mut memories: Vec<_> = outputs
        .iter()
        .map(|&id| AlignedBuffer::new(runtime.external(id).unwrap().bytes + 4 * shift + PADDING))
        .collect();
    let mut bindings = vec![Binding::Input(X, input.input())];
    for (id, memory) in outputs.iter().zip(&mut memories) {
        let range = 4 * shift..memory.len() - PADDING;
        let slice = OutputSlice::within(memory.as_mut_slice(), range).unwrap();
        bindings.push(Binding::Output(*id, slice));
    }
    runtime.run(&mut bindings).unwrap();
    drop(bindings);
    memories
        .iter()
        .map(|memory| {
            let floats: &[f32] = memory.elements().unwrap();
            assert!(floats[..shift].iter().all(|&float| float == 0.0));
            assert!(floats[floats.len() - PADDING / 4..].iter().all(|&float| float == 0.0));
            floats[shift..floats.len() - PADDING / 4].iter().map(|float| float.to_bits()).collect()
        })
        .collect()
}

#[test]
fn graphs_compute_the_same_with_and_without_intermediate_values() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let shared =
        RuntimeOptions { workspace: Some(Workspace::new().unwrap()), ..RuntimeOptions::default() };
    for _ in 0..200 {
        let steps = steps(&mut rng);
        let all: Vec<_> = (0..steps.len()).map(Step::id).collect();
        let some: Vec<_> =
            all.iter().zip(&steps).filter(|(_, step)| step.is_output).map(|(id, _)| *id).collect();
        let mut expected = runtime(&steps, true, &RuntimeOptions::default());
        let mut actual = runtime(&steps, false, &shared);
        // Growing and shrinking, around the smallest output whose memory is used for other tensors.
        for _ in 0..6 {
            let side = rng.random_range(20..90);
            let dims = [1, side, side];
            for runtime in [&mut expected, &mut actual] {
                runtime.reshape_external(X, &dims).unwrap();
                runtime.reshape().unwrap();
            }
            let floats: Vec<f32> = (0..side * side).map(|_| rng.random_range(-1.0..1.0)).collect();
            let input = AlignedBuffer::of(&floats);
            let expected = run(&mut expected, &all, &input, 0);
            for shift in [0, 1, 16] {
                let actual = run(&mut actual, &some, &input, shift);
                for (id, actual) in some.iter().zip(actual) {
                    let at = all.iter().position(|other| other == id).unwrap();
                    assert!(actual == expected[at], "{id} of {some:?} with {dims:?}");
                }
            }
        }
    }
}

/// A runtime of what `define` makes of an input of any number of rows of three floats, and of an output.
fn rows(define: impl FnOnce(&mut Subgraph, ValueId, ValueId)) -> Runtime {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[4, 3]).role(Role::Input(X))).unwrap();
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    define(&mut graph, input, output);
    Runtime::new(graph, &RuntimeOptions::default()).unwrap()
}

/// Returns the output for rows 0, 1, 2, ...
fn run_rows(runtime: &mut Runtime, count: usize) -> Vec<f32> {
    runtime.reshape_external(X, &[count, 3]).unwrap();
    runtime.reshape().unwrap();
    let floats = ramp(3 * count);
    let input = AlignedBuffer::of(&floats);
    let mut output = AlignedBuffer::new(runtime.external(Y).unwrap().bytes);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    assert_eq!(input.elements::<f32>().unwrap(), floats, "the input was changed");
    output.elements::<f32>().unwrap().to_vec()
}

fn negated(graph: &mut Subgraph, input: ValueId, output: ValueId) {
    graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
}

#[test]
fn what_is_moved_follows_the_number_of_rows() {
    // Operands are computed in the output, the second one behind the first.
    let mut joined = rows(|graph, input, output| {
        let [x, y] = [(); 2].map(|()| graph.define_tensor(any_f32()).unwrap());
        negated(graph, input, x);
        graph.define(Unary { op: UnaryOp::Abs, input, output: y }).unwrap();
        graph.define(Concatenate { axis: 0, inputs: vec![x, y, x], output }).unwrap();
    });
    for count in [4, 1, 7, 3, 7] {
        let negative = ramp(3 * count).into_iter().map(|float| -float);
        let expected: Vec<f32> = negative.clone().chain(ramp(3 * count)).chain(negative).collect();
        assert_eq!(run_rows(&mut joined, count), expected);
    }
    // The parts of an input, one of which is computed in place.
    let mut split = rows(|graph, input, output| {
        let [a, b, c] = [(); 3].map(|()| graph.define_tensor(any_f32()).unwrap());
        graph.define(EvenSplit { axis: 0, input, outputs: vec![a, b] }).unwrap();
        negated(graph, b, c);
        graph.define(Concatenate { axis: 0, inputs: vec![c, a], output }).unwrap();
    });
    for count in [4, 2, 8, 6] {
        let mut expected = ramp(3 * count);
        expected.rotate_left(3 * count / 2);
        expected[..3 * count / 2].iter_mut().for_each(|float| *float = -*float);
        assert_eq!(run_rows(&mut split, count), expected);
    }
}

#[test]
fn parts_of_a_value_are_read_after_others_are_computed() {
    // Both halves lie in one intermediate tensor, and so may the results of one of them.
    let mut halves = rows(|graph, input, output| {
        let [x, a, b, c, d] = [(); 5].map(|()| graph.define_tensor(any_f32()).unwrap());
        negated(graph, input, x);
        graph.define(EvenSplit { axis: 0, input: x, outputs: vec![a, b] }).unwrap();
        negated(graph, a, c);
        let output_range = OutputRange::default();
        let mut define = |op, a, b, output| {
            graph.define(Binary { op, output_range, a, b, output }).unwrap();
        };
        define(BinaryOp::Subtract, b, c, d);
        define(BinaryOp::Multiply, d, a, output);
    });
    for count in [4, 2, 6] {
        let (first, second) = (ramp(3 * count), ramp(3 * count).split_off(3 * count / 2));
        let expected: Vec<f32> = first.iter().zip(second).map(|(a, b)| (-b - a) * -a).collect();
        assert_eq!(run_rows(&mut halves, count), expected);
    }
}
