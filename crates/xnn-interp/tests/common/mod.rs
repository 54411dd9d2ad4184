//! Builders of graphs, for all tests.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use bytes::Bytes;
use xnn_interp::{Element, Entry, Error, InterpOptions, Interpreter, TensorBuf};
use xnn_model::{DType, Dialect, Model, Op, Operator, Quantization, Subgraph, Tensor, TensorId};

/// A subgraph under construction.
#[derive(Default)]
pub struct Builder {
    pub graph: Subgraph,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn tensor(&mut self, dtype: DType, shape: &[usize]) -> TensorId {
        let id = self.graph.tensors.len();
        self.graph.tensors.push(Tensor::new(format!("t{id}"), dtype, shape));
        id
    }

    pub fn quantized(
        &mut self,
        dtype: DType,
        shape: &[usize],
        scale: f32,
        zero_point: i64,
    ) -> TensorId {
        let id = self.tensor(dtype, shape);
        self.quantize(id, scale, zero_point);
        id
    }

    pub fn quantize(&mut self, id: TensorId, scale: f32, zero_point: i64) {
        self.graph.tensors[id].quantization = Some(Quantization::PerTensor { scale, zero_point });
    }

    pub fn constant<T: Element>(&mut self, shape: &[usize], values: &[T]) -> TensorId {
        let buf = TensorBuf::from_slice(shape, values).expect("as many values as the shape says");
        let id = self.tensor(buf.dtype(), shape);
        self.graph.tensors[id].data = Some(Bytes::copy_from_slice(buf.view().bytes));
        id
    }

    pub fn variable(&mut self, dtype: DType, shape: &[usize]) -> TensorId {
        let id = self.tensor(dtype, shape);
        self.graph.tensors[id].is_variable = true;
        id
    }

    pub fn input(&mut self, dtype: DType, shape: &[usize]) -> TensorId {
        let id = self.tensor(dtype, shape);
        self.graph.inputs.push(id);
        id
    }

    pub fn op(&mut self, op: Op, inputs: &[TensorId], outputs: &[TensorId]) {
        self.graph.operators.push(Operator {
            op,
            version: 1,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: outputs.to_vec(),
            intermediates: vec![],
        });
    }

    pub fn model(self) -> Model {
        model(vec![self.graph])
    }
}

pub fn model(graphs: Vec<Subgraph>) -> Model {
    Model {
        dialect: Dialect::Tflite,
        version: 3,
        description: String::new(),
        subgraphs: graphs.into_iter().map(Arc::new).collect(),
        signatures: vec![],
        metadata: vec![],
        files: Default::default(),
        pages: Default::default(),
    }
}

pub fn load(model: &Model) -> Result<Interpreter, Error> {
    Interpreter::new(model, Entry::Main, &InterpOptions::default())
}

/// A FlexBuffer map of numbers, sorted by name.
pub fn map(entries: &[(&str, f32)]) -> Vec<u8> {
    let count = entries.len() as u32;
    let mut map = Vec::new();
    let mut starts = Vec::new();
    for (key, _) in entries {
        starts.push(map.len());
        map.extend(key.as_bytes());
        map.push(0);
    }
    map.resize(map.len().next_multiple_of(4), 0);
    map.extend(count.to_le_bytes());
    let keys_at = map.len();
    for start in starts {
        let back = (map.len() - start) as u32;
        map.extend(back.to_le_bytes());
    }
    let back = (map.len() - keys_at) as u32;
    map.extend(back.to_le_bytes());
    map.extend(4u32.to_le_bytes());
    map.extend(count.to_le_bytes());
    let map_at = map.len();
    entries.iter().for_each(|(_, value)| map.extend(value.to_le_bytes()));
    map.extend(entries.iter().map(|_| 0b1110));
    let back = (map.len() - map_at) as u8;
    map.extend([back, 0b10_0100 | 2, 1]);
    map
}

/// A value with its quantization.
pub struct Value {
    pub buf: TensorBuf,
    pub quantization: Option<(f32, i64)>,
}

pub fn floats(shape: &[usize], values: &[f32]) -> Value {
    plain(shape, values)
}

pub fn plain<T: Element>(shape: &[usize], values: &[T]) -> Value {
    let buf = TensorBuf::from_slice(shape, values).expect("as many values as the shape says");
    Value { buf, quantization: None }
}

pub fn bools(shape: &[usize], values: &[u8]) -> Value {
    let buf = TensorBuf::from_bytes(DType::Bool, shape, values).expect("as many as the shape says");
    Value { buf, quantization: None }
}

pub fn quantized<T: Element>(shape: &[usize], values: &[T], scale: f32, zero_point: i64) -> Value {
    Value { quantization: Some((scale, zero_point)), ..plain(shape, values) }
}

/// Declared type and quantization of an output.
pub type Declared = (DType, Option<(f32, i64)>);

/// Runs one operator on inputs that are set in the run, and returns its first output.
pub fn run_op(op: Op, inputs: &[Value], output: Declared) -> Result<TensorBuf, Error> {
    run_op_with(op, inputs, &[], output)
}

/// [`run_op`] with constants after the inputs.
pub fn run_op_with(
    op: Op,
    inputs: &[Value],
    constants: &[Value],
    (dtype, quantization): Declared,
) -> Result<TensorBuf, Error> {
    let mut b = Builder::new();
    let mut ids = Vec::new();
    for value in inputs {
        let id = b.input(value.buf.dtype(), value.buf.shape());
        ids.push((id, value.quantization));
    }
    for value in constants {
        let id = b.tensor(value.buf.dtype(), value.buf.shape());
        b.graph.tensors[id].data = Some(Bytes::copy_from_slice(value.buf.view().bytes));
        ids.push((id, value.quantization));
    }
    for (id, quantization) in &ids {
        if let Some((scale, zero_point)) = quantization {
            b.quantize(*id, *scale, *zero_point);
        }
    }
    let output = b.tensor(dtype, &[]);
    b.graph.tensors[output].shape = None;
    if let Some((scale, zero_point)) = quantization {
        b.quantize(output, scale, zero_point);
    }
    b.graph.outputs.push(output);
    let ids: Vec<TensorId> = ids.into_iter().map(|(id, _)| id).collect();
    b.op(op, &ids, &[output]);
    let mut interpreter = load(&b.model())?;
    for (position, value) in inputs.iter().enumerate() {
        interpreter.set_input(position, value.buf.clone())?;
    }
    interpreter.run()?;
    Ok(interpreter.output(0)?.to_buf())
}

/// Asserts shape and elements of a result.
#[track_caller]
pub fn expect<T: Element + std::fmt::Debug>(
    result: Result<TensorBuf, Error>,
    shape: &[usize],
    values: &[T],
) {
    let buf = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(buf.shape(), shape);
    assert_eq!(buf.view().as_slice::<T>().expect("the type"), values);
}

/// Asserts floats within 1e-6 of the largest.
#[track_caller]
pub fn expect_close(result: Result<TensorBuf, Error>, shape: &[usize], values: &[f32]) {
    let buf = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(buf.shape(), shape);
    let range = values.iter().fold(1e-30f32, |range, x| range.max(x.abs()));
    let found = buf.view().as_slice::<f32>().expect("floats").to_vec();
    xnn_testing::assert_close(&found, values, 1e-6 * range);
}
