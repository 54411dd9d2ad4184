//! Tests of flatbuffers that the writer does not produce.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use crate::generated::graph as fb;
use crate::header::Header;
use crate::wire::{NO_DEBUG_HANDLE, NO_OFFSET, NO_VALUE};
use crate::{
    Blob, Datatype, ErrorKind, Graph, NodeOp, Quantization, ReadOptions, UnaryOp, ValueId,
};

mod scales;

type Builder = FlatBufferBuilder<'static>;
type Params = (fb::XNNQuantParams, WIPOffset<UnionWIPOffset>);

/// A tensor; by default an internal value of two elements.
#[derive(Clone)]
struct Tensor {
    id: u32,
    external: Option<(u32, u32)>,
    constant: u32,
    datatype: fb::XNNDatatype,
    dq_datatype: fb::XNNDatatype,
    quantized: Option<fn(&mut Builder) -> Params>,
    dims: &'static [u32],
}

const TENSOR: Tensor = Tensor {
    id: 0,
    external: None,
    constant: 0,
    datatype: fb::XNNDatatype::xnn_datatype_fp32,
    dq_datatype: fb::XNNDatatype::xnn_datatype_invalid,
    quantized: None,
    dims: &[2],
};

fn input(id: u32, external: u32) -> Tensor {
    Tensor { id, external: Some((external, 1)), ..TENSOR }
}

fn output(id: u32, external: u32) -> Tensor {
    Tensor { id, external: Some((external, 2)), ..TENSOR }
}

fn constant(id: u32, constant: u32) -> Tensor {
    Tensor { id, constant, ..TENSOR }
}

/// A graph whose nodes are functions of one operand.
struct Source {
    tensors: Vec<Tensor>,
    nodes: Vec<(fb::XNodeUnion, u32, u32)>,
    num_externs: u32,
    constants: Vec<(u64, u64, Option<&'static str>)>,
    region: Vec<u8>,
    /// XN00: constants in the flatbuffer.
    buffers: Vec<&'static [u8]>,
    identifier: &'static str,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            tensors: vec![input(0, 0), output(1, 1)],
            nodes: vec![(fb::XNodeUnion::XNNAbs, 0, 1)],
            num_externs: 2,
            constants: vec![(0, 0, None)],
            region: vec![],
            buffers: vec![],
            identifier: "XN01",
        }
    }
}

impl Source {
    fn flatbuffer(&self) -> Vec<u8> {
        let mut fbb = Builder::new();
        let values: Vec<_> = self.tensors.iter().map(|t| tensor(&mut fbb, t)).collect();
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|&(tag, input_id, output_id)| {
                let args = fb::_XNNNode1x1Args { input_id, output_id, flags: 0 };
                let node = fb::_XNNNode1x1::create(&mut fbb, &args);
                let args = fb::XNodeArgs {
                    xnode_union_type: tag,
                    xnode_union: Some(node.as_union_value()),
                    debug_handle: NO_DEBUG_HANDLE,
                    output_min_max: None,
                };
                fb::XNode::create(&mut fbb, &args)
            })
            .collect();
        let constants: Vec<_> = self
            .constants
            .iter()
            .map(|&(offset, size, key)| {
                let named_key = key.map(|key| fbb.create_string(key));
                fb::ConstantDataOffset::create(
                    &mut fbb,
                    &fb::ConstantDataOffsetArgs { offset, size, named_key },
                )
            })
            .collect();
        let buffers: Vec<_> = self
            .buffers
            .iter()
            .map(|bytes| {
                let storage = Some(fbb.create_vector(bytes));
                fb::Buffer::create(&mut fbb, &fb::BufferArgs { storage })
            })
            .collect();
        let args = fb::XNNGraphArgs {
            xnodes: Some(fbb.create_vector(&nodes)),
            xvalues: Some(fbb.create_vector(&values)),
            num_externs: self.num_externs,
            constant_buffer: Some(fbb.create_vector(&buffers)),
            constant_data: Some(fbb.create_vector(&constants)),
            ..fb::XNNGraphArgs::default()
        };
        let root = fb::XNNGraph::create(&mut fbb, &args);
        fbb.finish(root, Some(self.identifier));
        fbb.finished_data().to_vec()
    }

    fn file(&self) -> Vec<u8> {
        let flatbuffer = self.flatbuffer();
        let header = Header {
            flatbuffer_offset: 32,
            flatbuffer_size: flatbuffer.len() as u32,
            constants_offset: 32 + flatbuffer.len() as u32,
            constants_size: self.region.len() as u64,
        };
        [header.to_bytes().as_slice(), &[0, 0], &flatbuffer, &self.region].concat()
    }

    fn read(&self) -> Graph {
        Blob::from_bytes(self.file()).unwrap_or_else(|error| panic!("{error}")).into_graph()
    }

    #[track_caller]
    fn refused(&self, expected: &str) {
        let message = Blob::from_bytes(self.file()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

fn tensor(fbb: &mut Builder, tensor: &Tensor) -> WIPOffset<fb::XValue<'static>> {
    let (external_id, flags) = tensor.external.unwrap_or((NO_VALUE, 0));
    let args = fb::XNNTensorValueArgs {
        datatype: tensor.datatype,
        num_dims: tensor.dims.len() as u32,
        dims: Some(fbb.create_vector(tensor.dims)),
        constant_buffer_idx: tensor.constant,
        external_id,
        flags,
        id_out: tensor.id,
        dq_datatype: tensor.dq_datatype,
    };
    let value = fb::XNNTensorValue::create(fbb, &args);
    let (xvalue_union_type, union) = match tensor.quantized {
        None => (fb::XValueUnion::XNNTensorValue, value.as_union_value()),
        Some(params) => {
            let (quant_params_type, params) = params(fbb);
            let args = fb::XNNQuantizedTensorValueArgs {
                tensor_value: Some(value),
                quant_params_type,
                quant_params: Some(params),
            };
            let value = fb::XNNQuantizedTensorValue::create(fbb, &args);
            (fb::XValueUnion::XNNQuantizedTensorValue, value.as_union_value())
        }
    };
    let args = fb::XValueArgs { xvalue_union_type, xvalue_union: Some(union) };
    fb::XValue::create(fbb, &args)
}

#[test]
fn ids_may_have_any_order() {
    let source = Source {
        tensors: vec![output(70, 5), input(9, 3), Tensor { id: 8, ..TENSOR }, input(1000, 1)],
        nodes: vec![(fb::XNodeUnion::XNNAbs, 9, 8), (fb::XNodeUnion::XNNCopy, 8, 70)],
        num_externs: 6,
        ..Source::default()
    };
    let graph = source.read();
    assert_eq!(graph.inputs, [ValueId(3), ValueId(1)], "by external id");
    assert_eq!(graph.outputs, [ValueId(0)]);
    let (input, output) = (ValueId(1), ValueId(2));
    assert_eq!(graph.nodes[0].op, NodeOp::Unary { op: UnaryOp::Abs, input, output });
    assert_eq!(graph.nodes[0].debug_handle, None);
}

#[test]
fn duplicate_ids() {
    let tensors = vec![input(0, 0), output(0, 1)];
    Source { tensors, ..Source::default() }
        .refused("value 1: its id 0 is also used by another value");
    let tensors = vec![input(0, 0), input(2, 0), output(1, 1)];
    Source { tensors, ..Source::default() }.refused("value 1: its external id is also used");
    let tensors = vec![input(0, 1), output(1, 1)];
    Source { tensors, ..Source::default() }.refused("external id 1 is an input and an output");
}

#[test]
fn undefined_ids() {
    let nodes = vec![(fb::XNodeUnion::XNNAbs, 5, 1)];
    Source { nodes, ..Source::default() }.refused("node 0 (Abs): no value has the id 5");
    let nodes = vec![(fb::XNodeUnion::XNNAbs, 0, NO_VALUE)];
    Source { nodes, ..Source::default() }.refused("node 0 (Abs): the id of an operand is missing");
    let tensors = vec![Tensor { id: NO_VALUE, ..TENSOR }];
    Source { tensors, ..Source::default() }.refused("value 0: its id is missing");
}

#[test]
fn external_flags() {
    for (external, expected) in [
        ((0, 0), "value 0: has the external id 0, but is neither input nor output"),
        ((NO_VALUE, 1), "value 0: input or output without an external id"),
        ((NO_VALUE, 2), "value 0: input or output without an external id"),
        ((0, 3), "value 0: cannot be both input and output"),
        ((0, 4), "value 0: flags 0x4; only 1 and 2 are known"),
        ((0, 0x81), "value 0: flags 0x81"),
        ((2, 1), "value 0: input has external id 2, but the graph has 2 external values"),
    ] {
        let first = Tensor { external: Some(external), ..TENSOR };
        let tensors = vec![first, output(1, 1)];
        Source { tensors, ..Source::default() }.refused(expected);
    }
}

#[test]
fn unknown_tags() {
    for tag in [48, 199, 210, 255] {
        let nodes = vec![(fb::XNodeUnion::XNNAbs, 0, 1), (fb::XNodeUnion(tag), 0, 1)];
        let expected = format!("node 1 (unknown): unknown kind of node {tag}");
        Source { nodes, ..Source::default() }.refused(&expected);
    }
    let unknown = Tensor { datatype: fb::XNNDatatype(15), ..TENSOR };
    let tensors = vec![unknown];
    Source { tensors, ..Source::default() }.refused("value 0: unknown datatype 15");
}

#[test]
fn constants_outside_of_their_region() {
    let source = |offset, size| Source {
        tensors: vec![constant(0, 1), output(1, 0)],
        num_externs: 1,
        constants: vec![(0, 0, None), (offset, size, None)],
        region: vec![7; 16],
        ..Source::default()
    };
    assert_eq!(source(8, 8).read().values[0].data.as_deref(), Some([7; 8].as_slice()));
    for (offset, size) in [(9, 8), (0, 17), (u64::MAX - 1, 8), (8, u64::MAX), (17, 0)] {
        source(offset, size).refused("value 0: its constant of");
    }
    source(NO_OFFSET, 8).refused("neither an offset nor a name");
    let mut missing = source(0, 8);
    missing.tensors[0].constant = 2;
    missing.refused("value 0: constant 2 does not exist; there are 2");
}

#[test]
fn named_and_inline_constants_mix() {
    let source = Source {
        tensors: vec![constant(0, 1), constant(2, 2), output(1, 0)],
        num_externs: 1,
        constants: vec![(0, 0, Some("")), (NO_OFFSET, 8, Some("key")), (0, 8, Some(""))],
        region: vec![7; 8],
        ..Source::default()
    };
    let read = |bytes: &'static [u8]| {
        let named = BTreeMap::from([("key".to_owned(), Bytes::from_static(bytes))]);
        let options = ReadOptions { constants: Some(&named), ..ReadOptions::default() };
        Blob::from_bytes_with(source.file(), &options).map(Blob::into_graph)
    };
    let graph = read(b"8 bytes.").unwrap();
    assert_eq!(graph.values[0].data.as_deref(), Some(b"8 bytes.".as_slice()));
    assert_eq!(graph.values[1].data.as_deref(), Some([7; 8].as_slice()));
    let error = read(b"9 bytes..").unwrap_err().to_string();
    assert!(error.contains("constant \"key\" has 9 bytes instead of 8"), "{error}");
    let error = Blob::from_bytes(source.file()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MissingConstant(key) if key == "key"), "{error}");
}

/// XN00 stores constants in the flatbuffer and leaves the quantization of inputs to readers.
#[test]
fn bare_xn00_flatbuffers() {
    let quantized =
        Tensor { dq_datatype: fb::XNNDatatype::xnn_datatype_qdint8, dims: &[3, 2], ..input(0, 0) };
    let source = Source {
        tensors: vec![quantized, Tensor { dims: &[3, 2], ..output(1, 1) }, constant(2, 1)],
        nodes: vec![(fb::XNodeUnion::XNNConvert, 0, 1)],
        buffers: vec![b"", b"8 bytes."],
        identifier: "XN00",
        ..Source::default()
    };
    let blob = Blob::from_bytes(source.flatbuffer()).unwrap();
    let graph = blob.graph();
    assert_eq!(graph.values[2].data.as_deref(), Some(b"8 bytes.".as_slice()));
    assert!(
        crate::readable_behind(graph.values[2].data.as_ref().unwrap(), blob.storage()).is_some()
    );
    assert_eq!(graph.values[3].datatype, Datatype::QdInt8);
    assert_eq!(graph.values[3].quantization, Quantization::Dynamic { num_nonbatch_dims: 1 });
    let ids: Vec<_> =
        graph.nodes.iter().map(|node| (node.inputs()[0].0, node.outputs()[0].0)).collect();
    assert_eq!(ids, [(0, 3), (3, 1)]);
    assert_eq!(blob.info().header, None);
    Source { identifier: "XN02", ..source }.refused("found \"XN02\"");
}
