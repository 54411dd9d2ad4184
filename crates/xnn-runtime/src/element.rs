//! Numeric types that tensors can be viewed as.

use xnn_format::Datatype;
use xnnpack::Element;

use crate::error::{Result, RuntimeError};

/// A numeric type that represents the elements of certain datatypes.
pub trait TensorElement: Element + 'static {
    /// Datatypes with elements of this type.
    const DATATYPES: &'static [Datatype];
}

macro_rules! tensor_elements {
    ($($type:ty: $($datatype:ident)*;)*) => {
        $(impl TensorElement for $type {
            const DATATYPES: &'static [Datatype] = &[$(Datatype::$datatype),*];
        })*
    };
}

tensor_elements! {
    f32: F32;
    i32: Int32 QInt32 QcInt32;
    i8: QInt8 QcInt8;
    u8: QUint8;
    u16: F16 Bf16;
}

/// Refuses a view of a tensor as another element type.
pub(crate) fn expect<T: TensorElement>(datatype: Datatype) -> Result<()> {
    if T::DATATYPES.contains(&datatype) {
        return Ok(());
    }
    Err(RuntimeError::argument(format!(
        "the elements are {}, which cannot be viewed as {}",
        datatype.name(),
        std::any::type_name::<T>()
    )))
}
