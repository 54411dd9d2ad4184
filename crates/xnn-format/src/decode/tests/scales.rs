//! Tests of scales stored in the flatbuffer and as constants.

use std::sync::Arc;

use super::*;

fn channels(fbb: &mut Builder, scale: Option<&[f32]>, index: u32) -> Params {
    let scale = scale.map(|scale| fbb.create_vector(scale));
    let args =
        fb::PerChannelQuantArgs { scale, channel_dim: 0, scale_buffer_idx: index, num_scales: 2 };
    let params = fb::PerChannelQuant::create(fbb, &args);
    (fb::XNNQuantParams::PerChannelQuant, params.as_union_value())
}

#[test]
fn scales_of_channels_may_be_constants() {
    let region: Vec<u8> = [[1, 2, 0, 0], 0.5f32.to_le_bytes(), 2.0f32.to_le_bytes()].concat();
    let source = |quantized, size| Source {
        tensors: vec![
            Tensor {
                datatype: fb::XNNDatatype::xnn_datatype_qcint8,
                quantized: Some(quantized),
                ..constant(0, 1)
            },
            output(1, 0),
        ],
        nodes: vec![(fb::XNodeUnion::XNNConvert, 0, 1)],
        num_externs: 1,
        constants: vec![(0, 0, None), (0, 2, None), (4, size, None)],
        region: region.clone(),
        ..Source::default()
    };
    let graph = source(|fbb| channels(fbb, Some(&[]), 2), 8).read();
    assert_eq!(graph.values[0].quantization.scales(), [0.5, 2.0]);
    let graph = source(|fbb| channels(fbb, None, 2), 8).read();
    assert_eq!(graph.values[0].quantization.scales(), [0.5, 2.0]);
    let graph = source(|fbb| channels(fbb, Some(&[3.0, 4.0]), 0), 8).read();
    assert_eq!(graph.values[0].quantization.scales(), [3.0, 4.0]);
    source(|fbb| channels(fbb, None, 2), 7).refused("value 0: 2 scales do not match the 7 bytes");
    source(|fbb| channels(fbb, None, 2), 4).refused("2 scales do not match the 4 bytes");
    source(|fbb| channels(fbb, None, 9), 8).refused("constant 9 does not exist");
    source(|fbb| channels(fbb, None, 0), 8).refused("0 scales for 2 channels");
    source(|fbb| channels(fbb, Some(&[3.0]), 0), 8).refused("1 scales for 2 channels");
}

fn blocks(
    fbb: &mut Builder,
    scale: &[f32],
    scale_bf16: Option<&[u16]>,
    scale_buffer_idx: u32,
) -> Params {
    let args = fb::PerChannelGroupQuantArgs {
        scale: Some(fbb.create_vector(scale)),
        channel_dim: 0,
        group_size: 32,
        scale_bf16: scale_bf16.map(|scales| fbb.create_vector(scales)),
        scale_buffer_idx,
        num_scales: 2,
    };
    let params = fb::PerChannelGroupQuant::create(fbb, &args);
    (fb::XNNQuantParams::PerChannelGroupQuant, params.as_union_value())
}

#[test]
fn scales_of_blocks_have_three_forms() {
    let source = |quantized| Source {
        tensors: vec![
            Tensor {
                datatype: fb::XNNDatatype::xnn_datatype_qbint4,
                quantized: Some(quantized),
                dims: &[2, 32],
                ..constant(0, 1)
            },
            Tensor { dims: &[2, 32], ..output(1, 0) },
        ],
        nodes: vec![(fb::XNodeUnion::XNNConvert, 0, 1)],
        num_externs: 1,
        constants: vec![(0, 0, None), (0, 32, None), (32, 4, None)],
        // 1.0 and 2.0 as bf16 after the 4-bit weights.
        region: [[0; 32].as_slice(), &[0x80, 0x3f, 0, 0x40]].concat(),
        ..Source::default()
    };
    for (quantized, expected) in [
        ((|fbb| blocks(fbb, &[], None, 2)) as fn(&mut Builder) -> _, [1.0, 2.0]),
        (|fbb| blocks(fbb, &[9.0, 9.0], Some(&[0x3f00, 0x4080]), 0), [0.5, 4.0]),
        (|fbb| blocks(fbb, &[3.0, 5.0], Some(&[]), 0), [3.0, 5.0]),
        (|fbb| blocks(fbb, &[3.0, 5.0], None, 0), [3.0, 5.0]),
    ] {
        assert_eq!(source(quantized).read().values[0].quantization.scales(), expected);
    }
}

fn two_channels(fbb: &mut Builder) -> Params {
    channels(fbb, None, 2)
}

/// Two values of two channels with constants 2 and 3 as scales.
fn two_values(constants: [(u64, u64); 2]) -> Source {
    let value = |id, quantized| Tensor {
        datatype: fb::XNNDatatype::xnn_datatype_qcint8,
        quantized: Some(quantized),
        ..constant(id, 1)
    };
    let [first, second] = constants.map(|(offset, size)| (offset, size, None));
    Source {
        tensors: vec![value(0, two_channels), value(2, |fbb| channels(fbb, None, 3)), output(1, 0)],
        nodes: vec![(fb::XNodeUnion::XNNConvert, 0, 1)],
        num_externs: 1,
        constants: vec![(0, 0, None), (0, 2, None), first, second],
        region: [1f32; 6].into_iter().flat_map(f32::to_le_bytes).collect(),
        ..Source::default()
    }
}

fn scales(graph: &Graph) -> Vec<Arc<[f32]>> {
    let of_value = |value: &crate::Value| match &value.quantization {
        Quantization::PerChannel { scales, .. } => Some(Arc::clone(scales)),
        _ => None,
    };
    graph.values.iter().filter_map(of_value).collect()
}

/// Otherwise many values of a small file could take any amount of memory.
#[test]
fn scales_are_shared_as_their_constants_are() {
    for (second, shared) in [((4, 8), true), ((12, 8), false)] {
        let [a, b] = <[_; 2]>::try_from(scales(&two_values([(4, 8), second]).read())).unwrap();
        assert_eq!(a, b);
        assert_eq!(Arc::ptr_eq(&a, &b), shared);
    }
    for second in [(8, 8), (5, 8), (4, 4), (0, 24)] {
        let error = Blob::from_bytes(two_values([(4, 8), second]).file()).unwrap_err().to_string();
        let expected = if second.1 == 8 { "overlap other scales" } else { "2 scales do not match" };
        assert!(error.contains("value 1") && error.contains(expected), "{second:?}: {error}");
    }
}

#[test]
fn the_total_size_of_scales_is_limited() {
    let read = |max_scale_bytes| {
        let mut options = ReadOptions::default();
        options.limits.max_scale_bytes = max_scale_bytes;
        let file = two_values([(4, 8), (4, 8)]).file();
        Blob::from_bytes_with(file, &options).map_err(|error| error.to_string())
    };
    assert!(read(16).is_ok());
    assert!(read(15).unwrap_err().contains("size of all scales is 16"));
}
