//! Names of operators and passes in options.

use std::error::Error;
use std::fmt;

use strsim::damerau_levenshtein;
use xnn_format::CUSTOM_OPERATOR;
use xnn_model::Op;

use crate::optimize;
use crate::rules::mediapipe::CUSTOM_OPERATORS;

/// An unknown name of an operator or pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Kind of thing that the name should have named.
    kind: &'static str,
    name: String,
    /// The most similar known name.
    nearest: Option<&'static str>,
}

/// Returns the canonical name of an operator, for
/// [`PartitionOptions::disable`](crate::PartitionOptions::disable): a builtin (`SOFTMAX`), or a
/// custom operator that can be delegated. Case does not matter.
///
/// # Errors
///
/// No operator has this name.
pub fn operator_name(name: &str) -> Result<&'static str, UnknownName> {
    let custom = CUSTOM_OPERATORS.iter().chain(&[CUSTOM_OPERATOR]);
    find("operator", name, Op::NAMES.iter().chain(custom).copied())
}

/// Returns the canonical name of an optimization, for
/// [`optimize::Options::disable`](crate::optimize::Options::disable). Case does not matter.
///
/// # Errors
///
/// No optimization has this name.
pub fn pass_name(name: &str) -> Result<&'static str, UnknownName> {
    find("optimization", name, optimize::optimizations().map(|(name, _)| name))
}

fn find(
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Result<&'static str, UnknownName> {
    if let Some(found) = known.clone().find(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(found);
    }
    // Suggestions differ in at most a third of their letters.
    let distance = |known: &str| {
        let distance = damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase());
        (distance <= known.len().div_ceil(3)).then_some(distance)
    };
    let near = known.filter_map(|known| Some((distance(known)?, known)));
    let nearest = near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known);
    Err(UnknownName { kind, name: name.to_owned(), nearest })
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {} {:?}", self.kind, self.name)?;
        self.nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
    }
}

impl Error for UnknownName {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(operator_name("softmax"), Ok("SOFTMAX"));
        assert_eq!(operator_name("XNNGRAPH"), Ok("XNNGraph"));
        assert_eq!(operator_name("maxunpooling2d"), Ok("MaxUnpooling2D"));
        assert_eq!(pass_name("Clamps"), Ok("clamps"));
    }

    #[test]
    fn errors_suggest_the_nearest_name() {
        for (name, nearest) in [
            ("SOFTMAXX", Some("SOFTMAX")),
            ("conv2d", Some("CONV_2D")),
            ("DEPTHWISE_CONV", Some("DEPTHWISE_CONV_2D")),
            ("adn", Some("ADD")),
            ("telephone", None),
            ("", None),
        ] {
            assert_eq!(operator_name(name).unwrap_err().nearest, nearest, "{name}");
        }
        let error = pass_name("clamp").unwrap_err().to_string();
        assert_eq!(error, "there is no optimization \"clamp\"; did you mean clamps?");
        let error = operator_name("telephone").unwrap_err().to_string();
        assert_eq!(error, "there is no operator \"telephone\"");
    }
}
