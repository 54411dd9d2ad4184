//! Compiles and runs the tests and examples of the C library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use super::install::{compiler, flag, output};
use crate::venv::run;

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Ways to run the tests besides the plain one.
pub struct Modes {
    pub valgrind: bool,
    pub asan: bool,
}

/// A program of `tests/c`, and its arguments: the models, a file to write, smaller numbers for slow ways to run.
struct Program {
    source: &'static str,
    arguments: &'static [&'static str],
    slow_arguments: &'static [&'static str],
    links_statically: bool,
}

const PROGRAMS: [Program; 5] = [
    Program {
        source: "errors.c",
        arguments: &["MODELS", "300"],
        slow_arguments: &["MODELS", "10"],
        links_statically: false,
    },
    Program {
        source: "run.c",
        arguments: &["MODELS", "WORK/test.xnn"],
        slow_arguments: &["MODELS", "WORK/test.xnn"],
        links_statically: false,
    },
    Program {
        source: "threads.c",
        arguments: &["MODELS", "32"],
        slow_arguments: &["MODELS", "4"],
        links_statically: false,
    },
    Program {
        source: "cpp.cpp",
        arguments: &["MODELS"],
        slow_arguments: &["MODELS"],
        links_statically: false,
    },
    Program {
        source: "clash.c",
        arguments: &["MODELS"],
        slow_arguments: &["MODELS"],
        links_statically: true,
    },
];

/// Folders of the tests: the checkout, the installed library, and one for programs.
struct Bench<'a> {
    root: &'a Path,
    prefix: &'a Path,
    work: &'a Path,
}

/// Compiles and runs everything against the library in `prefix`.
pub fn test(root: &Path, prefix: &Path, work: &Path, modes: &Modes) -> Result<()> {
    fs::create_dir_all(work).with_context(|| work.display().to_string())?;
    let bench = Bench { root, prefix, work };
    bench.check_headers()?;
    for program in &PROGRAMS {
        let file = bench.compile(program, &[])?;
        run(&mut bench.command(&file, program.arguments))?;
    }
    if modes.asan {
        for program in &PROGRAMS {
            let file =
                bench.compile(program, &["-fsanitize=address", "-fno-omit-frame-pointer", "-g"])?;
            let mut command = bench.command(&file, program.slow_arguments);
            run(command.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1"))?;
        }
        println!("AddressSanitizer: no errors");
    }
    if modes.valgrind {
        bench.valgrind()?;
    }
    bench.examples_with_make()?;
    bench.examples_with_cmake()
}

impl Bench<'_> {
    /// The headers alone, in the oldest languages that they support.
    fn check_headers(&self) -> Result<()> {
        let include = self.prefix.join("include");
        let headers = [
            ("CC", "cc", "c", "c99", "xnn.h"),
            ("CXX", "c++", "c++", "c++17", "xnn.h"),
            ("CXX", "c++", "c++", "c++17", "xnn.hpp"),
        ];
        for (variable, default, language, standard, header) in headers {
            let mut check = Command::new(compiler(variable, default));
            check.args(STRICT).args(["-fsyntax-only", "-x", language]);
            check.arg(format!("-std={standard}")).arg(include.join(header));
            run(&mut check)?;
        }
        Ok(())
    }

    /// Compiles a test with the flags that pkg-config has.
    fn compile(&self, program: &Program, more: &[&str]) -> Result<PathBuf> {
        let source = self.root.join("crates/xnn-capi/tests/c").join(program.source);
        let suffix = if more.is_empty() { "" } else { "-asan" };
        let stem = Path::new(program.source).file_stem().unwrap_or_default().to_string_lossy();
        let file = self.work.join(format!("{stem}{suffix}"));
        let is_cpp = program.source.ends_with(".cpp");
        let mut compile = match is_cpp {
            true => Command::new(compiler("CXX", "c++")),
            false => Command::new(compiler("CC", "cc")),
        };
        compile.args(STRICT).arg(if is_cpp { "-std=c++17" } else { "-std=c99" });
        compile.args(["-O1", "-g"]).args(more).arg("-o").arg(&file).arg(source);
        compile.args(self.pkg_config(&["--cflags"])?);
        if program.links_statically {
            compile.arg(self.prefix.join("lib/libxnn.a"));
            let private = self.pkg_config(&["--libs", "--static"])?;
            compile.args(private.iter().filter(|flag| *flag != "-lxnn"));
        } else {
            compile.args(self.pkg_config(&["--libs"])?).arg("-lpthread");
            compile.arg(flag("-Wl,-rpath,", &self.prefix.join("lib")));
        }
        run(&mut compile)?;
        Ok(file)
    }

    fn pkg_config(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        let flags = output(command.args(arguments).arg("xnn"))?;
        Ok(flags.split_whitespace().map(str::to_owned).collect())
    }

    fn command(&self, file: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(file);
        command.args(self.arguments(arguments));
        command
    }

    fn arguments(&self, arguments: &[&str]) -> Vec<PathBuf> {
        let models = self.root.join("models");
        let place = |argument: &&str| match argument.strip_prefix("WORK/") {
            Some(name) => self.work.join(name),
            None if *argument == "MODELS" => models.clone(),
            None => PathBuf::from(argument),
        };
        arguments.iter().map(place).collect()
    }

    /// Runs the tests under valgrind, which has no AVX-512: XNNPACK uses its AVX2 microkernels.
    fn valgrind(&self) -> Result<()> {
        if !available("valgrind")? {
            return Ok(());
        }
        for program in &PROGRAMS {
            let stem = Path::new(program.source).file_stem().unwrap_or_default();
            let mut command = Command::new("valgrind");
            command.args([
                "--quiet",
                "--error-exitcode=9",
                "--leak-check=full",
                "--fair-sched=yes",
            ]);
            command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
            command.arg(self.work.join(stem));
            run(command.args(self.arguments(program.slow_arguments)))?;
        }
        println!("valgrind: no errors");
        Ok(())
    }

    fn examples_with_make(&self) -> Result<()> {
        let out = self.work.join("make");
        fs::create_dir_all(&out)?;
        let mut make = Command::new("make");
        make.arg("--always-make").arg("--silent").arg("-C").arg(self.root.join("examples/c"));
        make.arg(flag("OUT=", &out));
        make.arg(flag("PKG_CONFIG_PATH=", &self.prefix.join("lib/pkgconfig")));
        run(make
            .arg("CFLAGS=-O1 -Wall -Wextra -Werror")
            .arg("CXXFLAGS=-O1 -Wall -Wextra -Werror"))?;
        self.run_examples(&out)
    }

    fn examples_with_cmake(&self) -> Result<()> {
        if !available("cmake")? {
            return Ok(());
        }
        let out = self.work.join("cmake");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(self.root.join("examples/c")).arg("-B").arg(&out);
        configure.arg("--log-level=WARNING").arg(flag("-DCMAKE_PREFIX_PATH=", self.prefix));
        output(&mut configure)?;
        output(Command::new("cmake").arg("--build").arg(&out))?;
        self.run_examples(&out)
    }

    fn run_examples(&self, folder: &Path) -> Result<()> {
        let models = self.root.join("models");
        let (fp32, int8) = ("digits_mobilenet_v2_fp32.tflite", "digits_mobilenet_v2_int8.tflite");
        for model in [fp32, int8] {
            let mut classify = Command::new(folder.join("classify"));
            classify.arg(models.join(model)).arg(self.root.join("examples/c/three.pgm"));
            let printed = output(&mut classify)?;
            ensure!(
                printed.starts_with("class 3: "),
                "classify: expected class 3, found: {printed}"
            );
        }
        let threads = output(Command::new(folder.join("threads")).arg(models.join(int8)).arg("2"))?;
        ensure!(threads == "2 threads, 100 runs each\n", "threads: {threads}");
        let batch = output(Command::new(folder.join("batch")).arg(models.join(fp32)).arg("3"))?;
        ensure!(batch.contains("batch of 3: 30 outputs"), "batch: {batch}");
        println!("examples in {}: as expected", folder.display());
        Ok(())
    }
}

/// Whether a program is there. CI does not do without it.
fn available(program: &str) -> Result<bool> {
    if Command::new(program).arg("--version").output().is_ok() {
        return Ok(true);
    }
    let hint = format!("{program} is not installed (apt-get install {program})");
    if env::var("CI").as_deref() == Ok("true") {
        bail!("{hint}, and CI skips no test");
    }
    println!("SKIPPED: {hint}");
    Ok(false)
}
