//! Builds graphs.

use xnn_format::{
    Datatype, Graph, Node, NodeOp, Padding2d, Pooling2d, Quantization, Size2d, Value, ValueId,
};
use xnn_testing::Random;

/// A graph under construction.
pub struct Builder {
    pub graph: Graph,
    pub random: Random,
}

impl Builder {
    pub fn new(seed: u64) -> Self {
        Self { graph: Graph::default(), random: Random::new(seed) }
    }

    /// A size from 1 to `max`.
    pub fn size(&mut self, max: usize) -> usize {
        1 + self.random.below(max)
    }

    pub fn sizes(&mut self, count: usize, max: usize) -> Vec<usize> {
        (0..count).map(|_| self.size(max)).collect()
    }

    pub fn input(&mut self, dims: &[usize]) -> ValueId {
        let id = self.inside(Datatype::F32, dims);
        self.graph.inputs.push(id);
        id
    }

    /// A value that a node writes.
    pub fn inside(&mut self, datatype: Datatype, dims: &[usize]) -> ValueId {
        self.graph.push_value(Value::new(datatype, Quantization::None, dims))
    }

    pub fn output(&mut self, dims: &[usize]) -> ValueId {
        let id = self.inside(Datatype::F32, dims);
        self.graph.outputs.push(id);
        id
    }

    pub fn weights(&mut self, dims: &[usize]) -> ValueId {
        self.constant(Datatype::F32, Quantization::None, dims)
    }

    pub fn constant(
        &mut self,
        datatype: Datatype,
        quantization: Quantization,
        dims: &[usize],
    ) -> ValueId {
        let value = Value::new(datatype, quantization, dims);
        let data = self.random.u8s(value.byte_size().unwrap());
        self.graph.push_value(value.with_data(data.into()))
    }

    pub fn scales(&mut self, count: usize) -> std::sync::Arc<[f32]> {
        self.random.f32s(count, 0.001, 1.0).into()
    }

    pub fn node(&mut self, op: NodeOp) -> &mut Node {
        self.graph.nodes.push(Node::new(op));
        self.graph.nodes.last_mut().unwrap()
    }

    /// A pooling whose result has these dimensions and whose windows do not overlap, and its inverse.
    pub fn arg_max_and_back(&mut self, pooled: [usize; 4], kernel: Size2d) {
        let [batch, height, width, channels] = pooled;
        let [rows, columns] = [kernel.height, kernel.width].map(|side| side as usize);
        let dims = [batch, rows * height, columns * width, channels];
        let input = self.input(&dims);
        let maximum = self.inside(Datatype::F32, &pooled);
        let index = self.inside(Datatype::Int32, &pooled);
        let output = self.output(&dims);
        let window = Pooling2d {
            padding: Padding2d::default(),
            kernel,
            stride: kernel,
            dilation: Size2d::ONE,
            input,
            output: maximum,
        };
        let back = Pooling2d { input: maximum, output, ..window.clone() };
        self.node(NodeOp::ArgMaxPooling2d { window, index });
        self.node(NodeOp::Unpooling2d { window: back, index });
    }
}
