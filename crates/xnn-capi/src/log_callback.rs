//! Log messages for the caller.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::{Once, PoisonError, RwLock};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::error::{guard, xnnd_error_t};
use crate::text::c_string;

/// Level of a log message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum xnnd_log_level_t {
    /// No message has this level: `xnnd_set_log` turns messages off with it.
    XNND_LOG_OFF = 0,
    /// Something failed.
    XNND_LOG_ERROR = 1,
    /// Something works differently than the caller may expect.
    XNND_LOG_WARN = 2,
    /// Progress of the library.
    XNND_LOG_INFO = 3,
    /// Details for users of the library.
    XNND_LOG_DEBUG = 4,
    /// Details for its developers.
    XNND_LOG_TRACE = 5,
}

/// Function that gets log messages, in UTF-8 and without a final newline. The message exists during the call only.
///
/// Any thread that uses the library calls it, several at the same time. It may use the library, except for `xnnd_set_log`;
/// messages of these calls are dropped.
pub type xnnd_log_callback_t = Option<
    unsafe extern "C" fn(context: *mut c_void, level: xnnd_log_level_t, message: *const c_char),
>;

struct Callback {
    function: unsafe extern "C" fn(*mut c_void, xnnd_log_level_t, *const c_char),
    context: *mut c_void,
}

// SAFETY: the caller of `xnnd_set_log` allows calls from any thread, with its context.
unsafe impl Send for Callback {}
// SAFETY: as above, also at the same time.
unsafe impl Sync for Callback {}

/// The callback of the process. A message is passed on while the lock is held, so that a replaced callback is not running.
static CALLBACK: RwLock<Option<Callback>> = RwLock::new(None);

thread_local! {
    /// Whether this thread runs the callback.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) || IS_CALLING.replace(true) {
            return;
        }
        if let Some(callback) = &*CALLBACK.read().unwrap_or_else(PoisonError::into_inner) {
            let message = c_string(record.args().to_string());
            let level = match record.level() {
                Level::Error => xnnd_log_level_t::XNND_LOG_ERROR,
                Level::Warn => xnnd_log_level_t::XNND_LOG_WARN,
                Level::Info => xnnd_log_level_t::XNND_LOG_INFO,
                Level::Debug => xnnd_log_level_t::XNND_LOG_DEBUG,
                Level::Trace => xnnd_log_level_t::XNND_LOG_TRACE,
            };
            // SAFETY: the caller of `xnnd_set_log` passes a function that accepts its context and a C string.
            unsafe { (callback.function)(callback.context, level, message.as_ptr()) }
        }
        IS_CALLING.set(false);
    }

    fn flush(&self) {}
}

/// Sets the function that gets the log messages of the process, up to `level`, one of `xnnd_log_level_t`. NULL, or
/// `XNND_LOG_OFF`: none, the default. When this function returns, the previous callback is not running and is not called
/// again.
///
/// Threads: any thread may call it, but not the callback itself.
///
/// Errors: there is no such level; the call comes from the callback.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_set_log(
    level: u32,
    callback: xnnd_log_callback_t,
    context: *mut c_void,
) -> *mut xnnd_error_t {
    static INSTALL: Once = Once::new();
    guard(|| {
        let filter = LevelFilter::iter().find(|filter| *filter as u32 == level);
        let filter = filter.ok_or_else(|| {
            xnnd_error_t::argument(format!(
                "level is {level}; expected a value of xnnd_log_level_t"
            ))
        })?;
        if IS_CALLING.get() {
            return Err(xnnd_error_t::state(
                "the log callback cannot be replaced from within itself",
            ));
        }
        INSTALL.call_once(|| {
            // Fails if a Rust program that contains this crate has a logger already, which then gets the messages.
            let _ = log::set_logger(&Logger);
        });
        let callback = callback.map(|function| Callback { function, context });
        let is_on = callback.is_some() && level != xnnd_log_level_t::XNND_LOG_OFF as u32;
        *CALLBACK.write().unwrap_or_else(PoisonError::into_inner) = callback;
        log::set_max_level(if is_on { filter } else { LevelFilter::Off });
        Ok(())
    })
}
