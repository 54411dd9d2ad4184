//! Models built by hand.

use std::sync::Arc;

use bytes::Bytes;
use xnn_model::op::{Op, WhileOptions};
use xnn_model::{
    DType, Dialect, Metadata, Model, ModelLimits, Operator, Quantization, Signature, Subgraph,
    Tensor, TensorId, ZeroPoints, write,
};

use crate::random::le_bytes;

/// Collects subgraphs, signatures and metadata into a [`Model`].
#[derive(Debug)]
pub struct ModelBuilder {
    model: Model,
}

impl ModelBuilder {
    /// A model of this dialect without subgraphs.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        let version = match dialect {
            Dialect::Tflite => 3,
            Dialect::Circle => 0,
        };
        Self {
            model: Model {
                dialect,
                version,
                description: "made by a test".to_owned(),
                subgraphs: Vec::new(),
                signatures: Vec::new(),
                metadata: Vec::new(),
                files: Default::default(),
                pages: Default::default(),
            },
        }
    }

    /// `while x < limit: x = tanh(x)`, which is endless where the limit is above 1.
    #[must_use]
    pub fn looping(limit: f32) -> Self {
        let mut main = GraphBuilder::new("main");
        let x = main.input("x", DType::F32, &[1]);
        let y = main.tensor("y", DType::F32, &[1]);
        let options = WhileOptions { cond_subgraph: 1, body_subgraph: 2 };
        main.op(Op::While(options), &[x], &[y]).output(y);
        let mut condition = GraphBuilder::new("condition");
        let x = condition.input("x", DType::F32, &[1]);
        let limit = condition.constant_f32("limit", &[1], &[limit]);
        let less = condition.tensor("less", DType::Bool, &[1]);
        condition.op(Op::Less, &[x, limit], &[less]).output(less);
        let mut body = GraphBuilder::new("body");
        let x = body.input("x", DType::F32, &[1]);
        let y = body.tensor("y", DType::F32, &[1]);
        body.op(Op::Tanh, &[x], &[y]).output(y);
        [main, condition, body].into_iter().fold(Self::new(Dialect::Tflite), Self::subgraph)
    }

    /// Adds a subgraph; the first one is the entry point.
    #[must_use]
    pub fn subgraph(mut self, graph: GraphBuilder) -> Self {
        self.model.subgraphs.push(Arc::new(graph.graph));
        self
    }

    /// Adds an entry point named `key` that runs `subgraph`.
    #[must_use]
    pub fn signature(
        mut self,
        key: &str,
        subgraph: usize,
        inputs: &[(&str, TensorId)],
        outputs: &[(&str, TensorId)],
    ) -> Self {
        let owned = |list: &[(&str, TensorId)]| {
            list.iter().map(|&(name, id)| (name.to_owned(), id)).collect()
        };
        self.model.signatures.push(Signature {
            key: key.to_owned(),
            subgraph,
            inputs: owned(inputs),
            outputs: owned(outputs),
        });
        self
    }

    /// Adds a named blob.
    #[must_use]
    pub fn metadata(mut self, name: &str, data: impl Into<Bytes>) -> Self {
        self.model.metadata.push(Metadata { name: name.to_owned(), data: data.into() });
        self
    }

    /// The model, checked.
    ///
    /// # Panics
    ///
    /// If the model does not pass [`Model::check`].
    #[must_use]
    pub fn build(self) -> Model {
        self.model.check(&ModelLimits::default()).expect("the test's model is valid");
        self.model
    }

    /// The model as the bytes of a file of its dialect.
    ///
    /// # Panics
    ///
    /// If the model is not valid, or cannot be written.
    #[must_use]
    pub fn build_file(self) -> Vec<u8> {
        let model = self.build();
        match model.dialect {
            Dialect::Tflite => write::to_tflite(&model),
            Dialect::Circle => write::to_circle(&model),
        }
        .expect("the test's model can be written")
    }
}

/// Collects tensors and operators into a subgraph.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Subgraph,
}

impl GraphBuilder {
    /// An empty subgraph.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { graph: Subgraph { name: name.to_owned(), ..Subgraph::default() } }
    }

    /// Adds a tensor that an operator produces.
    pub fn tensor(&mut self, name: &str, dtype: DType, shape: &[usize]) -> TensorId {
        self.add(Tensor::new(name, dtype, shape))
    }

    /// Adds a tensor with every detail given by the caller.
    pub fn add(&mut self, tensor: Tensor) -> TensorId {
        self.graph.tensors.push(tensor);
        self.graph.tensors.len() - 1
    }

    /// Adds a tensor that the caller of the model provides.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[usize]) -> TensorId {
        let id = self.tensor(name, dtype, shape);
        self.graph.inputs.push(id);
        id
    }

    /// Adds a state tensor, which keeps its value between runs.
    pub fn variable(&mut self, name: &str, dtype: DType, shape: &[usize]) -> TensorId {
        self.add(Tensor { is_variable: true, ..Tensor::new(name, dtype, shape) })
    }

    /// Adds a constant of any element type, as little-endian bytes.
    pub fn constant(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        data: impl Into<Bytes>,
    ) -> TensorId {
        self.add(Tensor { data: Some(data.into()), ..Tensor::new(name, dtype, shape) })
    }

    /// Adds a constant of singles.
    pub fn constant_f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> TensorId {
        self.constant(name, DType::F32, shape, le_bytes(data, |v| v.to_le_bytes()))
    }

    /// Adds a constant of 32-bit integers: axes, shapes, paddings.
    pub fn constant_i32(&mut self, name: &str, shape: &[usize], data: &[i32]) -> TensorId {
        self.constant(name, DType::I32, shape, le_bytes(data, |v| v.to_le_bytes()))
    }

    /// Adds a constant of bytes.
    pub fn constant_i8(&mut self, name: &str, shape: &[usize], data: &[i8]) -> TensorId {
        self.constant(name, DType::I8, shape, le_bytes(data, |v| v.to_le_bytes()))
    }

    /// Gives a tensor one scale and zero point.
    pub fn quantize(&mut self, id: TensorId, scale: f32, zero_point: i64) -> &mut Self {
        self.quantization(id, Quantization::PerTensor { scale, zero_point })
    }

    /// Gives a tensor a scale per slice along `axis`, all zero points 0.
    pub fn quantize_per_axis(&mut self, id: TensorId, scales: &[f32], axis: usize) -> &mut Self {
        let zero_points = ZeroPoints::default();
        self.quantization(id, Quantization::PerAxis { scales: scales.into(), zero_points, axis })
    }

    /// Gives a tensor any quantization.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    pub fn quantization(&mut self, id: TensorId, quantization: Quantization) -> &mut Self {
        self.graph.tensors[id].quantization = Some(quantization);
        self
    }

    /// Adds an operator, all of whose inputs are there.
    pub fn op(&mut self, op: Op, inputs: &[TensorId], outputs: &[TensorId]) -> &mut Self {
        let inputs = inputs.iter().copied().map(Some).collect::<Vec<_>>();
        self.op_with_optional(op, &inputs, outputs)
    }

    /// Adds an operator with optional inputs, `None` where one is left out.
    pub fn op_with_optional(
        &mut self,
        op: Op,
        inputs: &[Option<TensorId>],
        outputs: &[TensorId],
    ) -> &mut Self {
        self.graph.operators.push(Operator {
            op,
            version: 1,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            intermediates: Vec::new(),
        });
        self
    }

    /// Makes a tensor an output of the subgraph.
    pub fn output(&mut self, id: TensorId) -> &mut Self {
        self.graph.outputs.push(id);
        self
    }

    /// The subgraph as collected so far, to look at.
    #[must_use]
    pub const fn graph(&self) -> &Subgraph {
        &self.graph
    }

    /// The subgraph as collected so far, unchecked.
    #[must_use]
    pub fn build(self) -> Subgraph {
        self.graph
    }

    /// A TFLite model with this subgraph alone.
    ///
    /// # Panics
    ///
    /// If the model does not pass [`Model::check`].
    #[must_use]
    pub fn build_model(self) -> Model {
        ModelBuilder::new(Dialect::Tflite).subgraph(self).build()
    }
}
