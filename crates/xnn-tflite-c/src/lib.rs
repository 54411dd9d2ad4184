//! `libtensorflowlite_c.so`: TFLite's C API over this project's interpreter.
//!
//! Programs and bindings that use TFLite's C library run on this one without a change: it has the
//! functions of `c_api.h`, `c_api_types.h`, `common.h`, `c_api_experimental.h`, `c_api_opaque.h`,
//! `operator.h` and of the constructors of the XNNPACK and external delegates. Each module is named
//! after its header. `docs/tflite-c-api.md` lists all functions: done, harmless stub, or refused.
//!
//! # Conventions
//!
//! Arguments are as TFLite's headers require. A pointer to an object is an `Option` of a reference
//! or a box, which has the same representation; null is accepted everywhere, and the function
//! then returns null, 0 or `kTfLiteError`. Panics do not cross the interface.

#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    reason = "names and contracts are those of TFLite's headers"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking"))]

pub mod c_api;
pub mod common;
mod core;
mod delegates;
pub mod experimental;
pub mod external_delegate;
mod instance;
pub mod opaque;
pub mod opaque_context;
pub mod operator;
pub mod options;
mod reporter;
pub mod signature_runner;
mod strings;
mod table;
pub mod tensor;
mod text;
pub mod xnnpack_delegate;

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use c_api::{TfLiteInterpreter, TfLiteModel};
pub use operator::TfLiteOperator;
pub use options::TfLiteInterpreterOptions;
pub use reporter::Callback;
pub use signature_runner::TfLiteSignatureRunner;
pub use xnn_tflite_abi as abi;

/// `kTfLiteApplicationError`: a delegate does not fit this interpreter.
pub const APPLICATION_ERROR: abi::TfLiteStatus = 3;
/// `kTfLiteUnresolvedOps`: an operator has no kernel.
pub const UNRESOLVED: abi::TfLiteStatus = 7;
/// `kTfLiteCancelled`: the run was cancelled.
pub const CANCELLED: abi::TfLiteStatus = 8;

/// Runs the body of an exported function. After a panic, the result is `failed`.
fn guard<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        reporter::Reporter::default().report(&panic_message(panic.as_ref()));
        failed
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal error: {}", said.unwrap_or("unknown"))
}

/// A string of the caller; `None` for a null pointer.
///
/// # Safety
/// `string` is null, or a C string that lives for `'a`.
unsafe fn c_str<'a>(string: *const c_char) -> Option<&'a CStr> {
    // SAFETY: guaranteed by the caller.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) })
}

/// The elements of a caller's array; empty for a null pointer or a length below 1.
///
/// # Safety
/// `array` is null, or has `len` elements that live for `'a`.
unsafe fn elements<'a, T>(array: *const T, len: i32) -> &'a [T] {
    match usize::try_from(len) {
        // SAFETY: guaranteed by the caller.
        Ok(len) if !array.is_null() => unsafe { std::slice::from_raw_parts(array, len) },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_results() {
        assert_eq!(guard(7, || 3), 3);
        assert_eq!(guard(7, || panic!("of a test")), 7);
        assert_eq!(panic_message(&"text"), "internal error: text");
        assert_eq!(panic_message(&"text".to_owned()), "internal error: text");
        assert_eq!(panic_message(&7), "internal error: unknown");
    }
}
