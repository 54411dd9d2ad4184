//! Builds a graph: converts tensors to values and appends nodes.

use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{BinaryOp, Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, ValueId};
use xnn_model::infer::broadcast_shapes;
use xnn_model::{DType, Subgraph, Tensor, TensorId};

use crate::{blockwise, fold};

/// The graph of a partition under construction.
pub(crate) struct Builder<'a> {
    source: &'a Subgraph,
    graph: Graph,
    /// The value of each tensor that has one.
    values: Vec<Option<ValueId>>,
    /// Index of the operator that is being lowered.
    operator: usize,
}

impl<'a> Builder<'a> {
    pub fn new(source: &'a Subgraph) -> Self {
        let values = vec![None; source.tensors.len()];
        Self { source, graph: Graph::default(), values, operator: 0 }
    }

    pub fn start_operator(&mut self, index: usize) {
        self.operator = index;
    }

    pub fn finish(mut self, inputs: &[TensorId], outputs: &[TensorId]) -> Graph {
        self.graph.inputs = inputs.iter().map(|&id| self.value(id)).collect();
        self.graph.outputs = outputs.iter().map(|&id| self.value(id)).collect();
        let name = |id: &TensorId| self.source.tensor(*id).name.clone();
        self.graph.origin.input_names = inputs.iter().map(name).collect();
        self.graph.origin.output_names = outputs.iter().map(name).collect();
        let mut handles: Vec<u32> =
            self.graph.nodes.iter().filter_map(|node| node.debug_handle).collect();
        handles.sort_unstable();
        handles.dedup();
        self.graph.origin.node_names = handles
            .into_iter()
            .map(|handle| {
                let op = &self.source.operators[handle as usize].op;
                (handle, format!("{op}#{handle}"))
            })
            .collect();
        self.graph
    }

    pub fn tensor(&self, id: TensorId) -> &'a Tensor {
        self.source.tensor(id)
    }

    /// Dimensions of a tensor. Rules have checked that they are known.
    pub fn dims(&self, id: TensorId) -> &'a [usize] {
        self.tensor(id).shape.as_deref().unwrap_or_default()
    }

    /// Dimensions of a value.
    pub fn value_dims(&self, id: ValueId) -> Vec<usize> {
        self.graph.values[id.index()].dims.clone()
    }

    /// The value of a tensor, with the tensor's type. Constants keep their data.
    pub fn value(&mut self, id: TensorId) -> ValueId {
        if let Some(value) = self.values[id] {
            return value;
        }
        let tensor = self.tensor(id);
        let (datatype, quantization) = natural_type(tensor);
        let mut value = Value::new(datatype, quantization, self.dims(id));
        value.data = tensor.data.clone();
        let value = self.graph.push_value(value);
        self.values[id] = Some(value);
        value
    }

    /// The value of a tensor of XNNPACK's indices, which may have any type in the file.
    pub fn index_value(&mut self, id: TensorId) -> ValueId {
        if let Some(value) = self.values[id] {
            return value;
        }
        let value = self.temporary(Datatype::Int32, Quantization::None, self.dims(id));
        self.values[id] = Some(value);
        value
    }

    /// Appends an intermediate value.
    pub fn temporary(
        &mut self,
        datatype: Datatype,
        quantization: Quantization,
        dims: &[usize],
    ) -> ValueId {
        self.graph.push_value(Value::new(datatype, quantization, dims))
    }

    /// Appends an intermediate value of the type and quantization of `like`.
    pub fn temporary_like(&mut self, like: ValueId, dims: &[usize]) -> ValueId {
        let Value { datatype, quantization, .. } = &self.graph.values[like.index()];
        let (datatype, quantization) = (*datatype, quantization.clone());
        self.temporary(datatype, quantization, dims)
    }

    /// Appends an intermediate value that represents the negative of each number of `like`, and no
    /// other number.
    pub fn temporary_negated(&mut self, like: ValueId, dims: &[usize]) -> ValueId {
        let Value { datatype, quantization, .. } = &self.graph.values[like.index()];
        // An integer and the one that represents its negative have the same sum as their zero points.
        let sum = if *datatype == Datatype::QUint8 { 255 } else { -1 };
        let quantization = match *quantization {
            Quantization::PerTensor { scale, zero_point } => {
                Quantization::PerTensor { scale, zero_point: sum - zero_point }
            }
            _ => quantization.clone(),
        };
        self.temporary(*datatype, quantization, dims)
    }

    /// Appends an intermediate float value.
    pub fn temporary_f32(&mut self, dims: &[usize]) -> ValueId {
        self.temporary(Datatype::F32, Quantization::None, dims)
    }

    pub fn constant(
        &mut self,
        datatype: Datatype,
        quantization: Quantization,
        dims: &[usize],
        data: Bytes,
    ) -> ValueId {
        self.graph.push_value(Value::new(datatype, quantization, dims).with_data(data))
    }

    /// A constant of the graph.
    pub fn constant_value(&self, id: ValueId) -> Value {
        self.graph.values[id.index()].clone()
    }

    /// Changes the dimensions of a constant from [`Builder::constant`], but not its elements.
    pub fn reshape_constant(&mut self, id: ValueId, dims: &[usize]) {
        self.graph.values[id.index()].dims = dims.to_vec();
    }

    /// Appends a constant of one float. It has no dimensions, so that operands of any rank keep
    /// theirs.
    pub fn scalar(&mut self, value: f32) -> ValueId {
        let data = Bytes::copy_from_slice(&value.to_le_bytes());
        self.constant(Datatype::F32, Quantization::None, &[], data)
    }

    /// Appends a node. Bounds and flags can be set in the result.
    pub fn push(&mut self, op: NodeOp) -> &mut Node {
        let index = self.graph.nodes.len();
        // A file has fewer than 2^32 operators.
        let debug_handle = Some(self.operator as u32);
        self.graph.nodes.push(Node { debug_handle, ..Node::new(op) });
        &mut self.graph.nodes[index]
    }

    pub fn unary(&mut self, op: UnaryOp, input: ValueId, output: ValueId) -> &mut Node {
        self.push(NodeOp::Unary { op, input, output })
    }

    /// Appends a function of a float value. Returns its result.
    pub fn f32_unary(&mut self, op: UnaryOp, input: ValueId) -> ValueId {
        let output = self.temporary_f32(&self.value_dims(input));
        self.unary(op, input, output);
        output
    }

    /// Appends a function of two float values, which may broadcast. Returns its result.
    pub fn f32_binary(&mut self, op: BinaryOp, inputs: [ValueId; 2]) -> ValueId {
        let [a, b] = inputs.map(|input| self.value_dims(input));
        let dims = broadcast_shapes(&a, &b).unwrap_or(a);
        let output = self.temporary_f32(&dims);
        self.push(NodeOp::Binary { op, inputs, output });
        output
    }

    /// The tensor as floats: its own value, a dequantized constant, or a conversion.
    pub fn as_f32(&mut self, id: TensorId) -> ValueId {
        let tensor = self.tensor(id);
        if tensor.dtype == DType::F32 {
            return self.value(id);
        }
        if let Some(floats) = tensor.data.as_ref().and_then(|_| fold::dequantized(tensor)) {
            let data = fold::to_bytes(&floats);
            return self.constant(Datatype::F32, Quantization::None, self.dims(id), data);
        }
        let input = self.value(id);
        let output = self.temporary_f32(self.dims(id));
        self.unary(UnaryOp::Convert, input, output);
        output
    }

    /// Weights converted to floats.
    pub fn unpacked(&mut self, id: TensorId) -> ValueId {
        match blockwise::unpacked(self.source, self.tensor(id)) {
            Some(floats) => {
                let data = fold::to_bytes(&floats);
                self.constant(Datatype::F32, Quantization::None, self.dims(id), data)
            }
            None => self.as_f32(id),
        }
    }

    /// 4-bit weights with a scale for each block. Rules have checked that XNNPACK can multiply
    /// them.
    pub fn blockwise(&mut self, id: TensorId) -> ValueId {
        match blockwise::packed(self.source, self.tensor(id)) {
            Some(value) => self.graph.push_value(value),
            None => self.value(id),
        }
    }

    /// The output for a float result of the tensor `id`: its own value if it is float, otherwise an
    /// intermediate value that [`Builder::finish_f32`] converts.
    pub fn start_f32(&mut self, id: TensorId) -> ValueId {
        if self.tensor(id).dtype == DType::F32 {
            self.value(id)
        } else {
            self.temporary_f32(self.dims(id))
        }
    }

    /// Converts the result of [`Builder::start_f32`] to the tensor's type.
    pub fn finish_f32(&mut self, result: ValueId, id: TensorId) {
        if self.tensor(id).dtype != DType::F32 {
            let output = self.value(id);
            self.unary(UnaryOp::Convert, result, output);
        }
    }
}

/// The XNNPACK type that corresponds to a tensor's type.
pub(crate) fn natural_type(tensor: &Tensor) -> (Datatype, Quantization) {
    let per_tensor = || match (tensor.per_tensor(), &tensor.quantization) {
        (Some((scale, zero_point)), _) => {
            // Rules have checked that the zero point is in the type's range.
            Quantization::PerTensor { scale, zero_point: zero_point as i32 }
        }
        // Unquantized integers, which only casts support.
        (None, None) => Quantization::PerTensor { scale: 1.0, zero_point: 0 },
        (None, Some(_)) => Quantization::None,
    };
    match tensor.dtype {
        DType::I8 => (Datatype::QInt8, per_tensor()),
        DType::U8 | DType::Bool => (Datatype::QUint8, per_tensor()),
        DType::F16 => (Datatype::F16, Quantization::None),
        DType::I32 => (Datatype::Int32, Quantization::None),
        _ => (Datatype::F32, Quantization::None),
    }
}

/// Scales in the representation of the graph format.
pub(crate) fn shared(scales: impl IntoIterator<Item = f32>) -> Arc<[f32]> {
    scales.into_iter().collect()
}
