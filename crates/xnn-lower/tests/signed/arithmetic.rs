//! Reference implementation of XNNPACK's arithmetic for 8-bit layers. Microkernels of some
//! processors round uint8 differently.

use xnn_format::{
    BinaryOp, Conv2d, Datatype, Graph, NodeOp, Quantization, UnaryOp, Value, ValueId,
};

/// Integers of a tensor `[1, size, size, channels]`.
type Integers = Vec<i32>;

/// Runs a graph of convolutions, sums and conversions on square images.
pub fn run(graph: &Graph, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut tensors: Vec<Integers> = graph.values.iter().map(constant).collect();
    for (id, input) in graph.inputs.iter().zip(inputs) {
        tensors[id.index()] = integers(&graph.values[id.index()], input);
    }
    for node in &graph.nodes {
        let (output, result) = match &node.op {
            NodeOp::Conv2d(conv) => (conv.output, convolution(graph, &tensors, conv, 0)),
            NodeOp::DepthwiseConv2d(conv) => (conv.output, convolution(graph, &tensors, conv, 3)),
            NodeOp::Binary { op: BinaryOp::Add, inputs, output } => {
                let [a, b] = inputs.map(|id| reals(graph, &tensors, id));
                let sums = a.iter().zip(b).map(|(a, b)| a + b);
                (*output, sums.map(|sum| rounded(graph, *output, sum)).collect())
            }
            NodeOp::Unary { op: UnaryOp::Convert, input, output, .. } => {
                let values = reals(graph, &tensors, *input).into_iter();
                (*output, values.map(|value| rounded(graph, *output, value)).collect())
            }
            other => panic!("{other:?}"),
        };
        tensors[output.index()] = result;
    }
    let outputs = graph.outputs.iter();
    outputs.map(|id| tensors[id.index()].iter().map(|&one| one as u8).collect()).collect()
}

fn constant(value: &Value) -> Integers {
    value.data.as_ref().map_or_else(Vec::new, |data| integers(value, data))
}

fn integers(value: &Value, data: &[u8]) -> Integers {
    match value.datatype {
        Datatype::QUint8 => data.iter().map(|&byte| byte.into()).collect(),
        Datatype::QInt8 | Datatype::QcInt8 => {
            data.iter().map(|&byte| i32::from(byte as i8)).collect()
        }
        _ => data.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
    }
}

/// One scale, or one for each channel, and the zero point.
fn scales(graph: &Graph, id: ValueId) -> (&[f32], i32) {
    match &graph.values[id.index()].quantization {
        Quantization::PerTensor { scale, zero_point } => (std::slice::from_ref(scale), *zero_point),
        Quantization::PerChannel { scales, .. } => (scales, 0),
        other => panic!("{other:?}"),
    }
}

fn reals(graph: &Graph, tensors: &[Integers], id: ValueId) -> Vec<f64> {
    let (scales, zero_point) = scales(graph, id);
    tensors[id.index()].iter().map(|q| f64::from(q - zero_point) * f64::from(scales[0])).collect()
}

fn rounded(graph: &Graph, id: ValueId, value: f64) -> i32 {
    let (scales, zero_point) = scales(graph, id);
    saturated(graph, id, (value / f64::from(scales[0])).round_ties_even() as i32 + zero_point)
}

fn saturated(graph: &Graph, id: ValueId, integer: i32) -> i32 {
    match graph.values[id.index()].datatype {
        Datatype::QUint8 => integer.clamp(0, 255),
        _ => integer.clamp(-128, 127),
    }
}

/// `channel_dim` is the filter's dimension of output channels: 0 for `[out, height, width, in]`, 3
/// for `[1, height, width, out]`.
fn convolution(graph: &Graph, tensors: &[Integers], conv: &Conv2d, channel_dim: usize) -> Integers {
    let dims = |id: ValueId| &graph.values[id.index()].dims;
    let (size, depth) = (dims(conv.input)[1], dims(conv.input)[3]);
    let filter_dims = dims(conv.filter);
    let (edge, channels) = (filter_dims[1], filter_dims[channel_dim]);
    let border = conv.padding.top as usize;
    let ((inputs, input_zero), (weights, weight_zero), (outputs, output_zero)) =
        (scales(graph, conv.input), scales(graph, conv.filter), scales(graph, conv.output));
    let (input, filter) = (&tensors[conv.input.index()], &tensors[conv.filter.index()]);
    let mut result = Vec::new();
    for (y, x, channel) in positions([size, size, channels]) {
        let mut sum = conv.bias.map_or(0, |bias| tensors[bias.index()][channel]);
        for (row, column, i) in positions([edge, edge, filter_dims[3]]) {
            let (Some(y), Some(x)) =
                ((y + row).checked_sub(border), (x + column).checked_sub(border))
            else {
                continue;
            };
            let from = if channel_dim == 3 { channel } else { i };
            if y < size && x < size && (channel_dim == 0 || i == channel) {
                let first = if channel_dim == 0 { channel * edge } else { 0 };
                let weight = filter[((first + row) * edge + column) * filter_dims[3] + i];
                let pixel = input[(y * size + x) * depth + from];
                sum += (pixel - input_zero) * (weight - weight_zero);
            }
        }
        let scale = inputs[0] * weights[channel % weights.len()] / outputs[0];
        let integer = (sum as f32 * scale).round_ties_even() as i32 + output_zero;
        result.push(saturated(graph, conv.output, integer));
    }
    result
}

fn positions([first, second, third]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..first * second * third)
        .map(move |index| (index / third / second, index / third % second, index % third))
}
