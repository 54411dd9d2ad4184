//! Conversion of models to blobs.

use std::ffi::c_char;
use std::fs;
use std::path::Path;

use xnn_delegate::blob::{Compat, pack};
use xnn_delegate::{ConvertOptions, Converted, ModelFile, Source};

use crate::arguments::{give, new_object, path};
use crate::bytes::xnnd_bytes_t;
use crate::error::{Result, cannot_write, guard, xnnd_error_t};
use crate::model::{model, xnnd_format_t, xnnd_model_t};
use crate::options::{or_default, xnnd_options_t};

/// Fail if the model is not fully delegated.
pub const XNND_CONVERT_REQUIRE_FULL: u32 = 1;
/// Also store the weights as XNNPACK packs them for this processor. The file is about twice as large, and loads without
/// packing on such processors. The only flag for a blob, which gets packed weights then.
pub const XNND_CONVERT_PACK: u32 = 2;
/// Write only nodes that ExecuTorch 0.4 and later support. Implies `XNND_CONVERT_REQUIRE_FULL`.
pub const XNND_CONVERT_EXECUTORCH: u32 = 4;

const ALL: u32 = XNND_CONVERT_REQUIRE_FULL | XNND_CONVERT_PACK | XNND_CONVERT_EXECUTORCH;

fn convert(model: &xnnd_model_t, options: xnnd_options_t, flags: u32) -> Result<Converted> {
    if flags & !ALL != 0 {
        let message = format!("flags is {flags:#x}; expected a combination of XNND_CONVERT_*");
        return Err(xnnd_error_t::argument(message));
    }
    if let (ModelFile::Blob(blob), XNND_CONVERT_PACK) = (&model.file, flags) {
        return Ok(Converted::Whole(pack(blob)?));
    }
    let source = match &model.path {
        Some(path) => Source::of_file(path)?,
        None => Source::default(),
    };
    let has = |flag: u32| flags & flag != 0;
    let compat = if has(XNND_CONVERT_EXECUTORCH) { Compat::Executorch } else { Compat::default() };
    let options = ConvertOptions::default()
        .with_partition(options.runner.partition)
        .with_compat(compat)
        .with_require_full(has(XNND_CONVERT_REQUIRE_FULL))
        .with_pack(has(XNND_CONVERT_PACK));
    Ok(xnn_delegate::convert(model.as_model("converted")?, &source, &options)?)
}

/// Format of a converted file.
fn format(model: &xnnd_model_t, converted: &Converted) -> xnnd_format_t {
    match converted {
        Converted::Whole(_) => xnnd_format_t::XNND_FORMAT_BLOB,
        Converted::Partial(_) => model.format(),
    }
}

/// Converts a fully delegated model to a blob, and another model to a model of the same format, in which blobs replace the
/// partitions. `flags` is 0 or a combination of `XNND_CONVERT_*`. The caller deletes `*out` with `xnnd_bytes_delete`.
///
/// `format` may be NULL. On success, it is set to the format of the result.
///
/// Errors: an operator is not delegated, if all must be or none is; ExecuTorch does not support a node, if it must; the
/// file is a blob already.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_convert(
    model: *const xnnd_model_t,
    options: *const xnnd_options_t,
    flags: u32,
    format: *mut xnnd_format_t,
    out: *mut *mut xnnd_bytes_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place, a model and options that it has not deleted.
        let (out, model, options) =
            unsafe { (new_object(out)?, self::model(model)?, or_default(options)) };
        let converted = convert(model, options, flags)?;
        if !format.is_null() {
            // SAFETY: it is not NULL, and the caller passes a valid place.
            unsafe { format.write(self::format(model, &converted)) };
        }
        give(out, xnnd_bytes_t::new(converted.into_bytes()));
        Ok(())
    })
}

/// Converts as `xnnd_model_convert` to a file, which is written atomically and replaced if it exists.
///
/// Errors: those of `xnnd_model_convert`; the file cannot be written, or is the model's own.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_convert_to_file(
    model: *const xnnd_model_t,
    options: *const xnnd_options_t,
    flags: u32,
    path: *const c_char,
    format: *mut xnnd_format_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a C string, a model and options that it has not deleted.
        let (model, path, options) =
            unsafe { (self::model(model)?, self::path(path, "path")?, or_default(options)) };
        if model.path.as_deref().is_some_and(|source| is_same_file(source, path)) {
            let message = format!(
                "{}: the output would overwrite its input; choose another file",
                path.display()
            );
            return Err(xnnd_error_t::argument(message));
        }
        let converted = convert(model, options, flags)?;
        xnn_format::write_atomic(path, converted.bytes())
            .map_err(|error| cannot_write(path, &error))?;
        if !format.is_null() {
            // SAFETY: it is not NULL, and the caller passes a valid place.
            unsafe { format.write(self::format(model, &converted)) };
        }
        Ok(())
    })
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
