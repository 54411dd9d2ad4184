use crate::fixture::{any_f32, assert_close, f32, ramp};
use xnnpack::{
    AlignedBuffer, Binding, Copy, ExternalId, Role, Runtime, RuntimeOptions, Subgraph, Unary,
    UnaryOp, Workspace,
};

const X: ExternalId = ExternalId(0);
const Y: ExternalId = ExternalId(1);

/// Negates three times, through two intermediate tensors.
fn chain(elements: usize, options: &RuntimeOptions) -> Runtime {
    let mut graph = Subgraph::new().unwrap();
    let input = graph.define_tensor(f32(&[elements]).role(Role::Input(X))).unwrap();
    let [first, second] = [(); 2].map(|()| graph.define_tensor(any_f32()).unwrap());
    let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
    for (input, output) in [(input, first), (first, second), (second, output)] {
        graph.define(Unary { op: UnaryOp::Negate, input, output }).unwrap();
    }
    let mut runtime = Runtime::new(graph, options).unwrap();
    runtime.reshape().unwrap();
    runtime
}

fn check(runtime: &mut Runtime) {
    let elements = runtime.external(X).unwrap().bytes / 4;
    let input = AlignedBuffer::of(&ramp(elements));
    let mut output = AlignedBuffer::new(elements * 4);
    runtime
        .run(&mut [Binding::Input(X, input.input()), Binding::Output(Y, output.output())])
        .unwrap();
    let expected: Vec<f32> = ramp(elements).iter().map(|value| -value).collect();
    assert_close(output.elements().unwrap(), &expected, 0.0);
}

fn shared() -> RuntimeOptions {
    RuntimeOptions { workspace: Some(Workspace::new().unwrap()), ..RuntimeOptions::default() }
}

#[test]
fn runtimes_follow_when_the_workspace_moves() {
    let options = shared();
    let mut small = chain(10, &options);
    check(&mut small);
    let mut large = chain(10_000, &options);
    check(&mut small);
    check(&mut large);
    small.reshape_external(X, &[50_000]).unwrap();
    small.reshape().unwrap();
    check(&mut large);
    check(&mut small);
    drop(large);
    check(&mut small);
}

#[test]
fn threads_take_turns() {
    let options = shared();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let options = &options;
            scope.spawn(move || {
                for round in 1..=10 {
                    let mut runtime = chain(thread * round * 100, options);
                    for _ in 0..10 {
                        check(&mut runtime);
                    }
                }
            });
        }
    });
}

#[test]
fn persistent_tensors_are_not_shared() {
    let persistent = || {
        let mut graph = Subgraph::new().unwrap();
        let input = graph.define_tensor(f32(&[2]).role(Role::Persistent)).unwrap();
        let output = graph.define_tensor(any_f32().role(Role::Output(Y))).unwrap();
        graph.define(Copy { input, output }).unwrap();
        graph
    };
    let options = shared();
    let first = Runtime::new(persistent(), &options).unwrap();
    assert!(Runtime::new(persistent(), &options).is_err());
    drop(first);
    let _alone = chain(3, &options);
    let error = Runtime::new(persistent(), &options).unwrap_err();
    assert!(error.reason().contains("persistent"), "{error}");
}
