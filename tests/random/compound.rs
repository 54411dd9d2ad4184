//! Operators that become several nodes each.

use xnn_model::op::{
    CumsumOptions, FakeQuantOptions, GatherOptions, InstanceNormOptions,
    LocalResponseNormalizationOptions, MirrorPadOptions, Op, Pool2dOptions, ReducerOptions,
    RmsNormOptions, RopeOptions, StridedSliceOptions,
};
use xnn_model::{DType, TensorId};

use super::{Generator, ints};

impl Generator {
    /// Slices in another order.
    pub fn picks(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let axis = self.random.below(shape.len());
        match self.random.below(4) {
            0 => {
                let count = 1 + self.random.below(7);
                let picked: Vec<usize> = match self.random.below(4) {
                    0 => (0..count).map(|_| self.random.below(shape[axis])).collect(),
                    1 => (0..shape[axis]).step_by(2).collect(),
                    2 if shape[axis] > 8 => {
                        let (step, width) = (1 + self.random.below(2), 1 + self.random.below(3));
                        let last = shape[axis] - width;
                        (0..=last).step_by(step).flat_map(|at| at..at + width).collect()
                    }
                    _ => (0..shape[axis]).chain(0..shape[axis]).collect(),
                };
                let mut gathered = shape;
                gathered[axis] = picked.len();
                let indices = self.graph.constant_i32("indices", &[picked.len()], &ints(&picked));
                let options = GatherOptions { axis: axis as i32, batch_dims: 0 };
                self.push(Op::Gather(options), &[current, indices], &gathered, q);
            }
            1 => {
                let axes = self.graph.constant_i32("axes", &[1], &[axis as i32]);
                self.push(Op::ReverseV2, &[current, axes], &shape, q);
            }
            2 => self.strided_slice(),
            _ => {
                let symmetric = self.random.below(2) == 0;
                let most = |dim: usize| if symmetric { dim } else { dim - 1 };
                let pads: Vec<usize> = shape
                    .iter()
                    .flat_map(|&dim| [dim; 2])
                    .map(|dim| self.random.below(most(dim).min(3) + 1))
                    .collect();
                let padded: Vec<usize> =
                    shape.iter().zip(pads.chunks(2)).map(|(dim, p)| dim + p[0] + p[1]).collect();
                let pads = self.graph.constant_i32("pads", &[shape.len(), 2], &ints(&pads));
                let options = MirrorPadOptions { symmetric };
                self.push(Op::MirrorPad(options), &[current, pads], &padded, q);
            }
        }
    }

    /// Steps forwards and backwards.
    fn strided_slice(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let rank = shape.len();
        let mut specification: [Vec<i32>; 3] = Default::default();
        let mut sliced = Vec::new();
        for &dim in &shape {
            let first = self.random.below(dim);
            let count = 1 + self.random.below(dim - first);
            let step = 1 + self.random.below(3);
            let backwards = self.random.below(4) == 0;
            let last = first + count - 1;
            let (begin, end) = if backwards {
                // An end before the first element has no number of its own.
                (last as i32, if first == 0 { -(dim as i32) - 1 } else { first as i32 - 1 })
            } else {
                (first as i32, last as i32 + 1)
            };
            let step_or_back = if backwards { -(step as i32) } else { step as i32 };
            for (values, value) in specification.iter_mut().zip([begin, end, step_or_back]) {
                values.push(value);
            }
            sliced.push(count.div_ceil(step));
        }
        let [begin, end, strides] =
            specification.map(|values| self.graph.constant_i32("bounds", &[rank], &values));
        let op = Op::StridedSlice(StridedSliceOptions::default());
        self.push(op, &[current, begin, end, strides], &sliced, q);
    }

    /// A box replaced at a place that is known.
    pub fn update(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let part: Vec<usize> = shape.iter().map(|&dim| 1 + self.random.below(dim)).collect();
        let data = self.random.tensor(self.dtype, part.iter().product());
        let update = self.graph.constant("update", self.dtype, &part, data);
        self.mark(update, q);
        let starts: Vec<i32> =
            shape.iter().map(|&dim| self.random.below(dim + 2) as i32 - 1).collect();
        let starts = self.graph.constant_i32("starts", &[shape.len()], &starts);
        self.push(Op::DynamicUpdateSlice, &[current, update, starts], &shape, q);
    }

    /// Where the extremes are; the results lead nowhere.
    pub fn arg_reduce(&mut self) {
        let axis = self.random.below(self.shape.len());
        let mut shape = self.shape.clone();
        shape.remove(axis);
        let at = self.graph.constant_i32("axis", &[], &[axis as i32]);
        let places = self.graph.tensor("places", DType::I32, &shape);
        let options = xnn_model::op::ArgMinMaxOptions { output_type: DType::I32 };
        let op = if self.random.below(2) == 0 { Op::ArgMax(options) } else { Op::ArgMin(options) };
        self.graph.op(op, &[self.current, at], &[places]).output(places);
    }

    /// What only floats have.
    pub fn float_compound(&mut self) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let rank = shape.len();
        let channels = shape[rank - 1];
        let axis = self.random.below(rank);
        match self.random.below(10) {
            0 => {
                let others = [self.constant(&shape), self.constant(&shape)];
                self.push(Op::AddN, &[current, others[0], others[1]], &shape, q);
            }
            1 => {
                let other = self.constant(&[channels]);
                self.push(Op::FloorMod, &[current, other], &shape, q);
            }
            2 => {
                let (num_bits, narrow_range) =
                    (2 + self.random.below(15) as i32, self.random.below(2) == 0);
                let options = FakeQuantOptions { min: -0.7, max: 0.9, num_bits, narrow_range };
                self.push(Op::FakeQuant(options), &[current], &shape, q);
            }
            3 => {
                let at = self.graph.constant_i32("axis", &[], &[axis as i32]);
                let (exclusive, reverse) = (self.random.below(2) == 0, self.random.below(2) == 0);
                let op = Op::Cumsum(CumsumOptions { exclusive, reverse });
                self.push(op, &[current, at], &shape, q);
            }
            4 => {
                let axes = self.graph.constant_i32("axes", &[1], &[axis as i32]);
                let mut kept = shape;
                kept[axis] = 1;
                let op = Op::ReduceProd(ReducerOptions { keep_dims: true });
                self.push(op, &[current, axes], &kept, q);
            }
            5 if rank == 4 => {
                let (padding, [kh, kw], [sh, sw]) = self.window();
                let [h, w] = [(shape[1], kh, sh), (shape[2], kw, sw)]
                    .map(|(size, window, stride)| Self::windows(padding, size, window, stride));
                let options = Pool2dOptions {
                    padding,
                    stride_w: sw as i32,
                    stride_h: sh as i32,
                    filter_width: kw as i32,
                    filter_height: kh as i32,
                    activation: self.activation(),
                };
                self.push(Op::L2Pool2d(options), &[current], &[shape[0], h, w, channels], q);
            }
            6 if rank == 4 => {
                let options = LocalResponseNormalizationOptions {
                    radius: 1 + self.random.below(4) as i32,
                    bias: 1.0,
                    alpha: 0.3,
                    beta: 0.75,
                };
                self.push(Op::LocalResponseNormalization(options), &[current], &shape, q);
            }
            7 if rank == 4 => {
                let parameters = [self.constant(&[channels]), self.constant(&[channels])];
                let options = InstanceNormOptions { epsilon: 1e-2, activation: self.activation() };
                let inputs = [current, parameters[0], parameters[1]];
                self.push(Op::InstanceNorm(options), &inputs, &shape, q);
            }
            8 => {
                let gain = self.constant(&[channels]);
                let op = Op::RmsNorm(RmsNormOptions { epsilon: 1e-3 });
                self.push(op, &[current, gain], &shape, q);
            }
            _ if channels % 2 == 0 => {
                let outermost = self.random.below(rank);
                let table = &shape[outermost..];
                let tables = [self.constant(table), self.constant(table)];
                let op = Op::Rope(RopeOptions { interleaved: self.random.below(2) == 0 });
                self.push(op, &[current, tables[0], tables[1]], &shape, q);
            }
            _ => {}
        }
    }

    fn constant(&mut self, shape: &[usize]) -> TensorId {
        let data = self.random.f32s(shape.iter().product(), -1.0, 1.0);
        self.graph.constant_f32("c", shape, &data)
    }
}
