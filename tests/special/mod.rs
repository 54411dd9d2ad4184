//! Floats that arithmetic treats in a way of its own, among the inputs of a case.

#![allow(dead_code, reason = "no test uses all of it")]

use xnn_model::DType;
use xnn_testing::Random;

use crate::random::Case;

/// A kind of values, of which a few are among the elements of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Nan,
    Infinity,
    NegativeInfinity,
    Infinities,
    Largest,
    Denormal,
    NegativeZero,
}

impl Special {
    pub const ALL: [Self; 7] = [
        Self::Nan,
        Self::Infinity,
        Self::NegativeInfinity,
        Self::Infinities,
        Self::Largest,
        Self::Denormal,
        Self::NegativeZero,
    ];

    /// Name of the kind in `tools/python/opcases.py`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nan => "nan",
            Self::Infinity => "infinity",
            Self::NegativeInfinity => "negative infinity",
            Self::Infinities => "infinities",
            Self::Largest => "largest",
            Self::Denormal => "denormal",
            Self::NegativeZero => "negative zero",
        }
    }

    const fn values(self) -> &'static [f32] {
        match self {
            Self::Nan => &[f32::NAN],
            Self::Infinity => &[f32::INFINITY],
            Self::NegativeInfinity => &[f32::NEG_INFINITY],
            Self::Infinities => &[f32::INFINITY, f32::NEG_INFINITY],
            Self::Largest => &[f32::MAX],
            Self::Denormal => &[1e-40, -3e-42],
            Self::NegativeZero => &[-0.0],
        }
    }

    /// Puts them in a few places of the fp32 inputs; whether there are any. Of the largest floats there is one: what
    /// sums of more are depends on their order.
    pub fn plant(self, case: &mut Case, random: &mut Random) -> bool {
        let Case { graph, inputs } = case;
        let mut floats: Vec<&mut Vec<u8>> = inputs
            .iter_mut()
            .filter(|(id, bytes)| graph.tensor(**id).dtype == DType::F32 && !bytes.is_empty())
            .filter(|(id, _)| graph.inputs.contains(id))
            .map(|(_, bytes)| bytes)
            .collect();
        if floats.is_empty() {
            return false;
        }
        // The map's order is not the same in each run.
        floats.sort();
        let values = self.values();
        let count = if self == Self::Largest { 1 } else { values.len() + random.below(3) };
        for value in values.iter().cycle().take(count) {
            let at = random.below(floats.len());
            let elements = floats[at].as_chunks_mut::<4>().0;
            let place = random.below(elements.len());
            elements[place] = value.to_le_bytes();
        }
        true
    }
}

/// Why a case need not agree.
pub fn why_undefined(case: &Case) -> Option<&'static str> {
    let Case { graph, inputs } = case;
    let floats = graph.inputs.iter().filter(|&&id| graph.tensor(id).dtype == DType::F32);
    let elements = floats.flat_map(|id| inputs[id].as_chunks::<4>().0);
    let elements = elements.map(|bytes| f32::from_le_bytes(*bytes));
    let mut operators = graph.operators.iter();
    operators.find_map(|it| xnn_delegate::verify::why_undefined(graph, it, elements.clone()))
}
