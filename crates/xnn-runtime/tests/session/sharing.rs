//! Programs, threads and memory that sessions share.

use super::*;

#[test]
fn programs_are_shared_and_sessions_move_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    fn sent<T: Send>() {}
    shared::<Program>();
    sent::<Session>();
}

#[test]
fn sessions_run_concurrently() {
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
fn weights_are_packed_once() {
    // A convolution that is large enough for packing to dominate the time to create a session.
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

/// Programs whose runtime is created before their session.
#[test]
fn a_prepared_runtime_is_used_by_one_session_with_equal_options() {
    let profiled = SessionOptions { profile: true, ..SessionOptions::default() };
    let program = program();
    program.prepare(&profiled).unwrap();

    // Only runtimes that were created with profiling measure times.
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
    // Each session has its own memory.
    assert_eq!(first.output_as::<f32>(0).unwrap(), [11.5]);
    assert_eq!(second.output_as::<f32>(0).unwrap(), [12.5]);
}

#[test]
fn options_are_equal_if_they_share_the_same_objects() {
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
        SessionOptions { profile: true, ..base.clone() },
    ];
    for other in others {
        assert_ne!(base, other);
    }
}
