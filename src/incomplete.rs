//! The reasons why a model is not fully delegated.

use std::fmt;

/// A model that is not fully delegated where a caller needs that, with the reason for every operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Incomplete {
    pub(crate) summary: String,
    pub(crate) reasons: Vec<String>,
}

impl Incomplete {
    /// One line for each operator that is not delegated, or for another reason.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model is not fully delegated: {}", self.summary)?;
        for line in &self.reasons {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Incomplete {}
