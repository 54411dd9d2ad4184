//! Replaces a chain of functions of 8-bit integers by one function.
//!
//! Values in the chain may be floats. The chain has only 256 possible inputs, so its result is
//! compared with that of a single function for each of them.

use xnn_format::{Node, NodeOp, OutputRange, UnaryOp, ValueId};

use super::rewriter::Rewriter;
use crate::rules::checks::{Elem, Q8};
use crate::rules::elementwise::unary_in_8_bits;

/// Largest number of functions that are merged at once.
const MAX_LINKS: usize = 8;

/// Tolerance of a function in place of a chain that rounds more often: later operators may amplify
/// differences.
const EXACT: f32 = 0.0;
/// Tolerance of a function in place of a chain through floats, which also rounds only once.
const ONE_STEP: f32 = 1.0;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    // Backwards: the longest chain ends in the last node.
    (0..rewriter.len()).rev().filter(|&index| merge(rewriter, index).is_some()).count()
}

/// One function of a chain.
#[derive(Clone, Copy)]
struct Link {
    op: UnaryOp,
    range: Option<OutputRange>,
    input: ValueId,
    from: Elem,
    to: Elem,
}

/// Makes the last node of a chain compute the whole chain, or else the longest possible part of it.
fn merge(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let links = chain(rewriter, index);
    let merged = |length| links.get(..length).and_then(as_one);
    let Link { op, range, input, .. } = (2..=links.len()).rev().find_map(merged)?;
    rewriter.change(index, |node| {
        if let NodeOp::Unary { op: last, input: operand, .. } = &mut node.op {
            (*last, *operand) = (op, input);
        }
        node.output_range = range;
    });
    for between in links.iter().map(|link| link.input).take_while(|&id| id != input) {
        if let Some(writer) = rewriter.writer(between).filter(|_| !rewriter.is_used(between)) {
            rewriter.remove(writer);
        }
    }
    Some(())
}

/// The chain of functions that ends in a node, the last one first.
fn chain(rewriter: &Rewriter, index: usize) -> Vec<Link> {
    let mut links = Vec::new();
    let mut next = rewriter.node(index);
    while let Some(link) = next.and_then(|node| link(rewriter, node)) {
        links.push(link);
        if links.len() == MAX_LINKS {
            break;
        }
        // A function with other readers would be computed twice, which is only cheap for
        // conversions.
        next = rewriter.producer(link.input).map(|(_, node)| node).filter(|node| {
            rewriter.sole_reader(link.input).is_some()
                || (link.from.is_f32()
                    && matches!(node.op, NodeOp::Unary { op: UnaryOp::Convert, .. }))
        });
    }
    links
}

fn link(rewriter: &Rewriter, node: &Node) -> Option<Link> {
    let NodeOp::Unary { op, input, output } = node.op else { return None };
    let (from, to) = (rewriter.elem(input)?, rewriter.elem(output)?);
    Some(Link { op, range: node.output_range, input, from, to })
}

/// The single function that computes the whole chain, from 8-bit integers to 8-bit integers.
fn as_one(chain: &[Link]) -> Option<Link> {
    let (last, first) = (chain.first()?, chain.last()?);
    let (from, to) = (first.from, last.to);
    let (Elem::Q8(q), Elem::Q8(_)) = (from, to) else { return None };
    let wanted = table(q, chain)?;
    let in_floats = chain.iter().rev().skip(1).all(|link| link.from.is_f32());
    let tolerance = if in_floats { ONE_STEP } else { EXACT };
    let wanted_range = range(&wanted);
    let conversion = Link { op: UnaryOp::Convert, range: None, ..*first };
    std::iter::once(&conversion)
        .chain(chain)
        .map(|link| Link { from, to, input: first.input, ..*link })
        .filter(|link| has_node(link.op, from, to))
        .filter_map(|link| {
            let results = table(q, &[link])?;
            // The function must not exceed the bounds of the chain.
            let ((low, high), (lowest, highest)) = (range(&results), wanted_range);
            let is_within = lowest <= low && high <= highest;
            is_within.then(|| (distance(&results, &wanted), link))
        })
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, link)| link)
}

/// Whether one node can compute the function between these types. A clamp must not convert: XNNPACK
/// would fuse it into the node before, whose rounding and saturation would be lost.
fn has_node(op: UnaryOp, from: Elem, to: Elem) -> bool {
    let fits = match op {
        UnaryOp::Convert => true,
        UnaryOp::Clamp | UnaryOp::Copy => from == to,
        _ => from.same_type(to),
    };
    fits && unary_in_8_bits(op, from, to)
}

/// The result for each integer of a type; `None` if one is NaN.
fn table(from: Q8, chain: &[Link]) -> Option<Vec<f32>> {
    let (low, high) = from.bounds();
    let through = |integer: i16| {
        chain.iter().rev().try_fold(f32::from(integer), |number, link| link.apply(number))
    };
    (low..=high).map(through).collect()
}

/// The lowest and the highest result.
fn range(results: &[f32]) -> (f32, f32) {
    let start = (f32::INFINITY, f32::NEG_INFINITY);
    results.iter().fold(start, |(low, high), &result| (low.min(result), high.max(result)))
}

/// The largest difference between results.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

impl Link {
    /// Applies the function to an integer or a float, with the arithmetic of XNNPACK.
    fn apply(&self, number: f32) -> Option<f32> {
        match (self.op, self.from, self.to) {
            (UnaryOp::Convert, Elem::Q8(from), Elem::Q8(to)) if from.signed == to.signed => {
                Some(fixed_point(number - from.zero(), from.scale / to.scale, to))
            }
            (UnaryOp::LeakyRelu { negative_slope }, Elem::Q8(from), Elem::Q8(to)) => {
                let offset = number - from.zero();
                let slope = if offset < 0.0 { negative_slope } else { 1.0 };
                Some(fixed_point(offset, from.scale / to.scale * slope, to))
            }
            (op, from, to) => {
                let real = match from {
                    Elem::F32 => number,
                    Elem::Q8(q) => (number - q.zero()) * q.scale,
                };
                let result = function(op, self.range, real).filter(|result| !result.is_nan())?;
                Some(match (from, to) {
                    (_, Elem::F32) => result,
                    // Conversions round ties to even, tables away from zero.
                    (Elem::F32, Elem::Q8(q)) => {
                        q.saturate((result * q.scale.recip()).round_ties_even() + q.zero())
                    }
                    (Elem::Q8(_), Elem::Q8(q)) => {
                        q.saturate((result * q.scale.recip() + q.zero()).round())
                    }
                })
            }
        }
    }
}

/// Multiplies an offset from the zero point by a factor with 8 fractional bits. All intermediate
/// values fit into the 24 bits of an `f32`.
fn fixed_point(offset: f32, factor: f32, to: Q8) -> f32 {
    const ONE: f32 = 256.0;
    let multiplier = (factor * ONE).round_ties_even();
    to.saturate(((offset * multiplier + to.zero() * ONE + ONE / 2.0) / ONE).floor())
}

/// Applies a function to a real number; `None` for functions of integers.
fn function(op: UnaryOp, range: Option<OutputRange>, x: f32) -> Option<f32> {
    Some(match op {
        UnaryOp::Abs => x.abs(),
        UnaryOp::BankersRounding => x.round_ties_even(),
        UnaryOp::Ceiling => x.ceil(),
        UnaryOp::Clamp => {
            let range = range.unwrap_or(OutputRange::UNBOUNDED);
            x.max(range.min).min(range.max)
        }
        UnaryOp::Convert | UnaryOp::Copy => x,
        UnaryOp::Cosine => x.cos(),
        UnaryOp::CubeRoot => x.cbrt(),
        UnaryOp::Elu { alpha } if x < 0.0 => alpha * x.exp_m1(),
        UnaryOp::Elu { .. } => x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Gelu => x / 2.0 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
        UnaryOp::HardSwish => x / 6.0 * (x + 3.0).clamp(0.0, 6.0),
        UnaryOp::LeakyRelu { negative_slope } if x < 0.0 => x * negative_slope,
        UnaryOp::LeakyRelu { .. } => x,
        UnaryOp::Log => x.ln(),
        UnaryOp::Negate => -x,
        UnaryOp::ReciprocalSquareRoot => x.sqrt().recip(),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Sign if x == 0.0 => 0.0,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Sine => x.sin(),
        UnaryOp::Square => x * x,
        UnaryOp::SquareRoot => x.sqrt(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::BitwiseNot | UnaryOp::CountLeadingZeros | UnaryOp::Popcount | _ => return None,
    })
}
