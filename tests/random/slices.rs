//! Parts of a tensor, in their order or in another.

use xnn_model::op::{
    GatherOptions, MirrorPadOptions, Op, SplitOptions, StridedSliceOptions, UnpackOptions,
};

use super::{Generator, ints};

impl Generator {
    /// A box inside the current tensor: where it begins, and its size.
    fn inside(&mut self) -> (Vec<usize>, Vec<usize>) {
        let dims = self.shape.clone();
        let begins: Vec<usize> = dims.iter().map(|&dim| self.random.below(dim)).collect();
        let sizes = dims.iter().zip(&begins).map(|(dim, begin)| self.between(1, dim - begin));
        let sizes = sizes.collect();
        (begins, sizes)
    }

    pub fn slice(&mut self) {
        let (begins, sizes) = self.inside();
        let sizes: Vec<i32> =
            ints(&sizes).into_iter().map(|size| if self.one_in(5) { -1 } else { size }).collect();
        let (begin, size) = (self.ints(&ints(&begins)), self.ints(&sizes));
        let (current, q) = (self.current, self.q);
        self.push(Op::Slice, &[current, begin, size], q);
    }

    /// Steps forwards and backwards, and all masks.
    pub fn strided_slice(&mut self) {
        let mut specification: [Vec<i32>; 3] = Default::default();
        let mut options = StridedSliceOptions::default();
        let skipped = if self.rank() > 1 && self.one_in(4) { Some(self.axis()) } else { None };
        for (axis, dim) in self.shape.clone().into_iter().enumerate() {
            let bit = 1 << specification[0].len();
            let (first, backwards) = (self.random.below(dim), self.one_in(4));
            let count = self.between(1, dim - first);
            let (mut step, last) = (self.between(1, 3) as i32, first + count - 1);
            let (mut begin, mut end) = (first as i32, last as i32 + 1);
            if backwards {
                step = -step;
                // An end before the first element has no number of its own.
                (begin, end) =
                    (last as i32, if first == 0 { -(dim as i32) - 1 } else { begin - 1 });
            }
            if skipped == Some(axis) {
                options.ellipsis_mask |= bit;
            } else if self.one_in(6) {
                options.shrink_axis_mask |= bit;
                (end, step) = (begin + 1, 1);
            } else {
                options.begin_mask |= if self.one_in(5) { bit } else { 0 };
                options.end_mask |= if self.one_in(5) { bit } else { 0 };
                if self.one_in(4) {
                    begin -= dim as i32;
                }
            }
            for (values, value) in specification.iter_mut().zip([begin, end, step]) {
                values.push(value);
            }
        }
        let rank = specification[0].len();
        if rank < 5 && self.one_in(4) {
            options.new_axis_mask |= 1 << rank;
            specification.iter_mut().for_each(|values| values.push(1));
        }
        let [begin, end, strides] = specification.map(|values| self.ints(&values));
        let (current, q) = (self.current, self.q);
        self.push(Op::StridedSlice(options), &[current, begin, end, strides], q);
    }

    pub fn split(&mut self) {
        let axis = self.axis();
        let dim = self.shape[axis];
        let parts: Vec<usize> =
            (1..=dim.min(6)).filter(|&parts| dim.is_multiple_of(parts)).collect();
        let parts = self.of(&parts);
        let axis = self.signed(axis, self.rank());
        let at = self.graph.constant_i32("axis", &[], &[axis]);
        let options = SplitOptions { num_splits: parts as i32 };
        let (current, q) = (self.current, self.q);
        self.push_parts(Op::Split(options), &[at, current], parts, q);
    }

    pub fn split_v(&mut self) {
        let axis = self.axis();
        let mut rest = self.shape[axis];
        let mut sizes = Vec::new();
        while rest > 0 {
            sizes.push(if sizes.len() == 5 { rest } else { self.between(1, rest) } as i32);
            rest -= sizes[sizes.len() - 1] as usize;
        }
        let parts = sizes.len();
        if self.one_in(3) {
            sizes[self.random.below(parts)] = -1;
        }
        let axis = self.signed(axis, self.rank());
        let (sizes, at) = (self.ints(&sizes), self.graph.constant_i32("axis", &[], &[axis]));
        let options = SplitOptions { num_splits: parts as i32 };
        let (current, q) = (self.current, self.q);
        self.push_parts(Op::SplitV(options), &[current, sizes, at], parts, q);
    }

    pub fn unpack(&mut self) {
        let axis = self.axis();
        let parts = self.shape[axis];
        let axis = self.signed(axis, self.rank());
        let options = UnpackOptions { num: parts as i32, axis };
        let (current, q) = (self.current, self.q);
        self.push_parts(Op::Unpack(options), &[current], parts, q);
    }

    /// Single places, every other one, frames of a signal, all of them twice.
    pub fn gather(&mut self) {
        let axis = self.axis();
        let dim = self.shape[axis];
        let count = self.between(1, 7);
        let (indices, shape): (Vec<usize>, Vec<usize>) = match self.random.below(5) {
            0 => ((0..dim).step_by(2).collect(), vec![dim.div_ceil(2)]),
            1 if dim > 4 => {
                let (step, width) = (self.between(1, 2), self.between(1, 3));
                let frames = (dim - width) / step + 1;
                let starts = (0..frames).map(|frame| frame * step);
                (starts.flat_map(|at| at..at + width).collect(), vec![frames, width])
            }
            2 => ((0..dim).chain(0..dim).collect(), vec![2 * dim]),
            3 => (vec![self.random.below(dim)], vec![]),
            _ => ((0..count).map(|_| self.random.below(dim)).collect(), vec![count]),
        };
        let indices = self.graph.constant_i32("indices", &shape, &ints(&indices));
        let axis = self.signed(axis, self.rank());
        let options = GatherOptions { axis, batch_dims: 0 };
        let (current, q) = (self.current, self.q);
        self.push(Op::Gather(options), &[current, indices], q);
    }

    pub fn reverse(&mut self) {
        let axis = self.axis();
        let axes = self.ints(&[axis as i32]);
        let (current, q) = (self.current, self.q);
        self.push(Op::ReverseV2, &[current, axes], q);
    }

    pub fn mirror_pad(&mut self) {
        let symmetric = self.one_in(2);
        let mut pads = Vec::new();
        for dim in self.shape.clone() {
            let most = if symmetric { dim } else { dim - 1 }.min(3);
            pads.extend([self.random.below(most + 1), self.random.below(most + 1)]);
        }
        let pads = self.graph.constant_i32("pads", &[self.rank(), 2], &ints(&pads));
        let (current, q) = (self.current, self.q);
        self.push(Op::MirrorPad(MirrorPadOptions { symmetric }), &[current, pads], q);
    }

    /// A box replaced at a place that is known; one that would stick out is moved.
    pub fn update(&mut self) {
        let (_, part) = self.inside();
        let (current, q) = (self.current, self.q);
        let update = self.operand(&part, None, q);
        let dims = self.shape.clone();
        let starts: Vec<i32> =
            dims.iter().map(|&dim| self.random.below(dim + 2) as i32 - 1).collect();
        let starts = self.ints(&starts);
        self.push(Op::DynamicUpdateSlice, &[current, update, starts], q);
    }
}
