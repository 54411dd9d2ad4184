//! Operators with weights, and products.

use xnn_model::op::{
    BatchMatMulOptions, Conv2dOptions, DepthwiseConv2dOptions, FullyConnectedOptions, Op, Padding,
    TransposeConvOptions,
};
use xnn_model::{DType, TensorId};

use super::Generator;

/// Weights with the scales of their channels, of which floats have none.
pub struct Weights {
    id: TensorId,
    scales: Vec<f32>,
}

impl Generator {
    /// Weights along `axis`, with one scale or with one for each channel; symmetric where they are
    /// signed.
    fn weights(&mut self, shape: &[usize], axis: usize) -> Weights {
        let dtype = self.weights.unwrap_or(self.dtype);
        let data = self.random.weights(dtype, shape.iter().product());
        let id = self.graph.constant("w", dtype, shape, data);
        let per_axis = matches!(dtype, DType::I8 | DType::I4) && !self.one_in(4);
        let count = if per_axis { shape[axis] } else { 1 };
        let scales: Vec<f32> = (0..count).map(|_| (-3.0 - 6.0 * self.chance()).exp2()).collect();
        if dtype == DType::F32 {
            return Weights { id, scales: vec![] };
        }
        let zero_point = if dtype == DType::U8 { self.random.below(256) as i64 } else { 0 };
        if per_axis {
            self.graph.quantize_per_axis(id, &scales, axis);
        } else {
            self.graph.quantize(id, scales[0], zero_point);
        }
        Weights { id, scales }
    }

    fn bias(&mut self, channels: usize, weights: &Weights) -> TensorId {
        if self.is_float() {
            let data = self.random.f32s(channels, -1.0, 1.0);
            return self.graph.constant_f32("b", &[channels], &data);
        }
        let data: Vec<i32> = (0..channels).map(|_| self.random.below(2000) as i32 - 1000).collect();
        let id = self.graph.constant_i32("b", &[channels], &data);
        let scales: Vec<f32> = weights.scales.iter().map(|scale| self.q.0 * scale).collect();
        match *scales {
            [scale] => self.graph.quantize(id, scale, 0),
            _ => self.graph.quantize_per_axis(id, &scales, 0),
        };
        id
    }

    /// The inputs of a layer: now and then it has no bias.
    fn layer(&mut self, channels: usize, weights: &Weights) -> Vec<TensorId> {
        let mut inputs = vec![self.current, weights.id];
        if !self.one_in(5) {
            inputs.push(self.bias(channels, weights));
        }
        inputs
    }

    pub fn padding(&mut self) -> Padding {
        self.of(&[Padding::Same, Padding::Valid])
    }

    /// Sizes of a window inside the image, along height and width.
    pub fn window(&mut self) -> [usize; 2] {
        [1, 2].map(|axis| self.between(1, self.shape[axis].min(5)))
    }

    /// Distances of a window's pixels that keep it inside the image.
    fn dilation(&mut self, window: [usize; 2]) -> [i32; 2] {
        [0, 1].map(|side| {
            let most = (self.shape[side + 1] - 1).checked_div(window[side] - 1).unwrap_or(1);
            if self.one_in(4) { self.between(1, most) as i32 } else { 1 }
        })
    }

    pub fn conv(&mut self) {
        let window @ [kh, kw] = self.window();
        let [.., channels] = self.image();
        let groups = self.of(&[1, 1, 1, 2, 3, channels]);
        let groups = if channels % groups == 0 { groups } else { 1 };
        let outputs = groups * self.width((20 / groups).max(1));
        let weights = self.weights(&[outputs, kh, kw, channels / groups], 0);
        let [dilation_h, dilation_w] = self.dilation(window);
        let [stride_h, stride_w] = [0; 2].map(|_: i32| self.between(1, 3) as i32);
        let options = Conv2dOptions {
            padding: self.padding(),
            stride_h,
            stride_w,
            dilation_h,
            dilation_w,
            activation: self.activation(),
            ..Conv2dOptions::default()
        };
        let inputs = self.layer(outputs, &weights);
        let q = self.quantization();
        self.push(Op::Conv2d(options), &inputs, q);
    }

    pub fn depthwise(&mut self) {
        let window @ [kh, kw] = self.window();
        let multiplier = self.of(&[1, 1, 1, 2, 3]);
        let outputs = self.image()[3] * multiplier;
        let weights = self.weights(&[1, kh, kw, outputs], 3);
        let [dilation_h, dilation_w] = self.dilation(window);
        let [stride_h, stride_w] = [0; 2].map(|_: i32| self.between(1, 3) as i32);
        let options = DepthwiseConv2dOptions {
            padding: self.padding(),
            stride_h,
            stride_w,
            depth_multiplier: multiplier as i32,
            dilation_h,
            dilation_w,
            activation: self.activation(),
        };
        let inputs = self.layer(outputs, &weights);
        let q = self.quantization();
        self.push(Op::DepthwiseConv2d(options), &inputs, q);
    }

    pub fn transpose_conv(&mut self) {
        let [n, h, w, channels] = self.image();
        let strides = [0; 2].map(|_: usize| self.between(1, 3));
        let [kh, kw] = strides.map(|stride| stride + self.random.below(3));
        let outputs = self.width(6);
        let padding = self.padding();
        let side = |from: usize, stride: usize, kernel: usize| match padding {
            Padding::Same => from * stride,
            Padding::Valid => (from - 1) * stride + kernel,
        };
        let shape = [n, side(h, strides[0], kh), side(w, strides[1], kw), outputs];
        let target = self.ints(&shape.map(|dim| dim as i32));
        let weights = self.weights(&[outputs, kh, kw, channels], 0);
        let [stride_h, stride_w] = strides.map(|stride| stride as i32);
        let options =
            TransposeConvOptions { padding, stride_w, stride_h, ..TransposeConvOptions::default() };
        let [current, filter, bias @ ..] = &*self.layer(outputs, &weights) else { return };
        let inputs = [&[target, *filter, *current], bias].concat();
        let q = self.quantization();
        self.push(Op::TransposeConv(options), &inputs, q);
    }

    pub fn fully_connected(&mut self) {
        let keep_num_dims = self.one_in(2);
        let folded = if !keep_num_dims && self.rank() > 2 && self.one_in(3) { 2 } else { 1 };
        let inputs: usize = self.shape[self.rank() - folded..].iter().product();
        let outputs = self.width(24);
        let weights = self.weights(&[outputs, inputs], 0);
        let options = FullyConnectedOptions {
            activation: self.activation(),
            keep_num_dims,
            ..FullyConnectedOptions::default()
        };
        let inputs = self.layer(outputs, &weights);
        let q = self.quantization();
        self.push(Op::FullyConnected(options), &inputs, q);
    }

    pub fn batch_matmul(&mut self) {
        let rank = self.rank();
        let (adj_x, adj_y) = (self.one_in(3), self.one_in(2));
        let depth = self.shape[if adj_x { rank - 2 } else { rank - 1 }];
        let columns = self.width(17);
        let mut shape = self.shape.clone();
        if self.one_in(3) {
            shape.fill(1);
        }
        shape[rank - 2..].copy_from_slice(&if adj_y { [columns, depth] } else { [depth, columns] });
        let other = if self.is_float() && self.weights == Some(DType::I8) {
            self.weights(&shape, if adj_y { rank - 2 } else { rank - 1 }).id
        } else {
            let q = self.scale_for(None);
            self.operand(&shape, None, q)
        };
        let options = BatchMatMulOptions { adj_x, adj_y, ..BatchMatMulOptions::default() };
        let (current, q) = (self.current, self.quantization());
        self.push(Op::BatchMatMul(options), &[current, other], q);
    }
}
