//! Summary of a TFLite or Circle model.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use xnn_delegate::Model;
use xnn_delegate::blob::Blob;
use xnn_delegate::lower::embedded_graph;
use xnn_delegate::metadata::Description;
use xnn_delegate::model::Subgraph;
use xnn_model::{Operator, Signature, Tensor, TensorId};

use super::Metadata;
use super::description::DescriptionEntry;
use crate::output::{self, Table, list, plain, shape};

/// A whole model.
#[derive(Serialize)]
pub struct Summary {
    format: String,
    version: u32,
    description: String,
    subgraphs: Vec<SubgraphEntry>,
    signatures: Vec<SignatureEntry>,
    metadata: Vec<Metadata>,
    described: Option<DescriptionEntry>,
}

#[derive(Serialize)]
struct SubgraphEntry {
    name: String,
    inputs: Vec<TensorEntry>,
    outputs: Vec<TensorEntry>,
    /// Number of each operator.
    operators: BTreeMap<String, usize>,
    tensors: usize,
    constant_bytes: usize,
    /// Blobs in operators XNNGraph.
    graphs: Vec<GraphEntry>,
}

#[derive(Serialize)]
struct GraphEntry {
    /// Index of the operator.
    operator: usize,
    bytes: usize,
    /// Absent if the blob cannot be read.
    nodes: Option<usize>,
    constant_bytes: Option<u64>,
    /// Why it cannot be read.
    problem: Option<String>,
}

#[derive(Serialize)]
struct TensorEntry {
    name: String,
    dtype: String,
    shape: Option<Vec<usize>>,
    /// Dimensions, with -1 for open ones.
    shape_signature: Option<Vec<i32>>,
    scale: Option<f32>,
    zero_point: Option<i64>,
}

#[derive(Serialize)]
struct SignatureEntry {
    key: String,
    subgraph: usize,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Summary {
    pub fn new(model: &Model, described: Option<&Description>) -> Self {
        let metadata = model.metadata.iter();
        Self {
            format: model.dialect.to_string(),
            version: model.version,
            description: model.description.clone(),
            subgraphs: model.subgraphs.iter().map(|graph| SubgraphEntry::new(graph)).collect(),
            signatures: model.signatures.iter().map(SignatureEntry::new).collect(),
            metadata: metadata
                .map(|entry| Metadata { name: entry.name.clone(), bytes: entry.data.len() })
                .collect(),
            described: described.map(DescriptionEntry::new),
        }
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} model, schema version {}", self.format, self.version)?;
        if !self.description.is_empty() {
            writeln!(out, "description: {}", plain(&self.description))?;
        }
        for (index, graph) in self.subgraphs.iter().enumerate() {
            writeln!(out, "\nsubgraph {index} {}", plain(&graph.name))?;
            graph.write(out)?;
        }
        for SignatureEntry { key, subgraph, inputs, outputs } in &self.signatures {
            let (inputs, outputs) = (list(inputs), list(outputs));
            writeln!(out, "\nsignature {key:?} (subgraph {subgraph}): {inputs} -> {outputs}")?;
        }
        for Metadata { name, bytes } in &self.metadata {
            writeln!(out, "metadata {}: {}", plain(name), output::bytes(*bytes as u64))?;
        }
        match &self.described {
            Some(described) => {
                writeln!(out)?;
                described.write(out)
            }
            None => Ok(()),
        }
    }
}

impl SubgraphEntry {
    fn new(graph: &Subgraph) -> Self {
        let mut operators = BTreeMap::new();
        for operator in &graph.operators {
            *operators.entry(operator.op.to_string()).or_insert(0) += 1;
        }
        let constants = graph.tensors.iter().filter_map(|tensor| tensor.data.as_ref());
        let tensors =
            |ids: &[TensorId]| ids.iter().map(|&id| TensorEntry::new(graph.tensor(id))).collect();
        Self {
            name: graph.name.clone(),
            inputs: tensors(&graph.inputs),
            outputs: tensors(&graph.outputs),
            operators,
            tensors: graph.tensors.len(),
            constant_bytes: constants.map(|data| data.len()).sum(),
            graphs: GraphEntry::all(graph),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(["", "name", "type", "shape", "quantization"]);
        for (role, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, tensor) in tensors.iter().enumerate() {
                table.row(tensor.cells(format!("{role} {index}")));
            }
        }
        table.write(out)?;
        let mut histogram: Vec<(&String, &usize)> = self.operators.iter().collect();
        histogram.sort_by(|a, b| b.1.cmp(a.1));
        let histogram: Vec<String> =
            histogram.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let operators: usize = self.operators.values().sum();
        writeln!(
            out,
            "{}, {}, {} of constants\n{}",
            output::count(operators, "operator"),
            output::count(self.tensors, "tensor"),
            output::bytes(self.constant_bytes as u64),
            list(&histogram)
        )?;
        self.graphs.iter().try_for_each(|graph| graph.write(out))
    }
}

impl GraphEntry {
    fn all(graph: &Subgraph) -> Vec<Self> {
        let entry = |(operator, it): (usize, &Operator)| {
            let stored = embedded_graph(&it.op)?;
            let blob = Blob::from_bytes(stored.clone());
            Some(Self {
                operator,
                bytes: stored.len(),
                nodes: blob.as_ref().ok().map(|blob| blob.graph().nodes.len()),
                constant_bytes: blob.as_ref().ok().map(|blob| blob.info().distinct_bytes),
                problem: blob.err().map(|error| error.to_string()),
            })
        };
        graph.operators.iter().enumerate().filter_map(entry).collect()
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { operator, bytes, nodes, constant_bytes, problem } = self;
        write!(out, "operator {operator} holds a blob: {}", output::bytes(*bytes as u64))?;
        if let (Some(nodes), Some(constants)) = (nodes, constant_bytes) {
            let nodes = output::count(*nodes, "node");
            write!(out, ", {nodes}, {} of constants", output::bytes(*constants))?;
        }
        match problem {
            Some(problem) => writeln!(out, ", cannot be read: {}", plain(problem)),
            None => writeln!(out),
        }
    }
}

impl TensorEntry {
    fn new(tensor: &Tensor) -> Self {
        let (scale, zero_point) = tensor.per_tensor().unzip();
        Self {
            name: tensor.name.clone(),
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.clone(),
            shape_signature: tensor.shape_signature.clone(),
            scale,
            zero_point,
        }
    }

    fn cells(&self, role: String) -> [String; 5] {
        let quantization = match (self.scale, self.zero_point) {
            (Some(scale), Some(zero_point)) => format!("{scale:.6} zp {zero_point}"),
            _ => String::new(),
        };
        let shape = self.shape.as_deref().map_or_else(|| "?".into(), shape);
        [role, self.name.clone(), self.dtype.clone(), shape, quantization]
    }
}

impl SignatureEntry {
    fn new(signature: &Signature) -> Self {
        let names =
            |tensors: &[(String, TensorId)]| tensors.iter().map(|(name, _)| name.clone()).collect();
        Self {
            key: signature.key.clone(),
            subgraph: signature.subgraph,
            inputs: names(&signature.inputs),
            outputs: names(&signature.outputs),
        }
    }
}
