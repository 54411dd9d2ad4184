//! A graph under rewriting, with an index of the writer and the readers of each value.

use half::f16;
use xnn_format::{Datatype, Graph, Node, Quantization, Value, ValueId};

use crate::fold::to_bytes;
use crate::rules::checks::{Elem, Q8};

/// A graph under rewriting. Nodes keep their indices until [`Rewriter::settle`], and new nodes get
/// higher indices than all others.
#[derive(Clone)]
pub(crate) struct Rewriter {
    graph: Graph,
    nodes: Vec<Option<Node>>,
    values: Vec<Uses>,
}

/// Uses of a value.
#[derive(Clone, Default)]
struct Uses {
    writer: Option<usize>,
    /// Contains a node that reads the value twice two times.
    readers: Vec<usize>,
    is_input: bool,
    is_output: bool,
}

impl Rewriter {
    pub fn new(mut graph: Graph) -> Self {
        let nodes = std::mem::take(&mut graph.nodes);
        let mut values = vec![Uses::default(); graph.values.len()];
        for &id in &graph.inputs {
            values[id.index()].is_input = true;
        }
        for &id in &graph.outputs {
            values[id.index()].is_output = true;
        }
        let mut rewriter = Self { graph, nodes: Vec::with_capacity(nodes.len()), values };
        for node in nodes {
            rewriter.push(node);
        }
        rewriter
    }

    /// Returns the rewritten graph, without unused values.
    pub fn finish(mut self) -> Graph {
        self.settle();
        self.graph.nodes = self.nodes.into_iter().flatten().collect();
        drop_unused_values(&mut self.graph);
        self.graph
    }

    /// One more than the highest index of a node.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node with this index; `None` if it was removed.
    pub fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)?.as_ref()
    }

    pub fn value(&self, id: ValueId) -> &Value {
        &self.graph.values[id.index()]
    }

    pub fn value_mut(&mut self, id: ValueId) -> &mut Value {
        &mut self.graph.values[id.index()]
    }

    /// The value's type, if it is `f32` or an 8-bit integer with one scale.
    pub fn elem(&self, id: ValueId) -> Option<Elem> {
        let value = self.value(id);
        match (value.datatype, &value.quantization) {
            (Datatype::F32, _) => Some(Elem::F32),
            (
                Datatype::QInt8 | Datatype::QUint8,
                &Quantization::PerTensor { scale, zero_point },
            ) => {
                let signed = value.datatype == Datatype::QInt8;
                Some(Elem::Q8(Q8 { signed, scale, zero_point }))
            }
            _ => None,
        }
    }

    /// Whether the caller provides or receives the value.
    pub fn is_external(&self, id: ValueId) -> bool {
        let uses = &self.values[id.index()];
        uses.is_input || uses.is_output
    }

    /// Index of the node that writes the value; `None` for inputs and constants.
    pub fn writer(&self, id: ValueId) -> Option<usize> {
        self.values[id.index()].writer
    }

    /// The node that writes the value, with its index.
    pub fn producer(&self, id: ValueId) -> Option<(usize, &Node)> {
        let index = self.writer(id)?;
        Some((index, self.node(index)?))
    }

    /// The only node that reads the value, if it is not an output.
    pub fn sole_reader(&self, id: ValueId) -> Option<(usize, &Node)> {
        match self.values[id.index()] {
            Uses { is_output: false, ref readers, .. } if readers.len() == 1 => {
                Some((readers[0], self.node(readers[0])?))
            }
            _ => None,
        }
    }

    /// The node that writes the value, if only one node reads it and it is not an output, so that
    /// the two nodes can be merged.
    pub fn sole_writer(&self, id: ValueId) -> Option<(usize, &Node)> {
        self.sole_reader(id).and_then(|_| self.producer(id))
    }

    /// Whether a node reads the value or the caller receives it.
    pub fn is_used(&self, id: ValueId) -> bool {
        let uses = &self.values[id.index()];
        uses.is_output || !uses.readers.is_empty()
    }

    /// The nodes that read the value.
    pub fn readers(&self, id: ValueId) -> &[usize] {
        &self.values[id.index()].readers
    }

    /// Whether two values are equal small constants.
    pub fn same_constant(&self, a: ValueId, b: ValueId) -> bool {
        /// Largest constant that is compared.
        const MAX_BYTES: usize = 4096;
        let small = |value: &Value| value.data.as_ref().is_some_and(|d| d.len() <= MAX_BYTES);
        small(self.value(a)) && self.value(a) == self.value(b)
    }

    /// Whether this node is the only reader of the value.
    pub fn is_read_only_by(&self, id: ValueId, index: usize) -> bool {
        let uses = &self.values[id.index()];
        !uses.is_output && uses.readers.iter().all(|&reader| reader == index)
    }

    /// Appends a value.
    pub fn push_value(&mut self, value: Value) -> ValueId {
        self.values.push(Uses::default());
        self.graph.push_value(value)
    }

    /// Appends a value of the same type and quantization with another shape.
    pub fn push_like(&mut self, like: ValueId, dims: &[usize]) -> ValueId {
        let Value { datatype, quantization, .. } = self.value(like);
        let value = Value::new(*datatype, quantization.clone(), dims);
        self.push_value(value)
    }

    /// Appends a constant of floats.
    pub fn push_floats(&mut self, dims: &[usize], floats: &[f32]) -> ValueId {
        let value = Value::new(Datatype::F32, Quantization::None, dims);
        self.push_value(value.with_data(to_bytes(floats)))
    }

    /// The elements of a constant of floats.
    pub fn floats(&self, id: ValueId) -> Option<Vec<f32>> {
        let value = self.value(id);
        let data = value.data.as_ref().filter(|_| value.datatype == Datatype::F32)?;
        Some(data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// The elements of a constant filter of fp32 or fp16 floats.
    pub fn weights(&self, id: ValueId) -> Option<Vec<f32>> {
        let value = self.value(id);
        let fp16 = value.data.as_ref().filter(|_| value.datatype == Datatype::F16);
        let float = |bytes: &[u8; 2]| f16::from_le_bytes(*bytes).to_f32();
        fp16.map(|data| data.as_chunks().0.iter().map(float).collect()).or_else(|| self.floats(id))
    }

    /// The value of a constant of floats whose elements are all equal.
    pub fn scalar(&self, id: ValueId) -> Option<f32> {
        let value = self.value(id);
        let data = value.data.as_ref().filter(|_| value.datatype == Datatype::F32)?;
        let (first, others) = data.as_chunks::<4>().0.split_first()?;
        others.iter().all(|other| other == first).then(|| f32::from_le_bytes(*first))
    }

    /// Removes the node that writes `copy`, a value with the type, shape and elements of
    /// `original`, and makes its readers read `original`. Returns `false` and changes nothing if
    /// both are needed by the caller.
    pub fn unify(&mut self, copy: ValueId, original: ValueId) -> bool {
        let Some(copying) = self.values[copy.index()].writer else { return false };
        let (from, to) = if self.values[copy.index()].is_output {
            let writer = self.values[original.index()].writer;
            let Some(writer) = writer.filter(|_| !self.values[original.index()].is_output) else {
                return false;
            };
            self.remove(copying);
            self.change(writer, |node| {
                node.outputs_mut()
                    .into_iter()
                    .filter(|id| **id == original)
                    .for_each(|id| *id = copy);
            });
            (original, copy)
        } else {
            self.remove(copying);
            (copy, original)
        };
        for reader in self.values[from.index()].readers.clone() {
            self.change(reader, |node| {
                node.inputs_mut().into_iter().filter(|id| **id == from).for_each(|id| *id = to);
            });
        }
        true
    }

    /// Changes a node.
    pub fn change(&mut self, index: usize, change: impl FnOnce(&mut Node)) {
        let Some(mut node) = self.node(index).cloned() else { return };
        self.remove(index);
        change(&mut node);
        self.place(index, node);
    }

    pub fn remove(&mut self, index: usize) {
        let Some(node) = self.nodes[index].take() else { return };
        for id in node.outputs() {
            self.values[id.index()].writer = None;
        }
        for id in node.inputs() {
            let readers = &mut self.values[id.index()].readers;
            if let Some(position) = readers.iter().position(|&reader| reader == index) {
                readers.swap_remove(position);
            }
        }
    }

    /// Replaces a node. The new node has the same index.
    pub fn replace(&mut self, index: usize, node: Node) {
        self.remove(index);
        self.place(index, node);
    }

    /// Appends a node.
    pub fn push(&mut self, node: Node) -> usize {
        let index = self.nodes.len();
        self.nodes.push(None);
        self.place(index, node);
        index
    }

    fn place(&mut self, index: usize, node: Node) {
        for id in node.outputs() {
            self.values[id.index()].writer = Some(index);
        }
        for id in node.inputs() {
            self.values[id.index()].readers.push(index);
        }
        self.nodes[index] = Some(node);
    }

    /// Whether every node comes after the nodes whose results it reads.
    fn is_sorted(&self) -> bool {
        self.nodes.iter().enumerate().all(|(index, node)| {
            let inputs = node.iter().flat_map(Node::inputs);
            inputs.filter_map(|id| self.writer(id)).all(|writer| writer < index)
        })
    }

    /// Sorts the nodes topologically, and otherwise keeps their order. Indices change if nodes are not in order.
    pub fn settle(&mut self) {
        if self.is_sorted() {
            return;
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut visited = vec![false; self.nodes.len()];
        let mut pending = Vec::new();
        for first in 0..self.nodes.len() {
            // Depth-first search without recursion: graphs may be deep.
            pending.push(first);
            while let Some(&index) = pending.last() {
                let Some(node) = self.nodes[index].as_ref().filter(|_| !visited[index]) else {
                    pending.pop();
                    continue;
                };
                let writers = node.inputs().into_iter().filter_map(|id| {
                    self.values[id.index()].writer.filter(|&writer| !visited[writer])
                });
                let waiting = pending.len();
                pending.extend(writers);
                if pending.len() == waiting {
                    visited[index] = true;
                    order.push(index);
                    pending.pop();
                }
            }
        }
        let mut nodes = std::mem::take(&mut self.nodes);
        for uses in &mut self.values {
            uses.writer = None;
            uses.readers.clear();
        }
        for index in order {
            if let Some(node) = nodes[index].take() {
                self.push(node);
            }
        }
    }
}

/// Removes values that are neither external nor an operand of a node. The others keep their order.
fn drop_unused_values(graph: &mut Graph) {
    let mut kept = vec![false; graph.values.len()];
    let mut keep = |id: ValueId| kept[id.index()] = true;
    graph.inputs.iter().chain(&graph.outputs).copied().for_each(&mut keep);
    for node in &graph.nodes {
        node.inputs().into_iter().chain(node.outputs()).for_each(&mut keep);
    }
    let mut ids = Vec::with_capacity(kept.len());
    let mut next = ValueId(0);
    for &kept in &kept {
        ids.push(next);
        next.0 += u32::from(kept);
    }
    let mut position = 0;
    graph.values.retain(|_| {
        position += 1;
        kept[position - 1]
    });
    let rename = |id: &mut ValueId| *id = ids[id.index()];
    graph.inputs.iter_mut().chain(&mut graph.outputs).for_each(rename);
    for node in &mut graph.nodes {
        node.inputs_mut().into_iter().for_each(rename);
        node.outputs_mut().into_iter().for_each(rename);
    }
}
