//! Links the libraries and installs them with headers and package files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::venv::run;

/// Version of the library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Version of the interface, which programs record: raised by incompatible changes.
const SOVERSION: &str = "0";
/// Libraries that Rust's standard library needs.
const PRIVATE_LIBS: [&str; 4] = ["-lgcc_s", "-lpthread", "-lm", "-ldl"];

/// Installs the library that cargo has built, an archive of all its objects.
pub fn install(root: &Path, archive: &Path, prefix: &Path, strip: bool) -> Result<()> {
    let source = root.join("crates/xnn-capi");
    for folder in ["include", "lib/pkgconfig", "lib/cmake/xnn"] {
        let folder = prefix.join(folder);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let lib = prefix.join("lib");
    let object = combine(&source, archive, &lib, strip)?;
    link_shared(&source, &object, &lib)?;
    let static_library = lib.join("libxnn.a");
    remove(&static_library)?;
    run(Command::new("ar").arg("crs").arg(&static_library).arg(&object))?;
    remove(&object)?;

    for header in ["xnn.h", "xnn.hpp"] {
        copy(&source.join("include").join(header), &prefix.join("include").join(header))?;
    }
    let templates = [
        ("xnn.pc.in", "lib/pkgconfig/xnn.pc"),
        ("cmake/xnnConfig.cmake", "lib/cmake/xnn/xnnConfig.cmake"),
        ("cmake/xnnConfigVersion.cmake", "lib/cmake/xnn/xnnConfigVersion.cmake"),
    ];
    for (from, to) in templates {
        fill(&source.join(from), &prefix.join(to))?;
    }
    check_symbols(&lib)
}

/// Combines the archive to one object whose only global symbols are those of the C interface, so that XNNPACK and Rust's
/// standard library in it do not clash with others of the same program.
fn combine(source: &Path, archive: &Path, lib: &Path, strip: bool) -> Result<std::path::PathBuf> {
    let (object, list) = (lib.join("xnn.o"), lib.join("symbols.txt"));
    let symbols = versioned_symbols(source)?;
    fs::write(&list, symbols.join("\n"))?;
    let mut link = Command::new(compiler("CC", "cc"));
    // Groups of sections are known by name: those of another Rust library would replace them.
    link.args(["-r", "-nostdlib", "-Wl,--force-group-allocation", "-o"]).arg(&object);
    // GNU ld, because other linkers do not have this option.
    link.arg("-fuse-ld=bfd");
    link.args(symbols.iter().map(|symbol| format!("-Wl,-u,{symbol}"))).arg(archive);
    run(&mut link)?;
    let mut hide = Command::new("objcopy");
    hide.arg(format!("--keep-global-symbols={}", list.display()));
    // Bitcode of Rust's standard library, which is damaged by combining objects, and which `ar` would try to read.
    hide.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
    hide.args(strip.then_some("--strip-debug")).arg(&object);
    run(&mut hide)?;
    remove(&list)?;
    Ok(object)
}

/// Links the shared library, with versions of symbols, and its links for programs and for compilers.
///
/// Rustc cannot do it: it passes a version script without versions to the linker, which GNU ld refuses to combine with
/// another, and which other linkers prefer.
fn link_shared(source: &Path, object: &Path, lib: &Path) -> Result<()> {
    let (file, soname) = (format!("libxnn.so.{VERSION}"), format!("libxnn.so.{SOVERSION}"));
    let mut link = Command::new(compiler("CC", "cc"));
    link.arg("-shared").arg("-o").arg(lib.join(&file)).arg(object);
    link.arg(format!("-Wl,-soname,{soname}"));
    link.arg(format!("-Wl,--version-script={}", source.join("libxnn.map").display()));
    // Threads that are about to end still run the library's code after a `dlclose`.
    link.args([
        "-Wl,-z,nodelete",
        "-Wl,-z,relro",
        "-Wl,-z,now",
        "-Wl,--gc-sections",
        "-Wl,--no-undefined",
    ]);
    link.args(PRIVATE_LIBS);
    run(&mut link)?;
    for (name, target) in [(soname.as_str(), file.as_str()), ("libxnn.so", soname.as_str())] {
        remove(&lib.join(name))?;
        symlink(target, lib.join(name))?;
    }
    Ok(())
}

/// Names in the version script.
fn versioned_symbols(source: &Path) -> Result<Vec<String>> {
    let script = fs::read_to_string(source.join("libxnn.map"))?;
    let names = script.lines().map(str::trim).filter_map(|line| line.strip_suffix(';'));
    let names: Vec<String> =
        names.filter(|name| name.starts_with("xnnd_")).map(str::to_owned).collect();
    ensure!(!names.is_empty(), "libxnn.map has no symbols");
    Ok(names)
}

/// Only functions of the C interface are visible, and those of the shared library have a version.
fn check_symbols(lib: &Path) -> Result<()> {
    let shared =
        output(Command::new("nm").args(["-D", "--defined-only"]).arg(lib.join("libxnn.so")))?;
    let archive =
        output(Command::new("nm").args(["-g", "--defined-only"]).arg(lib.join("libxnn.a")))?;
    let names = |text: &str| -> Vec<String> {
        let fields = text.lines().filter_map(|line| line.split_whitespace().nth(2));
        fields.map(str::to_owned).collect()
    };
    let (shared, archive) = (names(&shared), names(&archive));
    let functions = archive.len();
    ensure!(
        functions > 0 && archive.iter().all(|name| name.starts_with("xnnd_")),
        "libxnn.a has other global symbols: {archive:?}"
    );
    // The version itself is a symbol, too.
    let is_versioned = |name: &String| name.starts_with("xnnd_") && name.contains("@@XNN_");
    let versioned = shared.iter().filter(|name| is_versioned(name)).count();
    let others: Vec<&String> =
        shared.iter().filter(|name| !is_versioned(name) && !name.starts_with("XNN_")).collect();
    ensure!(others.is_empty() && versioned == functions, "libxnn.so has other symbols: {others:?}");
    let dynamic = output(Command::new("readelf").arg("-d").arg(lib.join("libxnn.so")))?;
    ensure!(
        dynamic.contains(&format!("[libxnn.so.{SOVERSION}]")),
        "libxnn.so has no SONAME libxnn.so.{SOVERSION}"
    );
    println!("{functions} symbols, all xnnd_*");
    Ok(())
}

/// Installs a template.
fn fill(from: &Path, to: &Path) -> Result<()> {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    let text = fs::read_to_string(from).with_context(|| from.display().to_string())?;
    let text = text
        .replace("@VERSION@", VERSION)
        .replace("@VERSION_MINOR@", minor)
        .replace("@SOVERSION@", SOVERSION)
        .replace("@PRIVATE_LIBS@", &PRIVATE_LIBS.join(" "))
        .replace(
            "@PRIVATE_LIBS_CMAKE@",
            &PRIVATE_LIBS.map(|lib| lib.trim_start_matches("-l")).join(";"),
        );
    fs::write(to, text).with_context(|| to.display().to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// The compiler in an environment variable, which may have arguments.
pub fn compiler(variable: &str, default: &str) -> String {
    let chosen = std::env::var(variable).unwrap_or_default();
    // A launcher such as ccache would only add time.
    let program = chosen.split_whitespace().last().unwrap_or(default);
    program.to_owned()
}

/// Standard output of a command that succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed ({}): {stderr}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A path within another as an argument.
pub fn flag(name: &str, path: &Path) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(name);
    flag.push(OsStr::new(path));
    flag
}
