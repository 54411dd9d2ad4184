//! Generation of the bindings, for the feature `bindgen` of this crate and for `cargo xtask codegen`.

use std::path::Path;

/// Generates the bindings of `xnnpack.h` and `pthreadpool.h`.
///
/// `xnnpack_include` and `pthreadpool_include` are the folders of the two
/// headers. The headers' comments are left out: they are third-party text.
pub fn generate(xnnpack_include: &Path, pthreadpool_include: &Path) -> Result<String, String> {
    let bindings = bindgen::Builder::default()
        .header(xnnpack_include.join("xnnpack.h").display().to_string())
        .clang_arg(format!("-I{}", pthreadpool_include.display()))
        .allowlist_item("(xnn|XNN)_.*")
        .allowlist_function("pthreadpool_(create|destroy|get_threads_count|parallelize_1d)")
        .allowlist_var("PTHREADPOOL_FLAG_YIELD_WORKERS")
        .blocklist_item("XNN_DEPRECATED")
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: true })
        .prepend_enum_name(false)
        .default_macro_constant_type(bindgen::MacroTypeVariation::Unsigned)
        .rust_target(rust_target()?)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .generate_comments(false)
        .layout_tests(true)
        .merge_extern_blocks(true)
        .use_core()
        .generate()
        .map_err(|error| error.to_string())?;
    // The layouts are those of the machine that generates the bindings.
    let checks = "#[allow(clippy::unnecessary_operation, clippy::identity_op)]\nconst _: () = {";
    let on_64_bits = format!("#[cfg(target_pointer_width = \"64\")]\n{checks}");
    Ok(bindings.to_string().replace(checks, &on_64_bits))
}

/// The oldest Rust with the edition that the bindings are written for, so that
/// the output does not depend on the machine's own toolchain.
fn rust_target() -> Result<bindgen::RustTarget, String> {
    bindgen::RustTarget::stable(85, 0).map_err(|error| error.to_string())
}
