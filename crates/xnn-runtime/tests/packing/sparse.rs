//! Weights of which many are 0.

use super::*;

const CHANNELS: [usize; 3] = [24, 40, 32];

/// A convolution of pixels with this stride, and a fully connected layer, with `zeros` of 8 weights in a row being 0.
fn sparse_graph(edge: usize, stride: u32, zeros: usize) -> Graph {
    let some = |dims: &[usize]| {
        let element =
            |i: usize| if i % 8 < zeros { 0.0 } else { (i * 37 % 101) as f32 * 0.01 - 0.4 };
        let data = (0..dims.iter().product()).flat_map(|i| element(i).to_le_bytes());
        f32s(dims).with_data(data.collect::<Bytes>())
    };
    let [inputs, between, outputs] = CHANNELS;
    let rows = edge.div_ceil(stride as usize);
    let mut graph = Graph::default();
    let input = graph.push_value(f32s(&[1, edge, edge, inputs]));
    let filter = graph.push_value(some(&[between, 1, 1, inputs]));
    let bias = graph.push_value(weights(&[between], 0.01));
    let output = graph.push_value(f32s(&[1, rows, rows, between]));
    let conv = convolution([1, stride], [inputs, between], [input, filter, bias, output]);
    let filter = graph.push_value(some(&[outputs, between]));
    let output = graph.push_value(f32s(&[1, rows, rows, outputs]));
    let input = conv.output;
    let op = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
    graph.nodes = vec![Node::new(NodeOp::Conv2d(conv)), Node::new(op)];
    (graph.inputs, graph.outputs) = (vec![ValueId(0)], vec![output]);
    graph
}

/// Bytes of packed weights of both layers.
fn sizes(graph: Graph) -> Vec<usize> {
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let entries = program.packed().unwrap().entries;
    entries.iter().map(|entry| entry.data.len()).collect()
}

#[test]
fn layers_of_many_zeros_and_rows_skip_weights() {
    // A bias, weights, and their number and places, of which there is an even number.
    let skipping = |outputs: usize, inputs: usize| outputs * (4 + 4 * inputs + 2 * (2 + inputs));
    let rounded = |size: usize| size.next_multiple_of(64);
    let [inputs, between, outputs] = CHANNELS;
    let sparse = [skipping(between, inputs), skipping(outputs, between)].map(rounded);
    let [conv, dense] = sizes(sparse_graph(4, 1, 3)).try_into().unwrap();
    for to_fp16 in [false, true] {
        for (edge, stride, zeros, are_sparse) in [
            (8, 1, 4, [true, true]),
            (8, 1, 3, [false, false]),
            (16, 2, 7, [false, true]),
            // Sixteen rows are enough for some processors, and nine for none.
            (4, 1, 4, [true, true]),
            (3, 1, 7, [false, false]),
        ] {
            let graph = sparse_graph(edge, stride, zeros);
            let graph = if to_fp16 { fp16::in_fp16(graph) } else { graph };
            let rows = edge.div_ceil(stride as usize).pow(2);
            let found = sizes(graph);
            let expected = [
                (conv, sparse[0], are_sparse[0], [rows, inputs, between]),
                (dense, sparse[1], are_sparse[1], [rows, between, outputs]),
            ];
            let expected = expected.map(|(all, sparse, are_sparse, size)| {
                if are_sparse && xnnpack::skips_zero_weights(size) { sparse } else { all }
            });
            assert_eq!(found, expected, "{edge} {stride} {zeros} {to_fp16}");
        }
    }
}

#[test]
fn sparse_weights_are_packed_and_cached() {
    for to_fp16 in [false, true] {
        let graph = || {
            let graph = sparse_graph(9, 1, 6);
            if to_fp16 { fp16::in_fp16(graph) } else { graph }
        };
        let expected = run(&Program::new(graph(), &ProgramOptions::default()).unwrap());
        let blob = Blob::from_bytes(write(&graph(), &WriteOptions::default()).unwrap()).unwrap();
        let (_folder, blob) = mapped(&packed(&blob));
        let program = Program::from_blob(blob.clone()).unwrap();
        assert_eq!(run(&program), expected);
        assert_eq!(in_blob(&program, &blob), 2);
    }
}
