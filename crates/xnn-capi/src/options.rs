//! Options of models, sessions and conversions.

use std::ffi::c_char;
use std::str::FromStr;

use xnn_delegate::lower::{UnknownName, operator_name};
use xnn_delegate::{PartitionOptions, RunnerOptions};
use xnn_lower::pass_name;

use crate::arguments::{delete, object_mut, optional_text, path, text};
use crate::error::{Result, guard, guard_or, xnnd_error_t};

/// Options of models, sessions and conversions. New options have defaults; functions take NULL for defaults, too.
///
/// The functions that take options copy them: later changes do not affect existing models and sessions.
///
/// Threads: only one thread at a time may change options, and no other may use them meanwhile.
#[derive(Clone, Debug, Default)]
pub struct xnnd_options_t {
    pub(crate) runner: RunnerOptions,
    pub(crate) signature: Option<String>,
}

/// A limit for what a file may request. Limits protect programs that open untrusted files.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum xnnd_limit_t {
    /// Bytes of all tensors together. Default: 1 GiB, or 4096 bytes for each byte of the file and of resized inputs if that
    /// is more.
    XNND_LIMIT_MEMORY = 0,
    /// Multiplications of a run. Default: 2^37, or 2^22 for each byte of the file and of resized inputs if that is more.
    XNND_LIMIT_WORK = 1,
    /// Bytes of one tensor. Default: 2^34.
    XNND_LIMIT_TENSOR_BYTES = 2,
    /// Iterations of one WHILE operator. Default: 10^7.
    XNND_LIMIT_LOOP_ITERATIONS = 3,
}

/// Parses a value and stores it in its option.
type Set = fn(&mut PartitionOptions, &str) -> Result<(), Unfit>;

/// The options that are set by name: name, accepted values for messages, and parser.
const NAMED: &[(&str, &str, Set)] = &[
    ("disable", "operator names separated by commas, such as SOFTMAX,MEAN", |options, value| {
        options.disable = names(value, operator_name)?;
        Ok(())
    }),
    (
        "disable_pass",
        "pass names separated by commas, such as transposes,clamps",
        |options, value| {
            options.optimize.disable = names(value, pass_name)?;
            Ok(())
        },
    ),
    ("dynamic_range", "auto, reference or rows", |options, value| {
        options.dynamic_range = parse(value)?;
        Ok(())
    }),
    ("keep_small", "true or false", |options, value| {
        options.keep_small = parse(value)?;
        Ok(())
    }),
    ("max_partitions", "a number", |options, value| {
        options.max_partitions = Some(parse(value)?);
        Ok(())
    }),
    ("min_partition_macs", "a number of multiply-accumulates", |options, value| {
        options.min_partition_macs = parse(value)?;
        Ok(())
    }),
    ("no_optimize", "true or false", |options, value| {
        options.optimize.off = parse(value)?;
        Ok(())
    }),
    ("u8_as_s8", "auto, off, exact or approx", |options, value| {
        options.optimize.signed_layers = parse(value)?;
        Ok(())
    }),
];

/// Reason why a value is not accepted.
enum Unfit {
    Value,
    Name(UnknownName),
}

fn parse<T: FromStr>(value: &str) -> Result<T, Unfit> {
    value.trim().parse().map_err(|_| Unfit::Value)
}

/// Splits a list at its commas and looks each name up with `find`.
fn names(
    value: &str,
    find: impl Fn(&str) -> Result<&'static str, UnknownName>,
) -> Result<Vec<String>, Unfit> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| find(name).map(str::to_owned).map_err(Unfit::Name)).collect()
}

impl xnnd_options_t {
    fn set(&mut self, name: &str, value: &str) -> Result {
        let Some((name, expected, set)) = NAMED.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = NAMED.iter().map(|(known, ..)| *known).collect();
            let known = known.join(", ");
            let message = format!("unknown option {name:?}; the options are {known}");
            return Err(xnnd_error_t::argument(message));
        };
        set(&mut self.runner.partition, value).map_err(|unfit| match unfit {
            Unfit::Value => xnnd_error_t::argument(format!(
                "option {name}: {value:?} is not valid; expected {expected}"
            )),
            Unfit::Name(unknown) => xnnd_error_t::argument(format!("option {name}: {unknown}")),
        })
    }

    fn set_limit(&mut self, limit: u32, value: u64) -> Result {
        let limits = &mut self.runner.limits;
        let amplification = &mut self.runner.partition.limits.amplification;
        if limit == xnnd_limit_t::XNND_LIMIT_MEMORY as u32 {
            limits.amplification.free_bytes = value;
            amplification.free_bytes = value;
        } else if limit == xnnd_limit_t::XNND_LIMIT_WORK as u32 {
            limits.amplification.free_work = value;
            amplification.free_work = value;
        } else if limit == xnnd_limit_t::XNND_LIMIT_TENSOR_BYTES as u32 {
            limits.max_tensor_bytes = usize::try_from(value).unwrap_or(usize::MAX);
        } else if limit == xnnd_limit_t::XNND_LIMIT_LOOP_ITERATIONS as u32 {
            limits.max_loop_iterations = value;
        } else {
            let message = format!("limit is {limit}; expected a value of xnnd_limit_t");
            return Err(xnnd_error_t::argument(message));
        }
        Ok(())
    }
}

/// The caller's options, or defaults.
///
/// # Safety
///
/// `options` is NULL, or valid and not modified meanwhile.
pub(crate) unsafe fn or_default(options: *const xnnd_options_t) -> xnnd_options_t {
    // SAFETY: as the caller of this function guarantees.
    unsafe { options.as_ref() }.cloned().unwrap_or_default()
}

/// Creates options with defaults. The caller deletes them with `xnnd_options_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn xnnd_options_new() -> *mut xnnd_options_t {
    guard_or(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Sets the number of threads that compute, including the one that calls `xnnd_session_run`. There are never more than
/// processors, and small models use fewer. Default: 1.
///
/// Errors: `threads` is 0 or greater than 1024.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set_threads(
    options: *mut xnnd_options_t,
    threads: usize,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or options that it has not deleted.
        let options = unsafe { object_mut(options, "options") }?;
        if !(1..=1024).contains(&threads) {
            let message = format!("threads is {threads}; expected 1 to 1024");
            return Err(xnnd_error_t::argument(message));
        }
        options.runner.session.threads = threads;
        Ok(())
    })
}

/// Sets whether sessions measure the time of each operator, for `xnnd_session_profile_json`. Default: false.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set_profile(
    options: *mut xnnd_options_t,
    profile: bool,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or options that it has not deleted.
        unsafe { object_mut(options, "options") }?.runner.session.profile = profile;
        Ok(())
    })
}

/// Sets the folder in which packed weights are stored for later processes. Any number of processes and models may share it,
/// and it may be emptied at any time. A user who can write to it can change what models compute. NULL: none, the default.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set_cache_dir(
    options: *mut xnnd_options_t,
    folder: *const c_char,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or options that it has not deleted.
        let options = unsafe { object_mut(options, "options") }?;
        options.runner.program.cache_dir = match folder.is_null() {
            true => None,
            // SAFETY: it is not NULL, and the caller passes a C string.
            false => Some(unsafe { path(folder, "folder") }?.to_owned()),
        };
        Ok(())
    })
}

/// Sets the signature that sessions run, and that is explained. Inputs and outputs have the signature's names. NULL: the
/// main subgraph, the default.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set_signature(
    options: *mut xnnd_options_t,
    key: *const c_char,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or options that it has not deleted, and NULL or a C string.
        let (options, key) =
            unsafe { (object_mut(options, "options")?, optional_text(key, "key")?) };
        options.signature = key.map(str::to_owned);
        Ok(())
    })
}

/// Sets a limit, one of `xnnd_limit_t`. Models are checked when they are opened, so that the same options belong to
/// `xnnd_model_open` and to `xnnd_session_new`.
///
/// Errors: there is no such limit.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set_limit(
    options: *mut xnnd_options_t,
    limit: u32,
    value: u64,
) -> *mut xnnd_error_t {
    // SAFETY: the caller passes NULL or options that it has not deleted.
    guard(|| unsafe { object_mut(options, "options") }?.set_limit(limit, value))
}

/// Sets an option of numerics or partitioning by name. These do not apply to blobs, which are partitioned already.
///
/// | name | value | default |
/// |---|---|---|
/// | `u8_as_s8` | compute uint8 layers as int8 layers: `exact` where weights fit, `approx` rounds others, `off`, `auto` | `auto` |
/// | `dynamic_range` | activations of layers with 8-bit weights: `reference` quantizes whole images like TFLite, `rows` is closer to fp32, `auto` | `auto` |
/// | `disable` | names of operators that are not delegated, separated by commas | none |
/// | `disable_pass` | names of optimizations to skip, separated by commas | none |
/// | `no_optimize` | `true`: do not optimize graphs | `false` |
/// | `keep_small` | `true`: delegate partitions even if they save less time than their boundary copies cost | `false` |
/// | `max_partitions` | largest number of partitions | unlimited |
/// | `min_partition_macs` | smallest number of multiply-accumulates of a partition | 0 |
///
/// Errors: there is no such option, operator or optimization, or the value is not valid.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_options_set(
    options: *mut xnnd_options_t,
    name: *const c_char,
    value: *const c_char,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL or options that it has not deleted, and NULL or C strings.
        let (options, name, value) = unsafe {
            (object_mut(options, "options")?, text(name, "name")?, text(value, "value")?)
        };
        options.set(name, value)
    })
}

/// Deletes options. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_options_delete(options: *mut xnnd_options_t) {
    // SAFETY: the caller passes NULL or options of this library that it has not deleted.
    unsafe { delete(options) }
}
