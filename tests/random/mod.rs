//! Makes small random models.

mod compound;

use std::collections::HashMap;

use xnn_delegate::Subgraph;
use xnn_model::op::{
    Activation, ActivationOptions, ArithmeticOptions, BlockOptions, ConcatenationOptions,
    Conv2dOptions, DepthwiseConv2dOptions, FullyConnectedOptions, GeluOptions, LeakyReluOptions,
    Op, PackOptions, Padding, Pool2dOptions, ReducerOptions, ReshapeOptions, ResizeOptions,
    SoftmaxOptions, SplitOptions, StridedSliceOptions, TransposeConvOptions,
};
use xnn_model::{DType, TensorId};
use xnn_testing::{GraphBuilder, Random};

/// Dimensions and places as operators take them.
fn ints(values: &[usize]) -> Vec<i32> {
    values.iter().map(|&value| value as i32).collect()
}

/// A model under construction.
pub struct Generator {
    random: Random,
    graph: GraphBuilder,
    dtype: DType,
    /// The tensor that the next operator takes.
    current: TensorId,
    shape: Vec<usize>,
    /// Its scale and zero point, where it has some.
    q: (f32, i64),
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let dtype = [DType::F32, DType::I8, DType::U8][random.below(3)];
        let shape = vec![
            1 + random.below(2),
            2 + random.below(8),
            2 + random.below(8),
            1 + random.below(9),
        ];
        let mut graph = GraphBuilder::new("main");
        let current = graph.input("x", dtype, &shape);
        let mut this = Self { random, graph, dtype, current, shape, q: (1.0, 0) };
        this.q = this.quantization();
        this.mark(current, this.q);
        this
    }

    /// The model, and elements for its input.
    pub fn model(mut self) -> (Subgraph, HashMap<TensorId, Vec<u8>>) {
        let input = self.current;
        let count = self.shape.iter().product();
        let data = self.random.tensor(self.dtype, count);
        for _ in 0..=self.random.below(5) {
            self.operator();
        }
        let output = self.current;
        self.graph.output(output);
        (self.graph.build(), HashMap::from([(input, data)]))
    }

    fn is_float(&self) -> bool {
        self.dtype == DType::F32
    }

    /// A scale between 2^-7 and 1, and a zero point.
    fn quantization(&mut self) -> (f32, i64) {
        let scale = (-(self.random.below(70) as f32) / 10.0).exp2();
        let zero_point = self.random.below(256) as i64;
        (scale, if self.dtype == DType::I8 { zero_point - 128 } else { zero_point })
    }

    fn mark(&mut self, id: TensorId, (scale, zero_point): (f32, i64)) {
        if !self.is_float() {
            self.graph.quantize(id, scale, zero_point);
        }
    }

    /// The result of the next operator, of this shape and quantization.
    fn result(&mut self, shape: &[usize], q: (f32, i64)) -> TensorId {
        let id = self.graph.tensor("t", self.dtype, shape);
        self.mark(id, q);
        id
    }

    /// Appends an operator whose result is the next one's operand.
    fn push(&mut self, op: Op, inputs: &[TensorId], shape: &[usize], q: (f32, i64)) {
        let output = self.result(shape, q);
        self.graph.op(op, inputs, &[output]);
        (self.current, self.shape, self.q) = (output, shape.to_vec(), q);
    }

    fn operator(&mut self) {
        let image = self.shape.len() == 4;
        match self.random.below(25) {
            0..=4 => self.unary(),
            5 | 6 => self.binary(),
            7 | 8 if image => self.conv(),
            9 if image => self.depthwise(),
            10 if image => self.pool(),
            11 => self.movement(),
            12 => self.slices(),
            13 => self.reduce(),
            14 => self.fully_connected(),
            15 if image => self.resize(),
            16 => self.softmax(),
            17 if image => self.transpose_conv(),
            18 if image => self.blocks(),
            19 | 20 => self.picks(),
            21 => self.update(),
            22 if self.shape.len() > 1 => self.arg_reduce(),
            23 | 24 if self.is_float() => self.float_compound(),
            _ => self.movement(),
        }
    }

    fn unary(&mut self) {
        let alpha = self.random.below(20) as f32 / 16.0 - 0.25;
        let ops = [
            Op::Abs,
            Op::Neg,
            Op::Relu,
            Op::Relu6,
            Op::ReluN1To1,
            Op::Relu0To1,
            Op::Logistic,
            Op::Tanh,
            Op::HardSwish,
            Op::Elu,
            Op::LeakyRelu(LeakyReluOptions { alpha }),
            Op::Square,
            Op::Gelu(GeluOptions { approximate: self.random.below(2) == 0 }),
            Op::Floor,
            Op::Ceil,
            Op::Round,
            Op::Exp,
            Op::Sin,
            Op::Cos,
            Op::Sign,
        ];
        let op = ops[self.random.below(ops.len())].clone();
        let q = match op {
            Op::Logistic => self.unit(),
            Op::Tanh => (1.0 / 128.0, if self.dtype == DType::I8 { 0 } else { 128 }),
            _ => self.quantization(),
        };
        let (current, shape) = (self.current, self.shape.clone());
        self.push(op, &[current], &shape, q);
    }

    /// The quantization of results in [0, 1).
    fn unit(&self) -> (f32, i64) {
        (1.0 / 256.0, if self.dtype == DType::I8 { -128 } else { 0 })
    }

    fn activation(&mut self) -> Activation {
        [
            Activation::None,
            Activation::None,
            Activation::Relu,
            Activation::Relu6,
            Activation::ReluN1To1,
        ][self.random.below(5)]
    }

    fn binary(&mut self) {
        let activation = self.activation();
        let arithmetic = || ArithmeticOptions { activation, ..ArithmeticOptions::default() };
        let ops = [
            Op::Add(arithmetic()),
            Op::Sub(arithmetic()),
            Op::Mul(ActivationOptions { activation }),
            Op::Maximum,
            Op::Minimum,
            Op::SquaredDifference,
        ];
        let op = ops[self.random.below(ops.len())].clone();
        let mut other = self.shape.clone();
        for dim in &mut other {
            if self.random.below(3) == 0 {
                *dim = 1;
            }
        }
        let data = self.random.tensor(self.dtype, other.iter().product());
        let constant = self.graph.constant("c", self.dtype, &other, data);
        // Minimum and maximum have one quantization throughout.
        let same = matches!(op, Op::Maximum | Op::Minimum);
        let (qc, qo) =
            if same { (self.q, self.q) } else { (self.quantization(), self.quantization()) };
        self.mark(constant, qc);
        let (current, shape) = (self.current, self.shape.clone());
        self.push(op, &[current, constant], &shape, qo);
    }

    /// Weights with one scale; symmetric where they are signed.
    fn weights(&mut self, shape: &[usize]) -> (TensorId, f32) {
        let data = self.random.tensor(self.dtype, shape.iter().product());
        let id = self.graph.constant("w", self.dtype, shape, data);
        let scale = (-(self.random.below(60) as f32) / 10.0 - 3.0).exp2();
        self.mark(id, (scale, if self.dtype == DType::U8 { 121 } else { 0 }));
        (id, scale)
    }

    fn bias(&mut self, channels: usize, weight_scale: f32) -> TensorId {
        if self.is_float() {
            let data = self.random.f32s(channels, -1.0, 1.0);
            return self.graph.constant_f32("b", &[channels], &data);
        }
        let data: Vec<i32> = (0..channels).map(|_| self.random.below(2000) as i32 - 1000).collect();
        let id = self.graph.constant_i32("b", &[channels], &data);
        self.graph.quantize(id, self.q.0 * weight_scale, 0);
        id
    }

    /// Size of the result of windows over `size` pixels.
    fn windows(padding: Padding, size: usize, window: usize, stride: usize) -> usize {
        match padding {
            Padding::Same => size.div_ceil(stride),
            Padding::Valid => (size - window) / stride + 1,
        }
    }

    /// Padding, and window and stride along height and width.
    fn window(&mut self) -> (Padding, [usize; 2], [usize; 2]) {
        let padding = if self.random.below(2) == 0 { Padding::Same } else { Padding::Valid };
        let window = [1, 2].map(|axis| 1 + self.random.below(self.shape[axis].min(4)));
        let stride = window.map(|window| 1 + self.random.below(window + 1));
        (padding, window, stride)
    }

    fn conv(&mut self) {
        let (padding, [kh, kw], [sh, sw]) = self.window();
        let [n, h, w, c] = <[usize; 4]>::try_from(self.shape.clone()).unwrap();
        let outputs = 1 + self.random.below(12);
        let (filter, scale) = self.weights(&[outputs, kh, kw, c]);
        let bias = self.bias(outputs, scale);
        let options = Conv2dOptions {
            padding,
            stride_h: sh as i32,
            stride_w: sw as i32,
            activation: self.activation(),
            ..Conv2dOptions::default()
        };
        let shape =
            [n, Self::windows(padding, h, kh, sh), Self::windows(padding, w, kw, sw), outputs];
        let q = self.quantization();
        let current = self.current;
        self.push(Op::Conv2d(options), &[current, filter, bias], &shape, q);
    }

    fn depthwise(&mut self) {
        let (padding, [kh, kw], [sh, sw]) = self.window();
        let [n, h, w, c] = <[usize; 4]>::try_from(self.shape.clone()).unwrap();
        let multiplier = 1 + self.random.below(3);
        let (filter, scale) = self.weights(&[1, kh, kw, c * multiplier]);
        let bias = self.bias(c * multiplier, scale);
        let options = DepthwiseConv2dOptions {
            padding,
            stride_h: sh as i32,
            stride_w: sw as i32,
            depth_multiplier: multiplier as i32,
            activation: self.activation(),
            ..DepthwiseConv2dOptions::default()
        };
        let shape = [
            n,
            Self::windows(padding, h, kh, sh),
            Self::windows(padding, w, kw, sw),
            c * multiplier,
        ];
        let q = self.quantization();
        let current = self.current;
        self.push(Op::DepthwiseConv2d(options), &[current, filter, bias], &shape, q);
    }

    fn pool(&mut self) {
        let (padding, [kh, kw], [sh, sw]) = self.window();
        let [n, h, w, c] = <[usize; 4]>::try_from(self.shape.clone()).unwrap();
        let options = Pool2dOptions {
            padding,
            stride_w: sw as i32,
            stride_h: sh as i32,
            filter_width: kw as i32,
            filter_height: kh as i32,
            activation: self.activation(),
        };
        let op = if self.random.below(2) == 0 {
            Op::AveragePool2d(options)
        } else {
            Op::MaxPool2d(options)
        };
        let shape = [n, Self::windows(padding, h, kh, sh), Self::windows(padding, w, kw, sw), c];
        let (current, q) = (self.current, self.q);
        self.push(op, &[current], &shape, q);
    }

    /// Operators that keep every element.
    fn movement(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let rank = shape.len();
        let axis = self.random.below(rank);
        match self.random.below(6) {
            0 => {
                let flat = [shape[0], shape[1..].iter().product()];
                let new_shape = Some(flat.iter().map(|&dim| dim as i32).collect());
                self.push(Op::Reshape(ReshapeOptions { new_shape }), &[current], &flat, q);
            }
            1 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                perm.rotate_left(axis);
                let order: Vec<i32> = perm.iter().map(|&p| p as i32).collect();
                let order = self.graph.constant_i32("perm", &[rank], &order);
                let moved: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
                self.push(Op::Transpose, &[current, order], &moved, q);
            }
            2 => {
                let count = 1 + self.random.below(7);
                let mut joined = shape.clone();
                joined[axis] *= count;
                let options =
                    ConcatenationOptions { axis: axis as i32, activation: Activation::None };
                self.push(Op::Concatenation(options), &vec![current; count], &joined, q);
            }
            3 => {
                let pads: Vec<i32> = (0..2 * rank).map(|_| self.random.below(3) as i32).collect();
                let padded: Vec<usize> = (0..rank)
                    .map(|i| shape[i] + pads[2 * i] as usize + pads[2 * i + 1] as usize)
                    .collect();
                let pads = self.graph.constant_i32("pads", &[rank, 2], &pads);
                self.push(Op::Pad, &[current, pads], &padded, q);
            }
            4 if rank < 5 => {
                let count = 1 + self.random.below(3);
                let mut packed = shape.clone();
                packed.insert(axis, count);
                let options = PackOptions { values_count: count as i32, axis: axis as i32 };
                self.push(Op::Pack(options), &vec![current; count], &packed, q);
            }
            _ => {
                let multiples: Vec<i32> =
                    (0..rank).map(|_| 1 + self.random.below(2) as i32).collect();
                let tiled: Vec<usize> =
                    shape.iter().zip(&multiples).map(|(&d, &m)| d * m as usize).collect();
                let multiples = self.graph.constant_i32("multiples", &[rank], &multiples);
                self.push(Op::Tile, &[current, multiples], &tiled, q);
            }
        }
    }

    fn slices(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let rank = shape.len();
        let begins: Vec<usize> = shape.iter().map(|&dim| self.random.below(dim)).collect();
        let sizes: Vec<usize> = shape
            .iter()
            .zip(&begins)
            .map(|(&dim, &begin)| 1 + self.random.below(dim - begin))
            .collect();
        let begin = self.graph.constant_i32("begin", &[rank], &ints(&begins));
        match self.random.below(3) {
            0 => {
                let size = self.graph.constant_i32("size", &[rank], &ints(&sizes));
                self.push(Op::Slice, &[current, begin, size], &sizes, q);
            }
            1 => {
                let ends: Vec<usize> = begins.iter().zip(&sizes).map(|(b, s)| b + s).collect();
                let end = self.graph.constant_i32("end", &[rank], &ints(&ends));
                let strides = self.graph.constant_i32("strides", &[rank], &vec![1; rank]);
                let options = StridedSliceOptions::default();
                self.push(Op::StridedSlice(options), &[current, begin, end, strides], &sizes, q);
            }
            _ => {
                let axis = self.random.below(rank);
                let parts = (1..=shape[axis].min(6)).rev().find(|n| shape[axis] % n == 0).unwrap();
                let at = self.graph.constant_i32("axis", &[], &[axis as i32]);
                let mut part = shape.clone();
                part[axis] /= parts;
                let outputs: Vec<TensorId> = (0..parts).map(|_| self.result(&part, q)).collect();
                let options = SplitOptions { num_splits: parts as i32 };
                self.graph.op(Op::Split(options), &[at, current], &outputs);
                (self.current, self.shape) = (outputs[parts - 1], part);
            }
        }
    }

    fn reduce(&mut self) {
        let options = ReducerOptions { keep_dims: self.random.below(2) == 0 };
        let keep = options.keep_dims;
        let ops =
            [Op::Mean(options.clone()), Op::ReduceMax(options.clone()), Op::ReduceMin(options)];
        let op = ops[self.random.below(ops.len())].clone();
        let rank = self.shape.len();
        let axes: Vec<usize> = (0..rank).filter(|_| self.random.below(2) == 0).collect();
        // A scalar is nothing to go on with.
        if axes.is_empty() || axes.len() == rank {
            return;
        }
        let shape: Vec<usize> = (0..rank)
            .filter_map(|i| match axes.contains(&i) {
                true => keep.then_some(1),
                false => Some(self.shape[i]),
            })
            .collect();
        let ints: Vec<i32> = axes.iter().map(|&a| a as i32).collect();
        let axes = self.graph.constant_i32("axes", &[ints.len()], &ints);
        let (current, q) = (self.current, self.q);
        let q = if matches!(op, Op::Mean(_)) { self.quantization() } else { q };
        self.push(op, &[current, axes], &shape, q);
    }

    fn fully_connected(&mut self) {
        let inputs: usize = *self.shape.last().unwrap();
        let outputs = 1 + self.random.below(10);
        let keep_num_dims = self.random.below(2) == 0;
        let (filter, scale) = self.weights(&[outputs, inputs]);
        let bias = self.bias(outputs, scale);
        let mut shape = self.shape.clone();
        *shape.last_mut().unwrap() = outputs;
        if !keep_num_dims {
            shape = vec![self.shape.iter().product::<usize>() / inputs, outputs];
        }
        let options = FullyConnectedOptions {
            activation: self.activation(),
            keep_num_dims,
            ..FullyConnectedOptions::default()
        };
        let q = self.quantization();
        let current = self.current;
        self.push(Op::FullyConnected(options), &[current, filter, bias], &shape, q);
    }

    fn resize(&mut self) {
        let size = [1, 2].map(|_| 1 + self.random.below(12));
        let options = match self.random.below(3) {
            0 => ResizeOptions { align_corners: true, half_pixel_centers: false },
            1 => ResizeOptions { align_corners: false, half_pixel_centers: true },
            _ => ResizeOptions { align_corners: false, half_pixel_centers: false },
        };
        let shape = [self.shape[0], size[0], size[1], self.shape[3]];
        let size = self.graph.constant_i32("size", &[2], &size.map(|s| s as i32));
        let (current, q) = (self.current, self.q);
        let op = if self.random.below(3) == 0 {
            Op::ResizeNearestNeighbor(options)
        } else {
            Op::ResizeBilinear(options)
        };
        self.push(op, &[current, size], &shape, q);
    }

    fn softmax(&mut self) {
        let beta = [1.0, 1.0, 0.5][self.random.below(3)];
        let (current, shape, q) = (self.current, self.shape.clone(), self.unit());
        self.push(Op::Softmax(SoftmaxOptions { beta }), &[current], &shape, q);
    }

    fn transpose_conv(&mut self) {
        let [n, h, w, c] = <[usize; 4]>::try_from(self.shape.clone()).unwrap();
        let stride = 1 + self.random.below(2);
        let kernel = stride + self.random.below(3);
        let outputs = 1 + self.random.below(6);
        let padding = if self.random.below(2) == 0 { Padding::Same } else { Padding::Valid };
        let side = |from: usize| match padding {
            Padding::Same => from * stride,
            Padding::Valid => (from - 1) * stride + kernel,
        };
        let shape = [n, side(h), side(w), outputs];
        let target = self.graph.constant_i32("shape", &[4], &shape.map(|d| d as i32));
        let (filter, scale) = self.weights(&[outputs, kernel, kernel, c]);
        let bias = self.bias(outputs, scale);
        let options = TransposeConvOptions {
            padding,
            stride_w: stride as i32,
            stride_h: stride as i32,
            ..TransposeConvOptions::default()
        };
        let q = self.quantization();
        let current = self.current;
        self.push(Op::TransposeConv(options), &[target, filter, current, bias], &shape, q);
    }

    fn blocks(&mut self) {
        let [n, h, w, c] = <[usize; 4]>::try_from(self.shape.clone()).unwrap();
        let block = 2;
        let options = BlockOptions { block_size: block as i32 };
        let (current, q) = (self.current, self.q);
        if c % (block * block) == 0 {
            let shape = [n, h * block, w * block, c / (block * block)];
            self.push(Op::DepthToSpace(options), &[current], &shape, q);
        } else if h % block == 0 && w % block == 0 {
            let shape = [n, h / block, w / block, c * block * block];
            self.push(Op::SpaceToDepth(options), &[current], &shape, q);
        }
    }
}
