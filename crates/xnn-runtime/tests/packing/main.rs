//! Packed weights in blobs and folders: used if they are correct, packed again otherwise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod blobs;
mod folders;
mod fp16;
mod shapes;
mod sparse;

use std::fs;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use half::f16;
use tempfile::TempDir;
use xnn_format::{
    BinaryOp, Blob, Conv2d, Datatype, Graph, Node, NodeOp, PackedEntry, PackedSection, Padding2d,
    Quantization, Size2d, Value, ValueId, WriteOptions, readable_behind, with_packed, write,
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

/// A convolution with a square kernel, and these operands: input, filter, bias and output.
fn convolution(
    [kernel, stride]: [u32; 2],
    [from, to]: [usize; 2],
    [input, filter, bias, output]: [ValueId; 4],
) -> Conv2d {
    let square = |size| Size2d { height: size, width: size };
    Conv2d {
        padding: Padding2d::default(),
        kernel: square(kernel),
        stride: square(stride),
        dilation: square(1),
        adjustment: square(0),
        groups: 1,
        group_input_channels: from as u32,
        group_output_channels: to as u32,
        input,
        filter,
        bias: Some(bias),
        output,
    }
}

/// Two convolutions and two fully connected layers.
fn graph(factor: f32) -> Graph {
    let mut graph = Graph::default();
    let mut value = graph.push_value(f32s(&[1, 4, 4, 8]));
    graph.inputs = vec![value];
    for (kernel, from, to) in [(3usize, 8usize, 16usize), (1, 16, 24)] {
        let filter = graph.push_value(weights(&[to, kernel, kernel, from], factor));
        let bias = graph.push_value(weights(&[to], factor));
        let output = graph.push_value(f32s(&[1, 2, 2, to]));
        let conv = convolution([kernel as u32, 1], [from, to], [value, filter, bias, output]);
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

/// Number of a program's packed weights that are in the blob that it was read from.
fn in_blob(program: &Program, blob: &Blob) -> usize {
    let section = program.packed().unwrap();
    let inside = |entry: &&PackedEntry| readable_behind(&entry.data, blob.storage()).is_some();
    section.entries.iter().filter(inside).count()
}

/// A blob that is mapped from a file, and the file's folder.
fn mapped(bytes: &[u8]) -> (TempDir, Blob) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packed.xnn");
    fs::write(&path, bytes).unwrap();
    let blob = Blob::open(&path).unwrap();
    (folder, blob)
}

fn cached(factor: f32, folder: &Path) -> Program {
    let cache_dir = Some(folder.to_owned());
    Program::new(graph(factor), &ProgramOptions { cache_dir, ..ProgramOptions::default() }).unwrap()
}

/// Number of a program's packed weights that are in the file.
fn in_file(program: &Program, file: &Path) -> usize {
    let kept = PackedSection::open(file).unwrap().entries;
    program.packed().unwrap().entries.iter().filter(|entry| kept.contains(entry)).count()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// [`graph`] for another batch, or for padded images.
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

/// Number of packed weights that two programs share.
fn in_common(a: &Program, b: &Program) -> usize {
    let [a, b] = [a, b].map(|program| program.packed().unwrap().entries);
    a.iter().filter(|a| b.iter().any(|b| a.data.as_ptr() == b.data.as_ptr())).count()
}
