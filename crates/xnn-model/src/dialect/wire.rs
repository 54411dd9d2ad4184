//! Conversions of single values between files and the representation, shared by both schemas.

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, Push, Vector, WIPOffset};

use crate::Dialect;
use crate::error::Error;
use crate::op::{Activation, Padding, WeightsFormat};
use crate::types::DType;

type Result<T> = std::result::Result<T, Error>;

/// Conversion from the value `W` of a generated accessor.
pub(super) trait FromWire<W>: Sized {
    /// Converts the value; fails on unsupported codes.
    fn from_wire(wire: W) -> Result<Self>;
}

/// Conversion to the value `W` of a generated table. Writes strings and vectors to the builder.
pub(super) trait ToWire<'b, W> {
    /// Converts the value; fails on values that the schema cannot represent.
    fn to_wire(&self, builder: &mut FlatBufferBuilder<'b>) -> Result<W>;
}

macro_rules! same_on_wire {
    ($($ty:ty)*) => {$(
        impl FromWire<$ty> for $ty {
            fn from_wire(wire: $ty) -> Result<Self> {
                Ok(wire)
            }
        }

        impl ToWire<'_, $ty> for $ty {
            fn to_wire(&self, _: &mut FlatBufferBuilder<'_>) -> Result<$ty> {
                Ok(*self)
            }
        }
    )*};
}

same_on_wire! { bool i32 i64 f32 }

/// Indices of subgraphs are `int` in some tables and `uint` in others.
macro_rules! index_on_wire {
    ($($ty:ty)*) => {$(
        impl FromWire<$ty> for usize {
            fn from_wire(wire: $ty) -> Result<Self> {
                usize::try_from(wire).map_err(|_| Error::invalid(format!("index {wire} is out of range")))
            }
        }

        impl ToWire<'_, $ty> for usize {
            fn to_wire(&self, _: &mut FlatBufferBuilder<'_>) -> Result<$ty> {
                <$ty>::try_from(*self).map_err(|_| Error::invalid(format!("index {self} is out of range")))
            }
        }
    )*};
}

index_on_wire! { i32 u32 }

impl FromWire<Option<&str>> for String {
    fn from_wire(wire: Option<&str>) -> Result<Self> {
        Ok(wire.unwrap_or_default().to_owned())
    }
}

impl<'b> ToWire<'b, Option<WIPOffset<&'b str>>> for String {
    fn to_wire(&self, builder: &mut FlatBufferBuilder<'b>) -> Result<Option<WIPOffset<&'b str>>> {
        Ok(Some(builder.create_string(self)))
    }
}

impl<'a, T> FromWire<Option<Vector<'a, T>>> for Vec<T>
where
    T: flatbuffers::Follow<'a, Inner = T> + 'a,
{
    fn from_wire(wire: Option<Vector<'a, T>>) -> Result<Self> {
        Ok(wire.map(|v| v.iter().collect()).unwrap_or_default())
    }
}

impl<'a, T> FromWire<Option<Vector<'a, T>>> for Option<Vec<T>>
where
    T: flatbuffers::Follow<'a, Inner = T> + 'a,
{
    fn from_wire(wire: Option<Vector<'a, T>>) -> Result<Self> {
        Ok(wire.map(|v| v.iter().collect()))
    }
}

impl<'a> FromWire<Option<Vector<'a, u8>>> for Bytes {
    fn from_wire(wire: Option<Vector<'a, u8>>) -> Result<Self> {
        Ok(wire.map(|v| Self::copy_from_slice(v.bytes())).unwrap_or_default())
    }
}

type WireVector<'b, T> = Option<WIPOffset<Vector<'b, T>>>;

impl<'b, T: Push<Output = T> + Clone> ToWire<'b, WireVector<'b, T>> for Vec<T> {
    fn to_wire(&self, builder: &mut FlatBufferBuilder<'b>) -> Result<WireVector<'b, T>> {
        Ok(Some(builder.create_vector(self)))
    }
}

impl<'b, T: Push<Output = T> + Clone> ToWire<'b, WireVector<'b, T>> for Option<Vec<T>> {
    fn to_wire(&self, builder: &mut FlatBufferBuilder<'b>) -> Result<WireVector<'b, T>> {
        Ok(self.as_ref().map(|v| builder.create_vector(v)))
    }
}

impl<'b> ToWire<'b, WireVector<'b, u8>> for Bytes {
    fn to_wire(&self, builder: &mut FlatBufferBuilder<'b>) -> Result<WireVector<'b, u8>> {
        Ok(Some(builder.create_vector(self)))
    }
}

/// Enumerations with the same codes in both schemas.
pub(super) trait Code<C>: Sized {
    fn from_code(code: C) -> Result<Self>;
    fn code(&self) -> C;
}

impl Code<i8> for Activation {
    fn from_code(code: i8) -> Result<Self> {
        Ok(match code {
            0 => Self::None,
            1 => Self::Relu,
            2 => Self::ReluN1To1,
            3 => Self::Relu6,
            4 => Self::Tanh,
            5 => Self::SignBit,
            _ => Self::Unknown(code),
        })
    }

    fn code(&self) -> i8 {
        match *self {
            Self::None => 0,
            Self::Relu => 1,
            Self::ReluN1To1 => 2,
            Self::Relu6 => 3,
            Self::Tanh => 4,
            Self::SignBit => 5,
            Self::Unknown(code) => code,
        }
    }
}

impl Code<i8> for Padding {
    fn from_code(code: i8) -> Result<Self> {
        match code {
            0 => Ok(Self::Same),
            1 => Ok(Self::Valid),
            _ => Err(Error::invalid(format!(
                "padding code {code} is neither SAME (0) nor VALID (1)"
            ))),
        }
    }

    fn code(&self) -> i8 {
        match self {
            Self::Same => 0,
            Self::Valid => 1,
        }
    }
}

impl Code<i8> for WeightsFormat {
    fn from_code(code: i8) -> Result<Self> {
        Ok(match code {
            0 => Self::Default,
            1 => Self::Shuffled4x16Int8,
            127 => Self::Shuffled16x1Float32,
            _ => Self::Unknown(code),
        })
    }

    fn code(&self) -> i8 {
        match *self {
            Self::Default => 0,
            Self::Shuffled4x16Int8 => 1,
            Self::Shuffled16x1Float32 => 127,
            Self::Unknown(code) => code,
        }
    }
}

/// Codes that the representation keeps.
impl Code<Self> for i8 {
    fn from_code(code: Self) -> Result<Self> {
        Ok(code)
    }

    fn code(&self) -> Self {
        *self
    }
}

/// Two-valued enumerations: the flag is whether it is the second value.
macro_rules! flag_codes {
    ($($ty:ty)*) => {$(
        impl Code<$ty> for bool {
            fn from_code(code: $ty) -> Result<Self> {
                match code {
                    0 => Ok(false),
                    1 => Ok(true),
                    _ => Err(Error::invalid(format!("option code {code} is neither 0 nor 1"))),
                }
            }

            fn code(&self) -> $ty {
                <$ty>::from(*self)
            }
        }
    )*};
}

flag_codes! { i8 i32 }

/// Codes of element types that both schemas share.
const COMMON_DTYPES: [DType; 18] = [
    DType::F32,
    DType::F16,
    DType::I32,
    DType::U8,
    DType::I64,
    DType::String,
    DType::Bool,
    DType::I16,
    DType::Complex64,
    DType::I8,
    DType::F64,
    DType::Complex128,
    DType::U64,
    DType::Resource,
    DType::Variant,
    DType::U32,
    DType::U16,
    DType::I4,
];

/// Codes of element types that differ between the schemas.
const fn own_dtypes(dialect: Dialect) -> &'static [(i8, DType)] {
    match dialect {
        Dialect::Tflite => &[(18, DType::BF16), (19, DType::I2), (20, DType::U4)],
        Dialect::Circle => &[(-1, DType::U4)],
    }
}

/// The element type with this code in a schema.
pub(super) fn dtype_from_code(dialect: Dialect, code: i8) -> DType {
    let common = usize::try_from(code).ok().and_then(|i| COMMON_DTYPES.get(i)).copied();
    let own = || own_dtypes(dialect).iter().find(|(c, _)| *c == code).map(|&(_, dtype)| dtype);
    common.or_else(own).unwrap_or(DType::Other(code))
}

/// The code of an element type in a schema, if it has one.
pub(super) fn dtype_code(dialect: Dialect, dtype: DType) -> Option<i8> {
    if let DType::Other(code) = dtype {
        return Some(code);
    }
    let common = COMMON_DTYPES.iter().position(|d| *d == dtype).and_then(|i| i8::try_from(i).ok());
    let own = || own_dtypes(dialect).iter().find(|(_, d)| *d == dtype).map(|&(code, _)| code);
    common.or_else(own)
}

/// Connects a schema's own enumeration types with the traits above.
macro_rules! wire_enums {
    ($dialect:expr) => {
        wire_enums! { @code
            ActivationFunctionType(i8) => Activation,
            Padding(i8) => Padding,
            FullyConnectedOptionsWeightsFormat(i8) => WeightsFormat,
            LSTMKernelType(i8) => bool,
            MirrorPadMode(i8) => bool,
            LSHProjectionType(i8) => i8,
            CombinerType(i8) => i8,
        }

        impl FromWire<schema::TensorType> for DType {
            fn from_wire(wire: schema::TensorType) -> Result<Self> {
                Ok(wire::dtype_from_code($dialect, wire.0))
            }
        }

        impl ToWire<'_, schema::TensorType> for DType {
            fn to_wire(
                &self,
                _: &mut FlatBufferBuilder<'_>,
            ) -> Result<schema::TensorType> {
                wire::dtype_code($dialect, *self)
                    .map(schema::TensorType)
                    .ok_or_else(|| {
                        Error::invalid(format!("{} has no element type {self}", $dialect))
                    })
            }
        }

        /// The schema's default, `FLOAT32`, means "not stated".
        impl FromWire<schema::TensorType> for Option<DType> {
            fn from_wire(wire: schema::TensorType) -> Result<Self> {
                let dtype = DType::from_wire(wire)?;
                Ok((dtype != DType::F32).then_some(dtype))
            }
        }

        impl ToWire<'_, schema::TensorType> for Option<DType> {
            fn to_wire(
                &self,
                builder: &mut FlatBufferBuilder<'_>,
            ) -> Result<schema::TensorType> {
                self.unwrap_or(DType::F32).to_wire(builder)
            }
        }
    };
    (@code $($wire:ident($code:ty) => $ours:ty,)*) => {$(
        impl FromWire<schema::$wire> for $ours {
            fn from_wire(wire: schema::$wire) -> Result<Self> {
                wire::Code::<$code>::from_code(wire.0)
            }
        }

        impl ToWire<'_, schema::$wire> for $ours {
            fn to_wire(&self, _: &mut FlatBufferBuilder<'_>) -> Result<schema::$wire> {
                Ok(schema::$wire(wire::Code::<$code>::code(self)))
            }
        }
    )*};
}
