//! Contents of an XN01 graph and its file.

use std::io::{self, Write};

use serde::Serialize;
use xnn_delegate::blob::{Blob, Datatype, Graph, Quantization};
use xnn_delegate::metadata::Description;
use xnn_format::{BlobInfo, Header, Node, Origin, PackedSection, Value, ValueId};

use super::attributes::{Attributes, attributes};
use super::description::DescriptionEntry;
use super::{Metadata, hex};
use crate::output::{self, Table, plain, shape};

/// A whole blob.
#[derive(Serialize)]
pub struct Summary {
    header: Option<HeaderFields>,
    sizes: Sizes,
    origin: OriginFields,
    packed: Vec<PackedFields>,
    inputs: Vec<External>,
    outputs: Vec<External>,
    nodes: Vec<NodeEntry>,
    values: Vec<ValueEntry>,
    described: Option<DescriptionEntry>,
}

/// The fields of an `XH00` header, in bytes from the start of the file.
#[derive(Serialize)]
struct HeaderFields {
    flatbuffer_offset: u32,
    flatbuffer_size: u32,
    constants_offset: u32,
    constants_size: u64,
}

/// Bytes of the parts of the file.
#[derive(Serialize)]
struct Sizes {
    file: u64,
    flatbuffer: u64,
    constants: u64,
    trailer: u64,
    /// Values that are constant, and the bytes that they would take one by one.
    constant_values: usize,
    constant_bytes: u64,
    /// Bytes of the constants, with equal ones stored once.
    distinct_constants: usize,
    distinct_bytes: u64,
}

#[derive(Serialize)]
struct OriginFields {
    producer: String,
    source: String,
    source_sha256: Option<String>,
    signature: String,
    metadata: Vec<Metadata>,
}

/// Weights that are packed for one kind of processor.
#[derive(Serialize)]
struct PackedFields {
    processor: String,
    nodes: usize,
    bytes: u64,
}

/// An input or output.
#[derive(Serialize)]
struct External {
    name: String,
    value: u32,
}

#[derive(Serialize)]
struct NodeEntry {
    kind: &'static str,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    attributes: Attributes,
    /// The model's operator from which the node was lowered.
    origin: Option<String>,
    /// Whether only this project's schema has the node.
    extension: bool,
}

#[derive(Serialize)]
struct ValueEntry {
    datatype: &'static str,
    shape: Vec<usize>,
    quantization: QuantizationEntry,
    /// Bytes of a constant.
    constant: Option<usize>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum QuantizationEntry {
    None,
    PerTensor { scale: f32, zero_point: i32 },
    PerChannel { axis: usize, scales: Vec<f32>, zero_point: i32 },
    Blockwise { axis: usize, block_size: usize, scales: usize, zero_point: i32 },
    Dynamic { dimensions: usize },
}

impl Summary {
    pub fn new(blob: &Blob, described: Option<&Description>) -> Self {
        let (graph, info) = (blob.graph(), blob.info());
        Self {
            header: info.header.as_ref().map(HeaderFields::new),
            sizes: Sizes::new(info),
            origin: OriginFields::new(&graph.origin),
            packed: blob.packed().iter().map(PackedFields::new).collect(),
            inputs: externals(&graph.inputs, &graph.origin.input_names),
            outputs: externals(&graph.outputs, &graph.origin.output_names),
            nodes: graph.nodes.iter().map(|node| NodeEntry::new(graph, node)).collect(),
            values: graph.values.iter().map(ValueEntry::new).collect(),
            described: described.map(DescriptionEntry::new),
        }
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_file(out)?;
        writeln!(out)?;
        let mut nodes = Table::new(["node>", "kind", "inputs", "outputs", "attributes", "from"]);
        for (index, node) in self.nodes.iter().enumerate() {
            nodes.row([
                index.to_string(),
                format!("{}{}", node.kind, if node.extension { " *" } else { "" }),
                ids(&node.inputs),
                ids(&node.outputs),
                node.attributes.to_string(),
                node.origin.clone().unwrap_or_default(),
            ]);
        }
        nodes.write(out)?;
        writeln!(out)?;
        let mut values = Table::new(["value>", "type", "shape", "quantization", "", "constant>"]);
        for (index, value) in self.values.iter().enumerate() {
            let id = index as u32;
            values.row([
                index.to_string(),
                value.datatype.to_owned(),
                shape(&value.shape),
                value.quantization.to_string(),
                role(id, "input", &self.inputs)
                    .or_else(|| role(id, "output", &self.outputs))
                    .unwrap_or_default(),
                value.constant.map_or_else(String::new, |size| output::bytes(size as u64)),
            ]);
        }
        values.write(out)?;
        match &self.described {
            Some(described) => {
                writeln!(out)?;
                described.write(out)
            }
            None => Ok(()),
        }
    }

    fn write_file(&self, out: &mut dyn Write) -> io::Result<()> {
        let Sizes { file, flatbuffer, constants, trailer, .. } = self.sizes;
        match &self.header {
            Some(header) => {
                writeln!(out, "file        {}: header XH00", output::bytes(file))?;
                let at = header.flatbuffer_offset;
                writeln!(out, "flatbuffer  {} at {at}, XN01", output::bytes(flatbuffer))?;
                let at = header.constants_offset;
                writeln!(out, "constants   {} at {at}", output::bytes(constants))?;
                writeln!(out, "trailer     {}", output::bytes(trailer))?;
            }
            None => {
                writeln!(out, "file        {}: flatbuffer without header", output::bytes(file))?
            }
        }
        let origin = &self.origin;
        for (name, text) in [
            ("producer", &origin.producer),
            ("made from", &origin.source),
            ("sha-256", origin.source_sha256.as_ref().unwrap_or(&String::new())),
            ("signature", &origin.signature),
        ] {
            if !text.is_empty() {
                writeln!(out, "{name:<12}{}", plain(text))?;
            }
        }
        for Metadata { name, bytes } in &origin.metadata {
            writeln!(out, "metadata    {}: {}", plain(name), output::bytes(*bytes as u64))?;
        }
        for PackedFields { processor, nodes, bytes } in &self.packed {
            let (bytes, nodes) = (output::bytes(*bytes), output::count(*nodes, "node"));
            writeln!(out, "packed      {bytes} for {nodes} on {}", plain(processor))?;
        }
        let Sizes { constant_values, constant_bytes, distinct_constants, distinct_bytes, .. } =
            self.sizes;
        writeln!(
            out,
            "graph       {}, {}, {constant_values} of them constant ({}; stored: {} in {})",
            output::count(self.nodes.len(), "node"),
            output::count(self.values.len(), "value"),
            output::bytes(constant_bytes),
            distinct_constants,
            output::bytes(distinct_bytes),
        )?;
        let extensions = self.nodes.iter().filter(|node| node.extension).count();
        match extensions {
            0 => writeln!(out, "extensions  none: all nodes are in the common XN01 schema"),
            count => {
                let nodes = output::count(count, "node");
                writeln!(out, "extensions  {nodes} (*) that only this project's schema has")
            }
        }
    }
}

impl HeaderFields {
    fn new(header: &Header) -> Self {
        let Header { flatbuffer_offset, flatbuffer_size, constants_offset, constants_size } =
            *header;
        Self { flatbuffer_offset, flatbuffer_size, constants_offset, constants_size }
    }
}

impl Sizes {
    fn new(info: &BlobInfo) -> Self {
        Self {
            file: info.file_size,
            flatbuffer: info.flatbuffer_size,
            constants: info.constants.end.saturating_sub(info.constants.start),
            trailer: info.trailer_size,
            constant_values: info.constant_values,
            constant_bytes: info.constant_bytes,
            distinct_constants: info.distinct_constants,
            distinct_bytes: info.distinct_bytes,
        }
    }
}

impl PackedFields {
    fn new(section: &PackedSection) -> Self {
        let sizes = section.entries.iter().map(|entry| entry.data.len() as u64);
        Self {
            processor: section.key.processor.clone(),
            nodes: section.entries.len(),
            bytes: sizes.sum(),
        }
    }
}

impl OriginFields {
    fn new(origin: &Origin) -> Self {
        let metadata = origin.metadata.iter();
        Self {
            producer: origin.producer.clone(),
            source: origin.source_name.clone(),
            source_sha256: origin.source_sha256.as_ref().map(|digest| hex(digest)),
            signature: origin.signature.clone(),
            metadata: metadata
                .map(|(name, data)| Metadata { name: name.clone(), bytes: data.len() })
                .collect(),
        }
    }
}

impl NodeEntry {
    fn new(graph: &Graph, node: &Node) -> Self {
        Self {
            kind: node.op.kind(),
            inputs: node.inputs().into_iter().map(|id| id.0).collect(),
            outputs: node.outputs().into_iter().map(|id| id.0).collect(),
            attributes: attributes(node),
            origin: graph.node_name(node).map(str::to_owned),
            extension: node.op.is_extension(),
        }
    }
}

impl ValueEntry {
    fn new(value: &Value) -> Self {
        Self {
            datatype: value.datatype.name(),
            shape: value.dims.clone(),
            quantization: QuantizationEntry::new(value),
            constant: value.data.as_ref().map(|data| data.len()),
        }
    }
}

impl QuantizationEntry {
    fn new(value: &Value) -> Self {
        let zero_point = match value.datatype {
            Datatype::QcInt4 | Datatype::QbInt4 => 8,
            _ => 0,
        };
        match &value.quantization {
            Quantization::None => Self::None,
            &Quantization::PerTensor { scale, zero_point } => Self::PerTensor { scale, zero_point },
            Quantization::PerChannel { scales, channel_dim } => {
                Self::PerChannel { axis: *channel_dim, scales: scales.to_vec(), zero_point }
            }
            Quantization::Blockwise { scales, channel_dim, block_size } => Self::Blockwise {
                axis: *channel_dim,
                block_size: *block_size,
                scales: scales.len(),
                zero_point,
            },
            &Quantization::Dynamic { num_nonbatch_dims } => {
                Self::Dynamic { dimensions: num_nonbatch_dims }
            }
        }
    }
}

impl std::fmt::Display for QuantizationEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::PerTensor { scale, zero_point } => write!(f, "{scale:.6} zp {zero_point}"),
            Self::PerChannel { axis, scales, .. } => {
                let least = scales.iter().copied().fold(f32::INFINITY, f32::min);
                let most = scales.iter().copied().fold(0.0, f32::max);
                write!(f, "{} over axis {axis}: {least:.6}..{most:.6}", scales.len())
            }
            Self::Blockwise { axis, block_size, scales, .. } => {
                write!(f, "{scales} over axis {axis}, blocks of {block_size}")
            }
            Self::Dynamic { dimensions } => {
                write!(f, "dynamic over {}", output::count(*dimensions, "dimension"))
            }
        }
    }
}

fn externals(values: &[ValueId], names: &[String]) -> Vec<External> {
    let named = |(index, id): (usize, &ValueId)| External {
        name: names.get(index).cloned().unwrap_or_default(),
        value: id.0,
    };
    values.iter().enumerate().map(named).collect()
}

fn role(id: u32, role: &str, externals: &[External]) -> Option<String> {
    let index = externals.iter().position(|external| external.value == id)?;
    let name = externals.get(index).map(|external| external.name.as_str()).unwrap_or_default();
    Some(format!("{role} {index} {name}"))
}

fn ids(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(" ")
}
