//! Metadata as JSON, in the form that flatbuffers' own text generator has:
//! the schema's names, enumerations by name, unions as `..._type` and value.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::types::ModelMetadata;
use crate::error::Error;

impl ModelMetadata {
    /// The metadata as indented JSON, without what is empty.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Maps have string keys and numbers are finite or null: nothing can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Metadata from JSON of that form; the order of fields is free.
    ///
    /// # Errors
    ///
    /// The text is no JSON, or says something that the schema has no place
    /// for; the error names the field and its line.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| Error::invalid(error.to_string()))
    }
}

/// Whether JSON leaves the value out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A union that stands among the fields of its table: `None` if neither its
/// type nor its value is there, and no other field either.
pub(super) fn tagged<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let fields = Map::<String, Value>::deserialize(deserializer)?;
    if fields.is_empty() {
        return Ok(None);
    }
    T::deserialize(Value::Object(fields)).map(Some).map_err(D::Error::custom)
}

/// An enumeration in JSON: its name, or the bare code where there is none.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum NameOrCode {
    Name(String),
    Code(i8),
}

pub(super) fn serialize_name<S: Serializer>(
    name: Option<&str>,
    code: i8,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match name {
        Some(name) => serializer.serialize_str(name),
        None => serializer.serialize_i8(code),
    }
}

/// Writes enumerations of the schema; codes of newer schemas are kept.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $text:literal;)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A code that the schema does not have.
            Other(i8),
        }

        impl $name {
            /// The schema's name of it, `None` for codes that it does not have.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($text),)*
                    Self::Other(_) => None,
                }
            }

            pub(super) const fn from_code(code: i8) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            pub(super) const fn code(self) -> i8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_code(0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                super::json::serialize_name(self.name(), self.code(), serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use super::json::NameOrCode;
                match NameOrCode::deserialize(deserializer)? {
                    $(NameOrCode::Name(name) if name == $text => Ok(Self::$variant),)*
                    NameOrCode::Name(name) => {
                        Err(serde::de::Error::unknown_variant(&name, &[$($text),*]))
                    }
                    NameOrCode::Code(code) => Ok(Self::from_code(code)),
                }
            }
        }
    )*};
}

pub(super) use enumerations;
