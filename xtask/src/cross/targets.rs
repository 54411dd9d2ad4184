//! Targets of `cargo xtask cross`, and what each needs.

use anyhow::{Context, Result};

use super::extras::{self, Extras};

/// A target, and how its programs are built and run on a Debian machine of another kind.
#[derive(Debug)]
pub struct Target {
    /// Rust's name of the target.
    pub triple: &'static str,
    /// Programs that building needs, and the Debian packages that have them.
    pub build_tools: &'static [Tool],
    /// Programs that running needs, and the Debian packages that have them.
    pub run_tools: &'static [Tool],
    /// Headers and libraries of the target, if the machine's packages do not serve.
    pub system: Option<System>,
    /// The program that links.
    pub linker: &'static str,
    /// Variables for Cargo and build scripts, such as the C compiler. A variable that is set already keeps its value. [`SYSTEM`]
    /// in a value stands for the folder of `system`.
    pub environment: &'static [(&'static str, &'static str)],
    /// Flags for rustc. [`SYSTEM`] stands for the folder of `system`.
    pub rustflags: &'static [&'static str],
    /// Files that programs link beside a standard library that is built from source.
    pub extras: Extras,
    /// The ending of the names of programs.
    pub suffix: &'static str,
    /// The command that runs a program of the target. The program's path and arguments follow.
    pub runner: &'static [&'static str],
    /// Variables for the runner.
    pub runner_environment: &'static [(&'static str, &'static str)],
    /// Processors that the runner emulates. Tests run on each of them, or once if there are none.
    pub processors: &'static [Processor],
    /// Packages that `build` makes programs and libraries of.
    pub products: &'static [&'static str],
    /// Examples of these packages that `build` makes instead of their programs and libraries.
    pub examples: &'static [&'static str],
    /// Test programs that `test` runs.
    pub suites: &'static [Suite],
    /// How `count` counts instructions, if it can.
    pub counter: Option<Counter>,
}

/// Headers and libraries that are unpacked in a folder and not installed.
#[derive(Debug)]
pub struct System {
    pub source: Source,
    /// Links in the folder, each with its destination: places where compilers look.
    pub links: &'static [(&'static str, &'static str)],
}

/// Where headers and libraries are fetched from.
#[derive(Debug)]
pub enum Source {
    /// Packages of a suite of Debian's.
    Debian { suite: &'static str, packages: &'static [&'static str] },
    /// Parts of a package of PyPI, each with its place in the folder.
    PyPi { requirement: &'static str, parts: &'static [(&'static str, &'static str)] },
}

/// The placeholder for the folder of a target's [`System`].
pub const SYSTEM: &str = "{system}";

/// An emulator that counts instructions.
#[derive(Debug)]
pub struct Counter {
    /// QEMU's program, which takes a plugin.
    pub emulator: &'static str,
    /// Number of the system call `clock_gettime`.
    pub clock: u32,
    /// LiteRT for the target.
    pub peer: Peer,
}

/// Packages of LiteRT for a target.
#[derive(Debug)]
pub struct Peer {
    /// Debian's name of the architecture.
    pub architecture: &'static str,
    /// Tags of the wheels' platform, from which pip chooses.
    pub wheels: &'static [&'static str],
}

/// A program, and the Debian package that has it.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    pub program: &'static str,
    pub package: &'static str,
}

/// An emulated processor.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    /// Its name in options and tables.
    pub name: &'static str,
    /// Variables that select it.
    pub environment: &'static [(&'static str, &'static str)],
    /// The features that it stands for.
    pub about: &'static str,
    /// The runs of tests that use it. `count` uses those of [`When::All`] on request alone.
    pub when: When,
}

/// A test program: Cargo's test target of a package.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    pub package: &'static str,
    /// Name of the test target; [`UNIT`] for the tests of the library itself.
    pub target: &'static str,
    pub when: When,
    /// Parts of the names of tests that runs with `--quick` are limited to; empty for all tests.
    pub quick: &'static [&'static str],
}

/// Runs that include a suite or a processor. Each kind of run includes the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Runs with `--quick`.
    Quick,
    /// Runs without an option.
    Full,
    /// Runs with `--all`, which take hours.
    All,
}

/// Stands for the tests of a library.
pub const UNIT: &str = "lib";

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

const fn suite(when: When, package: &'static str, target: &'static str) -> Suite {
    Suite { package, target, when, quick: &[] }
}

/// The programs and libraries of a target with all of them.
const PRODUCTS: [&str; 3] = ["xnn-cli", "xnn-tflite-delegate", "xnn-capi"];

use When::{All, Full, Quick};

/// The tests of microkernels that take seconds. All of them take four minutes on each processor.
const QUICK_MICROKERNELS: &[&str] = &["conv::", "matmul::", "pool::", "large_kernels", "rescaling"];

/// The suites of a target that everything runs on.
const SUITES: &[Suite] = &[
    suite(Quick, "xnnpack-sys", "link"),
    suite(Full, "xnnpack-sys", "bindings"),
    suite(Full, "xnnpack-sys", "blocks"),
    suite(Full, "xnnpack-sys", "outputs"),
    suite(Full, "xnnpack-sys", "plan"),
    suite(Full, "xnnpack-sys", "threads"),
    suite(Quick, "xnnpack", UNIT),
    Suite { quick: QUICK_MICROKERNELS, ..suite(Quick, "xnnpack", "it") },
    suite(Full, "xnn-format", UNIT),
    suite(Full, "xnn-format", "interop"),
    suite(Quick, "xnn-format", "packed"),
    suite(Full, "xnn-format", "round_trip"),
    suite(Full, "xnn-lower", UNIT),
    suite(Full, "xnn-lower", "blockwise"),
    suite(Full, "xnn-lower", "composed"),
    suite(Full, "xnn-lower", "dynamic_range"),
    suite(Full, "xnn-lower", "forms"),
    suite(Full, "xnn-lower", "groups"),
    suite(Full, "xnn-lower", "fp16_weights"),
    suite(Full, "xnn-lower", "optimize"),
    suite(Full, "xnn-lower", "partitions"),
    suite(Full, "xnn-lower", "rules"),
    suite(Full, "xnn-lower", "signed"),
    suite(Quick, "xnn-runtime", UNIT),
    suite(Quick, "xnn-runtime", "interop"),
    suite(Full, "xnn-runtime", "operators"),
    suite(Full, "xnn-runtime", "packing"),
    suite(Full, "xnn-runtime", "run_path"),
    suite(Full, "xnn-runtime", "session"),
    suite(Full, "xnn-interp", UNIT),
    suite(Full, "xnn-interp", "handover"),
    suite(Full, "xnn-interp", "kernels"),
    suite(Full, "xnn-interp", "run_path"),
    suite(Full, "xnn-interp", "scratch"),
    suite(Full, "xnn-interp", "state"),
    suite(All, "xnn-interp", "zoo"),
    suite(Quick, "xnn-tflite-delegate", UNIT),
    suite(Full, "xnn-tflite-c", UNIT),
    suite(Full, "xnn-tflite-c", "c_api"),
    suite(Full, "xnn-tflite-c", "delegates"),
    suite(Full, "xnn-capi", UNIT),
    suite(Quick, "xnn-cli", UNIT),
    suite(Full, "xnn-cli", "bad_input"),
    suite(Full, "xnn-cli", "classify"),
    suite(Quick, "xnn-cli", "commands"),
    suite(Full, "xnn-cli", "conversion"),
    suite(Full, "xnn-cli", "messages"),
    suite(Full, "xnn-cli", "metadata"),
    suite(Full, "xnn-cli", "packed"),
    suite(Full, "xnn-cli", "programs"),
    suite(Full, "xnn-delegate", UNIT),
    suite(Full, "xnn-delegate", "api"),
    suite(Full, "xnn-delegate", "attention"),
    suite(Full, "xnn-delegate", "batch"),
    suite(Full, "xnn-delegate", "constraints"),
    suite(Full, "xnn-delegate", "explain"),
    suite(Full, "xnn-delegate", "kernels"),
    suite(Full, "xnn-delegate", "mixed_types"),
    suite(Quick, "xnn-delegate", "operator_suite"),
    suite(Full, "xnn-delegate", "operators"),
    suite(Full, "xnn-delegate", "resize"),
    suite(Full, "xnn-delegate", "resized"),
    suite(Full, "xnn-delegate", "special_values"),
    suite(Full, "xnn-delegate", "values"),
    suite(All, "xnn-delegate", "random_models"),
    suite(All, "xnn-delegate", "accuracy"),
];

/// The targets.
pub const TARGETS: &[Target] =
    &[AARCH64, ARM, GLIBC, MUSL, WINDOWS, WASI, AARCH64_MACOS, X86_64_MACOS];

const AARCH64: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    build_tools: &[
        tool("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        tool("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
    ],
    run_tools: &[tool("qemu-aarch64", "qemu-user")],
    system: None,
    linker: "aarch64-linux-gnu-gcc",
    environment: &[
        ("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc"),
        ("CXX_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-g++"),
        ("AR_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-ar"),
    ],
    rustflags: &[],
    extras: extras::none,
    suffix: "",
    runner: &["qemu-aarch64"],
    runner_environment: &[("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu")],
    processors: &[
        Processor {
            name: "cortex-a72",
            environment: &[("QEMU_CPU", "cortex-a72")],
            about: "NEON alone",
            when: Quick,
        },
        Processor {
            name: "neoverse-n1",
            environment: &[("QEMU_CPU", "neoverse-n1")],
            about: "dot products and half precision",
            when: Quick,
        },
        Processor {
            name: "max",
            environment: &[("QEMU_CPU", "max,sme=off")],
            about: "matrix products (i8mm), SVE",
            when: Full,
        },
        Processor {
            name: "max-sme",
            environment: &[("QEMU_CPU", "max")],
            about: "also SME, with vectors of 256 bits; QEMU 7.2 multiplies only floats right, so that int8 uses i8mm",
            when: Full,
        },
        Processor {
            name: "max-sme128",
            environment: &[("QEMU_CPU", "max,sme128=on")],
            about: "SME with vectors of 128 bits",
            when: All,
        },
        Processor {
            name: "max-sme512",
            environment: &[("QEMU_CPU", "max,sme512=on")],
            about: "SME with vectors of 512 bits",
            when: All,
        },
    ],
    products: &PRODUCTS,
    examples: &[],
    suites: SUITES,
    counter: Some(Counter {
        emulator: "qemu-aarch64",
        clock: 113,
        peer: Peer {
            architecture: "arm64",
            wheels: &["manylinux_2_27_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64"],
        },
    }),
};

/// Suites for a size of pointers of its own.
const ARM_SUITES: &[Suite] = &[
    suite(Quick, "xnnpack-sys", "link"),
    suite(Full, "xnnpack-sys", "threads"),
    suite(Quick, "xnnpack", UNIT),
    Suite { quick: QUICK_MICROKERNELS, ..suite(Quick, "xnnpack", "it") },
    suite(Full, "xnn-format", UNIT),
    suite(Full, "xnn-format", "round_trip"),
    suite(Quick, "xnn-runtime", UNIT),
    suite(Full, "xnn-runtime", "operators"),
    suite(Full, "xnn-runtime", "session"),
    suite(Full, "xnn-interp", UNIT),
    suite(Full, "xnn-interp", "kernels"),
    suite(Quick, "xnn-cli", "commands"),
    suite(Quick, "xnn-delegate", "operator_suite"),
];

/// Debian's `armhf` and Raspberry Pi OS with 32 bits. Rust's standard library has no NEON there.
const ARM: Target = Target {
    triple: "armv7-unknown-linux-gnueabihf",
    build_tools: &[
        tool("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
        tool("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf"),
    ],
    run_tools: &[tool("qemu-arm", "qemu-user")],
    system: None,
    linker: "arm-linux-gnueabihf-gcc",
    environment: &[
        ("CC_armv7_unknown_linux_gnueabihf", "arm-linux-gnueabihf-gcc"),
        ("CXX_armv7_unknown_linux_gnueabihf", "arm-linux-gnueabihf-g++"),
        ("AR_armv7_unknown_linux_gnueabihf", "arm-linux-gnueabihf-ar"),
    ],
    rustflags: &[],
    extras: extras::none,
    suffix: "",
    runner: &["qemu-arm"],
    runner_environment: &[("QEMU_LD_PREFIX", "/usr/arm-linux-gnueabihf")],
    processors: &[
        Processor {
            name: "cortex-a7",
            environment: &[("QEMU_CPU", "cortex-a7")],
            about: "ARMv7 with NEON, as on a Raspberry Pi 2",
            when: Quick,
        },
        Processor {
            name: "max",
            environment: &[("QEMU_CPU", "max")],
            about: "ARMv8 with dot products",
            when: Full,
        },
    ],
    products: &["xnn-cli"],
    examples: &[],
    suites: ARM_SUITES,
    counter: None,
};

/// Suites for another C library: those of the C code and of what calls the system.
const MUSL_SUITES: &[Suite] = &[
    suite(Quick, "xnnpack-sys", "link"),
    suite(Quick, "xnnpack-sys", "threads"),
    suite(Quick, "xnnpack", UNIT),
    suite(Quick, "xnnpack", "it"),
    suite(Full, "xnn-format", UNIT),
    suite(Full, "xnn-runtime", UNIT),
    suite(Full, "xnn-runtime", "session"),
];

/// Programs and libraries that run on older systems than this machine: with Debian 11's C library, glibc 2.31. GCC searches its own
/// folders before `--sysroot`.
const GLIBC: Target = Target {
    triple: "x86_64-unknown-linux-gnu",
    build_tools: &[tool("gcc", "gcc"), tool("g++", "g++")],
    run_tools: &[],
    system: Some(System {
        source: Source::Debian {
            suite: "bullseye",
            packages: &["libc6", "libc6-dev", "libgcc-s1", "linux-libc-dev"],
        },
        links: &[],
    }),
    linker: "gcc",
    environment: &[
        ("CFLAGS_x86_64_unknown_linux_gnu", "--sysroot={system}"),
        ("CXXFLAGS_x86_64_unknown_linux_gnu", "--sysroot={system}"),
    ],
    rustflags: &[
        "-Clink-arg=--sysroot={system}",
        "-Clink-arg=-B{system}/usr/lib/x86_64-linux-gnu",
        "-Clink-arg=-L{system}/usr/lib/x86_64-linux-gnu",
        "-Clink-arg=-L{system}/lib/x86_64-linux-gnu",
    ],
    extras: extras::none,
    suffix: "",
    runner: &[],
    runner_environment: &[],
    processors: &[],
    products: &PRODUCTS,
    examples: &[],
    suites: MUSL_SUITES,
    counter: None,
};

/// A static `xnn`, which runs on this machine.
const MUSL: Target = Target {
    triple: "x86_64-unknown-linux-musl",
    build_tools: &[tool("musl-gcc", "musl-tools"), tool("gcc", "gcc"), tool("g++", "g++")],
    run_tools: &[],
    system: None,
    linker: "gcc",
    // Three C++ files need headers, but no library of C++.
    environment: &[
        ("CC_x86_64_unknown_linux_musl", "musl-gcc"),
        ("CXX_x86_64_unknown_linux_musl", "g++"),
    ],
    rustflags: &[],
    extras: extras::musl,
    suffix: "",
    runner: &[],
    runner_environment: &[],
    processors: &[],
    products: &["xnn-cli"],
    examples: &[],
    suites: MUSL_SUITES,
    counter: None,
};

/// Clang aligns the stack for AVX; GCC for Windows does not. Headers of C++ are GCC's.
const WINDOWS: Target = Target {
    triple: "x86_64-pc-windows-gnu",
    build_tools: &[
        tool("clang-19", "clang-19"),
        tool("x86_64-w64-mingw32-gcc-posix", "gcc-mingw-w64-x86-64-posix"),
        tool("x86_64-w64-mingw32-g++-posix", "g++-mingw-w64-x86-64-posix"),
    ],
    run_tools: &[tool(extras::WINE, "wine")],
    system: None,
    linker: "x86_64-w64-mingw32-gcc-posix",
    environment: &[
        ("CC_x86_64_pc_windows_gnu", "clang-19"),
        ("CXX_x86_64_pc_windows_gnu", "clang++-19"),
        ("AR_x86_64_pc_windows_gnu", "x86_64-w64-mingw32-ar"),
        (
            "CXXFLAGS_x86_64_pc_windows_gnu",
            "-isystem /usr/lib/gcc/x86_64-w64-mingw32/12-posix/include/c++ \
             -isystem /usr/lib/gcc/x86_64-w64-mingw32/12-posix/include/c++/x86_64-w64-mingw32",
        ),
    ],
    rustflags: &["-Clink-self-contained=no"],
    extras: extras::windows,
    suffix: ".exe",
    runner: &[extras::WINE],
    runner_environment: &[("WINEDEBUG", "-all")],
    processors: &[],
    products: &["xnn-cli"],
    examples: &[],
    suites: &[],
    counter: None,
};

/// The functions that Clang's code calls.
const WASI_BUILTINS: &str = "/usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a";

/// The runtime for `.xnn` files.
const WASI: Target = Target {
    triple: "wasm32-wasip1",
    build_tools: &[
        tool("clang-19", "clang-19"),
        tool("clang++-19", "clang-19"),
        tool(WASI_BUILTINS, "libclang-rt-19-dev-wasm32"),
        tool("wasm-ld-19", "lld-19"),
        tool("llvm-ar-19", "llvm-19"),
    ],
    run_tools: &[],
    // Debian 12's has no `pthread.h`.
    system: Some(System {
        source: Source::Debian {
            suite: "trixie",
            packages: &["wasi-libc", "libc++-19-dev-wasm32"],
        },
        links: &[
            ("include/wasm32-wasip1", "../usr/include/wasm32-wasi"),
            ("lib/wasm32-wasip1", "../usr/lib/wasm32-wasi"),
        ],
    }),
    linker: "clang-19",
    environment: &[
        ("CC_wasm32_wasip1", "clang-19"),
        ("CXX_wasm32_wasip1", "clang++-19"),
        ("AR_wasm32_wasip1", "llvm-ar-19"),
        ("WASI_SYSROOT", SYSTEM),
    ],
    rustflags: &["-Clink-self-contained=no", "-Clink-arg=--sysroot={system}"],
    extras: extras::none,
    suffix: ".wasm",
    runner: &[],
    runner_environment: &[],
    processors: &[],
    products: &["xnn-runtime"],
    examples: &["xnn-run"],
    suites: &[],
    counter: None,
};

/// Apple's headers and libraries for macOS, as the package of the Zig compiler has them, and headers of C++ without the library.
const MACOS: System = System {
    source: Source::PyPi {
        requirement: "ziglang==0.15.2",
        parts: &[
            ("ziglang/lib/libc/include/any-macos-any", "usr/include"),
            ("ziglang/lib/libcxx/include", "usr/include/c++/v1"),
            ("ziglang/lib/libc/darwin/libSystem.tbd", "usr/lib/libSystem.tbd"),
        ],
    },
    // Rust's crate `libc` names iconv, which nothing here calls.
    links: &[
        ("usr/lib/libc.tbd", "libSystem.tbd"),
        ("usr/lib/libm.tbd", "libSystem.tbd"),
        ("usr/lib/libiconv.tbd", "libSystem.tbd"),
    ],
};

/// Definitions of the header `__config_site`, which a library of C++ gets when it is configured.
const MACOS_CXXFLAGS: &str = "-D_LIBCPP_ABI_VERSION=1 -D_LIBCPP_ABI_NAMESPACE=__1 \
     -D_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE";

/// Macs with Apple's processors. Nothing runs here.
const AARCH64_MACOS: Target = Target {
    triple: "aarch64-apple-darwin",
    build_tools: &[
        tool("clang-19", "clang-19"),
        tool("clang++-19", "clang-19"),
        tool("ld64.lld-19", "lld-19"),
        tool("llvm-ar-19", "llvm-19"),
    ],
    run_tools: &[],
    system: Some(MACOS),
    linker: "clang-19",
    environment: &[
        ("CC_aarch64_apple_darwin", "clang-19"),
        ("CXX_aarch64_apple_darwin", "clang++-19"),
        ("AR_aarch64_apple_darwin", "llvm-ar-19"),
        ("CXXFLAGS_aarch64_apple_darwin", MACOS_CXXFLAGS),
        ("SDKROOT", SYSTEM),
    ],
    rustflags: &["-Clink-arg=-fuse-ld=lld", "-Clink-arg=--target=arm64-apple-macosx11.0"],
    extras: extras::none,
    suffix: "",
    runner: &[],
    runner_environment: &[],
    processors: &[],
    products: &PRODUCTS,
    examples: &[],
    suites: &[],
    counter: None,
};

/// Macs with Intel's processors.
const X86_64_MACOS: Target = Target {
    triple: "x86_64-apple-darwin",
    environment: &[
        ("CC_x86_64_apple_darwin", "clang-19"),
        ("CXX_x86_64_apple_darwin", "clang++-19"),
        ("AR_x86_64_apple_darwin", "llvm-ar-19"),
        ("CXXFLAGS_x86_64_apple_darwin", MACOS_CXXFLAGS),
        ("SDKROOT", SYSTEM),
    ],
    rustflags: &["-Clink-arg=-fuse-ld=lld", "-Clink-arg=--target=x86_64-apple-macosx10.12"],
    ..AARCH64_MACOS
};

/// Returns the target with this triple, or the first with this part of a triple.
pub fn named(name: &str) -> Result<&'static Target> {
    TARGETS.iter().find(|target| target.triple.contains(name)).with_context(|| {
        let all = TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(", ");
        format!("unknown target {name}; expected one of {all}, or a part of a name")
    })
}

impl Target {
    /// Returns the processors with these names, or, for no name, those that a run includes.
    pub fn processors(&self, names: &[String], run: When) -> Result<Vec<&'static Processor>> {
        if names.is_empty() {
            return Ok(self.processors.iter().filter(|one| one.when <= run).collect());
        }
        let all = || self.processors.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        names
            .iter()
            .map(|name| {
                self.processors
                    .iter()
                    .find(|one| one.name == name)
                    .with_context(|| format!("unknown processor {name}; expected one of {}", all()))
            })
            .collect()
    }

    /// [`Target::processors`], or `None` once: programs of a target without processors run as they are.
    pub fn processors_or_none(
        &self,
        names: &[String],
        run: When,
    ) -> Result<Vec<Option<&'static Processor>>> {
        let processors = self.processors(names, run)?;
        Ok(if processors.is_empty() {
            vec![None]
        } else {
            processors.into_iter().map(Some).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_target_is_found_by_a_part_of_its_triple() {
        for target in TARGETS {
            assert_eq!(named(target.triple).unwrap().triple, target.triple);
        }
        assert_eq!(named("aarch64").unwrap().triple, "aarch64-unknown-linux-gnu");
        assert_eq!(named("apple").unwrap().triple, "aarch64-apple-darwin");
        let error = named("sparc").unwrap_err().to_string();
        assert!(error.contains("aarch64-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn triples_are_unique_and_their_tools_are_listed() {
        let triples: BTreeSet<_> = TARGETS.iter().map(|target| target.triple).collect();
        assert_eq!(triples.len(), TARGETS.len());
        for target in TARGETS {
            let has = |tools: &[Tool], program: &str| {
                tools.iter().any(|tool| tool.program == program) || program.contains('/')
            };
            assert!(has(target.build_tools, target.linker), "{}: linker", target.triple);
            if let Some(runner) = target.runner.first() {
                assert!(has(target.run_tools, runner), "{}: runner", target.triple);
            }
        }
    }

    /// A renamed test would otherwise no longer run for other processors.
    #[test]
    fn suites_are_unique_and_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for target in TARGETS {
            let mut names = BTreeSet::new();
            for suite in target.suites {
                assert!(names.insert((suite.package, suite.target)), "{suite:?} is listed twice");
                let folder = match suite.package {
                    "xnn-delegate" => root.clone(),
                    package => root.join("crates").join(package),
                };
                let sources = match suite.target {
                    UNIT => vec!["src/lib.rs".into()],
                    name => vec![format!("tests/{name}.rs"), format!("tests/{name}/main.rs")],
                };
                assert!(
                    sources.iter().any(|source| folder.join(source).is_file()),
                    "{suite:?}: the package has no such test"
                );
            }
        }
    }

    /// Test programs of the packages with microkernels are listed without exception.
    #[test]
    fn no_test_of_the_kernels_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for package in ["xnnpack", "xnn-lower", "xnn-runtime"] {
            for entry in fs::read_dir(root.join(package).join("tests")).unwrap() {
                let path = entry.unwrap().path();
                let is_test = path.extension().is_some_and(|extension| extension == "rs")
                    || path.join("main.rs").is_file();
                let name = path.file_stem().unwrap().to_str().unwrap();
                let is_listed =
                    SUITES.iter().any(|suite| suite.package == package && suite.target == name);
                assert!(is_listed || !is_test, "{package}: {name} is missing");
            }
        }
    }

    #[test]
    fn each_target_has_processors_and_suites_for_quick_runs() {
        for target in TARGETS {
            let quick = target.processors(&[], Quick).unwrap();
            assert!(target.processors.is_empty() || !quick.is_empty());
            assert!(
                target.suites.is_empty() || target.suites.iter().any(|suite| suite.when == Quick)
            );
            let error = target.processors(&["none".into()], Full).unwrap_err().to_string();
            assert!(error.contains("unknown processor none"), "{error}");
        }
    }
}
