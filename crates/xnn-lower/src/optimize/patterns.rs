//! Replaces functions of floats that a model spells out by the node that XNNPACK has for them.

use xnn_format::{BinaryOp, Datatype, Node, NodeOp, OutputRange, UnaryOp, ValueId};
use xnn_model::infer::broadcast_shapes;

use super::rewriter::Rewriter;

/// Tolerance of constants: models store rounded ones.
const CLOSE: f32 = 1e-6;

/// Recognizes what a node computes together with the nodes before it. Returns the replacement.
type Pattern = fn(&mut Rewriter, &Node) -> Option<NodeOp>;

const PATTERNS: &[Pattern] = &[
    hard_swish,
    logistic,
    logistic_gate,
    prelu,
    leaky_relu,
    square,
    power,
    centered,
    sum_with_negative,
];

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut changes = 0;
    for index in 0..rewriter.len() {
        let Some(node) = rewriter.node(index).cloned() else { continue };
        let is_float = |id: &ValueId| rewriter.value(*id).datatype == Datatype::F32;
        if !node.outputs().iter().all(is_float) {
            continue;
        }
        if let Some(op) = PATTERNS.iter().find_map(|pattern| pattern(rewriter, &node)) {
            rewriter.change(index, |node| node.op = op);
            changes += 1;
        }
    }
    changes
}

/// Operands and result, if the node computes the wanted function.
fn binary(node: &Node, wanted: BinaryOp) -> Option<([ValueId; 2], ValueId)> {
    match node.op {
        NodeOp::Binary { op, inputs, output } if op == wanted => Some((inputs, output)),
        _ => None,
    }
}

fn is_unbounded(node: &Node) -> bool {
    node.output_range.is_none_or(|range| range == OutputRange::UNBOUNDED)
}

/// Operands of the node that writes the value, if it computes the wanted function without bounds.
fn written_by(rewriter: &Rewriter, id: ValueId, wanted: BinaryOp) -> Option<[ValueId; 2]> {
    let node = rewriter.producer(id)?.1;
    Some(binary(node, wanted).filter(|_| is_unbounded(node))?.0)
}

/// Operand of the node that writes the value, if it computes the wanted function.
fn operand_of(rewriter: &Rewriter, id: ValueId, wanted: UnaryOp) -> Option<ValueId> {
    match rewriter.producer(id)?.1.op {
        NodeOp::Unary { op, input, .. } if op == wanted => Some(input),
        _ => None,
    }
}

/// The operand beside a constant whose elements are all equal, and that element. The constant may
/// have any shape, so the result may be larger than the operand.
fn with_scalar(rewriter: &Rewriter, [a, b]: [ValueId; 2]) -> Option<(ValueId, f32)> {
    match rewriter.scalar(b) {
        Some(scalar) => Some((a, scalar)),
        None => Some((b, rewriter.scalar(a)?)),
    }
}

fn same_dims(rewriter: &Rewriter, a: ValueId, b: ValueId) -> bool {
    rewriter.value(a).dims == rewriter.value(b).dims
}

fn is_close(value: f32, wanted: f32) -> bool {
    (value - wanted).abs() <= CLOSE * wanted.abs().max(1.0)
}

/// `x * relu6(x + 3) / 6` in any order, or with the gate `clamp(x / 6 + 1 / 2)`.
fn hard_swish(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let (NodeOp::Binary { output, .. }, true) = (&node.op, is_unbounded(node)) else { return None };
    let mut product = Product { factors: Vec::new(), scalar: 1.0 };
    product.add_node(rewriter, node)?;
    let &[a, b] = product.factors.as_slice() else { return None };
    let is_gate = |gate: ValueId, x: ValueId| {
        gate_of(rewriter, gate)
            .is_some_and(|(input, height)| input == x && is_close(product.scalar * height, 1.0))
    };
    let input = match (is_gate(b, a), is_gate(a, b)) {
        (true, _) => a,
        (_, true) => b,
        _ => return None,
    };
    let hard_swish = NodeOp::Unary { op: UnaryOp::HardSwish, input, output: *output };
    same_dims(rewriter, input, *output).then_some(hard_swish)
}

/// A product of values and constants.
struct Product {
    factors: Vec<ValueId>,
    /// Product of the constants.
    scalar: f32,
}

impl Product {
    /// Multiplies by the factors of a product, or of a quotient by a constant.
    fn add_node(&mut self, rewriter: &Rewriter, node: &Node) -> Option<()> {
        if let Some((inputs, _)) = binary(node, BinaryOp::Divide) {
            self.scalar /= rewriter.scalar(inputs[1])?;
            return self.add(rewriter, inputs[0]);
        }
        let (inputs, _) = binary(node, BinaryOp::Multiply)?;
        inputs.into_iter().try_for_each(|id| self.add(rewriter, id))
    }

    fn add(&mut self, rewriter: &Rewriter, id: ValueId) -> Option<()> {
        /// The operand and the gate.
        const MAX_FACTORS: usize = 2;
        if let Some(scalar) = rewriter.scalar(id) {
            self.scalar *= scalar;
            return Some(());
        }
        let inner = rewriter.sole_writer(id).filter(|(_, node)| is_unbounded(node));
        let nested = inner.and_then(|(_, node)| {
            let mut nested = Self { factors: Vec::new(), scalar: 1.0 };
            nested.add_node(rewriter, node)?;
            Some(nested)
        });
        match nested {
            Some(nested) => {
                self.factors.extend(nested.factors);
                self.scalar *= nested.scalar;
            }
            None => self.factors.push(id),
        }
        (self.factors.len() <= MAX_FACTORS).then_some(())
    }
}

/// `x` and `h` of `clamp(x * h / 6 + h / 2, 0, h)`.
fn gate_of(rewriter: &Rewriter, id: ValueId) -> Option<(ValueId, f32)> {
    let writer = rewriter.producer(id)?.1;
    let range = writer.output_range?;
    let inputs = match writer.op {
        NodeOp::Unary { op: UnaryOp::Clamp, input, .. } => {
            written_by(rewriter, input, BinaryOp::Add)?
        }
        _ => binary(writer, BinaryOp::Add)?.0,
    };
    let height = range.max;
    let (scaled, shift) = with_scalar(rewriter, inputs)?;
    if range.min != 0.0 || !height.is_finite() || !is_close(shift, height / 2.0) {
        return None;
    }
    if is_close(height, 6.0) {
        return Some((scaled, height));
    }
    let factors = written_by(rewriter, scaled, BinaryOp::Multiply)?;
    let (x, slope) = with_scalar(rewriter, factors)?;
    is_close(slope * 6.0, height).then_some((x, height))
}

/// `tanh(u) / 2 + 1 / 2`, the logistic function of `2 * u`.
fn logistic(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let (inputs, output) = binary(node, BinaryOp::Add).filter(|_| is_unbounded(node))?;
    let (halved, shift) = with_scalar(rewriter, inputs)?;
    let factors = written_by(rewriter, halved, BinaryOp::Multiply)?;
    let (tanh, factor) = with_scalar(rewriter, factors)?;
    let argument = operand_of(rewriter, tanh, UnaryOp::Tanh)?;
    let is_logistic =
        is_close(shift, 0.5) && is_close(factor, 0.5) && same_dims(rewriter, argument, output);
    is_logistic.then(|| {
        let input = twice(rewriter, node, argument);
        NodeOp::Unary { op: UnaryOp::Sigmoid, input, output }
    })
}

/// `x * (tanh(u) + 1) / 2` in any order, for example GELU's approximation.
fn logistic_gate(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let (NodeOp::Binary { output, .. }, true) = (&node.op, is_unbounded(node)) else { return None };
    let mut product = Product { factors: Vec::new(), scalar: 1.0 };
    product.add_node(rewriter, node)?;
    let &[a, b] = product.factors.as_slice() else { return None };
    let argument_of = |gate: ValueId| {
        let (_, sum) = rewriter.sole_writer(gate).filter(|(_, sum)| is_unbounded(sum))?;
        let (tanh, shift) = with_scalar(rewriter, binary(sum, BinaryOp::Add)?.0)?;
        let argument = operand_of(rewriter, tanh, UnaryOp::Tanh)?;
        (same_dims(rewriter, argument, gate) && is_close(shift, 1.0)).then_some(argument)
    };
    let (x, argument) = match (argument_of(a), argument_of(b)) {
        (_, Some(argument)) => (a, argument),
        (Some(argument), _) => (b, argument),
        _ => return None,
    };
    let [x_dims, gate_dims, dims] = [x, argument, *output].map(|id| &rewriter.value(id).dims);
    if !is_close(product.scalar, 0.5) || broadcast_shapes(x_dims, gate_dims).as_ref() != Some(dims)
    {
        return None;
    }
    let input = twice(rewriter, node, argument);
    let gate = rewriter.push_like(input, &rewriter.value(input).dims.clone());
    push(rewriter, node, NodeOp::Unary { op: UnaryOp::Sigmoid, input, output: gate });
    Some(NodeOp::Binary { op: BinaryOp::Multiply, inputs: [x, gate], output: *output })
}

/// `2 * u`. If `u` is a product with a constant, the constant is doubled instead.
fn twice(rewriter: &mut Rewriter, node: &Node, u: ValueId) -> ValueId {
    let product = rewriter.producer(u).filter(|(_, product)| is_unbounded(product));
    let factors = product.and_then(|(_, product)| binary(product, BinaryOp::Multiply));
    let scaled = factors.and_then(|(factors, _)| with_scalar(rewriter, factors));
    let same =
        |(x, factor): &(ValueId, f32)| same_dims(rewriter, *x, u) && (2.0 * factor).is_finite();
    let (x, factor) = scaled.filter(same).unwrap_or((u, 1.0));
    if is_close(2.0 * factor, 1.0) {
        return x;
    }
    let factor = rewriter.push_floats(&[], &[2.0 * factor]);
    push_binary(rewriter, node, BinaryOp::Multiply, [x, factor])
}

/// Appends a node with the origin of another node.
fn push(rewriter: &mut Rewriter, node: &Node, op: NodeOp) {
    rewriter.push(Node { debug_handle: node.debug_handle, ..Node::new(op) });
}

/// Appends a function of two operands. The first has the result's shape.
fn push_binary(
    rewriter: &mut Rewriter,
    node: &Node,
    op: BinaryOp,
    inputs: [ValueId; 2],
) -> ValueId {
    let output = rewriter.push_like(inputs[0], &rewriter.value(inputs[0]).dims.clone());
    push(rewriter, node, NodeOp::Binary { op, inputs, output });
    output
}

/// `relu(x) - slope * relu(-x)`, with the minus sign at any place.
fn prelu(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let (inputs, output, sign) =
        match (binary(node, BinaryOp::Add), binary(node, BinaryOp::Subtract)) {
            (Some((inputs, output)), _) => (inputs, output, -1.0),
            (_, Some((inputs, output))) => (inputs, output, 1.0),
            _ => return None,
        };
    let [a, b] = inputs;
    let (input, negative) = match relu_of(rewriter, a) {
        Some(input) => (input, b),
        None if sign < 0.0 => (relu_of(rewriter, b)?, a),
        None => return None,
    };
    let factors = written_by(rewriter, negative, BinaryOp::Multiply)?;
    let [slopes, part] = match rewriter.floats(factors[0]) {
        Some(_) => factors,
        None => [factors[1], factors[0]],
    };
    let (part, sign) = match operand_of(rewriter, part, UnaryOp::Negate) {
        Some(part) => (part, -sign),
        None => (part, sign),
    };
    let mirrored = operand_of(rewriter, relu_of(rewriter, part)?, UnaryOp::Negate)?;
    let dims = rewriter.value(slopes).dims.clone();
    let (&channels, outer) = dims.split_last()?;
    if mirrored != input
        || !is_unbounded(node)
        || outer.iter().any(|&dim| dim != 1)
        || rewriter.value(input).dims.last() != Some(&channels)
        || !same_dims(rewriter, input, output)
    {
        return None;
    }
    let slopes: Vec<f32> = rewriter.floats(slopes)?.iter().map(|slope| sign * slope).collect();
    let slopes = rewriter.push_floats(&[channels], &slopes);
    Some(NodeOp::Binary { op: BinaryOp::Prelu, inputs: [input, slopes], output })
}

/// The operand of `max(x, 0)`.
fn relu_of(rewriter: &Rewriter, id: ValueId) -> Option<ValueId> {
    let node = rewriter.producer(id)?.1;
    let relu = Some(OutputRange { min: 0.0, max: f32::INFINITY });
    operand_of(rewriter, id, UnaryOp::Clamp).filter(|_| node.output_range == relu)
}

/// `max(x, slope * x)` for positive slopes up to 1. A slope of 0 is excluded: the product is NaN
/// where `x` is infinite.
fn leaky_relu(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let ([a, b], output) = binary(node, BinaryOp::Maximum)?;
    let scaled = |id: ValueId| {
        let factors = written_by(rewriter, id, BinaryOp::Multiply)?;
        with_scalar(rewriter, factors).filter(|(_, slope)| 0.0 < *slope && *slope <= 1.0)
    };
    let (input, negative_slope) = match (scaled(a), scaled(b)) {
        (_, Some((x, slope))) if x == a => (a, slope),
        (Some((x, slope)), _) if x == b => (b, slope),
        _ => return None,
    };
    let leaky_relu = NodeOp::Unary { op: UnaryOp::LeakyRelu { negative_slope }, input, output };
    same_dims(rewriter, input, output).then_some(leaky_relu)
}

/// `x * x`.
fn square(_: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let ([a, b], output) = binary(node, BinaryOp::Multiply)?;
    let square = NodeOp::Unary { op: UnaryOp::Square, input: a, output };
    (a == b && is_unbounded(node)).then_some(square)
}

/// `x ^ 2` and `x ^ 3` as products, because XNNPACK's powers are many times slower.
fn power(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let ([input, exponent], output) = binary(node, BinaryOp::Pow)?;
    let exponent = rewriter.scalar(exponent)?;
    if !is_unbounded(node) || !same_dims(rewriter, input, output) {
        return None;
    }
    if exponent == 2.0 {
        return Some(NodeOp::Unary { op: UnaryOp::Square, input, output });
    }
    (exponent == 3.0).then(|| {
        let square = rewriter.push_like(input, &rewriter.value(input).dims.clone());
        push(rewriter, node, NodeOp::Unary { op: UnaryOp::Square, input, output: square });
        NodeOp::Binary { op: BinaryOp::Multiply, inputs: [square, input], output }
    })
}

/// `x * a + (b - m * a)`, the end of a layer norm, as `(x - m) * a + b`, which has one product
/// fewer.
fn centered(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let (terms, output) = binary(node, BinaryOp::Add)?;
    let inner = |id: ValueId, op: BinaryOp| {
        let (_, inner) = rewriter.sole_writer(id).filter(|(_, inner)| is_unbounded(inner))?;
        Some(binary(inner, op)?.0)
    };
    let parts = |[product, rest]: [ValueId; 2]| {
        let [offset, shift] = inner(rest, BinaryOp::Subtract)?;
        let [m, n] = inner(shift, BinaryOp::Multiply)?;
        let [x, y] = inner(product, BinaryOp::Multiply)?;
        let orders = [[x, y, m, n], [x, y, n, m], [y, x, m, n], [y, x, n, m]];
        let [x, gain, mean, _] = orders.into_iter().find(|[_, gain, _, other]| gain == other)?;
        Some((x, gain, mean, offset))
    };
    let [a, b] = terms;
    let (x, gain, mean, offset) = parts([a, b]).or_else(|| parts([b, a]))?;
    let dims = |id: ValueId| &rewriter.value(id).dims;
    // The smaller operands broadcast to the larger one's shape, with the same rank.
    let broadcasts = |id: ValueId| {
        let (wide, dims) = (dims(x), dims(id));
        dims.len() == wide.len() && dims.iter().zip(wide).all(|(&d, &w)| d == w || d == 1)
    };
    if dims(x) != dims(output) || !broadcasts(mean) || rewriter.value(x).data.is_some() {
        return None;
    }
    let difference = push_binary(rewriter, node, BinaryOp::Subtract, [x, mean]);
    let scaled = push_binary(rewriter, node, BinaryOp::Multiply, [difference, gain]);
    Some(NodeOp::Binary { op: BinaryOp::Add, inputs: [scaled, offset], output })
}

/// `a + -b`, `a - -b` and `-a + b`.
fn sum_with_negative(rewriter: &mut Rewriter, node: &Node) -> Option<NodeOp> {
    let &NodeOp::Binary { op, inputs: [a, b], output } = &node.op else { return None };
    let negated = |id| operand_of(rewriter, id, UnaryOp::Negate);
    let (op, inputs) = match (op, negated(a), negated(b)) {
        (BinaryOp::Add, _, Some(b)) => (BinaryOp::Subtract, [a, b]),
        (BinaryOp::Subtract, _, Some(b)) => (BinaryOp::Add, [a, b]),
        (BinaryOp::Add, Some(a), None) => (BinaryOp::Subtract, [b, a]),
        _ => return None,
    };
    Some(NodeOp::Binary { op, inputs, output })
}
