//! Names that options take.

use std::error::Error;
use std::fmt;

use strsim::damerau_levenshtein;
use xnn_format::CUSTOM_OPERATOR;
use xnn_model::Op;

use crate::optimize::PASSES;
use crate::rules::mediapipe::CUSTOM_OPERATORS;

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What should have that name.
    kind: &'static str,
    name: String,
    /// What was probably meant.
    nearest: Option<&'static str>,
}

/// The operator with this name, for [`PartitionOptions::disable`](crate::PartitionOptions::disable):
/// a builtin (`SOFTMAX`), or a custom operator that can go. Case does not matter.
///
/// # Errors
/// There is none.
pub fn operator_name(name: &str) -> Result<&'static str, UnknownName> {
    let custom = CUSTOM_OPERATORS.iter().chain(&[CUSTOM_OPERATOR]);
    find("operator", name, Op::NAMES.iter().chain(custom).copied())
}

/// The optimization with this name, for
/// [`optimize::Options::disable`](crate::optimize::Options::disable). Case does not matter.
///
/// # Errors
/// There is none.
pub fn pass_name(name: &str) -> Result<&'static str, UnknownName> {
    find("optimization", name, PASSES.iter().map(|pass| pass.name))
}

/// What `name` stands for, or a list of all names.
pub(crate) fn choice<T: Copy, const N: usize>(
    choices: &[(&str, T); N],
    name: &str,
) -> Result<T, String> {
    let found = choices.iter().find(|(known, _)| *known == name);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names = choices.each_ref().map(|(name, _)| *name);
        format!("{name:?} is none of {}", names.join(", "))
    })
}

fn find(
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Result<&'static str, UnknownName> {
    if let Some(found) = known.clone().find(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(found);
    }
    // Nearer names differ in a third of their letters at most.
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
    fn names_are_found_whatever_their_case() {
        assert_eq!(operator_name("softmax"), Ok("SOFTMAX"));
        assert_eq!(operator_name("XNNGRAPH"), Ok("XNNGraph"));
        assert_eq!(operator_name("maxunpooling2d"), Ok("MaxUnpooling2D"));
        assert_eq!(pass_name("Clamps"), Ok("clamps"));
    }

    #[test]
    fn unknown_names_come_with_the_nearest() {
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
