//! Compiles the libraries with the C compiler of the machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use crate::edits::{Edited, TOPICS};
use crate::isa::{self, Selection};
use crate::locate::Sources;
use crate::platform::{CPUINFO, Platform, SIMULATE, SIMULATED};
use crate::{Result, cmake, identifier, out_dir, own, system};

/// Lists in upstream's `CMakeLists.txt` of files other than microkernels. Files of [`GNU_LIST`] and [`GNU_FILES`] are C with
/// GNU extensions, the rest plain C99.
const LISTS: [&str; 5] =
    ["LOGGING_SRCS", "OPERATOR_SRCS", "REFERENCE_SRCS", "SUBGRAPH_SRCS", "TABLE_SRCS"];
/// Files that upstream names one by one, and `rope.c`, which is missing in its CMake lists, but not in its Bazel lists.
const FILES: [&str; 13] = [
    "src/allocator.c",
    "src/cache.c",
    "src/configs/hardware-config.c",
    "src/datatype.c",
    "src/indirection.c",
    "src/microkernel-utils.c",
    "src/microparams-init.c",
    "src/mutex.c",
    "src/normalization.c",
    "src/operator-run.c",
    "src/operator-utils.c",
    "src/reference/packing.cc",
    "src/subgraph/rope.c",
];
const GNU_LIST: &str = "XNNPACK_SRCS";
const GNU_FILES: [&str; 1] = ["src/memory.c"];

/// Reads the environment's limit of instruction sets.
const ISA_LIMIT: &str = "csrc/cpuinfo/isa_limit.c";

/// Compiles XNNPACK, pthreadpool and cpuinfo, and links them.
pub fn library(sources: &Sources) -> Result<Selection> {
    let platform = Platform::of_target()?;
    platform.check(&build(platform).try_get_compiler()?)?;
    let selection = Selection::probe(platform)?;
    xnnpack(sources, platform, &selection)?;
    pthreadpool(sources, platform)?;
    cpuinfo(sources, platform)?;
    for library in platform.libraries {
        println!("cargo::rustc-link-lib={library}");
    }
    Ok(selection)
}

fn xnnpack(sources: &Sources, platform: &Platform, selection: &Selection) -> Result<()> {
    let root = &sources.xnnpack;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lists = "CMakeLists.txt";
    let edits = TOPICS.into_iter().flatten();
    let edited =
        Edited::write(root, out_dir()?.join("edited"), &isa::x86_microkernels(root)?, edits)?;
    let with_headers = |mut build: cc::Build| {
        build
            .include(root.join("include"))
            .includes(edited.headers())
            .include(here.join("csrc"))
            .include(sources.pthreadpool.join("include"))
            .include(sources.cpuinfo.join("include"))
            .include(sources.fxdiv.join("include"))
            .include(sources.fp16.join("include"))
            .define("XNN_LOG_LEVEL", "0");
        let has_cpuinfo = if platform.detection.is_some() { "1" } else { "0" };
        build.define("XNN_ENABLE_CPUINFO", has_cpuinfo);
        for (name, value) in selection.definitions() {
            build.define(&name, value);
        }
        build
    };
    let base = with_headers(third_party(platform));
    let paths = |files: Vec<String>| files.into_iter().map(|file| edited.path(&file));
    let mut queue = Queue::default();

    let alignment = alignment(&base)?;
    let own = with_headers(of_this_crate(platform));
    for source in &own::SOURCES {
        let enabled = |name: &&str| selection.enabled.iter().find(|isa| isa.name == *name);
        let Some(isas) = source.isas.iter().map(enabled).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let mut build = own.clone();
        build.std(OWN_STANDARD).flag(AS_WRITTEN).flags(alignment);
        for isa in isas {
            build.flags(isa.group).flags(isa.flags);
        }
        queue.add(build, [here.join(source.file)]);
    }

    let mut microkernels = Vec::new();
    for isa in &selection.enabled {
        let mut files = isa.sources(root)?;
        let more = own::MORE_KERNELS.into_iter().filter(|(name, _)| *name == isa.name);
        files.extend(more.flat_map(|(_, files)| files).map(|&file| file.to_owned()));
        microkernels.extend(files.iter().cloned());
        let mut build = base.clone();
        build.std("c99").flag("-fno-math-errno").flags(isa.group).flags(isa.flags);
        if build.try_get_compiler()?.is_like_gnu() {
            build.flags(SCHEDULING).flag(DISTINCT).flags(platform.gnu_flags);
            build.flags(alignment);
            let (sets, header) = isa::WITHOUT_COMPARISONS;
            if sets.contains(&isa.name) {
                build.flag("-include").flag(here.join(header));
            }
        }
        queue.add(build, together(isa.name, paths(files).collect())?);
    }

    let mut rest: Vec<String> = FILES.map(str::to_owned).into();
    for list in LISTS {
        rest.extend(cmake::source_list(root, lists, list)?);
    }
    let (cpp, c) = rest.into_iter().partition(|file| file.ends_with(".cc"));
    let mut base = base;
    if is_for_size() {
        base.opt_level_str("s");
    }
    let mut cplusplus = base.clone();
    cplusplus.cpp(true).std("c++14").flags(CPP_FLAGS);
    queue.add(cplusplus, paths(cpp));
    let mut c99 = base.clone();
    c99.std("c99");
    queue.add(c99, paths(c));

    let mut gnu: Vec<String> = GNU_FILES.map(str::to_owned).into();
    gnu.extend(cmake::source_list(root, lists, GNU_LIST)?);
    microkernels.sort();
    let mut gnu99 = base;
    gnu99.std("gnu99");
    let identifier = identifier::write(root, &microkernels, &own::CHOICES)?;
    queue.add(gnu99, paths(gnu).chain([identifier]));

    third_party(platform).objects(queue.compile()?).try_compile("XNNPACK")?;
    Ok(())
}

/// The standard of this crate's files, which have static assertions.
const OWN_STANDARD: &str = "c11";

/// Signatures that are XNNPACK's function types have parameters that are not used.
const UNUSED_PARAMETERS: &str = "-Wno-unused-parameter";

/// Rounds sums and products one after the other where they are not written as one.
const AS_WRITTEN: &str = "-ffp-contract=off";

/// Has GCC order a microkernel's instructions before it assigns registers, with an eye on how many there
/// are. Without it, 8-bit depthwise convolutions load everything first and spill: they took 8 % longer.
const SCHEDULING: [&str; 2] = ["-fschedule-insns", "-fsched-pressure"];

/// Has GCC begin each function at the start of a cache line, so that the loops of a microkernel cross as many lines in every build. With
/// GCC's 16 bytes, loops of few instructions took 1.3 to 1.9 times as long in one of two builds of the same source.
const ALIGNED: &str = "-falign-functions=64";

/// Options that align functions, unless small programs are preferred.
fn alignment(build: &cc::Build) -> Result<Option<&'static str>> {
    let is_gnu = build.try_get_compiler()?.is_like_gnu();
    Ok((is_gnu && !is_for_size()).then_some(ALIGNED))
}

/// Number of microkernels that are compiled as one file: reading the header of all intrinsics takes most of the time of a single one.
const MICROKERNELS_PER_FILE: usize = 16;

/// Has GCC keep equal microkernels of one file, instead of calling one from the other. Clang does so anyway.
const DISTINCT: &str = "-fno-ipa-icf";

/// Returns files that include the C files of `microkernels`, and the other files (assembly) themselves.
fn together(isa: &str, microkernels: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let is_c = |file: &PathBuf| file.extension() == Some("c".as_ref());
    let (c, mut files): (Vec<_>, Vec<_>) = microkernels.into_iter().partition(is_c);
    for (number, some) in c.chunks(MICROKERNELS_PER_FILE).enumerate() {
        let lines = some.iter().map(|file| format!("#include \"{}\"\n", file.display()));
        let file = out_dir()?.join(format!("microkernels-{isa}-{number}.c"));
        fs::write(&file, lines.collect::<String>())?;
        files.push(file);
    }
    Ok(files)
}

/// Flags of the three C++ files: with neither exceptions nor run-time type information they need
/// nothing from a C++ runtime library, so none is linked.
const CPP_FLAGS: [&str; 2] = ["-fno-exceptions", "-fno-rtti"];

/// Compiles the threads of this crate under the name of the library that they stand for.
fn pthreadpool(sources: &Sources, platform: &Platform) -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-env-changed={SIMULATE}");
    let simulates = system::is_on(env::var_os(SIMULATE));
    let threads = if simulates { SIMULATED } else { platform.threads };
    let mut build = of_this_crate(platform);
    if simulates {
        build.define(SIMULATE, None);
    }
    build
        .std(OWN_STANDARD)
        .include(sources.pthreadpool.join("include"))
        .files(threads.iter().map(|file| here.join(file)))
        .try_compile("pthreadpool")?;
    Ok(())
}

/// Compiles the detection of the processor.
fn cpuinfo(sources: &Sources, platform: &Platform) -> Result<()> {
    let root = &sources.cpuinfo;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let with_headers = |mut build: cc::Build| {
        if let Some(headers) = platform.detection.and_then(|detection| detection.headers) {
            build.include(here.join(headers));
        }
        build
            .std(OWN_STANDARD)
            .include(here.join("csrc"))
            .include(root.join("include"))
            .include(root.join("src"))
            .define("_GNU_SOURCE", "1")
            .define("CPUINFO_LOG_LEVEL", "0")
            .define("CPUINFO_LOG_TO_STDIO", "0");
        build
    };
    let mut build = with_headers(third_party(platform));
    let mut own = vec![ISA_LIMIT];
    if let Some(detection) = platform.detection {
        own.extend(detection.own);
        let theirs = CPUINFO.iter().chain(detection.cpuinfo);
        build.std("c99").files(theirs.map(|file| root.join(file)));
    }
    let mut queue = Queue::default();
    let own = own.into_iter().map(|file| here.join(file));
    queue.add(with_headers(of_this_crate(platform)), own);
    build.objects(queue.compile()?);
    build.try_compile("cpuinfo")?;
    Ok(())
}

/// Omits the tables with which debuggers list the callers of C functions. They take 0.15 MB. Neither panics nor exceptions pass through
/// C code.
const NO_UNWIND_TABLES: &str = "-fno-asynchronous-unwind-tables";

/// Whether cargo's profile is for use rather than for tests.
fn is_release() -> bool {
    env::var("PROFILE").is_ok_and(|profile| profile == "release")
}

/// Whether cargo's profile asks for small programs. Microkernels are optimized for speed nevertheless.
fn is_for_size() -> bool {
    env::var("OPT_LEVEL").is_ok_and(|level| level == "s" || level == "z")
}

/// Options that all files share. Optimized in every cargo profile: microkernels without
/// optimization are too slow to be of use. Hidden, so that another XNNPACK can
/// live in the same process.
fn build(platform: &Platform) -> cc::Build {
    let mut build = cc::Build::new();
    if is_release() && platform.omits_unwind_tables() {
        build.flag(NO_UNWIND_TABLES);
    }
    build
        .opt_level(2)
        .debug(false)
        .pic(platform.has_pic)
        .flags(platform.flags)
        .flag("-fvisibility=hidden")
        .flag("-ffunction-sections")
        .flag("-fdata-sections")
        .flag_if_supported("-Wno-psabi");
    build
}

/// Options for files of XNNPACK, pthreadpool and cpuinfo.
fn third_party(platform: &Platform) -> cc::Build {
    let mut build = build(platform);
    build.warnings(false).define("NDEBUG", None);
    build
}

/// Options for files of this crate, whose assertions hold in debug builds.
fn of_this_crate(platform: &Platform) -> cc::Build {
    let mut build = build(platform);
    build.warnings(true).warnings_into_errors(true).flag(UNUSED_PARAMETERS);
    if is_release() {
        build.define("NDEBUG", None);
    }
    build
}

/// Files to compile, each with its options. The first ones take the longest.
#[derive(Default)]
struct Queue(Vec<(cc::Build, PathBuf)>);

impl Queue {
    /// Adds different files with the same options.
    fn add(&mut self, options: cc::Build, files: impl IntoIterator<Item = PathBuf>) {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        self.0.extend(files.into_iter().map(|file| (options.clone(), file)));
    }

    /// Compiles as many files at once as cargo asks for, and returns the objects.
    fn compile(self) -> Result<Vec<PathBuf>> {
        let next = AtomicUsize::new(0);
        let compile = || {
            let mut objects = Vec::new();
            while let Some((options, file)) = self.0.get(next.fetch_add(1, Ordering::Relaxed)) {
                objects.extend(options.clone().file(file).try_compile_intermediates()?);
            }
            Ok::<_, cc::Error>(objects)
        };
        let jobs: usize = env::var("NUM_JOBS")?.parse()?;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(compile)).collect();
            let mut objects = BTreeSet::new();
            for worker in workers {
                objects.extend(worker.join().map_err(|_| "a thread that compiles panicked")??);
            }
            Ok(objects.into_iter().collect())
        })
    }
}
