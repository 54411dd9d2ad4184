//! Sessions: memory, shapes, sharing, profiles, and errors that name their node.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use xnn_format::{
    Conv2d, Datatype, Graph, Node, NodeOp, Padding2d, Quantization, ReduceOp, Size2d, UnaryOp,
    Value, ValueId, flags,
};
use xnn_runtime::{
    AlignedBuffer, Binding, PaddedSlice, Program, ProgramOptions, RuntimeErrorKind, Session,
    SessionOptions, ThreadPool, Workspace, compile,
};

fn f32s(dims: &[usize]) -> Value {
    Value::new(Datatype::F32, Quantization::None, dims)
}

fn constant(dims: &[usize], elements: &[f32]) -> Value {
    f32s(dims).with_data(elements.iter().flat_map(|e| e.to_le_bytes()).collect::<Bytes>())
}

fn push(graph: &mut Graph, op: NodeOp) {
    graph.nodes.push(Node::new(op));
}

/// `y = (x x [[1], [10]]) + 0.5` over rows of 2, and `z = |y|`, which both are outputs.
fn graph() -> Graph {
    let mut graph = Graph::default();
    let input = graph.push_value(f32s(&[1, 2]));
    let filter = graph.push_value(constant(&[1, 2], &[1.0, 10.0]));
    let bias = graph.push_value(constant(&[1], &[0.5]));
    let y = graph.push_value(f32s(&[1, 1]));
    let z = graph.push_value(f32s(&[1, 1]));
    let bias = Some(bias);
    push(&mut graph, NodeOp::FullyConnected { input, filter, bias, output: y, sparse: false });
    push(&mut graph, NodeOp::Unary { op: UnaryOp::Abs, input: y, output: z });
    graph.inputs = vec![input];
    graph.outputs = vec![y, z];
    graph.origin.input_names = vec!["rows".into()];
    graph.origin.output_names = vec!["y".into(), "z".into()];
    graph
}

fn program() -> Program {
    Program::new(graph(), &ProgramOptions::default()).unwrap()
}

fn session() -> Session {
    Session::new(&program(), &SessionOptions::default()).unwrap()
}

fn set(session: &mut Session, elements: &[f32]) {
    session.input_as_mut(0).unwrap().copy_from_slice(elements);
}

#[test]
fn programs_are_shared_and_sessions_travel() {
    fn shared<T: Send + Sync + Clone>() {}
    fn sent<T: Send>() {}
    shared::<Program>();
    sent::<Session>();
}

#[test]
fn a_value_may_be_an_output_and_read_inside() {
    let mut session = session();
    set(&mut session, &[-1.0, -2.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(0).unwrap(), [-20.5]);
    assert_eq!(session.output_as::<f32>(1).unwrap(), [20.5]);
}

#[test]
fn tensors_have_names_shapes_and_aligned_memory() {
    let mut session = session();
    assert_eq!((session.input_index("rows"), session.output_index("z")), (Some(0), Some(1)));
    assert_eq!((session.input_index("z"), session.input_index("")), (None, None));
    assert_eq!(session.inputs()[0].dims, [1, 2]);
    assert_eq!(session.inputs()[0].byte_size(), 8);
    assert_eq!(session.outputs()[1].dims, [1, 1]);
    assert_eq!(session.input_mut(0).len(), 8);
    assert_eq!(session.input_mut(0).as_ptr().addr() % 64, 0);
    assert!(session.input_mut(1).is_empty());
    assert!(session.output(2).is_empty());
}

#[test]
fn elements_are_viewed_as_what_they_are() {
    let mut session = session();
    assert!(session.input_as_mut::<f32>(0).is_ok());
    let error = session.input_as_mut::<i8>(0).unwrap_err();
    assert_eq!(error.kind(), RuntimeErrorKind::InvalidArgument);
    assert!(session.output_as::<f32>(2).is_err());
}

#[test]
fn values_have_a_limit_in_all_shapes() {
    let program = |max_value_bytes| {
        let mut options = ProgramOptions::default();
        options.limits.max_value_bytes = max_value_bytes;
        Program::new(graph(), &options)
    };
    assert!(program(7).unwrap_err().to_string().contains("above the limit of 7"));
    let mut session = Session::new(&program(64).unwrap(), &SessionOptions::default()).unwrap();
    session.resize_inputs([(0, &[8, 2][..])]).unwrap();
    let error = session.resize_inputs([(0, &[9, 2][..])]).unwrap_err().to_string();
    assert!(error.contains("is 72, above the limit of 64"), "{error}");
    assert_eq!(session.inputs()[0].dims, [8, 2]);
    session.resize(0, &[3, 2]).unwrap();
    session.reshape().unwrap();
    session.run().unwrap();
}

#[test]
fn callers_may_bring_their_own_memory() {
    let mut session = session();
    let [rows, z] = [session.inputs()[0].id, session.outputs()[1].id];
    let input = AlignedBuffer::of(&[3f32, 4.0]);
    let mut output = AlignedBuffer::new(4);
    session
        .run_with([Binding::Input(rows, input.input()), Binding::Output(z, output.output())])
        .unwrap();
    assert_eq!(output.elements::<f32>().unwrap(), [43.5]);
    // The other output stayed in the session's memory.
    assert_eq!(session.output_as::<f32>(0).unwrap(), [43.5]);

    // Back in the session's own memory.
    set(&mut session, &[0.0, 0.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(1).unwrap(), [0.5]);
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let mut session = session();
    let [rows, z] = [session.inputs()[0].id, session.outputs()[1].id];
    let mut run = |bindings: Vec<Binding<'_>>| session.run_with(bindings).map_err(|e| e.kind());
    let buffer = AlignedBuffer::of(&[3f32, 4.0]);
    assert_eq!(run(vec![Binding::Input(rows, buffer.input())]), Ok(()));
    let large = AlignedBuffer::new(12);
    assert!(run(vec![Binding::Input(rows, large.input())]).is_err());
    let mut small = AlignedBuffer::new(3);
    assert!(run(vec![Binding::Output(z, small.output())]).is_err());
    // Eight bytes, but nothing behind them that may be read.
    let bare = AlignedBuffer::new(64);
    let end = PaddedSlice::within(bare.as_slice(), 56..64).unwrap();
    assert!(run(vec![Binding::Input(rows, end)]).is_err());
    // Twice the same tensor, and an input as an output.
    assert!(
        run(vec![Binding::Input(rows, buffer.input()), Binding::Input(rows, buffer.input())])
            .is_err()
    );
    let mut output = AlignedBuffer::new(8);
    assert!(run(vec![Binding::Output(rows, output.output())]).is_err());
}

#[test]
fn the_batch_may_change() {
    let mut session = session();
    for rows in [1usize, 7, 3, 16] {
        session.resize(0, &[rows, 2]).unwrap();
        if session.inputs()[0].dims != [rows, 2] {
            assert!(session.run().is_err(), "a reshape is due");
        }
        session.reshape().unwrap();
        assert_eq!(session.outputs()[1].dims, [rows, 1]);
        let input: Vec<f32> = (0..2 * rows).map(|at| at as f32).collect();
        set(&mut session, &input);
        session.run().unwrap();
        let expected: Vec<f32> = input.chunks(2).map(|row| row[0] + 10.0 * row[1] + 0.5).collect();
        assert_eq!(session.output_as::<f32>(1).unwrap(), expected);
    }
}

#[test]
fn a_shape_that_does_not_fit_leaves_the_former_one() {
    let mut session = session();
    assert!(session.resize(1, &[1, 2]).is_err());
    session.resize(0, &[1, 3]).unwrap();
    assert_eq!(session.reshape().unwrap_err().kind(), RuntimeErrorKind::InvalidArgument);
    assert_eq!(session.inputs()[0].dims, [1, 2]);
    set(&mut session, &[1.0, 1.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(0).unwrap(), [11.5]);
}

#[test]
fn the_batch_may_be_none_and_come_back() {
    let mut session = session();
    for rows in [0, 3, 0, 0, 1] {
        session.resize_inputs([(0, &[rows, 2][..])]).unwrap();
        assert_eq!(session.is_empty(), rows == 0);
        assert_eq!(session.inputs()[0].dims, [rows, 2]);
        assert_eq!([0, 1].map(|at| session.outputs()[at].dims.clone()), [[rows, 1], [rows, 1]]);
        set(&mut session, &vec![1.0; 2 * rows]);
        session.run().unwrap();
        assert_eq!(session.output_as::<f32>(1).unwrap(), vec![11.5; rows]);
        // Nobody who goes around the session writes to the memory of other shapes.
        let raw = session.runtime_mut().run(&mut []).unwrap_err().to_string();
        assert_eq!(raw.contains("shapes are not set"), rows == 0, "{raw}");
    }
}

#[test]
fn shapes_without_elements_fit_or_leave_the_former_ones() {
    let mut session = session();
    for before in [0, 4] {
        session.resize_inputs([(0, &[before, 2][..])]).unwrap();
        for dims in [&[0, 3][..], &[2, 0], &[0], &[3, 3]] {
            let refused = session.resize_inputs([(0, dims)]);
            assert_eq!(refused.unwrap_err().kind(), RuntimeErrorKind::InvalidArgument, "{dims:?}");
            assert_eq!(session.inputs()[0].dims, [before, 2]);
            assert_eq!(session.outputs()[0].dims, [before, 1]);
            session.run().unwrap();
        }
    }
}

/// Sums over nothing are for reference kernels.
#[test]
fn outputs_with_elements_are_not_made_of_nothing() {
    let mut graph = Graph::default();
    let (input, output) = (graph.push_value(f32s(&[2, 3])), graph.push_value(f32s(&[3])));
    push(&mut graph, NodeOp::StaticReduce { op: ReduceOp::Sum, axes: vec![0], input, output });
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
    let refused = session.resize_inputs([(0, &[0, 3][..])]).unwrap_err().to_string();
    assert!(refused.contains("an output of [3] would have some"), "{refused}");
    session.resize_inputs([(0, &[2, 0][..])]).unwrap();
    assert_eq!(session.outputs()[0].dims, [0]);
}

#[test]
fn sessions_run_side_by_side() {
    let program = program();
    let threads: Vec<_> = (0..4u8)
        .map(|number| {
            let program = program.clone();
            thread::spawn(move || {
                let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
                for _ in 0..100 {
                    set(&mut session, &[f32::from(number), 1.0]);
                    session.run().unwrap();
                    assert_eq!(session.output_as::<f32>(0).unwrap(), [f32::from(number) + 10.5]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn threads_and_workspaces_may_be_shared() {
    let pool = Arc::new(ThreadPool::new(2).unwrap());
    let workspace = Workspace::new().unwrap();
    let options = SessionOptions {
        thread_pool: Some(pool),
        workspace: Some(workspace),
        ..SessionOptions::default()
    };
    let program = program();
    let mut sessions = [0, 1].map(|_| Session::new(&program, &options).unwrap());
    for (session, value) in sessions.iter_mut().zip([1.0, 2.0]) {
        set(session, &[value, 0.0]);
    }
    for session in &mut sessions {
        session.run().unwrap();
    }
    assert_eq!(sessions.map(|s| s.output_as::<f32>(0).unwrap()[0]), [1.5, 2.5]);
    let none = SessionOptions { threads: 0, ..SessionOptions::default() };
    assert!(Session::new(&program, &none).is_err());
}

#[test]
fn two_threads_compute_the_same_bits() {
    let run = |threads| {
        let options = SessionOptions { threads, ..SessionOptions::default() };
        let mut session = Session::new(&program(), &options).unwrap();
        session.resize(0, &[500, 2]).unwrap();
        session.reshape().unwrap();
        set(&mut session, &(0..1000).map(|at| (at as f32).sin()).collect::<Vec<_>>());
        session.run().unwrap();
        session.output(1).to_vec()
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn profiles_name_nodes() {
    let options = SessionOptions { profile: true, ..SessionOptions::default() };
    let mut session = Session::new(&program(), &options).unwrap();
    assert_eq!(session.profile(), None);
    session.run().unwrap();
    let timings = session.profile().unwrap();
    let nodes: Vec<_> = timings.iter().map(|timing| timing.node).collect();
    assert_eq!(nodes, [Some(0), Some(1)]);
    assert!(timings[0].name.starts_with("Fully Connected"), "{}", timings[0].name);

    let mut session = self::session();
    session.run().unwrap();
    assert_eq!(session.profile(), None);
}

#[test]
fn merged_nodes_leave_a_profile_without_nodes() {
    // XNNPACK makes a clamp behind a layer the layer's bounds, if nobody else sees its input.
    let mut graph = graph();
    let (input, output) = (ValueId(3), ValueId(4));
    graph.nodes[1] = Node::new(NodeOp::Unary { op: UnaryOp::Clamp, input, output });
    graph.outputs = vec![output];
    graph.origin.output_names.clear();
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let options = SessionOptions { profile: true, ..SessionOptions::default() };
    let mut session = Session::new(&program, &options).unwrap();
    session.run().unwrap();
    let nodes: Vec<_> = session.profile().unwrap().iter().map(|timing| timing.node).collect();
    assert_eq!(nodes, [None]);
}

/// Three functions in a row, the one in the middle from `datatype` to itself.
fn chain(middle: NodeOp, datatype: Datatype) -> Graph {
    let mut graph = Graph::default();
    let value = || Value::new(datatype, Quantization::None, &[4]);
    let ids: Vec<ValueId> = (0..4).map(|_| graph.push_value(value())).collect();
    let abs = |input, output| NodeOp::Unary { op: UnaryOp::Abs, input, output };
    push(&mut graph, abs(ids[0], ids[1]));
    push(&mut graph, middle);
    push(&mut graph, abs(ids[2], ids[3]));
    for (handle, node) in (0..).zip(&mut graph.nodes) {
        node.debug_handle = Some(handle);
    }
    graph.origin.node_names = (0..3).map(|handle| (handle, format!("OP#{handle}"))).collect();
    (graph.inputs, graph.outputs) = (vec![ids[0]], vec![ids[3]]);
    graph
}

#[test]
fn errors_name_the_node_and_where_it_came_from() {
    let (input, output) = (ValueId(1), ValueId(2));
    assert!(compile(&chain(NodeOp::Softmax { input, output }, Datatype::F32)).is_ok());
    // No softmax over integers.
    let error = compile(&chain(NodeOp::Softmax { input, output }, Datatype::Int32)).unwrap_err();
    assert_eq!(error.culprit(), Some(1));
    assert_eq!(error.node().unwrap().origin.as_deref(), Some("OP#1"));
    assert!(error.to_string().starts_with("node 1 (Softmax, OP#1): "), "{error}");
    // An axis that does not exist.
    let slice = NodeOp::StaticSlice { offsets: vec![9], sizes: vec![1], input, output };
    assert_eq!(compile(&chain(slice, Datatype::F32)).unwrap_err().culprit(), Some(1));
}

#[test]
fn the_rest_compiles_without_the_culprit() {
    let (input, output) = (ValueId(1), ValueId(2));
    let mut graph = chain(NodeOp::Softmax { input, output }, Datatype::Int32);
    let culprit = compile(&graph).unwrap_err().culprit().unwrap();
    graph.nodes.truncate(culprit);
    graph.outputs = vec![input];
    assert_eq!(compile(&graph), Ok(()));
}

#[test]
fn weights_are_packed_once() {
    // A convolution whose packed weights would be seen in the time it takes to make a session.
    let channels = 512;
    let mut graph = Graph::default();
    let input = graph.push_value(f32s(&[1, 1, 1, channels]));
    let filter_dims = [channels, 3, 3, channels];
    let weights = vec![1f32; filter_dims.iter().product()];
    let filter = graph.push_value(constant(&filter_dims, &weights));
    let output = graph.push_value(f32s(&[1, 1, 1, channels]));
    push(
        &mut graph,
        NodeOp::Conv2d(Conv2d {
            padding: Padding2d::default(),
            kernel: Size2d { height: 3, width: 3 },
            stride: Size2d::ONE,
            dilation: Size2d::ONE,
            adjustment: Size2d { height: 0, width: 0 },
            groups: 1,
            group_input_channels: channels as u32,
            group_output_channels: channels as u32,
            input,
            filter,
            bias: None,
            output,
        }),
    );
    graph.nodes[0].flags = flags::TENSORFLOW_SAME_PADDING;
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let memory = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let mut sessions = vec![Session::new(&program, &SessionOptions::default()).unwrap()];
    let before = memory();
    sessions.extend((0..8).map(|_| Session::new(&program, &SessionOptions::default()).unwrap()));
    let packed = size_of_val(&weights[..]);
    assert!(memory() < before + 4 * packed, "eight more sessions took their own weights");
    for session in &mut sessions {
        session.input_as_mut::<f32>(0).unwrap().fill(1.0);
        session.run().unwrap();
        assert_eq!(session.output_as::<f32>(0).unwrap()[0], channels as f32);
    }
}

/// Graphs whose runtime exists before their session does.
#[test]
fn what_is_prepared_serves_one_session_with_the_same_options() {
    let profiled = SessionOptions { profile: true, ..SessionOptions::default() };
    let program = program();
    program.prepare(&profiled).unwrap();

    // Timings are taken by runtimes that were made to.
    let run = |options: &SessionOptions, x: f32| {
        let mut session = Session::new(&program, options).unwrap();
        set(&mut session, &[x, 1.0]);
        session.run().unwrap();
        assert_eq!(session.profile().is_some(), options.profile);
        assert_eq!(session.output_as::<f32>(0).unwrap(), [x + 10.5]);
        session
    };
    let first = run(&profiled, 1.0);
    let second = run(&profiled, 2.0);
    program.prepare(&profiled).unwrap();
    run(&SessionOptions::default(), 3.0);
    // Each has its own memory.
    assert_eq!(first.output_as::<f32>(0).unwrap(), [11.5]);
    assert_eq!(second.output_as::<f32>(0).unwrap(), [12.5]);
}

#[test]
fn options_are_the_same_if_they_share_the_same_things() {
    let pool = || Some(Arc::new(ThreadPool::new(1).unwrap()));
    let base = SessionOptions {
        thread_pool: pool(),
        workspace: Some(Workspace::new().unwrap()),
        ..SessionOptions::default()
    };
    assert_eq!(base, base.clone());
    let others = [
        SessionOptions { threads: 2, ..base.clone() },
        SessionOptions { thread_pool: pool(), ..base.clone() },
        SessionOptions { thread_pool: None, ..base.clone() },
        SessionOptions { threads_by_work: false, ..base.clone() },
        SessionOptions { workspace: Some(Workspace::new().unwrap()), ..base.clone() },
        SessionOptions { workspace: None, ..base.clone() },
        SessionOptions { yield_workers: true, ..base.clone() },
        SessionOptions { profile: true, ..base.clone() },
    ];
    for other in others {
        assert_ne!(base, other);
    }
}
