//! Operators that keep every element, or repeat it, or put others beside it.

use xnn_model::op::{
    Activation, BlockOptions, ConcatenationOptions, Op, PackOptions, ReshapeOptions, SqueezeOptions,
};
use xnn_model::{DType, TensorId};

use super::{Generator, ints};

impl Generator {
    fn like_current(&mut self, shape: &[usize]) -> TensorId {
        if *shape == *self.shape && self.one_in(4) {
            return self.current;
        }
        self.operand(shape, None, self.q)
    }

    pub fn concatenation(&mut self) {
        let (axis, q) = (self.axis(), self.q);
        let mut inputs = vec![self.current];
        for _ in 0..self.random.below(7) {
            let mut shape = self.shape.clone();
            shape[axis] = self.between(1, 5);
            // Interpreters requantize unsigned operands.
            inputs.push(if self.dtype == DType::U8 && self.one_in(3) {
                let q = self.scale_for(None);
                self.operand(&shape, None, q)
            } else {
                self.like_current(&shape)
            });
        }
        let axis = self.signed(axis, self.rank());
        let options = ConcatenationOptions { axis, activation: Activation::None };
        self.push(Op::Concatenation(options), &inputs, q);
    }

    pub fn pack(&mut self) {
        let (shape, q) = (self.shape.clone(), self.q);
        let axis = self.random.below(self.rank() + 1);
        let mut inputs = vec![self.current];
        for _ in 0..self.random.below(5) {
            inputs.push(self.like_current(&shape));
        }
        let axis = self.signed(axis, self.rank() + 1);
        let options = PackOptions { values_count: inputs.len() as i32, axis };
        self.push(Op::Pack(options), &inputs, q);
    }

    pub fn reshape(&mut self) {
        let mut factors: Vec<usize> = self.shape.iter().copied().filter(|&dim| dim > 1).collect();
        let mut shape = vec![1; self.between(1, 6)];
        while !factors.is_empty() {
            let factor = factors.swap_remove(self.random.below(factors.len()));
            let place = self.random.below(shape.len());
            shape[place] *= factor;
        }
        let mut shape = ints(&shape);
        if self.one_in(3) {
            let inferred = self.random.below(shape.len());
            shape[inferred] = -1;
        }
        let (current, q) = (self.current, self.q);
        if self.one_in(2) {
            let shape = self.ints(&shape);
            self.push(Op::Reshape(ReshapeOptions { new_shape: None }), &[current, shape], q);
        } else {
            self.push(Op::Reshape(ReshapeOptions { new_shape: Some(shape) }), &[current], q);
        }
    }

    pub fn expand_dims(&mut self) {
        let axis = self.random.below(self.rank() + 1);
        let axis = self.signed(axis, self.rank() + 1);
        let axis = self.graph.constant_i32("axis", &[], &[axis]);
        let (current, q) = (self.current, self.q);
        self.push(Op::ExpandDims, &[current, axis], q);
    }

    pub fn squeeze(&mut self) {
        let ones: Vec<usize> = (0..self.rank()).filter(|&axis| self.shape[axis] == 1).collect();
        let named = self.random.below(ones.len() + 1);
        let squeeze_dims = ints(&ones[..named]);
        let (current, q) = (self.current, self.q);
        self.push(Op::Squeeze(SqueezeOptions { squeeze_dims }), &[current], q);
    }

    pub fn transpose(&mut self) {
        let mut rest: Vec<usize> = (0..self.rank()).collect();
        let mut order = Vec::new();
        while !rest.is_empty() {
            order.push(rest.swap_remove(self.random.below(rest.len())));
        }
        let order = self.ints(&ints(&order));
        let (current, q) = (self.current, self.q);
        self.push(Op::Transpose, &[current, order], q);
    }

    pub fn tile(&mut self) {
        let multiples: Vec<i32> = (0..self.rank()).map(|_| self.of(&[1, 1, 2, 3])).collect();
        let multiples = self.ints(&multiples);
        let (current, q) = (self.current, self.q);
        self.push(Op::Tile, &[current, multiples], q);
    }

    pub fn broadcast_to(&mut self) {
        let leading = self.random.below(7 - self.rank()).min(2);
        let mut shape: Vec<usize> = (0..leading).map(|_| self.between(1, 3)).collect();
        for dim in self.shape.clone() {
            shape.push(if dim == 1 { self.between(1, 4) } else { dim });
        }
        let shape = self.ints(&ints(&shape));
        let (current, q) = (self.current, self.q);
        self.push(Op::BroadcastTo, &[current, shape], q);
    }

    /// The current tensor has one element.
    pub fn fill(&mut self) {
        let rank = self.between(1, 5);
        let shape: Vec<usize> = (0..rank).map(|_| self.between(1, 5)).collect();
        let shape = self.ints(&ints(&shape));
        let (current, q) = (self.current, self.q);
        self.push(Op::Fill, &[shape, current], q);
    }

    pub fn pad(&mut self, op: Op) {
        let rank = self.rank();
        let pads: Vec<i32> = (0..2 * rank).map(|_| self.random.below(3) as i32).collect();
        let pads = self.graph.constant_i32("pads", &[rank, 2], &pads);
        let q = self.q;
        let mut inputs = vec![self.current, pads];
        if op == Op::PadV2 {
            inputs.push(self.constant(&[], None, q));
        }
        self.push(op, &inputs, q);
    }

    /// A block size of which `fits` holds; 1 does.
    fn block(&mut self, fits: impl Fn(usize) -> bool) -> usize {
        let blocks: Vec<usize> = (1..=3).filter(|&block| fits(block)).collect();
        self.of(&blocks)
    }

    pub fn depth_to_space(&mut self) {
        let [.., channels] = self.image();
        let block = self.block(|block| channels.is_multiple_of(block * block));
        let options = BlockOptions { block_size: block as i32 };
        let (current, q) = (self.current, self.q);
        self.push(Op::DepthToSpace(options), &[current], q);
    }

    pub fn space_to_depth(&mut self) {
        let [_, height, width, _] = self.image();
        let divides = |block: usize| height.is_multiple_of(block) && width.is_multiple_of(block);
        let options = BlockOptions { block_size: self.block(divides) as i32 };
        let (current, q) = (self.current, self.q);
        self.push(Op::SpaceToDepth(options), &[current], q);
    }

    pub fn space_to_batch(&mut self) {
        let [_, height, width, _] = self.image();
        let block = [self.between(1, 3), self.between(1, 3)];
        let mut border = Vec::new();
        for (size, block) in [height, width].into_iter().zip(block) {
            let before = self.random.below(3);
            border.extend([before, (size + before).next_multiple_of(block) - size - before]);
        }
        self.batch_blocks(Op::SpaceToBatchNd, block, &border);
    }

    pub fn batch_to_space(&mut self) {
        let [batch, ..] = self.image();
        let rows = self.block(|block| batch.is_multiple_of(block));
        let columns = self.block(|block| batch.is_multiple_of(rows * block));
        let crops = [self.random.below(rows), 0, 0, self.random.below(columns)];
        self.batch_blocks(Op::BatchToSpaceNd, [rows, columns], &crops);
    }

    fn batch_blocks(&mut self, op: Op, block: [usize; 2], border: &[usize]) {
        let block = self.ints(&ints(&block));
        let border = self.graph.constant_i32("border", &[2, 2], &ints(border));
        let (current, q) = (self.current, self.q);
        self.push(op, &[current, block, border], q);
    }
}
