//! Weights of which many are 0.

use super::*;

/// A convolution of pixels with this stride, and a fully connected layer, with `zeros` of 8 weights in a row being 0.
fn sparse_graph(edge: usize, stride: u32, zeros: usize) -> Graph {
    const CHANNELS: [usize; 3] = [24, 40, 32];
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
    let one = Size2d { height: 1, width: 1 };
    let conv = Conv2d {
        padding: Padding2d::default(),
        kernel: one,
        stride: Size2d { height: stride, width: stride },
        dilation: one,
        adjustment: Size2d { height: 0, width: 0 },
        groups: 1,
        group_input_channels: inputs as u32,
        group_output_channels: between as u32,
        input,
        filter: graph.push_value(some(&[between, 1, 1, inputs])),
        bias: Some(graph.push_value(weights(&[between], 0.01))),
        output: graph.push_value(f32s(&[1, rows, rows, between])),
    };
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
    let sparse = [skipping(40, 24), skipping(32, 40)].map(rounded);
    let [conv, dense] = sizes(sparse_graph(4, 1, 3)).try_into().unwrap();
    for to_fp16 in [false, true] {
        for (edge, stride, zeros, skips) in [
            (4, 1, 4, [true, true]),
            (4, 1, 3, [false, false]),
            // Nine rows.
            (3, 1, 7, [false, false]),
            (8, 2, 7, [false, true]),
        ] {
            let graph = sparse_graph(edge, stride, zeros);
            let graph = if to_fp16 { fp16::in_fp16(graph) } else { graph };
            let skips = skips.map(|skips| skips && xnnpack::skips_zero_weights());
            let found = sizes(graph);
            let expected = [(conv, sparse[0], skips[0]), (dense, sparse[1], skips[1])];
            let expected = expected.map(|(all, sparse, skips)| if skips { sparse } else { all });
            assert_eq!(found, expected, "{edge} {stride} {zeros} {to_fp16}");
        }
    }
}

#[test]
fn sparse_weights_are_packed_and_cached() {
    for to_fp16 in [false, true] {
        let graph = || {
            let graph = sparse_graph(5, 1, 6);
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
