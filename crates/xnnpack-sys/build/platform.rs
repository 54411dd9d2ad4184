//! Platforms that XNNPACK is compiled for, and what differs between them.

use std::collections::BTreeSet;
use std::env;

use crate::Result;
use crate::isa::{AARCH64, ARM, Isa, WASM32, X86_64};

/// An operating system on an architecture.
pub struct Platform {
    /// `CARGO_CFG_TARGET_OS`.
    system: &'static str,
    /// `CARGO_CFG_TARGET_ENV`; `None` if it makes no difference.
    environment: Option<&'static str>,
    /// `CARGO_CFG_TARGET_ARCH`.
    architecture: &'static str,
    /// Instruction sets, from the oldest on.
    pub isas: &'static [Isa],
    /// Detection of the processor; `None` if the instruction set is known when XNNPACK is compiled.
    pub detection: Option<&'static Detection>,
    /// Files of this crate that implement pthreadpool's interface.
    pub threads: &'static [&'static str],
    /// Options for all files.
    pub flags: &'static [&'static str],
    /// Options for microkernels if GCC compiles them.
    pub gnu_flags: &'static [&'static str],
    /// Libraries of the system that the C code calls.
    pub libraries: &'static [&'static str],
    /// Whether code can be position-independent without further options of the linker.
    pub has_pic: bool,
    /// Reason why GCC cannot compile for the platform; `None` if it can.
    pub no_gcc: Option<&'static str>,
}

/// Sources of cpuinfo beside [`CPUINFO`], and files that replace some of cpuinfo's.
pub struct Detection {
    /// Files in cpuinfo's folder.
    pub cpuinfo: &'static [&'static str],
    /// Files of this crate.
    pub own: &'static [&'static str],
    /// Include folder of this crate that takes precedence over cpuinfo's.
    pub headers: Option<&'static str>,
}

/// Sources of cpuinfo for every processor.
pub const CPUINFO: [&str; 3] = ["src/api.c", "src/init.c", "src/log.c"];

const X86_DETECTION: Detection = Detection {
    // Decoding of the answers of CPUID, which `processor_x86.c` reads.
    cpuinfo: &["src/x86/info.c", "src/x86/isa.c", "src/x86/uarch.c", "src/x86/vendor.c"],
    own: &["csrc/cpuinfo/processor_x86.c"],
    headers: Some("csrc/cpuinfo"),
};

/// Detection on ARM Linux, where `$isa` reads the features of one architecture.
macro_rules! arm_linux_detection {
    ($isa:literal) => {
        Detection {
            cpuinfo: &[
                $isa,
                "src/arm/cache.c",
                "src/arm/linux/chipset.c",
                "src/arm/linux/clusters.c",
                "src/arm/linux/cpuinfo.c",
                "src/arm/linux/hwcap.c",
                "src/arm/linux/init.c",
                "src/arm/linux/midr.c",
                "src/arm/uarch.c",
                "src/cache.c",
                "src/linux/cpulist.c",
                "src/linux/multiline.c",
                "src/linux/processors.c",
                "src/linux/smallfile.c",
            ],
            own: &[],
            headers: None,
        }
    };
}

const AARCH64_DETECTION: Detection = arm_linux_detection!("src/arm/linux/aarch64-isa.c");
const ARM_DETECTION: Detection = arm_linux_detection!("src/arm/linux/aarch32-isa.c");

/// Detection on macOS, whose kernel names the features of ARM processors.
const AARCH64_MACOS_DETECTION: Detection = Detection {
    cpuinfo: &[
        "src/arm/cache.c",
        "src/arm/mach/init.c",
        "src/arm/uarch.c",
        "src/cache.c",
        "src/mach/topology.c",
    ],
    own: &[],
    headers: None,
};

/// The thread pool of this crate, behind pthreadpool's header.
const POOL: &[&str] = &["csrc/threads/pool.c", "csrc/threads/pthreadpool.c"];
/// pthreadpool's interface without threads.
const SINGLE: &[&str] =
    &["csrc/threads/single.c", "csrc/threads/alone.c", "csrc/threads/pthreadpool.c"];

/// pthreadpool's interface with one thread, which simulates several ([`SIMULATE`]).
pub const SIMULATED: &[&str] =
    &["csrc/threads/simulated.c", "csrc/threads/alone.c", "csrc/threads/pthreadpool.c"];
/// The variable that replaces the pool, for `docs/benchmarks/threads.md`.
pub const SIMULATE: &str = "XNNPACK_SYS_SIMULATE_THREADS";

const LINUX_X86_64: Platform = Platform {
    system: "linux",
    environment: None,
    architecture: "x86_64",
    isas: X86_64,
    detection: Some(&X86_DETECTION),
    threads: POOL,
    flags: &["-pthread"],
    gnu_flags: &[],
    libraries: &["m", "pthread"],
    has_pic: true,
    no_gcc: None,
};

const LINUX_AARCH64: Platform = Platform {
    architecture: "aarch64",
    isas: AARCH64,
    detection: Some(&AARCH64_DETECTION),
    ..LINUX_X86_64
};

/// Debian's `armhf` and Raspberry Pi OS with 32 bits. Microkernels are not in Thumb code.
const LINUX_ARM: Platform = Platform {
    architecture: "arm",
    isas: ARM,
    detection: Some(&ARM_DETECTION),
    flags: &["-pthread", "-marm"],
    // The type `__fp16` has two formats.
    gnu_flags: &["-mfp16-format=ieee"],
    ..LINUX_X86_64
};

/// Apple's C library is linked anyway, and has threads and mathematics.
const MACOS_X86_64: Platform =
    Platform { system: "macos", flags: &[], libraries: &[], ..LINUX_X86_64 };

const MUSL: Option<&str> = Some("musl");
/// musl is one library. Rust does not link GCC's functions into programs for it, which are static.
const MUSL_LIBRARIES: &[&str] = &["gcc"];

/// The first row that fits a target is its platform.
static PLATFORMS: [Platform; 9] = [
    Platform { environment: MUSL, libraries: MUSL_LIBRARIES, ..LINUX_X86_64 },
    Platform { environment: MUSL, libraries: MUSL_LIBRARIES, ..LINUX_AARCH64 },
    LINUX_X86_64,
    LINUX_AARCH64,
    LINUX_ARM,
    MACOS_X86_64,
    Platform {
        architecture: "aarch64",
        isas: AARCH64,
        detection: Some(&AARCH64_MACOS_DETECTION),
        ..MACOS_X86_64
    },
    Platform {
        system: "windows",
        flags: &[],
        // `WaitOnAddress`.
        libraries: &["synchronization"],
        has_pic: false,
        no_gcc: Some("GCC does not align the stack for AVX on Windows"),
        ..LINUX_X86_64
    },
    Platform {
        system: "wasi",
        environment: None,
        architecture: "wasm32",
        isas: WASM32,
        detection: None,
        threads: SINGLE,
        flags: &["-msimd128"],
        gnu_flags: &[],
        libraries: &[],
        has_pic: false,
        no_gcc: Some("GCC does not compile for WebAssembly"),
    },
];

impl Platform {
    /// The platform that cargo builds for.
    pub fn of_target() -> Result<&'static Self> {
        let system = env::var("CARGO_CFG_TARGET_OS")?;
        let environment = env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
        let architecture = env::var("CARGO_CFG_TARGET_ARCH")?;
        let is_target = |one: &&Self| {
            one.system == system
                && one.architecture == architecture
                && one.environment.is_none_or(|one| one == environment)
        };
        PLATFORMS.iter().find(is_target).ok_or_else(|| {
            let known: BTreeSet<_> = PLATFORMS
                .iter()
                .map(|one| format!("{} {}", one.architecture, one.system))
                .collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            format!(
                "XNNPACK is built from source for {known}, not for {architecture} {system}: \
                 set XNNPACK_SYS_USE_SYSTEM=1 to link an installed library"
            )
            .into()
        })
    }

    /// Whether C functions of builds for use need no unwind tables. Windows walks the stack by them when a program fails.
    pub fn omits_unwind_tables(&self) -> bool {
        self.system == "linux"
    }

    /// Fails if `compiler` cannot compile for the platform.
    pub fn check(&self, compiler: &cc::Tool) -> Result<()> {
        match self.no_gcc {
            Some(reason) if compiler.is_like_gnu() => {
                let target = env::var("TARGET")?.replace('-', "_");
                Err(format!("{reason}: set CC_{target} and CXX_{target} to Clang").into())
            }
            _ => Ok(()),
        }
    }
}
