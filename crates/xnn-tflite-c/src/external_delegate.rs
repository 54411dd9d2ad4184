//! External delegates: `external_delegate.h`.
//!
//! This project's own delegate library is accepted: the interpreter does the same without it. Other
//! libraries cannot run here.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

use xnn_tflite_abi::{ERROR, OK, TfLiteDelegate, TfLiteStatus, c_struct};

use crate::delegates::{self, Settings};
use crate::reporter::Reporter;
use crate::{c_str, guard};

/// The delegate library of this project.
const OWN: &str = "libxnn_delegate.so";

/// Number of options that fit.
const CAPACITY: usize = 256;

/// `insert` of the options.
pub type Insert = unsafe extern "C" fn(
    Option<&mut TfLiteExternalDelegateOptions>,
    *const c_char,
    *const c_char,
) -> TfLiteStatus;

c_struct! {
    /// Options of an external delegate: keys and values.
    TfLiteExternalDelegateOptions: 4120 {
        /// Path of the library.
        lib_path @ 0: *const c_char,
        /// Number of options.
        count @ 8: c_int,
        /// Keys, which the caller owns.
        keys @ 16: [*const c_char; 256],
        /// Values, which the caller owns.
        values @ 2064: [*const c_char; 256],
        /// Adds an option.
        insert @ 4112: Option<Insert>,
    }
}

/// Adds an option, if there is capacity for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteExternalDelegateOptionsInsert(
    options: Option<&mut TfLiteExternalDelegateOptions>,
    key: *const c_char,
    value: *const c_char,
) -> TfLiteStatus {
    let Some(options) = options else { return ERROR };
    let place = usize::try_from(options.count).unwrap_or(CAPACITY);
    match (options.keys.get_mut(place), options.values.get_mut(place)) {
        (Some(key_place), Some(value_place)) => {
            (*key_place, *value_place) = (key, value);
            options.count += 1;
            OK
        }
        _ => ERROR,
    }
}

/// Returns options with a library, and nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteExternalDelegateOptionsDefault(
    lib_path: *const c_char,
) -> TfLiteExternalDelegateOptions {
    TfLiteExternalDelegateOptions {
        lib_path,
        count: 0,
        keys: [ptr::null(); CAPACITY],
        values: [ptr::null(); CAPACITY],
        insert: Some(TfLiteExternalDelegateOptionsInsert),
    }
}

/// Creates a delegate. Returns null, with a message on standard error, unless the library is
/// `libxnn_delegate.so` and the options are `num_threads` and `cache_dir`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteExternalDelegateCreate(
    options: Option<&TfLiteExternalDelegateOptions>,
) -> *mut TfLiteDelegate {
    guard(ptr::null_mut(), || {
        // SAFETY: the strings of the options are valid as the header requires.
        match unsafe { settings(options) } {
            Ok(settings) => delegates::create(settings),
            Err(message) => {
                Reporter::default().report(&message);
                ptr::null_mut()
            }
        }
    })
}

/// # Safety
/// Strings are null or C strings that live during the call.
unsafe fn settings(options: Option<&TfLiteExternalDelegateOptions>) -> Result<Settings, String> {
    let options = options.ok_or("the options of the external delegate are a null pointer")?;
    let text = |string: *const c_char| {
        // SAFETY: guaranteed by the caller.
        unsafe { c_str(string) }.map(CStr::to_string_lossy).unwrap_or_default()
    };
    let path = text(options.lib_path);
    if Path::new(path.as_ref()).file_name().is_none_or(|name| name != OWN) {
        return Err(format!(
            "external delegate {path:?}: only {OWN} can be used; {}",
            delegates::REFUSAL
        ));
    }
    let count = usize::try_from(options.count).unwrap_or(0);
    let mut settings = Settings::default();
    for (&key, &value) in options.keys.iter().zip(&options.values).take(count) {
        let (key, value) = (text(key), text(value));
        match key.as_ref() {
            "num_threads" => {
                let threads = value.parse().ok().filter(|&threads: &usize| threads > 0);
                let invalid =
                    || format!("option num_threads: expected a number above 0, found {value:?}");
                settings.threads = Some(threads.ok_or_else(invalid)?);
            }
            "cache_dir" => settings.cache_dir = Some(PathBuf::from(value.as_ref())),
            _ => {
                return Err(format!(
                    "option {key:?} has no effect in this library, whose external delegate has \
                     num_threads and cache_dir; remove it"
                ));
            }
        }
    }
    Ok(settings)
}

/// Destroys a delegate.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteExternalDelegateDelete(delegate: *mut TfLiteDelegate) {
    guard((), || delegates::delete(delegate));
}
