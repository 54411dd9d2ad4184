//! Windows, sums and extremes.

use xnn_model::DType;
use xnn_model::op::{CumsumOptions, Op, Padding, Pool2dOptions, ReducerOptions, ResizeOptions};

use super::Generator;

impl Generator {
    pub fn pool(&mut self, op: fn(Pool2dOptions) -> Op) {
        let (padding, window) = (self.padding(), self.window());
        let window = if self.one_in(5) { [self.shape[1], self.shape[2]] } else { window };
        // Windows with pixels between them must lie inside the image.
        let apart = usize::from(padding == Padding::Valid);
        let [sh, sw] = window.map(|window| self.between(1, (window + apart).min(3)) as i32);
        let [kh, kw] = window.map(|window| window as i32);
        let options = Pool2dOptions {
            padding,
            stride_w: sw,
            stride_h: sh,
            filter_width: kw,
            filter_height: kh,
            activation: self.activation(),
        };
        let (current, q) = (self.current, self.q);
        self.push(op(options), &[current], q);
    }

    pub fn resize(&mut self, op: fn(ResizeOptions) -> Op) {
        let size = [1, 2].map(|_| self.between(1, 12) as i32);
        let (align_corners, half_pixel_centers) =
            self.of(&[(true, false), (false, true), (false, false)]);
        let size = self.ints(&size);
        let (current, q) = (self.current, self.q);
        let op = op(ResizeOptions { align_corners, half_pixel_centers });
        self.push(op, &[current, size], q);
    }

    /// One axis or more, some counted from the end. Sums and means have a quantization of their own.
    pub fn reduce(&mut self, op: fn(ReducerOptions) -> Op) {
        let rank = self.rank();
        let first = self.axis();
        let axes: Vec<usize> = (0..rank).filter(|&axis| axis == first || self.one_in(2)).collect();
        let axes: Vec<i32> = axes.into_iter().map(|axis| self.signed(axis, rank)).collect();
        let axes = self.ints(&axes);
        let op = op(ReducerOptions { keep_dims: self.one_in(2) });
        let moves = matches!(op, Op::ReduceMax(_) | Op::ReduceMin(_));
        let (current, q) = (self.current, if moves { self.q } else { self.quantization() });
        self.push(op, &[current, axes], q);
    }

    /// Where the extremes are; the results lead nowhere.
    pub fn arg_reduce(&mut self, op: Op) {
        let axes: Vec<usize> = (0..self.rank()).filter(|&axis| self.shape[axis] > 1).collect();
        if axes.is_empty() {
            return;
        }
        let axis = self.of(&axes);
        let axis = self.signed(axis, self.rank());
        let at = self.graph.constant_i32("axis", &[], &[axis]);
        let current = self.current;
        self.push_leaf(op, &[current, at], DType::I32);
    }

    pub fn cumsum(&mut self) {
        let axis = self.axis();
        let exclusive = self.shape[axis] > 1 && self.one_in(2);
        let options = CumsumOptions { exclusive, reverse: self.one_in(2) };
        let axis = self.signed(axis, self.rank());
        let at = self.graph.constant_i32("axis", &[], &[axis]);
        let (current, q) = (self.current, self.q);
        self.push(Op::Cumsum(options), &[current, at], q);
    }
}
