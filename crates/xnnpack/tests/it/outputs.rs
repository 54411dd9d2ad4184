//! Intermediate tensors may use the memory of outputs that are not written yet, without an effect
//! on results.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnnpack::{
    AlignedBuffer, Binary, BinaryOp, Binding, ExternalId, OutputRange, OutputSlice, Role, Runtime,
    RuntimeOptions, StaticData, Subgraph, Transpose, Workspace,
};

use crate::fixture::{any_f32, f32};

const X: ExternalId = ExternalId(0);

#[derive(Clone, Copy)]
enum Kind {
    /// An operation on two operands.
    Binary(BinaryOp),
    /// Reads and writes at distant positions.
    Transpose,
    /// Quadruples an image: an output with capacity for several tensors.
    Stretch,
}

/// An operation on one or two earlier values; value 0 is the input.
struct Step {
    kind: Kind,
    operands: [usize; 2],
    is_output: bool,
}

impl Step {
    fn reads(&self) -> &[usize] {
        &self.operands[..if matches!(self.kind, Kind::Binary(_)) { 2 } else { 1 }]
    }

    fn id(index: usize) -> ExternalId {
        ExternalId(u32::try_from(index + 1).unwrap())
    }
}

/// Steps on values of long or short lifetime. Values that no step reads are outputs.
fn steps(rng: &mut impl Rng) -> Vec<Step> {
    const KINDS: [Kind; 6] = [
        Kind::Binary(BinaryOp::Add),
        Kind::Binary(BinaryOp::Subtract),
        Kind::Binary(BinaryOp::Maximum),
        Kind::Transpose,
        Kind::Transpose,
        Kind::Stretch,
    ];
    let count = rng.random_range(3..14);
    let mut steps: Vec<Step> = (0..count)
        .map(|index: usize| Step {
            kind: *KINDS.choose(rng).unwrap(),
            operands: [(); 2].map(|()| rng.random_range(index.saturating_sub(4)..=index)),
            is_output: rng.random_bool(0.15),
        })
        .collect();
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
    for _ in 0..60 {
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
