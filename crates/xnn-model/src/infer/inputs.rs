//! Inputs and results of the rules of shape inference.

use std::borrow::Cow;

use crate::graph::decode_ints;
use crate::types::DType;

/// Known properties of an input.
#[derive(Clone, Debug)]
pub struct Fact<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major, if known.
    pub shape: Option<Cow<'a, [usize]>>,
    /// Elements, little endian, if known.
    pub data: Option<Cow<'a, [u8]>>,
}

impl<'a> Fact<'a> {
    /// A fact with everything known.
    #[must_use]
    pub fn known(dtype: DType, shape: &'a [usize], data: &'a [u8]) -> Self {
        Self { dtype, shape: Some(Cow::Borrowed(shape)), data: Some(Cow::Borrowed(data)) }
    }

    /// The elements as integers; `None` where they are unknown or not integers.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        decode_ints(self.dtype, self.data.as_deref()?)
    }
}

/// The inferred shape of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// The dimensions, row-major.
    Known(Vec<usize>),
    /// The shape depends on unknown values or shapes.
    Dynamic,
    /// The operator has no rule (custom operators, control flow, variables): use the stated shape.
    Stated,
}

/// Reason why a rule does not return shapes.
pub(super) enum Stop {
    Dynamic,
    Stated,
    Invalid(String),
}

pub(super) type Rule<T = Vec<Vec<usize>>> = Result<T, Stop>;

pub(super) fn invalid<T>(message: impl Into<String>) -> Rule<T> {
    Err(Stop::Invalid(message.into()))
}

/// Access to the inputs of an operator.
pub(super) struct Inputs<'a> {
    pub(super) facts: &'a [Option<Fact<'a>>],
}

impl Inputs<'_> {
    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    pub(super) fn has(&self, position: usize) -> bool {
        matches!(self.facts.get(position), Some(Some(_)))
    }

    pub(super) fn fact(&self, position: usize) -> Rule<&Fact<'_>> {
        match self.facts.get(position) {
            Some(Some(fact)) => Ok(fact),
            _ => invalid(format!("input {position} is missing")),
        }
    }

    pub(super) fn shape(&self, position: usize) -> Rule<&[usize]> {
        self.fact(position)?.shape.as_deref().ok_or(Stop::Dynamic)
    }

    /// The shape of an input that must have `N` dimensions.
    pub(super) fn dims<const N: usize>(&self, position: usize) -> Rule<[usize; N]> {
        let shape = self.shape(position)?;
        shape.try_into().or_else(|_| {
            invalid(format!("input {position} has rank {}, expected {N}", shape.len()))
        })
    }

    pub(super) fn ints(&self, position: usize) -> Rule<Vec<i64>> {
        let fact = self.fact(position)?;
        if fact.data.is_none() {
            return Err(Stop::Dynamic);
        }
        fact.ints().ok_or_else(|| {
            Stop::Invalid(format!("input {position} is {}, expected integers", fact.dtype))
        })
    }

    pub(super) fn int(&self, position: usize) -> Rule<i64> {
        match self.ints(position)?.as_slice() {
            [value] => Ok(*value),
            many => invalid(format!("input {position} has {} elements, expected 1", many.len())),
        }
    }

    /// The elements of an input that holds a shape.
    pub(super) fn as_shape(&self, position: usize) -> Rule<Vec<usize>> {
        self.ints(position)?.into_iter().map(size).collect()
    }
}

/// Converts an integer of a file to a dimension.
pub(super) fn size(value: i64) -> Rule<usize> {
    usize::try_from(value).or_else(|_| invalid(format!("{value} is not a size")))
}

pub(super) fn positive(value: i32, what: &str) -> Rule<usize> {
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => invalid(format!("{what} is {value}, expected a positive number")),
    }
}

pub(super) fn one(shape: Vec<usize>) -> Rule {
    Ok(vec![shape])
}
