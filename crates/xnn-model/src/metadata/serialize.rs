//! Serialization of enumerations, unions and defaults in the JSON form of the schema.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Whether JSON omits the value.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes a union whose type and value are fields of its table; `None` without any fields.
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

/// An enumeration in JSON: its name, or its code if it has no name.
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

/// Defines enumerations of the schema, which keep codes of newer schemas.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $text:literal;)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// An unknown code.
            Other(i8),
        }

        impl $name {
            /// The schema's name; `None` for unknown codes.
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
                super::serialize::serialize_name(self.name(), self.code(), serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use super::serialize::NameOrCode;
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
