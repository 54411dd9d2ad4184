//! Packed weights in blobs.

use super::*;

#[test]
fn a_packed_blob_is_not_packed_again() {
    let (_folder, blob) = mapped(&packed(&blob(0.01)));
    let program = Program::from_blob(blob.clone()).unwrap();
    for _ in 0..2 {
        // Pages are released after the first session; the second one finds them again.
        assert_eq!(run(&program), expected(0.01));
        assert_eq!(in_blob(&program, &blob), 4);
    }
}

/// Resident memory of a mapped file in kB, by memory area.
#[cfg(target_os = "linux")]
fn resident_kb(file: &Path) -> Vec<usize> {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let size = |line: &str| line.trim().trim_end_matches("kB").trim().parse().unwrap();
    let mut areas = Vec::new();
    let mut lines = maps.lines();
    while lines.by_ref().any(|line| line.ends_with(file.to_str().unwrap())) {
        areas.push(lines.by_ref().find_map(|line| line.strip_prefix("Rss:")).map_or(0, size));
    }
    areas
}

/// Systems map more of a file than the process reads.
#[cfg(target_os = "linux")]
#[test]
fn only_packed_weights_of_a_blob_are_resident() {
    // Three megabytes of weights between constants that runs add: large ones that are read in
    // place, and small ones.
    let mut graph = Graph::default();
    let input = graph.push_value(f32s(&[4, 1024]));
    let many = graph.push_value(weights(&[4, 768], 0.5));
    let filter = graph.push_value(weights(&[768, 1024], 0.001));
    let few = graph.push_value(weights(&[768], 0.5));
    let [product, sum, output] = [(); 3].map(|()| graph.push_value(f32s(&[4, 768])));
    let op = NodeOp::FullyConnected { input, filter, bias: None, output: product, sparse: false };
    graph.nodes.push(Node::new(op));
    for (inputs, output) in [([product, many], sum), ([sum, few], output)] {
        graph.nodes.push(Node::new(NodeOp::Binary { op: BinaryOp::Add, inputs, output }));
    }
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);

    let bytes = write(&graph, &WriteOptions::default()).unwrap();
    let (folder, blob) = mapped(&packed(&Blob::from_bytes(bytes).unwrap()));
    let program = Program::from_blob(blob).unwrap();
    run(&program);
    let areas = resident_kb(&folder.path().join("packed.xnn"));
    let resident: usize = areas.iter().sum();
    // The packed weights, the page around each of their ends, and what one read maps around itself.
    assert!((3072..3072 + 128).contains(&resident), "{areas:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn data_of_packed_weights_is_released_each_time() {
    // XNNPACK packs depthwise layers again for each session.
    let mut graph = graph(0.01);
    let filter = graph.push_value(weights(&[1, 2, 2, 40], 0.01));
    let output = graph.push_value(f32s(&[1, 1, 1, 40]));
    graph.nodes.push(Node::new(NodeOp::DepthwiseConv2d(Conv2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: 2, width: 2 },
        stride: Size2d { height: 1, width: 1 },
        dilation: Size2d { height: 1, width: 1 },
        adjustment: Size2d { height: 0, width: 0 },
        groups: 40,
        group_input_channels: 1,
        group_output_channels: 1,
        input: graph.outputs[0],
        filter,
        bias: None,
        output,
    })));
    graph.outputs = vec![output];
    let plain = write(&graph, &WriteOptions::default()).unwrap();
    let packed = packed(&Blob::from_bytes(plain.clone()).unwrap());
    for (bytes, in_place) in [(plain, false), (packed, true)] {
        let (folder, blob) = mapped(&bytes);
        let file = folder.path().join("packed.xnn");
        let program = Program::from_blob(blob).unwrap();
        let is_resident = || resident_kb(&file).iter().sum::<usize>() > 0;
        assert_eq!(is_resident(), in_place, "{in_place}");
        for session in 0..3 {
            let idle = Session::new(&program, &SessionOptions::default()).unwrap();
            // Packed weights stay in memory, since sessions may use them.
            assert_eq!(is_resident(), in_place && session > 0, "{in_place} {session}");
            drop(idle);
            run(&program);
        }
    }
}

#[test]
fn packed_blobs_in_memory_need_no_alignment() {
    let bytes = Bytes::from([&[0], packed(&blob(0.01)).as_slice()].concat());
    let blob = Blob::from_bytes(bytes.slice(1..)).unwrap();
    assert_eq!(run(&Program::from_blob(blob).unwrap()), expected(0.01));
}

fn with(change: impl FnOnce(&mut PackedSection)) -> Vec<u8> {
    let blob = blob(0.01);
    let mut section = Program::from_blob(blob.clone()).unwrap().packed().unwrap();
    change(&mut section);
    with_packed(&blob, &section).unwrap()
}

#[test]
fn weights_with_another_key_are_packed_again() {
    let changes: [fn(&mut PackedSection); 5] = [
        |section| section.key.processor.push_str(" other"),
        |section| section.key.layout += 1,
        |section| section.key.graph += 1,
        |section| section.entries.iter_mut().for_each(|entry| entry.seed ^= 1),
        |section| section.entries.iter_mut().for_each(|entry| entry.data.truncate(64)),
    ];
    for change in changes {
        let (_folder, blob) = mapped(&with(change));
        let program = Program::from_blob(blob.clone()).unwrap();
        assert_eq!(run(&program), expected(0.01));
        assert_eq!(in_blob(&program, &blob), 0);
    }
}

/// The constants in the file were replaced, but not the packed weights.
#[test]
fn packed_weights_of_other_constants_are_detected() {
    let old = packed(&blob(0.01));
    let new = write(&graph(0.02), &WriteOptions::default()).unwrap();
    let mixed = [new.as_slice(), &old[new.len()..]].concat();
    let (_folder, blob) = mapped(&mixed);
    assert_eq!(blob.packed().len(), 1);
    let program = Program::from_blob(blob.clone()).unwrap();
    assert_eq!(run(&program), expected(0.02));
    assert_eq!(in_blob(&program, &blob), 0);
}
