//! Functions of each element, or of the elements of two operands.

use xnn_model::TensorId;
use xnn_model::op::{ArithmeticOptions, Op};

use super::{Generator, asymmetric};

impl Generator {
    pub fn unary(&mut self, op: Op) {
        let (current, q) = (self.current, self.quantization());
        self.push(op, &[current], q);
    }

    /// A function whose results are in a range of its own, in 256 steps.
    pub fn bounded(&mut self, op: Op, low: f32, high: f32) {
        let scale = (high - low) / 256.0;
        let (least, most) = super::limits(self.dtype);
        let zero_point = if high == 0.0 { most } else { least - (low / scale) as i64 };
        let current = self.current;
        self.push(op, &[current], (scale, zero_point));
    }

    pub fn arithmetic(&mut self) -> ArithmeticOptions {
        ArithmeticOptions { activation: self.activation(), ..ArithmeticOptions::default() }
    }

    /// The shape of an operand that broadcasts with the current one.
    fn other_shape(&mut self) -> Vec<usize> {
        let mut other = self.shape.clone();
        for dim in &mut other {
            if *dim == 1 {
                *dim = self.of(&[1, 1, 3]);
            } else if self.one_in(3) {
                *dim = 1;
            }
        }
        let dropped = if self.one_in(3) { self.axis() } else { 0 };
        other.split_off(dropped)
    }

    /// Both operands have any range, in either order.
    pub fn binary(&mut self, op: Op) {
        let shape = self.other_shape();
        let q = self.scale_for(None);
        let other = self.operand(&shape, None, q);
        let mut inputs = [self.current, other];
        if self.one_in(4) {
            inputs.reverse();
        }
        let q = self.quantization();
        self.push(op, &inputs, q);
    }

    /// The second operand is in a range.
    pub fn binary_by(&mut self, op: Op, values: (f32, f32)) {
        let shape = self.other_shape();
        let other = self.operand(&shape, Some(values), asymmetric(self.dtype, values));
        let (current, q) = (self.current, self.quantization());
        self.push(op, &[current, other], q);
    }

    /// One of two elements: all have one quantization.
    pub fn choice(&mut self, op: Op) {
        let (shape, q) = (self.other_shape(), self.q);
        let other = self.operand(&shape, None, q);
        let current = self.current;
        self.push(op, &[current, other], q);
    }

    /// Both operands have one shape.
    pub fn with_like(&mut self, op: Op) {
        let (current, shape, q) = (self.current, self.shape.clone(), self.q);
        let other = self.operand(&shape, None, q);
        self.push(op, &[current, other], q);
    }

    pub fn add_n(&mut self) {
        let (shape, q) = (self.shape.clone(), self.q);
        let mut inputs: Vec<TensorId> = vec![self.current];
        for _ in 0..self.random.below(5) {
            inputs.push(self.operand(&shape, None, q));
        }
        self.push(Op::AddN, &inputs, q);
    }

    /// The divisor is a constant of powers of two.
    pub fn floor_div(&mut self) {
        let (current, q) = (self.current, self.q);
        let shape = if self.one_in(2) { self.shape.clone() } else { self.channels() };
        let powers = [-4.0, -0.5, 0.125, 0.5, 1.0, 2.0, 8.0];
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|_: usize| self.of(&powers)).collect();
        let divisor = self.graph.constant_f32("c", &shape, &values);
        self.push(Op::FloorDiv, &[current, divisor], q);
    }

    /// The divisor is a constant that stays away from zero, on either side of it.
    pub fn floor_mod(&mut self) {
        let (current, q) = (self.current, self.q);
        let shape = if self.one_in(2) { self.shape.clone() } else { self.channels() };
        let values = self.of(&[(0.4, 3.0), (-3.0, -0.4)]);
        let divisor = self.constant(&shape, Some(values), q);
        self.push(Op::FloorMod, &[current, divisor], q);
    }

    pub fn prelu(&mut self) {
        let mut shape = self.channels();
        if self.one_in(2) {
            shape = [vec![1; self.rank() - 1], shape].concat();
        }
        let values = (-0.4, 0.9);
        let slopes = self.constant(&shape, Some(values), asymmetric(self.dtype, values));
        let (current, q) = (self.current, self.quantization());
        self.push(Op::Prelu, &[current, slopes], q);
    }

    /// The shape of one element for each channel.
    pub fn channels(&self) -> Vec<usize> {
        self.shape.last().copied().into_iter().collect()
    }
}
