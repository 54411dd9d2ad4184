//! Small graphs, and a comparison of their results before and after optimization.

use xnn_format::{
    BinaryOp, Conv2d, Datatype, Graph, Node, NodeOp, OutputRange, Padding2d, Pooling2d,
    Quantization, Size2d, UnaryOp, Value, ValueId, flags,
};
use xnn_lower::optimize::{Options, PASSES, optimize};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::{Random, le_bytes};

/// A graph under construction.
pub struct Net {
    pub graph: Graph,
    random: Random,
}

/// Tolerance of results that must be bit-identical.
pub const EXACT: f32 = 0.0;
/// Tolerance of integers.
pub const ONE_STEP: f32 = 1.0;

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

    /// Adds a value of the same type and shape.
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

    /// Adds a value of 8-bit integers.
    pub fn q8(
        &mut self,
        datatype: Datatype,
        scale: f32,
        zero_point: i32,
        dims: &[usize],
    ) -> ValueId {
        let quantization = Quantization::PerTensor { scale, zero_point };
        self.graph.push_value(Value::new(datatype, quantization, dims))
    }

    pub fn input(&mut self, id: ValueId) -> ValueId {
        self.graph.inputs.push(id);
        id
    }

    /// Adds a constant of floats.
    pub fn constant(&mut self, dims: &[usize], floats: &[f32]) -> ValueId {
        let data = le_bytes(floats, |v| v.to_le_bytes());
        let value = Value::new(Datatype::F32, Quantization::None, dims);
        self.graph.push_value(value.with_data(data.into()))
    }

    /// Adds a constant of random floats.
    pub fn weights(&mut self, dims: &[usize]) -> ValueId {
        let floats = self.random.f32s(dims.iter().product(), -1.0, 1.0);
        self.constant(dims, &floats)
    }

    pub fn scalar(&mut self, value: f32) -> ValueId {
        self.constant(&[1], &[value])
    }

    /// Appends a function of two operands. The first has the result's shape.
    pub fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        let output = self.like(a);
        self.push(NodeOp::Binary { op, inputs: [a, b], output });
        output
    }

    pub fn clamp(&mut self, input: ValueId, min: f32, max: f32) -> ValueId {
        let output = self.unary(UnaryOp::Clamp, input);
        self.last().output_range = Some(OutputRange { min, max });
        output
    }

    /// Appends a conversion to a value of another type.
    pub fn convert(&mut self, input: ValueId, output: ValueId) -> ValueId {
        self.push(NodeOp::Unary { op: UnaryOp::Convert, input, output });
        output
    }

    pub fn transpose(&mut self, input: ValueId, perm: &[usize]) -> ValueId {
        let from = self.dims_of(input);
        let dims: Vec<usize> = perm.iter().map(|&dim| from[dim]).collect();
        let output = self.shaped(input, &dims);
        self.push(NodeOp::StaticTranspose { perm: perm.to_vec(), input, output });
        output
    }

    /// Appends a reshape. `new_shape` may have a 0 for the batch.
    pub fn reshape(&mut self, input: ValueId, new_shape: &[usize]) -> ValueId {
        let elements: usize = self.dims_of(input).iter().product();
        let known: usize = new_shape.iter().filter(|&&dim| dim > 0).product();
        let dims: Vec<usize> =
            new_shape.iter().map(|&dim| if dim == 0 { elements / known } else { dim }).collect();
        let output = self.shaped(input, &dims);
        self.push(NodeOp::StaticReshape { new_shape: new_shape.to_vec(), input, output });
        output
    }

    /// Appends a padding with zeros above, left of, below and right of images.
    pub fn pad(&mut self, input: ValueId, [top, left, bottom, right]: [usize; 4]) -> ValueId {
        let mut dims = self.dims_of(input);
        dims[1] += top + bottom;
        dims[2] += left + right;
        let output = self.shaped(input, &dims);
        self.push(NodeOp::StaticConstantPad {
            pre_paddings: vec![0, top, left, 0],
            post_paddings: vec![0, bottom, right, 0],
            padding_value: 0.0,
            input,
            output,
        });
        output
    }

    /// Appends a 3x3 convolution without padding, with random weights and bias.
    pub fn conv(&mut self, input: ValueId, groups: usize, outputs: usize) -> ValueId {
        let conv = self.conv_params(input, groups, outputs, 3);
        let filter = [outputs, 3, 3, conv.group_input_channels as usize];
        let (filter, bias) = (self.weights(&filter), self.weights(&[outputs]));
        let output = conv.output;
        self.push(NodeOp::Conv2d(Conv2d { filter, bias: Some(bias), ..conv }));
        output
    }

    /// Appends a maximum pooling without padding.
    pub fn max_pool(&mut self, input: ValueId, size: u32, stride: u32) -> ValueId {
        let mut dims = self.dims_of(input);
        for dim in &mut dims[1..3] {
            *dim = (*dim - size as usize) / stride as usize + 1;
        }
        let output = self.shaped(input, &dims);
        self.push(NodeOp::MaxPooling2d(Pooling2d {
            padding: Padding2d::default(),
            kernel: Size2d { height: size, width: size },
            stride: Size2d { height: stride, width: stride },
            dilation: Size2d::ONE,
            input,
            output,
        }));
        output
    }

    /// Appends a 3x3 depthwise convolution without padding and bias, with random weights.
    pub fn depthwise(&mut self, input: ValueId, multiplier: usize) -> ValueId {
        let channels = *self.dims_of(input).last().unwrap();
        let conv = self.conv_params(input, channels, channels * multiplier, 3);
        let filter = self.weights(&[1, 3, 3, channels * multiplier]);
        let output = conv.output;
        self.push(NodeOp::DepthwiseConv2d(Conv2d { filter, ..conv }));
        output
    }

    /// Parameters of a convolution without weights.
    fn conv_params(&mut self, input: ValueId, groups: usize, outputs: usize, size: u32) -> Conv2d {
        let mut dims = self.dims_of(input);
        let inputs = dims[3];
        dims[1] -= size as usize - 1;
        dims[2] -= size as usize - 1;
        dims[3] = outputs;
        let output = self.shaped(input, &dims);
        Conv2d {
            padding: Padding2d::default(),
            kernel: Size2d { height: size, width: size },
            stride: Size2d::ONE,
            dilation: Size2d::ONE,
            adjustment: Size2d { height: 0, width: 0 },
            groups: groups as u32,
            group_input_channels: (inputs / groups) as u32,
            group_output_channels: (outputs / groups) as u32,
            input,
            filter: ValueId(u32::MAX),
            bias: None,
            output,
        }
    }

    /// Appends a fully connected layer with a matrix `[outputs, inputs]` or its transpose, without
    /// a bias.
    pub fn fully_connected(&mut self, input: ValueId, outputs: usize, transposed: bool) -> ValueId {
        let mut dims = self.dims_of(input);
        let inputs = *dims.last().unwrap();
        let matrix = if transposed { [inputs, outputs] } else { [outputs, inputs] };
        let filter = self.weights(&matrix);
        *dims.last_mut().unwrap() = outputs;
        let output = self.shaped(input, &dims);
        let op = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
        self.push(op).flags = if transposed { flags::TRANSPOSE_WEIGHTS } else { 0 };
        output
    }

    /// The last node.
    pub fn last(&mut self) -> &mut Node {
        self.graph.nodes.last_mut().unwrap()
    }

    pub fn dims_of(&self, id: ValueId) -> Vec<usize> {
        self.graph.values[id.index()].dims.clone()
    }

    /// Adds a value of the same type and another shape.
    pub fn shaped(&mut self, like: ValueId, dims: &[usize]) -> ValueId {
        let id = self.like(like);
        self.graph.values[id.index()].dims = dims.to_vec();
        id
    }

    fn dims(&self) -> Vec<Vec<usize>> {
        let dims = |id: &ValueId| self.graph.values[id.index()].dims.clone();
        self.graph.inputs.iter().map(dims).collect()
    }
}

/// Kinds of a graph's nodes.
pub fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes.iter().map(|node| node.op.kind()).collect()
}

/// Runs one pass and `dead-nodes`. The pass must make this many changes. Compares the results of
/// the graph before and after, for the shapes in the graph, and for another batch if the original
/// supports it. Floats may differ by `tolerance` times the largest magnitude, and integers by that
/// many steps.
#[track_caller]
pub fn check(net: Net, pass: &str, changes: usize, tolerance: f32) -> Graph {
    assert!(PASSES.iter().any(|known| known.name == pass), "{pass}");
    let mut options = Options::default();
    options.disable = PASSES
        .iter()
        .map(|p| p.name.to_owned())
        .filter(|name| name != pass && name != "dead-nodes")
        .collect();
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

/// The external values of a graph.
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
) -> Result<Vec<(Datatype, Vec<f32>)>, xnn_runtime::RuntimeError> {
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
    let types = graph.outputs.iter().map(|id| graph.values[id.index()].datatype).enumerate();
    Ok(types
        .map(|(index, datatype)| (datatype, elements(datatype, session.output(index))))
        .collect())
}

/// Elements as floats, without dequantization.
fn elements(datatype: Datatype, bytes: &[u8]) -> Vec<f32> {
    match datatype {
        Datatype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Datatype::QInt8 => bytes.iter().map(|b| f32::from(b.cast_signed())).collect(),
        Datatype::QUint8 => bytes.iter().map(|b| f32::from(*b)).collect(),
        other => panic!("{}", other.name()),
    }
}

#[track_caller]
fn compare(after: &[(Datatype, Vec<f32>)], before: &[(Datatype, Vec<f32>)], tolerance: f32) {
    assert_eq!(after.len(), before.len());
    for ((datatype, before), (_, after)) in before.iter().zip(after) {
        let unit = match datatype {
            Datatype::F32 => before.iter().fold(0.0, |most: f32, value| most.max(value.abs())),
            _ => 1.0,
        };
        xnn_testing::assert_close(after, before, tolerance * unit);
    }
}
