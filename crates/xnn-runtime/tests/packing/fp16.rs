//! Packed weights of fp16 filters.

use super::*;

/// [`graph`] with filters in fp16.
fn fp16_graph(factor: f32) -> Graph {
    in_fp16(graph(factor))
}

/// Converts the filters of a graph to fp16.
pub fn in_fp16(mut graph: Graph) -> Graph {
    for value in graph.values.iter_mut().filter(|value| value.dims.len() > 1) {
        let Some(data) = &value.data else { continue };
        let half = |&bytes: &[u8; 4]| f16::from_f32(f32::from_le_bytes(bytes)).to_le_bytes();
        value.data = Some(data.as_chunks().0.iter().flat_map(half).collect());
        value.datatype = Datatype::F16;
    }
    graph
}

/// [`fp16_graph`] with its values converted to fp32.
fn fp32_graph_of_fp16_values(factor: f32) -> Graph {
    let mut graph = fp16_graph(factor);
    for value in graph.values.iter_mut().filter(|value| value.datatype == Datatype::F16) {
        let Some(data) = &value.data else { continue };
        let float = |&bytes: &[u8; 2]| f16::from_le_bytes(bytes).to_f32().to_le_bytes();
        value.data = Some(data.as_chunks().0.iter().flat_map(float).collect());
        value.datatype = Datatype::F32;
    }
    graph
}

#[test]
fn fp16_filters_are_packed_and_cached() {
    let plain = Program::new(fp32_graph_of_fp16_values(0.01), &ProgramOptions::default()).unwrap();
    let expected = run(&plain);
    let bytes = write(&fp16_graph(0.01), &WriteOptions::default()).unwrap();
    let blob = Blob::from_bytes(bytes).unwrap();
    let (_folder, blob) = mapped(&packed(&blob));
    let program = Program::from_blob(blob.clone()).unwrap();
    for _ in 0..2 {
        assert_eq!(run(&program), expected);
        assert_eq!(in_blob(&program, &blob), 4);
    }
    // Neither the same weights in another form nor other weights in the same form are used.
    let similar = |graph: Graph| ProgramOptions {
        similar: Some(Program::new(graph, &ProgramOptions::default()).unwrap()),
        ..ProgramOptions::default()
    };
    for other in [fp32_graph_of_fp16_values(0.01), fp16_graph(0.02), fp16_graph(0.01)] {
        let options = similar(other);
        run(options.similar.as_ref().unwrap());
        assert_eq!(run(&Program::new(fp16_graph(0.01), &options).unwrap()), expected);
    }
}

/// Sizes of the packed weights of all layers in bytes.
fn packed_bytes(program: &Program) -> Vec<usize> {
    program.packed().unwrap().entries.iter().map(|entry| entry.data.len()).collect()
}

/// Only products with few rows keep weights in fp16, not those with many rows, nor convolutions.
/// Weights that are packed differently are not shared.
#[test]
fn layers_of_few_rows_pack_fp16_weights() {
    let graph = |batch| in_fp16(variant(0.01, batch, 0));
    let few = Program::new(graph(2), &ProgramOptions::default()).unwrap();
    let many = Program::new(graph(3), &ProgramOptions::default()).unwrap();
    let floats = Program::new(variant(0.01, 2, 0), &ProgramOptions::default()).unwrap();
    let [few_bytes, many_bytes, bytes] = [&few, &many, &floats].map(packed_bytes);
    assert_eq!(many_bytes, bytes);
    assert_eq!(few_bytes[..3], bytes[..3], "there are no narrow tiles of them");
    if xnnpack::packs_fp16_weights() {
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
