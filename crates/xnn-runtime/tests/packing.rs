//! Packed weights in blobs and in folders: used where they are right, packed anew where not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use half::f16;
use tempfile::TempDir;
use xnn_format::{
    BinaryOp, Blob, Conv2d, Datatype, Graph, Node, NodeOp, PackedEntry, PackedSection, Padding2d,
    Quantization, Size2d, Value, WriteOptions, readable_behind, with_packed, write,
};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};

fn f32s(dims: &[usize]) -> Value {
    Value::new(Datatype::F32, Quantization::None, dims)
}

fn weights(dims: &[usize], factor: f32) -> Value {
    let count = dims.iter().product::<usize>();
    let element = |i: usize| ((i * 37 + 11) % 101) as f32 * factor - 0.5;
    f32s(dims).with_data((0..count).flat_map(|i| element(i).to_le_bytes()).collect::<Bytes>())
}

/// Two convolutions and two fully connected layers.
fn graph(factor: f32) -> Graph {
    let mut graph = Graph::default();
    let mut value = graph.push_value(f32s(&[1, 4, 4, 8]));
    graph.inputs = vec![value];
    for (kernel, from, to) in [(3usize, 8usize, 16usize), (1, 16, 24)] {
        let conv = Conv2d {
            padding: Padding2d::default(),
            kernel: Size2d { height: kernel as u32, width: kernel as u32 },
            stride: Size2d { height: 1, width: 1 },
            dilation: Size2d { height: 1, width: 1 },
            adjustment: Size2d { height: 0, width: 0 },
            groups: 1,
            group_input_channels: from as u32,
            group_output_channels: to as u32,
            input: value,
            filter: graph.push_value(weights(&[to, kernel, kernel, from], factor)),
            bias: Some(graph.push_value(weights(&[to], factor))),
            output: graph.push_value(f32s(&[1, 2, 2, to])),
        };
        value = conv.output;
        graph.nodes.push(Node::new(NodeOp::Conv2d(conv)));
    }
    for (from, to) in [(24, 30), (30, 40)] {
        let filter = graph.push_value(weights(&[to, from], factor));
        let output = graph.push_value(f32s(&[1, 2, 2, to]));
        let op = NodeOp::FullyConnected { input: value, filter, bias: None, output, sparse: false };
        graph.nodes.push(Node::new(op));
        value = output;
    }
    graph.outputs = vec![value];
    graph
}

fn run(program: &Program) -> Vec<u8> {
    let mut session = Session::new(program, &SessionOptions::default()).unwrap();
    for (index, element) in session.input_as_mut::<f32>(0).unwrap().iter_mut().enumerate() {
        *element = index as f32 * 0.01;
    }
    session.run().unwrap();
    session.output(0).to_vec()
}

fn expected(factor: f32) -> Vec<u8> {
    run(&Program::new(graph(factor), &ProgramOptions::default()).unwrap())
}

fn blob(factor: f32) -> Blob {
    Blob::from_bytes(write(&graph(factor), &WriteOptions::default()).unwrap()).unwrap()
}

fn packed(blob: &Blob) -> Vec<u8> {
    let section = Program::from_blob(blob.clone()).unwrap().packed().unwrap();
    with_packed(blob, &section).unwrap()
}

/// How many of the weights that a program computes with lie in the blob that it was read from.
fn in_blob(program: &Program, blob: &Blob) -> usize {
    let section = program.packed().unwrap();
    let inside = |entry: &&PackedEntry| readable_behind(&entry.data, blob.storage()).is_some();
    section.entries.iter().filter(inside).count()
}

/// A blob that is mapped from a file, and the folder of that file.
fn mapped(bytes: &[u8]) -> (TempDir, Blob) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packed.xnn");
    fs::write(&path, bytes).unwrap();
    let blob = Blob::open(&path).unwrap();
    (folder, blob)
}

#[test]
fn a_packed_blob_packs_nothing() {
    let (_folder, blob) = mapped(&packed(&blob(0.01)));
    let program = Program::from_blob(blob.clone()).unwrap();
    for _ in 0..2 {
        // Pages are released after the first session; the second one finds them again.
        assert_eq!(run(&program), expected(0.01));
        assert_eq!(in_blob(&program, &blob), 4);
    }
}

/// [`graph`] with filters in fp16.
fn graph_in_halves(factor: f32) -> Graph {
    in_halves(graph(factor))
}

/// The same with filters in fp16.
fn in_halves(mut graph: Graph) -> Graph {
    for value in graph.values.iter_mut().filter(|value| value.dims.len() > 1) {
        let Some(data) = &value.data else { continue };
        let half = |&bytes: &[u8; 4]| f16::from_f32(f32::from_le_bytes(bytes)).to_le_bytes();
        value.data = Some(data.as_chunks().0.iter().flat_map(half).collect());
        value.datatype = Datatype::F16;
    }
    graph
}

/// The same with the numbers that [`graph_in_halves`] has, in fp32.
fn graph_of_halves(factor: f32) -> Graph {
    let mut graph = graph_in_halves(factor);
    for value in graph.values.iter_mut().filter(|value| value.datatype == Datatype::F16) {
        let Some(data) = &value.data else { continue };
        let float = |&bytes: &[u8; 2]| f16::from_le_bytes(bytes).to_f32().to_le_bytes();
        value.data = Some(data.as_chunks().0.iter().flat_map(float).collect());
        value.datatype = Datatype::F32;
    }
    graph
}

#[test]
fn filters_in_halves_are_packed_and_kept_as_others() {
    let plain = Program::new(graph_of_halves(0.01), &ProgramOptions::default()).unwrap();
    let expected = run(&plain);
    let bytes = write(&graph_in_halves(0.01), &WriteOptions::default()).unwrap();
    let blob = Blob::from_bytes(bytes).unwrap();
    let (_folder, blob) = mapped(&packed(&blob));
    let program = Program::from_blob(blob.clone()).unwrap();
    for _ in 0..2 {
        assert_eq!(run(&program), expected);
        assert_eq!(in_blob(&program, &blob), 4);
    }
    // The same weights in another form, and others in the same form, are not taken for them.
    let similar = |graph: Graph| ProgramOptions {
        similar: Some(Program::new(graph, &ProgramOptions::default()).unwrap()),
        ..ProgramOptions::default()
    };
    for other in [graph_of_halves(0.01), graph_in_halves(0.02), graph_in_halves(0.01)] {
        let options = similar(other);
        run(options.similar.as_ref().unwrap());
        assert_eq!(run(&Program::new(graph_in_halves(0.01), &options).unwrap()), expected);
    }
}

/// How many bytes each layer's weights have.
fn packed_bytes(program: &Program) -> Vec<usize> {
    program.packed().unwrap().entries.iter().map(|entry| entry.data.len()).collect()
}

/// Products with few rows keep weights in fp16, those with many do not, nor convolutions: what they do not pack in the same way
/// is not shared.
#[test]
fn few_rows_pack_halves() {
    let graph = |batch| in_halves(variant(0.01, batch, 0));
    let few = Program::new(graph(2), &ProgramOptions::default()).unwrap();
    let many = Program::new(graph(3), &ProgramOptions::default()).unwrap();
    let floats = Program::new(variant(0.01, 2, 0), &ProgramOptions::default()).unwrap();
    let [few_bytes, many_bytes, bytes] = [&few, &many, &floats].map(packed_bytes);
    assert_eq!(many_bytes, bytes);
    assert_eq!(few_bytes[..3], bytes[..3], "there are no narrow tiles of them");
    if xnnpack::packs_halves() {
        // Tiles of 32 channels: a bias in fp32, and 30 weights in fp16.
        assert_eq!(few_bytes[3], 64 * (4 + 30 * 2));
    }
    let differ = few_bytes.iter().zip(&many_bytes).filter(|(few, many)| few != many).count();
    for (first, batch, common) in [(&few, 3, 4 - differ), (&few, 1, 4), (&many, 1, 4 - differ)] {
        let options = ProgramOptions { similar: Some(first.clone()), ..ProgramOptions::default() };
        let program = Program::new(graph(batch), &options).unwrap();
        let alone = Program::new(graph(batch), &ProgramOptions::default()).unwrap();
        assert_eq!(run(&program), run(&alone), "batch {batch}");
        assert_eq!(in_common(&program, first), common, "batch {batch}");
    }
}

/// How much of a mapped file is in this process's memory, in kB, area by area.
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

/// Systems map more of a file than is read.
#[cfg(target_os = "linux")]
#[test]
fn what_lies_beside_packed_weights_stays_out_of_memory() {
    // Three megabytes of weights between numbers that runs add: many, which they read where they are, and few.
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
fn what_weights_are_packed_from_leaves_memory_each_time() {
    // XNNPACK packs depthwise layers for each session.
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
            // Packed weights stay where a session may be running on them.
            assert_eq!(is_resident(), in_place && session > 0, "{in_place} {session}");
            drop(idle);
            run(&program);
        }
    }
}

#[test]
fn packed_blobs_in_memory_may_lie_anywhere() {
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
fn weights_for_something_else_are_packed_anew() {
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

/// Somebody put other constants into the file, and left the packed weights.
#[test]
fn weights_that_do_not_belong_to_the_constants_are_noticed() {
    let old = packed(&blob(0.01));
    let new = write(&graph(0.02), &WriteOptions::default()).unwrap();
    let mixed = [new.as_slice(), &old[new.len()..]].concat();
    let (_folder, blob) = mapped(&mixed);
    assert_eq!(blob.packed().len(), 1);
    let program = Program::from_blob(blob.clone()).unwrap();
    assert_eq!(run(&program), expected(0.02));
    assert_eq!(in_blob(&program, &blob), 0);
}

fn cached(factor: f32, folder: &Path) -> Program {
    let cache_dir = Some(folder.to_owned());
    Program::new(graph(factor), &ProgramOptions { cache_dir, ..ProgramOptions::default() }).unwrap()
}

/// Packed weights of a program that lie in the file.
fn in_file(program: &Program, file: &Path) -> usize {
    let kept = PackedSection::open(file).unwrap().entries;
    program.packed().unwrap().entries.iter().filter(|entry| kept.contains(entry)).count()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_folder_keeps_packed_weights() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/when/needed");
    assert_eq!(run(&cached(0.01, &folder)), expected(0.01));
    let [file] = files(&folder).try_into().unwrap();
    let kept = PackedSection::open(&file).unwrap();
    assert_eq!(kept.entries.len(), 4);
    let program = cached(0.01, &folder);
    assert_eq!(run(&program), expected(0.01));
    assert_eq!(program.packed().unwrap().entries, kept.entries);
    // The same graph out of a blob has the same weights.
    let options = ProgramOptions { cache_dir: Some(folder.clone()), ..ProgramOptions::default() };
    let program = Program::from_blob_with(blob(0.01), &options).unwrap();
    assert_eq!(run(&program), expected(0.01));
    assert_eq!(files(&folder).len(), 1);
}

#[test]
fn a_retrained_model_gets_its_own_weights() {
    let folder = tempfile::tempdir().unwrap();
    for factor in [0.01, 0.02, 0.01, 0.02] {
        assert_eq!(run(&cached(factor, folder.path())), expected(factor));
    }
    assert_eq!(files(folder.path()).len(), 2);
}

#[test]
fn damaged_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    run(&cached(0.01, folder.path()));
    let [file] = files(folder.path()).try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    let mut other = whole.clone();
    other[20] ^= 1;
    for damaged in [&[][..], b"something else", &whole[..whole.len() / 2], &other] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(run(&cached(0.01, folder.path())), expected(0.01));
        assert!(fs::read(&file).unwrap() == whole);
    }
}

/// What a crash leaves behind is in nobody's way, and nobody reads half a file.
#[test]
fn many_may_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".tmpCrash"), b"half").unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(run(&cached(0.01, folder.path())), expected(0.01)));
        }
    });
    assert_eq!(files(folder.path()).len(), 2);
    assert_eq!(run(&cached(0.01, folder.path())), expected(0.01));
}

#[test]
fn a_folder_that_cannot_be_written_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(run(&cached(0.01, &file)), expected(0.01));
}

/// [`graph`] for another batch, or for pictures with a border.
fn variant(factor: f32, batch: usize, padding: u32) -> Graph {
    let mut graph = graph(factor);
    for value in graph.values.iter_mut().filter(|value| value.data.is_none()) {
        if let Some(first) = value.dims.first_mut() {
            *first = batch;
        }
    }
    if let Some(Node { op: NodeOp::Conv2d(conv), .. }) = graph.nodes.first_mut() {
        conv.padding = Padding2d { top: padding, ..Padding2d::default() };
    }
    graph
}

/// How many packed weights two programs share.
fn in_common(a: &Program, b: &Program) -> usize {
    let [a, b] = [a, b].map(|program| program.packed().unwrap().entries);
    a.iter().filter(|a| b.iter().any(|b| a.data.as_ptr() == b.data.as_ptr())).count()
}

#[test]
fn nodes_of_a_similar_program_keep_their_packed_weights() {
    let first = Program::new(graph(1.0), &ProgramOptions::default()).unwrap();
    first.check_compiles().unwrap();
    for (factor, batch, padding, common) in [(1.0, 3, 0, 4), (1.0, 1, 1, 3), (2.0, 3, 0, 0)] {
        let similar = Some(first.clone());
        let options = ProgramOptions { similar, ..ProgramOptions::default() };
        let graph = || variant(factor, batch, padding);
        let program = Program::new(graph(), &options).unwrap();
        let alone = Program::new(graph(), &ProgramOptions::default()).unwrap();
        assert_eq!(run(&program), run(&alone));
        let case = format!("factor {factor}, batch {batch}, padding {padding}");
        assert_eq!((in_common(&program, &first), in_common(&alone, &first)), (common, 0), "{case}");
    }
}

#[test]
fn weights_pass_from_shape_to_shape() {
    let first = Program::new(graph(1.0), &ProgramOptions::default()).unwrap();
    first.check_compiles().unwrap();
    let mut last = first.clone();
    for batch in [2, 3, 1] {
        let options = ProgramOptions { similar: Some(last), ..ProgramOptions::default() };
        last = Program::new(variant(1.0, batch, 0), &options).unwrap();
        last.check_compiles().unwrap();
    }
    assert_eq!(in_common(&last, &first), 4);
}

#[test]
fn other_shapes_find_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let cache_dir = Some(folder.path().to_owned());
    let make = |batch, padding, similar: Option<&Program>| {
        let options = ProgramOptions {
            cache_dir: cache_dir.clone(),
            similar: similar.cloned(),
            ..ProgramOptions::default()
        };
        let program = Program::new(variant(1.0, batch, padding), &options).unwrap();
        let alone = Program::new(variant(1.0, batch, padding), &ProgramOptions::default()).unwrap();
        assert_eq!(run(&program), run(&alone), "batch {batch}, padding {padding}");
        program
    };
    let first = make(1, 0, None);
    let [file] = files(folder.path()).try_into().unwrap();
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    for batch in [3, 2] {
        assert_eq!(in_file(&make(batch, 0, None), &file), 4);
        assert_eq!(in_common(&make(batch, 0, Some(&first)), &first), 4);
    }
    assert_eq!(files(folder.path()), std::slice::from_ref(&file));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    // Layers with other parameters may be packed in another way.
    make(1, 1, None);
    assert_eq!(files(folder.path()).len(), 2);
}
