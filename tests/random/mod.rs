//! Makes small random models: chains of operators, and single ones of a family.

#![allow(dead_code, reason = "no test uses all of it")]

mod compound;
mod elementwise;
mod layers;
mod moves;
mod shapes;
mod slices;
mod spatial;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use xnn_delegate::model::Subgraph;
use xnn_model::op::{Activation, Op};
use xnn_model::{DType, Tensor, TensorId, infer};
use xnn_testing::{GraphBuilder, Random, le_bytes};

#[allow(unused_imports, reason = "no test uses all of it")]
pub use table::{Family, Scheme, families};

use crate::runners::{Values, floats, in_real_numbers, run_reference};

/// A model, and elements for its inputs.
pub struct Case {
    pub graph: Subgraph,
    pub inputs: Values,
}

/// A model under construction.
pub struct Generator {
    random: Random,
    graph: GraphBuilder,
    /// Type of activations.
    dtype: DType,
    /// Type of weights, if it differs from the type of activations.
    weights: Option<DType>,
    /// The tensor that the next operator takes.
    current: TensorId,
    shape: Vec<usize>,
    /// Its scale and zero point, where it has some.
    q: (f32, i64),
    inputs: Values,
    /// Whether results have the widths that microkernels have tiles for, and those around them.
    at_tiles: bool,
}

/// One lane, those of narrow tiles, of vectors and of pairs of them, and one fewer or more.
pub const WIDTHS: [usize; 10] = [1, 2, 3, 7, 8, 16, 31, 32, 33, 64];

impl Generator {
    fn new(random: Random, dtype: DType, shape: Vec<usize>, values: Option<(f32, f32)>) -> Self {
        let graph = GraphBuilder::new("main");
        let (weights, current, inputs) = (None, 0, HashMap::new());
        let (q, at_tiles) = ((1.0, 0), false);
        let mut this = Self { random, graph, dtype, weights, current, shape, q, inputs, at_tiles };
        this.q = this.scale_for(values);
        let shape = this.shape.clone();
        this.current = this.input(&shape, values, this.q);
        this
    }

    /// A chain of one to five operators.
    pub fn model(seed: u64) -> Case {
        let mut random = Random::new(seed);
        let dtype = [DType::F32, DType::I8, DType::U8][random.below(3)];
        let shape = vec![
            1 + random.below(2),
            2 + random.below(8),
            2 + random.below(8),
            1 + random.below(9),
        ];
        let mut this = Self::new(random, dtype, shape, None);
        for _ in 0..=this.random.below(5) {
            this.operator();
        }
        while this.graph.graph().operators.is_empty() {
            this.operator();
        }
        let graph = this.graph.build();
        let is_read = |id| graph.operators.iter().any(|it| it.inputs.contains(&Some(id)));
        let results = graph.operators.iter().flat_map(|it| it.outputs.clone());
        let outputs = results.filter(|&id| !is_read(id)).collect();
        Case::new(Subgraph { outputs, ..graph }, this.inputs)
    }

    /// One operator of a family.
    pub fn case(family: &Family, scheme: Scheme, seed: u64) -> Case {
        Self::one(family, scheme, Random::new(seed), false)
    }

    /// One operator whose operands and results are as wide as the tiles of microkernels.
    pub fn case_at_tiles(family: &Family, scheme: Scheme, seed: u64) -> Case {
        Self::one(family, scheme, Random::new(seed), true)
    }

    fn one(family: &Family, scheme: Scheme, mut random: Random, at_tiles: bool) -> Case {
        loop {
            let mut shape = family.shapes.draw(&mut random);
            if at_tiles {
                family.shapes.widen(&mut shape, WIDTHS[random.below(WIDTHS.len())]);
            }
            let mut this = Self::new(random.clone(), scheme.activations(), shape, family.values);
            this.weights = Some(scheme.weights());
            this.at_tiles = at_tiles;
            (family.draw)(&mut this);
            // Where a family draws no operator for this shape, the next shape is tried.
            if let Some(operator) = this.graph.graph().operators.last() {
                let outputs = operator.outputs.clone();
                let mut case = Case::new(Subgraph { outputs, ..this.graph.build() }, this.inputs);
                if family.calibrated {
                    case.calibrate(&mut this.random);
                }
                return case;
            }
        }
    }

    fn operator(&mut self) {
        let group = table::GROUPS[self.random.below(table::GROUPS.len())];
        let family = &group[self.random.below(group.len())];
        let has_type = family.schemes.iter().any(|it| it.activations() == self.dtype);
        if family.continues(&self.shape) && (has_type || self.one_in(8)) {
            (family.draw)(self);
        }
    }

    fn is_float(&self) -> bool {
        self.dtype == DType::F32
    }

    fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Height and width, between batch and channels.
    fn image(&self) -> [usize; 4] {
        <[usize; 4]>::try_from(self.shape.as_slice()).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.random.below(times) == 0
    }

    /// A number from `low` to `high`.
    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.random.below(high - low + 1)
    }

    /// How many columns or channels a result has.
    fn width(&mut self, most: usize) -> usize {
        if self.at_tiles { self.of(&WIDTHS) } else { self.between(1, most) }
    }

    /// A number in 0..1.
    fn chance(&mut self) -> f32 {
        self.random.f32s(1, 0.0, 1.0)[0]
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len())]
    }

    fn axis(&mut self) -> usize {
        self.random.below(self.rank())
    }

    /// An axis, now and then counted from the end.
    fn signed(&mut self, axis: usize, rank: usize) -> i32 {
        axis as i32 - if self.one_in(3) { rank as i32 } else { 0 }
    }

    /// A scale between 2^-7 and 1, and a zero point.
    fn quantization(&mut self) -> (f32, i64) {
        let scale = (-7.0 * self.chance()).exp2();
        let zero_point = self.random.below(256) as i64;
        (scale, if self.dtype == DType::I8 { zero_point - 128 } else { zero_point })
    }

    /// Scale and zero point for these values; for any if there are none.
    fn scale_for(&mut self, values: Option<(f32, f32)>) -> (f32, i64) {
        match values {
            Some(values) => asymmetric(self.dtype, values),
            None if self.one_in(4) => self.quantization(),
            None => asymmetric(self.dtype, self.range()),
        }
    }

    /// A range around zero, or from zero as behind a RELU.
    fn range(&mut self) -> (f32, f32) {
        let low = if self.one_in(3) { 0.0 } else { -0.3 - 7.7 * self.chance() };
        (low, 0.3 + 7.7 * self.chance())
    }

    /// Elements in a range, or anywhere.
    fn elements(&mut self, shape: &[usize], values: Option<(f32, f32)>, q: (f32, i64)) -> Vec<u8> {
        let count = shape.iter().product();
        let (low, high) = match values {
            Some(values) => values,
            None if self.is_float() => self.range(),
            None => return self.random.tensor(self.dtype, count),
        };
        let reals = self.random.f32s(count, low, high);
        if self.is_float() {
            return le_bytes(&reals, |value| value.to_le_bytes());
        }
        let (least, most) = limits(self.dtype);
        let step = |real: f32| ((real / q.0).round() as i64 + q.1).clamp(least, most) as u8;
        reals.into_iter().map(step).collect()
    }

    fn input(&mut self, shape: &[usize], values: Option<(f32, f32)>, q: (f32, i64)) -> TensorId {
        let data = self.elements(shape, values, q);
        let id = self.graph.input("x", self.dtype, shape);
        self.mark(id, q);
        self.inputs.insert(id, data);
        id
    }

    fn constant(&mut self, shape: &[usize], values: Option<(f32, f32)>, q: (f32, i64)) -> TensorId {
        let data = self.elements(shape, values, q);
        let id = self.graph.constant("c", self.dtype, shape, data);
        self.mark(id, q);
        id
    }

    /// A constant or an input.
    fn operand(&mut self, shape: &[usize], values: Option<(f32, f32)>, q: (f32, i64)) -> TensorId {
        if self.one_in(2) { self.input(shape, values, q) } else { self.constant(shape, values, q) }
    }

    fn ints(&mut self, values: &[i32]) -> TensorId {
        self.graph.constant_i32("ints", &[values.len()], values)
    }

    fn mark(&mut self, id: TensorId, (scale, zero_point): (f32, i64)) {
        if !self.is_float() {
            self.graph.quantize(id, scale, zero_point);
        }
    }

    /// Appends an operator whose result is the next one's operand.
    fn push(&mut self, op: Op, inputs: &[TensorId], q: (f32, i64)) {
        self.push_parts(op, inputs, 1, q);
    }

    /// Appends an operator with several results, the last of which is the next one's operand.
    fn push_parts(&mut self, op: Op, inputs: &[TensorId], parts: usize, q: (f32, i64)) {
        let outputs: Vec<TensorId> = (0..parts).map(|_| self.result(self.dtype)).collect();
        for &output in &outputs {
            self.mark(output, q);
        }
        self.graph.op(op, inputs, &outputs);
        self.current = outputs[parts - 1];
        self.shape = self.inferred(self.current);
        self.q = q;
    }

    /// Appends an operator whose result leads nowhere.
    fn push_leaf(&mut self, op: Op, inputs: &[TensorId], dtype: DType) {
        let output = self.result(dtype);
        self.graph.op(op, inputs, &[output]);
    }

    /// A tensor whose shape follows from its operator.
    fn result(&mut self, dtype: DType) -> TensorId {
        self.graph.add(Tensor { shape: None, ..Tensor::new("t", dtype, &[]) })
    }

    fn inferred(&self, id: TensorId) -> Vec<usize> {
        let graph = self.graph.graph();
        let inferred =
            infer(graph.clone().into()).unwrap_or_else(|error| panic!("{error}: {graph:?}"));
        inferred.subgraph.tensor(id).shape.clone().unwrap()
    }

    fn activation(&mut self) -> Activation {
        use Activation::{None, Relu, Relu6, ReluN1To1};
        self.of(&[None, None, Relu, Relu6, ReluN1To1])
    }
}

impl Case {
    /// Infers shapes, and removes inputs that no operator reads.
    fn new(graph: Subgraph, inputs: Values) -> Self {
        let inferred = infer(graph.into()).unwrap().subgraph;
        let mut graph = Arc::unwrap_or_clone(inferred);
        graph.inputs.retain(|&id| graph.operators.iter().any(|it| it.inputs.contains(&Some(id))));
        Self { graph, inputs }
    }

    /// Gives quantized results the range that they have, more or less; now and then far too small
    /// or too large a one.
    fn calibrate(&mut self, random: &mut Random) {
        let outputs = self.graph.outputs.clone();
        if outputs.iter().all(|&id| self.graph.tensor(id).quantization.is_none()) {
            return;
        }
        let (graph, inputs) = in_real_numbers(&self.graph, &self.inputs);
        let real = run_reference(&graph, &inputs).unwrap();
        let factor = if random.below(12) == 0 {
            random.f32s(1, -6.0, 6.0)[0].exp2()
        } else {
            random.f32s(1, 0.7, 1.4)[0]
        };
        for id in outputs {
            let values = floats(&real[&id]);
            let low = values.iter().copied().fold(0.0, f32::min);
            let high = values.iter().copied().fold(0.0, f32::max);
            // Nothing but zeros says nothing about the range.
            let high = if low == high { 1.0 } else { high };
            let tensor = &mut self.graph.tensors[id];
            let (scale, zero_point) = asymmetric(tensor.dtype, (low * factor, high * factor));
            tensor.quantization = Some(xnn_model::Quantization::PerTensor { scale, zero_point });
        }
    }
}

fn limits(dtype: DType) -> (i64, i64) {
    if dtype == DType::I8 { (-128, 127) } else { (0, 255) }
}

/// Scale and zero point that hold a range, and zero exactly.
fn asymmetric(dtype: DType, (low, high): (f32, f32)) -> (f32, i64) {
    let (low, high) = (low.min(0.0), high.max(0.0));
    let (least, most) = limits(dtype);
    let scale = (high - low).max(1e-2) / 255.0;
    (scale, (least - (low / scale).round() as i64).clamp(least, most))
}

/// Dimensions and places as operators take them.
fn ints(values: &[usize]) -> Vec<i32> {
    values.iter().map(|&value| value as i32).collect()
}
