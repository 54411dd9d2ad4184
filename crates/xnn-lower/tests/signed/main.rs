//! Tests that unsigned 8-bit layers computed as signed ones have bit-identical results in XNNPACK's
//! arithmetic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use xnn_format::{
    BinaryOp, Conv2d, Datatype, Graph, Node, NodeOp, Padding2d, Quantization, Size2d, Value,
    ValueId,
};
use xnn_lower::optimize::{Options, SignedLayers, optimize};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::{Random, le_bytes};

mod arithmetic;

const SCALE: f32 = 0.02;
const ZERO_POINT: i32 = 117;
const WEIGHT_SCALE: f32 = 0.01;
const HEIGHT: usize = 9;

/// Largest differences in steps from a few roundings in three layers with weights of up to 1.27:
/// for all but one element in a thousand, and for any element.
const ROUNDINGS: [u8; 2] = [6, 16];

/// An unsigned network under construction.
struct Net {
    graph: Graph,
    random: Random,
}

/// Position of a weight that does not fit into int8 without the zero point.
type Outlier = (usize, u8);

impl Net {
    fn new(seed: u64) -> Self {
        Self { graph: Graph::default(), random: Random::new(seed) }
    }

    fn tensor(&mut self, channels: usize) -> ValueId {
        let quantization = Quantization::PerTensor { scale: SCALE, zero_point: ZERO_POINT };
        let dims = [1, HEIGHT, HEIGHT, channels];
        self.graph.push_value(Value::new(Datatype::QUint8, quantization, &dims))
    }

    fn push(&mut self, op: NodeOp) {
        let debug_handle = Some(self.graph.nodes.len() as u32);
        self.graph.nodes.push(Node { debug_handle, ..Node::new(op) });
    }

    /// Weights that fit into a signed layer, except for outliers.
    fn weights(&mut self, dims: &[usize], zero_point: u8, outliers: &[Outlier]) -> ValueId {
        let count: usize = dims.iter().product();
        let most = (i32::from(zero_point) + 127).min(255);
        let least = (i32::from(zero_point) - 128).max(0);
        let span = (most - least + 1) as u32;
        let mut data: Vec<u8> = (0..count)
            .map(|_| (least as u32 + u32::from(self.random.u8s(1)[0]) % span) as u8)
            .map(|weight| weight.max(zero_point.saturating_sub(127)))
            .collect();
        for &(position, weight) in outliers {
            data[position] = weight;
        }
        let quantization =
            Quantization::PerTensor { scale: WEIGHT_SCALE, zero_point: zero_point.into() };
        let value = Value::new(Datatype::QUint8, quantization, dims).with_data(data.into());
        self.graph.push_value(value)
    }

    fn bias(&mut self, channels: usize) -> ValueId {
        let elements = self.random.u8s(channels).into_iter().map(|b| i32::from(b) * 37 - 4000);
        let data = le_bytes(&elements.collect::<Vec<_>>(), |v: &i32| v.to_le_bytes());
        let quantization = Quantization::PerTensor { scale: SCALE * WEIGHT_SCALE, zero_point: 0 };
        let value = Value::new(Datatype::QInt32, quantization, &[channels]);
        self.graph.push_value(value.with_data(data.into()))
    }

    /// Appends a convolution with a square kernel that keeps height and width.
    fn conv(
        &mut self,
        input: ValueId,
        channels: usize,
        edge: usize,
        zero_point: u8,
        outliers: &[Outlier],
    ) -> ValueId {
        let depth = *self.graph.values[input.index()].dims.last().unwrap();
        let filter = self.weights(&[channels, edge, edge, depth], zero_point, outliers);
        let bias = Some(self.bias(channels));
        let output = self.tensor(channels);
        self.push(NodeOp::Conv2d(Conv2d {
            groups: 1,
            group_input_channels: depth as u32,
            group_output_channels: channels as u32,
            ..layer(edge, input, filter, bias, output)
        }));
        output
    }

    fn depthwise(&mut self, input: ValueId, zero_point: u8, outliers: &[Outlier]) -> ValueId {
        let channels = *self.graph.values[input.index()].dims.last().unwrap();
        let filter = self.weights(&[1, 3, 3, channels], zero_point, outliers);
        let bias = Some(self.bias(channels));
        let output = self.tensor(channels);
        self.push(NodeOp::DepthwiseConv2d(Conv2d {
            groups: channels as u32,
            group_input_channels: 1,
            group_output_channels: 1,
            ..layer(3, input, filter, bias, output)
        }));
        output
    }

    fn add(&mut self, inputs: [ValueId; 2]) -> ValueId {
        let channels = *self.graph.values[inputs[0].index()].dims.last().unwrap();
        let output = self.tensor(channels);
        self.push(NodeOp::Binary { op: BinaryOp::Add, inputs, output });
        output
    }

    fn input(&mut self, channels: usize) -> ValueId {
        let id = self.tensor(channels);
        self.graph.inputs.push(id);
        id
    }

    /// Optimizes the network and compares its results. Returns the number of signed layers, and the
    /// largest difference of results.
    #[track_caller]
    fn check(mut self, mode: SignedLayers) -> (usize, u8) {
        let inputs: Vec<Vec<u8>> = (self.graph.inputs.iter())
            .map(|id| self.graph.values[id.index()].dims.iter().product())
            .map(|count| self.random.u8s(count))
            .collect();
        let mut off = Options::default();
        off.signed_layers = SignedLayers::Off;
        let before = arithmetic::run(&optimize(self.graph.clone(), &off).0, &inputs);
        assert!(before.iter().flatten().any(|&one| one != before[0][0]), "a constant result");
        let mut options = Options::default();
        options.signed_layers = mode;
        let (graph, report) = optimize(self.graph, &options);
        let after = arithmetic::run(&graph, &inputs);
        // Layers that stay unsigned may round differently, and later layers amplify that: in few
        // elements, and by less than a wrong weight would.
        let on_xnnpack = run(&graph, &inputs);
        let steps: Vec<u8> = apart(&after, &on_xnnpack).collect();
        let beyond = |bound: u8| steps.iter().filter(|&&steps| steps > bound).count();
        let [most, outlier] = ROUNDINGS;
        let counts = [0, most, outlier].map(beyond);
        assert!(counts[0] * 10 <= steps.len(), "{counts:?} of {} on XNNPACK", steps.len());
        assert!(counts[1] * 1000 <= steps.len(), "{counts:?} of {} on XNNPACK", steps.len());
        assert_eq!(counts[2], 0, "on XNNPACK");
        (
            report.changes.get("u8-as-s8").copied().unwrap_or(0),
            apart(&before, &after).max().unwrap(),
        )
    }
}

fn layer(
    edge: usize,
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    output: ValueId,
) -> Conv2d {
    let border = (edge as u32) / 2;
    let kernel = Size2d { height: edge as u32, width: edge as u32 };
    Conv2d {
        padding: Padding2d { top: border, right: border, bottom: border, left: border },
        kernel,
        stride: Size2d::ONE,
        dilation: Size2d::ONE,
        adjustment: Size2d { height: 0, width: 0 },
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        input,
        filter,
        bias,
        output,
    }
}

/// Differences of results in steps.
fn apart(some: &[Vec<u8>], others: &[Vec<u8>]) -> impl Iterator<Item = u8> {
    some.iter().flatten().zip(others.iter().flatten()).map(|(a, b)| a.abs_diff(*b))
}

/// Runs the graph on XNNPACK.
fn run(graph: &Graph, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let program = Program::new(graph.clone(), &ProgramOptions::default()).unwrap();
    let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
    for (index, input) in inputs.iter().enumerate() {
        session.input_mut(index).copy_from_slice(input);
    }
    session.run().unwrap();
    (0..graph.outputs.len()).map(|index| session.output(index).to_vec()).collect()
}

#[test]
fn weights_within_int8_lose_their_zero_point() {
    for (seed, edge) in [(1, 1), (2, 3)] {
        let mut net = Net::new(seed);
        let x = net.input(64);
        let y = net.conv(x, 72, edge, 121, &[]);
        net.graph.outputs.push(y);
        assert_eq!(net.check(SignedLayers::Exact), (1, 0));
    }
}

#[test]
fn an_outlier_needs_a_layer_before_it() {
    // -128 is an outlier too, although it fits into int8.
    for (zero_point, weight, layers) in [(121, 255, 0), (129, 1, 0), (129, 2, 1)] {
        let mut net = Net::new(3);
        let x = net.input(64);
        let y = net.conv(x, 72, 1, zero_point, &[(700, weight)]);
        net.graph.outputs.push(y);
        assert_eq!(net.check(SignedLayers::Exact), (layers, 0), "{zero_point}, {weight}");
    }
}

/// The first layer repeats the outlier's channel for the last one. The depthwise layer in between
/// passes it on, and stays unsigned because of its own outlier.
#[test]
fn repeated_channels_make_outliers_exact() {
    for (seed, edge) in [(4, 1), (5, 3)] {
        let mut net = Net::new(seed);
        let x = net.input(64);
        let x = net.conv(x, 72, 1, 128, &[]);
        let x = net.depthwise(x, 150, &[(40, 3)]);
        let y = net.conv(x, 80, edge, 90, &[(30, 255), (303, 240)]);
        let z = net.conv(y, 64, 1, 127, &[(99, 255)]);
        net.graph.outputs.push(z);
        assert_eq!(net.check(SignedLayers::Exact), (3, 0));
    }
}

/// Either all values of a residual stream have the repeated channels, or none.
#[test]
fn sums_pass_on_repeated_channels() {
    let residual = |external: bool| {
        let mut net = Net::new(6);
        let x = net.input(48);
        let x = net.conv(x, 64, 1, 130, &[]);
        let y = net.conv(x, 64, 1, 140, &[(64 * 5 + 7, 0)]);
        let sum = net.add([x, y]);
        let z = net.conv(sum, 96, 1, 100, &[(64 * 9 + 11, 255)]);
        net.graph.outputs.push(z);
        if external {
            net.graph.outputs.push(sum);
        }
        net.check(SignedLayers::Exact)
    };
    assert_eq!(residual(false), (3, 0));
    assert_eq!(residual(true), (1, 0));
}

/// The rest of 255 with a zero point of 0 is 128, which does not fit either.
#[test]
fn layers_with_unsplittable_outliers_stay_unsigned() {
    for (zero_point, weight, layers) in [(0, 255, 1), (1, 255, 2)] {
        let mut net = Net::new(7);
        let x = net.input(64);
        let x = net.conv(x, 64, 1, 128, &[]);
        let y = net.conv(x, 64, 1, zero_point, &[(65, weight)]);
        net.graph.outputs.push(y);
        assert_eq!(net.check(SignedLayers::Exact), (layers, 0), "{zero_point}");
    }
}

#[test]
fn small_layers_are_not_worth_conversions() {
    let mut net = Net::new(8);
    let x = net.input(8);
    let y = net.conv(x, 8, 1, 128, &[]);
    net.graph.outputs.push(y);
    assert_eq!(net.check(SignedLayers::Exact), (0, 0));
}

#[test]
fn approximation_rounds_a_channel() {
    let mut net = Net::new(9);
    let x = net.input(64);
    let y = net.conv(x, 72, 1, 121, &[(700, 255)]);
    net.graph.outputs.push(y);
    let (layers, apart) = net.check(SignedLayers::Approximate);
    assert_eq!(layers, 1);
    // Weights are off by 0.3 of their scale on average, and inputs are 74 from zero:
    // sqrt(64) * 0.3 * 74 * 0.01 is 1.8 output steps. Four times that is rare.
    assert!((1..=7).contains(&apart), "{apart}");
}

#[test]
fn the_option_off_changes_nothing() {
    let mut net = Net::new(10);
    let x = net.input(64);
    let y = net.conv(x, 72, 1, 121, &[]);
    net.graph.outputs.push(y);
    assert_eq!(net.check(SignedLayers::Off), (0, 0));
}
