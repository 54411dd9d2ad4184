//! Tests of the pass `fold-width-into-channels`.

use xnn_format::{
    Conv2d, Datatype, Graph, NodeOp, Padding2d, Quantization, ReduceOp, Size2d, Value, ValueId,
    flags,
};
use xnn_testing::{Random, le_bytes};

use crate::net::{EXACT, Net, check, kinds};

/// A strided convolution of images with few channels.
#[derive(Clone, Copy)]
struct Layer {
    datatype: Datatype,
    channels: usize,
    columns: usize,
    kernel: [u32; 2],
    stride: [u32; 2],
    /// Padding left and right; `None` is TensorFlow's SAME.
    padding: Option<[u32; 2]>,
    depthwise: bool,
    per_channel: bool,
}

/// The first layer of a keyword model.
const LAYER: Layer = Layer {
    datatype: Datatype::QInt8,
    channels: 1,
    columns: 10,
    kernel: [5, 4],
    stride: [2, 2],
    padding: None,
    depthwise: false,
    per_channel: true,
};

const ROWS: usize = 9;
const OUTPUTS: usize = 6;
const SCALE: f32 = 0.05;

impl Layer {
    /// The layer and a function of its result.
    fn net(self, then: impl FnOnce(&mut Net, ValueId) -> ValueId) -> Net {
        let mut net = Net::new();
        let zero_point = if self.datatype == Datatype::QInt8 { -7 } else { 121 };
        let input =
            net.q8(self.datatype, SCALE, zero_point, &[2, ROWS, self.columns, self.channels]);
        net.input(input);
        let result = |dim: usize, at: usize, around: u32| {
            let free = dim + around as usize - self.kernel[at] as usize;
            free / self.stride[at] as usize + 1
        };
        let [rows, columns] = match self.padding {
            None => [
                ROWS.div_ceil(self.stride[0] as usize),
                self.columns.div_ceil(self.stride[1] as usize),
            ],
            Some([left, right]) => [result(ROWS, 0, 0), result(self.columns, 1, left + right)],
        };
        let output = net.q8(self.datatype, 0.4, zero_point, &[2, rows, columns, OUTPUTS]);
        let [left, right] = self.padding.unwrap_or_default();
        let [height, width] = self.kernel;
        let groups = if self.depthwise { [1, 1, OUTPUTS] } else { [1, self.channels, OUTPUTS] };
        let conv = Conv2d {
            padding: Padding2d { left, right, ..Padding2d::default() },
            kernel: Size2d { height, width },
            stride: Size2d { height: self.stride[0], width: self.stride[1] },
            dilation: Size2d::ONE,
            adjustment: Size2d { height: 0, width: 0 },
            groups: groups[0] as u32,
            group_input_channels: groups[1] as u32,
            group_output_channels: groups[2] as u32,
            input,
            filter: self.filter(&mut net),
            bias: Some(self.bias(&mut net)),
            output,
        };
        let op = if self.depthwise { NodeOp::DepthwiseConv2d(conv) } else { NodeOp::Conv2d(conv) };
        let same = if self.padding.is_none() { flags::TENSORFLOW_SAME_PADDING } else { 0 };
        net.push(op).flags = same;
        let output = then(&mut net, output);
        net.output(output);
        net
    }

    fn filter(self, net: &mut Net) -> ValueId {
        let [height, width] = self.kernel.map(|n| n as usize);
        let (dims, channel_dim) = if self.depthwise {
            ([1, height, width, OUTPUTS], 3)
        } else {
            ([OUTPUTS, height, width, self.channels], 0)
        };
        let scales: Vec<f32> = (1..=OUTPUTS).map(|n| 0.01 * n as f32).collect();
        let (datatype, quantization) = if self.per_channel {
            (Datatype::QcInt8, Quantization::PerChannel { scales: scales.into(), channel_dim })
        } else {
            let zero_point = if self.datatype == Datatype::QUint8 { 77 } else { 0 };
            (self.datatype, Quantization::PerTensor { scale: 0.03, zero_point })
        };
        let data = Random::new(11).u8s(dims.iter().product());
        let value = Value::new(datatype, quantization, &dims);
        net.graph.push_value(value.with_data(data.into()))
    }

    fn bias(self, net: &mut Net) -> ValueId {
        let scales: Vec<f32> = (1..=OUTPUTS).map(|n| SCALE * 0.01 * n as f32).collect();
        let (datatype, quantization) = if self.per_channel {
            (Datatype::QcInt32, Quantization::PerChannel { scales: scales.into(), channel_dim: 0 })
        } else {
            (Datatype::QInt32, Quantization::PerTensor { scale: SCALE * 0.03, zero_point: 0 })
        };
        let elements: Vec<i32> = (0..OUTPUTS as i32).map(|n| n * 301 - 800).collect();
        let value = Value::new(datatype, quantization, &[OUTPUTS]);
        net.graph.push_value(value.with_data(le_bytes(&elements, |v| v.to_le_bytes()).into()))
    }

    #[track_caller]
    fn check(self, changes: usize) -> Graph {
        check(self.net(flat), "fold-width-into-channels", changes, EXACT)
    }

    #[track_caller]
    fn is_folded(self) {
        assert_eq!(kinds(&self.check(1)), ["StaticReshape", "Conv2d", "StaticReshape"]);
    }

    #[track_caller]
    fn is_kept(self) {
        assert_eq!(self.check(0).nodes.len(), 2);
    }
}

/// All pixels in one row, whose length is in the graph.
fn flat(net: &mut Net, image: ValueId) -> ValueId {
    let [_, rows, columns, channels] = net.dims_of(image)[..] else { panic!() };
    net.reshape(image, &[0, rows * columns * channels])
}

#[test]
fn pixels_within_a_stride_are_merged() {
    LAYER.is_folded();
    Layer { depthwise: true, ..LAYER }.is_folded();
    Layer { channels: 2, ..LAYER }.is_folded();
    for kernel in [[3, 3], [1, 4], [2, 5], [5, 8]] {
        Layer { kernel, ..LAYER }.is_folded();
    }
    Layer { stride: [1, 2], ..LAYER }.is_folded();
    Layer { stride: [2, 3], columns: 12, kernel: [3, 6], ..LAYER }.is_folded();
    for datatype in [Datatype::QInt8, Datatype::QUint8] {
        for depthwise in [false, true] {
            Layer { datatype, depthwise, per_channel: false, ..LAYER }.is_folded();
        }
    }
}

#[test]
fn windows_may_start_within_a_merged_pixel() {
    for padding in [[0, 0], [1, 1], [0, 1], [1, 2], [2, 1], [3, 3]] {
        Layer { padding: Some(padding), ..LAYER }.is_folded();
        Layer { padding: Some(padding), kernel: [3, 5], depthwise: true, ..LAYER }.is_folded();
    }
}

#[test]
fn some_images_are_kept() {
    // The stride is 1, a pixel remains, or there are enough channels.
    Layer { stride: [2, 1], ..LAYER }.is_kept();
    Layer { columns: 11, ..LAYER }.is_kept();
    Layer { channels: 3, ..LAYER }.is_kept();
    // The number of products would be the same.
    Layer { kernel: [3, 2], padding: Some([1, 1]), ..LAYER }.is_kept();
    // The last pixels are outside all windows, which does not prevent merging.
    Layer { kernel: [3, 3], columns: 16, stride: [2, 4], padding: Some([0, 0]), ..LAYER }
        .is_folded();
}

/// If no size is in the graph, a session may use larger images.
#[test]
fn images_of_any_size_are_kept() {
    check(LAYER.net(|_, image| image), "fold-width-into-channels", 0, EXACT);
    let mean = |net: &mut Net, image: ValueId| {
        let output = net.shaped(image, &[2, OUTPUTS]);
        let op =
            NodeOp::StaticReduce { op: ReduceOp::Mean, axes: vec![1, 2], input: image, output };
        net.push(op);
        net.reshape(output, &[0, OUTPUTS])
    };
    check(LAYER.net(mean), "fold-width-into-channels", 0, EXACT);
    for (flags, folded) in [(0, 0), (flags::FIXED_SIZE, 1)] {
        let mean = |net: &mut Net, image: ValueId| {
            let output = net.shaped(image, &[2, OUTPUTS]);
            net.push(NodeOp::GlobalAveragePooling2d { input: image, output });
            net.graph.nodes.last_mut().unwrap().flags = flags;
            net.reshape(output, &[0, OUTPUTS])
        };
        check(LAYER.net(mean), "fold-width-into-channels", folded, EXACT);
    }
}
