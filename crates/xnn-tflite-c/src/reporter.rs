//! Error reporters: where messages are written.

use std::ffi::{CString, c_char, c_void};
use std::io::Write;

/// A reporter of the caller: `void (*)(void* user_data, const char* format, va_list args)`. A
/// `va_list` argument is a pointer on the supported targets.
pub type Callback = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void);

unsafe extern "C" {
    /// Calls a reporter with a `va_list` of the variable arguments (`report.c`).
    fn xnn_tflite_c_report(reporter: Callback, user_data: *mut c_void, format: *const c_char, ...);
}

/// A reporter of the caller, or standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    callback: Option<Callback>,
    user_data: *mut c_void,
}

// SAFETY: the pointer is only passed to the caller's function, on the thread that called this
// library. TFLite calls reporters in the same way.
unsafe impl Send for Reporter {}
// SAFETY: see above.
unsafe impl Sync for Reporter {}

impl Default for Reporter {
    fn default() -> Self {
        Self { callback: None, user_data: std::ptr::null_mut() }
    }
}

impl Reporter {
    pub(crate) fn new(callback: Option<Callback>, user_data: *mut c_void) -> Self {
        Self { callback, user_data }
    }

    /// Reports a message. Must not be called while state is locked, because the callback may call
    /// the library.
    pub(crate) fn report(&self, message: &str) {
        let Some(callback) = self.callback else {
            // There is no one to tell about a closed standard error.
            let _ = writeln!(std::io::stderr(), "ERROR: {message}");
            return;
        };
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the format has one argument, a string that lives during the call. The callback
        // and its data are valid as the header requires.
        unsafe { xnn_tflite_c_report(callback, self.user_data, c"%s".as_ptr(), message.as_ptr()) };
    }
}
