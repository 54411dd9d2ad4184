//! Kernels that callers define: `operator.h`.
//!
//! The objects can be made and read, so that programs that register kernels for other models run.
//! The kernels themselves cannot run here: see `TfLiteInterpreterOptionsAddOperator`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use xnn_model::op::Op;
use xnn_tflite_abi::{ERROR, OK, TfLiteStatus};

use crate::{c_str, guard};

/// `kTfLiteBuiltinCustom`.
const CUSTOM: c_int = 32;

/// A kernel of the caller.
#[derive(Debug)]
pub struct TfLiteOperator {
    builtin_code: c_int,
    custom_name: Option<CString>,
    version: c_int,
    user_data: *mut c_void,
}

impl TfLiteOperator {
    /// Name of the operator that the kernel is for.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.custom_name {
            Some(name) => Some(name.to_string_lossy().into_owned()),
            None => Op::name_of(self.builtin_code).map(str::to_owned),
        }
    }
}

/// A function of a kernel. It is never called.
pub type Function = unsafe extern "C" fn();

/// Creates a kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOperatorCreate(
    builtin_code: c_int,
    custom_name: *const c_char,
    version: c_int,
    user_data: *mut c_void,
) -> Option<Box<TfLiteOperator>> {
    guard(None, || {
        // SAFETY: guaranteed by the caller.
        let custom_name = unsafe { c_str(custom_name) }.map(CStr::to_owned);
        Some(Box::new(TfLiteOperator { builtin_code, custom_name, version, user_data }))
    })
}

/// Destroys a kernel.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorDelete(registration: Option<Box<TfLiteOperator>>) {
    drop(registration);
}

/// Returns the code of the operator.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorGetBuiltInCode(registration: Option<&TfLiteOperator>) -> c_int {
    registration.map_or(CUSTOM, |operator| operator.builtin_code)
}

/// Returns the name of a custom operator; null for builtin ones.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorGetCustomName(
    registration: Option<&TfLiteOperator>,
) -> *const c_char {
    let name = registration.and_then(|operator| operator.custom_name.as_ref());
    name.map_or(ptr::null(), |name| name.as_ptr())
}

/// Returns the version of the operator.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorGetVersion(registration: Option<&TfLiteOperator>) -> c_int {
    registration.map_or(-1, |operator| operator.version)
}

/// Returns the caller's data.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorGetUserData(registration: Option<&TfLiteOperator>) -> *mut c_void {
    registration.map_or(ptr::null_mut(), |operator| operator.user_data)
}

/// Creates a kernel: the name before version 2.15.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteRegistrationExternalCreate(
    builtin_code: c_int,
    custom_name: *const c_char,
    version: c_int,
) -> Option<Box<TfLiteOperator>> {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteOperatorCreate(builtin_code, custom_name, version, ptr::null_mut()) }
}

/// Destroys a kernel: the name before version 2.15.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteRegistrationExternalDelete(registration: Option<Box<TfLiteOperator>>) {
    drop(registration);
}

/// Returns the code of the operator: the name before version 2.15.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteRegistrationExternalGetBuiltInCode(
    registration: Option<&TfLiteOperator>,
) -> c_int {
    TfLiteOperatorGetBuiltInCode(registration)
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident, $with_data:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            _registration: Option<&TfLiteOperator>,
            _function: Option<Function>,
        ) {
        }

        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $with_data(
            registration: Option<&TfLiteOperator>,
            _function: Option<Function>,
        ) -> TfLiteStatus {
            if registration.is_some() { OK } else { ERROR }
        }
    )*};
}

setters! {
    /// Accepts a function that is never called.
    TfLiteOperatorSetInit, TfLiteOperatorSetInitWithData;
    /// Accepts a function that is never called.
    TfLiteOperatorSetFree, TfLiteOperatorSetFreeWithData;
    /// Accepts a function that is never called.
    TfLiteOperatorSetPrepare, TfLiteOperatorSetPrepareWithData;
    /// Accepts a function that is never called.
    TfLiteOperatorSetInvoke, TfLiteOperatorSetInvokeWithData;
    /// Accepts a function that is never called.
    TfLiteOperatorSetAsyncKernel, TfLiteOperatorSetAsyncKernelWithData;
}

macro_rules! old_setters {
    ($($name:ident;)*) => {$(
        /// Accepts a function that is never called: the name before version 2.15.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            _registration: Option<&TfLiteOperator>,
            _function: Option<Function>,
        ) {
        }
    )*};
}

old_setters! {
    TfLiteRegistrationExternalSetInit;
    TfLiteRegistrationExternalSetFree;
    TfLiteRegistrationExternalSetPrepare;
    TfLiteRegistrationExternalSetInvoke;
}

/// Accepts flags that have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOperatorSetInplaceOperator(
    _registration: Option<&TfLiteOperator>,
    _inplace_operator: u64,
) {
}
