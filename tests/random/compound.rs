//! Normalizations, rotations, choices, and conversions between types.

use xnn_model::DType;
use xnn_model::op::{
    CastOptions, InstanceNormOptions, LocalResponseNormalizationOptions, Op, RmsNormOptions,
    RopeOptions,
};

use super::Generator;

impl Generator {
    pub fn instance_norm(&mut self) {
        let (current, channels, q) = (self.current, self.channels(), self.q);
        let parameters = [self.operand(&channels, None, q), self.constant(&channels, None, q)];
        let options = InstanceNormOptions { epsilon: 1e-2, activation: self.activation() };
        self.push(Op::InstanceNorm(options), &[current, parameters[0], parameters[1]], q);
    }

    pub fn rms_norm(&mut self) {
        let (current, channels, q) = (self.current, self.channels(), self.q);
        let gain = self.operand(&channels, None, q);
        self.push(Op::RmsNorm(RmsNormOptions { epsilon: 1e-3 }), &[current, gain], q);
    }

    pub fn local_response(&mut self) {
        let options = LocalResponseNormalizationOptions {
            radius: self.between(1, 9) as i32,
            bias: 1.0,
            alpha: 0.1 + 0.9 * self.chance(),
            beta: self.of(&[0.5, 0.75, 1.0]),
        };
        let (current, q) = (self.current, self.q);
        self.push(Op::LocalResponseNormalization(options), &[current], q);
    }

    /// Tables of the innermost dimensions.
    pub fn rope(&mut self) {
        let (current, q) = (self.current, self.q);
        let outermost = self.axis();
        let table = self.shape[outermost..].to_vec();
        let tables = [0; 2].map(|_| self.operand(&table, Some((-1.0, 1.0)), q));
        let op = Op::Rope(RopeOptions { interleaved: self.one_in(2) });
        self.push(op, &[current, tables[0], tables[1]], q);
    }

    /// Constants of the current shape, one of which is chosen by truth values from outside.
    pub fn select(&mut self, op: Op) {
        let (shape, q) = (self.shape.clone(), self.q);
        let data = self.random.tensor(DType::Bool, shape.iter().product());
        let condition = self.graph.input("condition", DType::Bool, &shape);
        self.inputs.insert(condition, data);
        let branches = [0; 2].map(|_| {
            let is_scalar = op == Op::SelectV2 && self.one_in(3);
            self.constant(if is_scalar { &[] } else { &shape }, None, q)
        });
        self.push(op, &[condition, branches[0], branches[1]], q);
    }

    /// Floats, or the other type of 8 bits, or other steps of the same.
    pub fn quantize(&mut self) {
        let (shape, to) = (self.shape.clone(), self.dtype);
        let (_, q) = (self.current, self.scale_for(None));
        let from = self.of(&[DType::F32, DType::I8, DType::U8]);
        self.dtype = from;
        let source = if from == to {
            self.current
        } else {
            let q = self.scale_for(None);
            self.input(&shape, None, q)
        };
        self.dtype = to;
        self.push(Op::Quantize, &[source], q);
    }

    pub fn dequantize(&mut self) {
        let current = self.current;
        self.dtype = DType::F32;
        self.push(Op::Dequantize, &[current], (1.0, 0));
    }

    /// Numbers that stand for themselves.
    pub fn cast(&mut self) {
        let shape = self.shape.clone();
        let (from, to) = match self.dtype {
            DType::F32 => self.of(&[
                (DType::F32, DType::F32),
                (DType::F32, DType::F16),
                (DType::F16, DType::F32),
                (DType::I32, DType::F32),
                (DType::Bool, DType::F32),
            ]),
            dtype => (dtype, DType::F32),
        };
        let source = self.graph.input("x", from, &shape);
        let data = self.random.tensor(from, shape.iter().product());
        self.inputs.insert(source, data);
        self.push_leaf(Op::Cast(CastOptions { from, to }), &[source], to);
    }
}
