//! Instruction sets: upstream's lists of microkernels for each target, the flags to compile them, and probes of the compiler.
//!
//! Lists, flags and switches are those of upstream's `CMakeLists.txt`.

use std::env;
use std::fs;
use std::path::Path;

use crate::platform::Platform;
use crate::{Result, cmake, out_dir};

/// An instruction set with microkernels of its own.
pub struct Isa {
    pub name: &'static str,
    /// Upstream's lists `PROD_<list>_MICROKERNEL_SRCS`.
    lists: &'static [&'static str],
    /// Options in front of those that the whole group shares.
    pub group: &'static [&'static str],
    pub flags: &'static [&'static str],
    /// `None` for an instruction set that every compiler for the target has.
    probe: Option<Probe>,
}

/// A file that must compile for an instruction set to be used.
struct Probe {
    /// `XNN_ENABLE_<switch>` tells XNNPACK that the microkernels are there.
    switches: &'static [&'static str],
    /// The oldest GCC with which upstream builds them. An older one that knows
    /// the intrinsics is still not trusted with them.
    oldest_gcc: u32,
    header: &'static str,
    /// A C function that uses the newest intrinsics of the instruction set.
    function: &'static str,
}

/// The instruction sets of one target.
pub struct Selection {
    pub enabled: Vec<&'static Isa>,
    pub left_out: Vec<&'static Isa>,
}

/// Upstream's switches that hang on no probe, for every target. BF16 has no
/// production microkernels; those for SME are wrappers of KleidiAI, which is not used: `csrc` has others.
/// Of those for AVX512FP16, half a dozen write or read at wrong places (`docs/upstream-fixes.md`).
const SWITCHES: [(&str, bool); 13] = [
    ("ARM_BF16", false),
    ("ARM_SME", false),
    ("ARM_SME2", false),
    ("ASSEMBLY", true),
    ("AVX512FP16", false),
    ("DWCONV_MULTIPASS", false),
    ("GEMM_M_SPECIALIZATION", true),
    ("HVX", false),
    ("KLEIDIAI", false),
    ("MEMOPT", true),
    ("RISCV_VECTOR", false),
    ("SPARSE", true),
    ("VSX", false),
];

const NONE: &[&str] = &[];
const AVX512: &[&str] =
    &["-mf16c", "-mfma", "-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl"];

/// Instruction sets with vectors of 256 bits without comparisons of integers, and a header that is included in their microkernels if the
/// compiler is GCC.
pub const WITHOUT_COMPARISONS: ([&str; 3], &str) =
    (["avx", "f16c", "fma3"], "csrc/ukernels/blend_avx.h");

const fn baseline(
    name: &'static str,
    lists: &'static [&'static str],
    flags: &'static [&'static str],
) -> Isa {
    Isa { name, lists, group: NONE, flags, probe: None }
}

/// A part of upstream's list `SCALAR`, under a name of its own: the microkernels that XNNPACK's tables for x86-64 refer to. For
/// everything else they have vectors, and the other 227 files took a fifth of the time to compile XNNPACK. If one is missing, linking
/// fails with an undefined symbol.
const SCALAR_ON_X86_64: (&str, [&str; 15]) = (
    "SCALAR_ON_X86_64",
    [
        "f16-qs8-vcvt-scalar-imagic-u4",
        "f16-rminmax-scalar-u2-acc2",
        "f32-vexp-scalar-exp",
        "qs8-rdsum-minmax-fp32-scalar-u1-acc1",
        "qu8-rdsum-scalar",
        "s32-f32-vcvt-scalar",
        "u8-lut32norm-scalar",
        "x8-lut-scalar-u4",
        "x8-packq-scalar-f32qp8-u1",
        "x8-packw-x8-gemm-goi-scalar-u2",
        "x8-packw-x16-gemm-goi-scalar-u2",
        "x8-packw-x32-gemm-goi-scalar-u2",
        "x24-transposec-1x2-scalar",
        "xx-copy-scalar-memcpy",
        "xx-transposev-1x1-scalar-memcpy",
    ],
);

pub const X86_64: &[Isa] = &[
    baseline("scalar", &[SCALAR_ON_X86_64.0], NONE),
    baseline("sse", &["SSE"], &["-msse", "-mno-sse2"]),
    baseline("sse2", &["SSE2"], &["-msse2", "-mno-sse3"]),
    baseline("ssse3", &["SSSE3"], &["-mssse3", "-mno-sse4.1"]),
    baseline("sse41", &["SSE41"], &["-msse4.1", "-mno-sse4.2"]),
    baseline("avx", &["AVX"], &["-mavx", "-mno-avx2", "-mno-fma", "-mno-f16c"]),
    baseline("f16c", &["F16C"], &["-mf16c", "-mno-avx2", "-mno-fma"]),
    baseline("fma3", &["FMA3"], &["-mf16c", "-mfma", "-mno-avx2"]),
    baseline("avx2", &["AVX2"], &["-mf16c", "-mfma", "-mavx2"]),
    Isa {
        name: "avxvnni",
        lists: &["AVXVNNI"],
        group: NONE,
        flags: &["-mf16c", "-mfma", "-mavx2", "-mavxvnni"],
        probe: Some(Probe {
            switches: &["AVXVNNI"],
            oldest_gcc: 11,
            header: "immintrin.h",
            function: "__m256i f(__m256i a) { return _mm256_dpbusd_avx_epi32(a, a, a); }",
        }),
    },
    Isa {
        name: "avxvnniint8",
        lists: &["AVXVNNIINT8"],
        group: NONE,
        flags: &["-mf16c", "-mfma", "-mavx2", "-mavxvnniint8"],
        probe: Some(Probe {
            switches: &["AVXVNNIINT8"],
            oldest_gcc: 13,
            header: "immintrin.h",
            function: "__m256i f(__m256i a) { return _mm256_dpbssd_epi32(a, a, a); }",
        }),
    },
    Isa {
        name: "avx256skx",
        lists: &["AVX256SKX"],
        group: AVX512,
        flags: NONE,
        probe: Some(Probe {
            switches: &["AVX256SKX"],
            oldest_gcc: 11,
            header: "immintrin.h",
            function: "__m256i f(__m256i a) { return _mm256_maskz_permutexvar_epi16(1, a, a); }",
        }),
    },
    Isa {
        name: "avx256vnni",
        lists: &["AVX256VNNI"],
        group: AVX512,
        flags: &["-mavx512vnni"],
        probe: Some(Probe {
            switches: &["AVX256VNNI"],
            oldest_gcc: 11,
            header: "immintrin.h",
            function: "__m256i f(__m256i a) { return _mm256_dpbusd_epi32(a, a, a); }",
        }),
    },
    Isa {
        name: "avx256vnnigfni",
        lists: &["AVX256VNNIGFNI"],
        group: AVX512,
        flags: &["-mavx512vnni", "-mgfni"],
        probe: Some(Probe {
            switches: &["AVX256VNNIGFNI"],
            oldest_gcc: 11,
            header: "immintrin.h",
            function: "__m256i f(__m256i a) { return _mm256_gf2p8affine_epi64_epi8(a, a, 0); }",
        }),
    },
    Isa {
        name: "avx512f",
        lists: &["AVX512F"],
        group: NONE,
        flags: &["-mavx512f"],
        probe: Some(Probe {
            switches: &["AVX512F"],
            oldest_gcc: 8,
            header: "immintrin.h",
            function: "__m512 f(__m512 a) { return _mm512_maskz_scalef_ps(1, a, a); }",
        }),
    },
    Isa {
        name: "avx512skx",
        lists: &["AVX512SKX"],
        group: AVX512,
        flags: NONE,
        probe: Some(Probe {
            switches: &["AVX512SKX"],
            oldest_gcc: 8,
            header: "immintrin.h",
            function: "__m512i f(__m512i a) { return _mm512_permutexvar_epi16(a, a); }",
        }),
    },
    Isa {
        name: "avx512vbmi",
        lists: &["AVX512VBMI"],
        group: AVX512,
        flags: &["-mavx512vbmi"],
        probe: Some(Probe {
            switches: &["AVX512VBMI"],
            oldest_gcc: 8,
            header: "immintrin.h",
            function: "__m512i f(__m512i a) { return _mm512_permutex2var_epi8(a, a, a); }",
        }),
    },
    Isa {
        name: "avx512vnni",
        lists: &["AVX512VNNI"],
        group: AVX512,
        flags: &["-mavx512vnni"],
        probe: Some(Probe {
            switches: &["AVX512VNNI"],
            oldest_gcc: 8,
            header: "immintrin.h",
            function: "__m512i f(__m512i a) { return _mm512_dpbusd_epi32(a, a, a); }",
        }),
    },
    Isa {
        name: "avx512vnnigfni",
        lists: &["AVX512VNNIGFNI"],
        group: AVX512,
        flags: &["-mavx512vnni", "-mgfni"],
        probe: Some(Probe {
            switches: &["AVX512VNNIGFNI"],
            oldest_gcc: 8,
            header: "immintrin.h",
            function: "__m512i f(__m512i a) { return _mm512_gf2p8affine_epi64_epi8(a, a, 0); }",
        }),
    },
    Isa {
        name: "avx512amx",
        lists: &["AVX512AMX"],
        group: AVX512,
        flags: &["-mavx512vnni", "-mgfni", "-mamx-tile", "-mamx-int8"],
        probe: Some(Probe {
            switches: &["AVX512AMX"],
            oldest_gcc: 13,
            header: "immintrin.h",
            function: "void f(void* p) { _tile_loadconfig(p); _tile_loadd(1, p, 64); _tile_dpbssd(0, 1, 1); _tile_dpbusd(0, 1, 1); }",
        }),
    },
    // For `csrc` alone, which needs an assembler that knows the instructions, not upstream's trust in intrinsics.
    Isa {
        name: "amx",
        lists: NONE,
        group: AVX512,
        flags: &["-mavx512vnni"],
        probe: Some(Probe {
            switches: &["OWN_AMX"],
            oldest_gcc: 8,
            header: "stdint.h",
            function: "void f(void* p) { __asm__ volatile(\"tileloadd (%0,%1,1), %%tmm4\" : : \"r\"(p), \"r\"((uintptr_t) 64)); __asm__ volatile(\"tdpbusd %%tmm6, %%tmm4, %%tmm0\" : : :); }",
        }),
    },
];

pub const AARCH64: &[Isa] = &[
    baseline("scalar", &["SCALAR"], NONE),
    baseline(
        "neon",
        &["NEON", "NEONFP16", "NEONFMA", "NEONV8", "NEON_AARCH64", "NEONFMA_AARCH64"],
        NONE,
    ),
    baseline("assembly", &["AARCH64_ASM"], &["-march=armv8.2-a+fp16+dotprod"]),
    Isa {
        name: "fp16arith",
        lists: &["FP16ARITH"],
        group: NONE,
        flags: &["-march=armv8.2-a+fp16"],
        probe: Some(Probe {
            switches: &["ARM_FP16_SCALAR"],
            oldest_gcc: 8,
            header: "arm_fp16.h",
            function: "float16_t f(float16_t a) { return vfmah_f16(a, a, a); }",
        }),
    },
    Isa {
        name: "neonfp16arith",
        lists: &["NEONFP16ARITH", "NEONFP16ARITH_AARCH64"],
        group: NONE,
        flags: &["-march=armv8.2-a+fp16"],
        probe: Some(Probe {
            switches: &["ARM_FP16_VECTOR"],
            oldest_gcc: 8,
            header: "arm_neon.h",
            function: "float16x8_t f(float16x8_t a) { return vfmaq_f16(a, a, a); }",
        }),
    },
    Isa {
        name: "neondot",
        lists: &["NEONDOT", "NEONDOT_AARCH64"],
        group: NONE,
        flags: &["-march=armv8.2-a+dotprod"],
        probe: Some(Probe {
            switches: &["ARM_DOTPROD"],
            oldest_gcc: 8,
            header: "arm_neon.h",
            function: "int32x4_t f(int32x4_t a, int8x16_t b) { return vdotq_s32(a, b, b); }",
        }),
    },
    Isa {
        name: "neondotfp16arith",
        lists: &["NEONDOTFP16ARITH"],
        group: NONE,
        flags: &["-march=armv8.2-a+dotprod+fp16"],
        probe: Some(Probe {
            switches: &["ARM_DOTPROD", "ARM_FP16_VECTOR"],
            oldest_gcc: 8,
            header: "arm_neon.h",
            function: "float16x8_t f(int32x4_t a, int8x16_t b, float16x8_t c) { vdotq_s32(a, b, b); return vfmaq_f16(c, c, c); }",
        }),
    },
    Isa {
        name: "neoni8mm",
        lists: &["NEONI8MM"],
        group: NONE,
        flags: &["-march=armv8.2-a+i8mm+fp16"],
        probe: Some(Probe {
            switches: &["ARM_I8MM"],
            oldest_gcc: 10,
            header: "arm_neon.h",
            function: "int32x4_t f(int32x4_t a, int8x16_t b) { return vmmlaq_s32(a, b, b); }",
        }),
    },
    // For `csrc` alone, which needs an assembler that knows the instructions. Compilers must not use vectors in streaming mode.
    Isa {
        name: "sme",
        lists: NONE,
        group: NONE,
        flags: &["-mgeneral-regs-only"],
        probe: Some(Probe {
            switches: &["OWN_SME"],
            oldest_gcc: 8,
            header: "stdint.h",
            function: r#"void f(void) { __asm__ volatile(".arch_extension fp\n.arch_extension simd\n.arch_extension sme\nsmstart\nldr z0, [sp]\nsmopa za0.s, p0/m, p0/m, z0.b, z0.b\nst1w {za0v.s[w12, #0]}, p0, [sp]\nsmstop\nstp d8, d9, [sp]\n" : : : "memory"); }"#,
        }),
    },
];

/// 32-bit ARM, where processors may have no NEON. Microkernels of `csrc` for NEON are written for 64 bits.
pub const ARM: &[Isa] = &[
    baseline("scalar", &["SCALAR"], NONE),
    baseline("armsimd32", &["ARMSIMD32"], &["-march=armv6", "-mfpu=vfp", "-munaligned-access"]),
    baseline("neonv7", &["NEON"], &["-march=armv7-a", "-mfpu=neon"]),
    baseline("neonfp16", &["NEONFP16"], &["-march=armv7-a", "-mfpu=neon-fp16"]),
    baseline("neonfma", &["NEONFMA"], &["-march=armv7-a", "-mfpu=neon-vfpv4"]),
    baseline("neonv8", &["NEONV8"], &["-march=armv8-a", "-mfpu=neon-fp-armv8"]),
    baseline(
        "assembly",
        &["AARCH32_ASM"],
        &["-march=armv8.2-a+dotprod+fp16", "-mfpu=neon-fp-armv8"],
    ),
    Isa {
        name: "neondot",
        lists: &["NEONDOT"],
        group: NONE,
        flags: &["-march=armv8.2-a+dotprod", "-mfpu=neon-fp-armv8"],
        probe: Some(Probe {
            switches: &["ARM_DOTPROD"],
            oldest_gcc: 8,
            header: "arm_neon.h",
            function: "int32x4_t f(int32x4_t a, int8x16_t b) { return vdotq_s32(a, b, b); }",
        }),
    },
];

/// All files are compiled with SIMD of 128 bits. Assembly is not in the lists.
pub const WASM32: &[Isa] = &[
    baseline("scalar", &["SCALAR"], NONE),
    baseline("wasm", &["WASM"], NONE),
    baseline("wasmsimd", &["WASMSIMD"], NONE),
];

impl Isa {
    /// The production microkernels, as paths in the XNNPACK tree.
    pub fn sources(&self, xnnpack: &Path) -> Result<Vec<String>> {
        let mut sources = Vec::new();
        for list in self.lists {
            if *list == SCALAR_ON_X86_64.0 {
                let all = production_list(xnnpack, "SCALAR")?;
                for name in SCALAR_ON_X86_64.1 {
                    let is_it = |file: &&String| Path::new(file).file_stem() == Some(name.as_ref());
                    let file = all.iter().find(is_it);
                    sources.push(file.ok_or_else(|| format!("no microkernel {name}"))?.clone());
                }
            } else {
                sources.extend(production_list(xnnpack, list)?);
            }
        }
        Ok(sources)
    }

    fn switches(&self) -> &'static [&'static str] {
        self.probe.as_ref().map_or(NONE, |probe| probe.switches)
    }

    fn compiles(&self) -> Result<bool> {
        let Some(probe) = &self.probe else {
            return Ok(true);
        };
        let Probe { oldest_gcc, header, function, .. } = probe;
        let file = out_dir()?.join(format!("probe-{}.c", self.name));
        fs::write(
            &file,
            format!(
                "#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < {oldest_gcc}\n\
                 #error \"too old\"\n\
                 #endif\n\
                 #include <{header}>\n\
                 {function}\n"
            ),
        )?;
        Ok(cc::Build::new()
            .file(file)
            .std("c99")
            .opt_level(0)
            .flags(self.group)
            .flags(self.flags)
            .cargo_metadata(false)
            .cargo_warnings(false)
            .try_compile_intermediates()
            .is_ok())
    }
}

/// The files of one of upstream's lists.
fn production_list(xnnpack: &Path, list: &str) -> Result<Vec<String>> {
    let file = list.strip_suffix("_ASM").unwrap_or(list).to_lowercase();
    let file = format!("cmake/gen/{file}_microkernels.cmake");
    cmake::source_list(xnnpack, &file, &format!("PROD_{list}_MICROKERNEL_SRCS"))
}

/// All production microkernels for x86-64.
pub fn x86_microkernels(xnnpack: &Path) -> Result<Vec<String>> {
    let lists: Result<Vec<_>> = X86_64.iter().map(|isa| isa.sources(xnnpack)).collect();
    Ok(lists?.concat())
}

/// Names instruction sets whose microkernels are not wanted, for smaller programs.
const WITHOUT: &str = "XNNPACK_SYS_WITHOUT";

/// The instruction sets that [`WITHOUT`] lists.
fn unwanted(all: &[Isa]) -> Result<Vec<String>> {
    println!("cargo::rerun-if-env-changed={WITHOUT}");
    let value = env::var(WITHOUT).unwrap_or_default();
    let names = value.split([',', ' ']).filter(|name| !name.is_empty());
    let optional = || all.iter().filter(|isa| isa.probe.is_some()).map(|isa| isa.name);
    names
        .map(|name| match optional().any(|one| one == name) {
            true => Ok(name.to_owned()),
            false => {
                let known = optional().collect::<Vec<_>>().join(", ");
                Err(format!("{WITHOUT} has {name:?}; expected some of {known}").into())
            }
        })
        .collect()
}

impl Selection {
    /// Asks the compiler about each instruction set of the platform.
    pub fn probe(platform: &Platform) -> Result<Self> {
        let all = platform.isas;
        let unwanted = unwanted(all)?;
        let mut off = Vec::new();
        for isa in all {
            if unwanted.iter().any(|name| name == isa.name) || !isa.compiles()? {
                off.extend(isa.switches());
            }
        }
        let (left_out, enabled) =
            all.iter().partition(|isa| isa.switches().iter().any(|switch| off.contains(switch)));
        Ok(Self { enabled, left_out })
    }

    /// A value for each of upstream's `XNN_ENABLE_*` macros for microkernels.
    pub fn definitions(&self) -> Vec<(String, &'static str)> {
        let probed = X86_64.iter().chain(AARCH64).chain(ARM).flat_map(|isa| {
            isa.switches().iter().map(|switch| {
                let on = self.enabled.iter().any(|one| one.switches().contains(switch));
                (*switch, on)
            })
        });
        let mut definitions: Vec<_> = SWITCHES
            .into_iter()
            .chain(probed)
            .map(|(switch, on)| (format!("XNN_ENABLE_{switch}"), if on { "1" } else { "0" }))
            .collect();
        definitions.sort();
        definitions.dedup();
        definitions
    }
}
