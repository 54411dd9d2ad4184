//! Files that programs link beside a standard library that is built from source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::targets::Target;
use super::toolchain::rustc_command;
use crate::venv;

/// Where the files come from and go to.
pub struct Place<'a> {
    pub target: &'a Target,
    /// The folder `library` of Rust's sources.
    pub sources: &'a Path,
    /// The folder of the standard library.
    pub libraries: &'a Path,
}

/// Makes the files of a target.
pub type Extras = fn(&Place<'_>) -> Result<()>;

/// The system's compiler has everything.
pub fn none(_: &Place<'_>) -> Result<()> {
    Ok(())
}

/// musl's objects in which a program starts, from Debian's package `musl-dev`.
const MUSL_OBJECTS: [&str; 5] = ["crt1.o", "rcrt1.o", "crti.o", "crtn.o", "libc.a"];
/// GCC's.
const GCC_OBJECTS: [&str; 4] = ["crtbegin.o", "crtbeginS.o", "crtend.o", "crtendS.o"];
/// A function that Debian's GCC calls to unwind the stack, and that glibc alone has.
const FIND_OBJECT: &str = include_str!("find_object.c");

/// The content of the folder `self-contained` of Rust's standard library for musl: a C library, the objects in which a program starts,
/// and a library that unwinds the stack.
pub fn musl(place: &Place<'_>) -> Result<()> {
    let to = place.libraries.join("self-contained");
    fs::create_dir_all(&to)?;
    for name in MUSL_OBJECTS {
        copy(&path_in("musl-gcc", name)?, &to.join(name))?;
    }
    for name in GCC_OBJECTS {
        copy(&path_in("gcc", name)?, &to.join(name))?;
    }
    let unwinder = to.join("libunwind.a");
    copy(&path_in("gcc", "libgcc_eh.a")?, &unwinder)?;
    let source = to.join("find_object.c");
    let object = to.join("find_object.o");
    fs::write(&source, FIND_OBJECT)?;
    venv::run(
        Command::new("musl-gcc").args(["-O2", "-fPIC", "-c"]).arg(&source).arg("-o").arg(&object),
    )?;
    venv::run(Command::new("ar").arg("r").arg(&unwinder).arg(&object))?;
    fs::remove_file(source)?;
    fs::remove_file(object)?;
    Ok(())
}

/// Path of a file that the compiler links.
fn path_in(compiler: &str, name: &str) -> Result<PathBuf> {
    if compiler == "musl-gcc" {
        return Ok(Path::new("/usr/lib/x86_64-linux-musl").join(name));
    }
    let output = Command::new(compiler).arg(format!("-print-file-name={name}")).output();
    let output = output.with_context(|| format!("cannot start {compiler}"))?;
    ensure!(output.status.success(), "{compiler} -print-file-name={name}: {}", output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// The program with which Wine runs Windows programs.
pub const WINE: &str = "wine";
/// A function that Rust's standard library calls, and that Wine 8 does not have.
const PROCESS_PRNG: &str = include_str!("process_prng.c");

/// Compiles the library `bcryptprimitives.dll` beside Windows programs, where Wine looks for it.
pub fn library_for_wine(target: &Target, folder: &Path) -> Result<()> {
    let source = folder.join("process_prng.c");
    fs::write(&source, PROCESS_PRNG)?;
    let mut compile = Command::new(target.linker);
    compile.args(["-shared", "-O2"]).arg(&source).arg("-o");
    venv::run(compile.arg(folder.join("bcryptprimitives.dll")).arg("-ladvapi32"))?;
    fs::remove_file(source)?;
    Ok(())
}

/// Objects that Rust links into every program for Windows.
const STARTUP: [&str; 2] = ["rsbegin", "rsend"];

/// Compiles the objects that Rust links into every program for Windows.
pub fn windows(place: &Place<'_>) -> Result<()> {
    for name in STARTUP {
        let mut command = rustc_command();
        command
            .args(["--target", place.target.triple, "--emit=obj", "-O", "-o"])
            .arg(place.libraries.join(format!("{name}.o")))
            .arg(place.sources.join("rtstartup").join(format!("{name}.rs")))
            .env("RUSTC_BOOTSTRAP", "1");
        venv::run(&mut command)?;
    }
    Ok(())
}
