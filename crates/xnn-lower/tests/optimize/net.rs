//! Small graphs, and what they compute before and after optimization.

use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, ValueId};
use xnn_lower::optimize::{Options, PASSES, optimize};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::{Random, le_bytes};

/// A graph under construction.
pub struct Net {
    pub graph: Graph,
    random: Random,
}

/// Results are bit for bit those without optimization.
pub const EXACT: f32 = 0.0;

impl Net {
    pub fn new() -> Self {
        Self { graph: Graph::default(), random: Random::new(7) }
    }

    pub fn f32(&mut self, dims: &[usize]) -> ValueId {
        self.graph.push_value(Value::new(Datatype::F32, Quantization::None, dims))
    }

    pub fn input_f32(&mut self, dims: &[usize]) -> ValueId {
        let id = self.f32(dims);
        self.graph.inputs.push(id);
        id
    }

    pub fn output(&mut self, id: ValueId) {
        self.graph.outputs.push(id);
    }

    pub fn push(&mut self, op: NodeOp) -> &mut Node {
        let index = self.graph.nodes.len();
        self.graph.nodes.push(Node { debug_handle: Some(index as u32), ..Node::new(op) });
        &mut self.graph.nodes[index]
    }

    /// A value of the same type and shape.
    pub fn like(&mut self, id: ValueId) -> ValueId {
        let Value { datatype, quantization, dims, .. } = &self.graph.values[id.index()];
        let value = Value::new(*datatype, quantization.clone(), dims);
        self.graph.push_value(value)
    }

    pub fn unary(&mut self, op: UnaryOp, input: ValueId) -> ValueId {
        let output = self.like(input);
        self.push(NodeOp::Unary { op, input, output });
        output
    }

    fn dims(&self) -> Vec<Vec<usize>> {
        let dims = |id: &ValueId| self.graph.values[id.index()].dims.clone();
        self.graph.inputs.iter().map(dims).collect()
    }
}

/// Runs one pass alone, which must make this many changes, and compares what
/// the graph computes: for the shapes that it names, and for another batch
/// where the original can compute that. Results may be apart by `tolerance` of
/// the largest magnitude.
#[track_caller]
pub fn check(net: Net, pass: &str, changes: usize, tolerance: f32) -> Graph {
    assert!(PASSES.iter().any(|known| known.name == pass), "{pass}");
    let mut options = Options::default();
    options.disable =
        PASSES.iter().map(|p| p.name.to_owned()).filter(|name| name != pass).collect();
    let (optimized, report) = optimize(net.graph.clone(), &options);
    assert_eq!(report.changes.get(pass).copied().unwrap_or(0), changes, "changes: {report}");
    assert_eq!(external(&optimized), external(&net.graph));

    let mut dims = net.dims();
    let inputs = inputs(&net, &dims);
    let before = run(&net.graph, &dims, &inputs).unwrap();
    compare(&run(&optimized, &dims, &inputs).unwrap(), &before, tolerance);
    dims.iter_mut().filter(|dims| dims.len() > 1).for_each(|dims| dims[0] *= 3);
    let inputs = self::inputs(&net, &dims);
    if let Ok(before) = run(&net.graph, &dims, &inputs) {
        compare(&run(&optimized, &dims, &inputs).unwrap(), &before, tolerance);
    }
    optimized
}

/// What callers see of a graph's values.
fn external(graph: &Graph) -> Vec<Value> {
    let ids = graph.inputs.iter().chain(&graph.outputs);
    ids.map(|id| graph.values[id.index()].clone()).collect()
}

fn inputs(net: &Net, dims: &[Vec<usize>]) -> Vec<Vec<u8>> {
    let mut random = net.random.clone();
    let types = net.graph.inputs.iter().map(|id| net.graph.values[id.index()].datatype);
    types
        .zip(dims)
        .map(|(datatype, dims)| {
            let count = dims.iter().product();
            match datatype {
                Datatype::F32 => le_bytes(&random.f32s(count, -8.0, 8.0), |v| v.to_le_bytes()),
                _ => random.u8s(count),
            }
        })
        .collect()
}

fn run(
    graph: &Graph,
    dims: &[Vec<usize>],
    inputs: &[Vec<u8>],
) -> Result<Vec<Vec<f32>>, xnn_runtime::RuntimeError> {
    let program = Program::new(graph.clone(), &ProgramOptions::default())?;
    let mut session = Session::new(&program, &SessionOptions::default())?;
    for (index, dims) in dims.iter().enumerate() {
        session.resize(index, dims)?;
    }
    session.reshape()?;
    for (index, bytes) in inputs.iter().enumerate() {
        session.input_mut(index).copy_from_slice(bytes);
    }
    session.run()?;
    let outputs = graph.outputs.iter().enumerate();
    Ok(outputs
        .map(|(index, id)| numbers(graph.values[id.index()].datatype, session.output(index)))
        .collect())
}

/// Quantized elements as they are stored.
fn numbers(datatype: Datatype, bytes: &[u8]) -> Vec<f32> {
    match datatype {
        Datatype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Datatype::QInt8 => bytes.iter().map(|b| f32::from(b.cast_signed())).collect(),
        Datatype::QUint8 => bytes.iter().map(|b| f32::from(*b)).collect(),
        other => panic!("{}", other.name()),
    }
}

#[track_caller]
fn compare(after: &[Vec<f32>], before: &[Vec<f32>], tolerance: f32) {
    assert_eq!(after.len(), before.len());
    for (after, before) in after.iter().zip(before) {
        let largest = before.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        xnn_testing::assert_close(after, before, tolerance * largest);
    }
}
