//! XNNPACK's build and the processor, which determine microkernels and how weights are packed.

use std::slice;
use std::sync::OnceLock;

use xnnpack_sys as sys;

use crate::status::{Error, Result};

/// Identifier of the linked build of XNNPACK. It differs for other sources and instruction sets.
#[must_use]
pub fn build_identifier() -> &'static [u8] {
    // SAFETY: neither function has preconditions; together they describe constant data.
    unsafe {
        let data = sys::xnn_experimental_get_build_identifier_data().cast::<u8>();
        slice::from_raw_parts(data, sys::xnn_experimental_get_build_identifier_size())
    }
}

/// Returns the newest instruction set that this process may use: the value of the environment
/// variable `XNN_MAX_ISA`, one of [`isa_levels`]. `None` means all that the processor has.
///
/// The variable is read once. A level that the processor does not have takes nothing away.
///
/// # Errors
/// The variable has another value. [`initialize`](crate::initialize) fails with the same error.
pub fn isa_limit() -> Result<Option<&'static str>> {
    match sys::isa_limit() {
        sys::IsaLimit::None => Ok(None),
        sys::IsaLimit::Level(name) => Ok(Some(name)),
        sys::IsaLimit::Invalid => {
            let levels: Vec<_> = isa_levels().collect();
            let value = std::env::var_os("XNN_MAX_ISA").unwrap_or_default();
            let levels = levels.join(", ");
            let reason = format!("XNN_MAX_ISA is {value:?}; expected one of {levels}, or nothing");
            Err(Error::invalid(reason).during("initialize XNNPACK"))
        }
    }
}

/// Values that `XNN_MAX_ISA` can have on this architecture, from the oldest processors on.
pub fn isa_levels() -> impl Iterator<Item = &'static str> {
    sys::isa_levels()
}

/// Instruction sets that this build has microkernels for, such as `scalar sse avx2`. Empty for an
/// installed library.
#[must_use]
pub fn instruction_sets() -> &'static str {
    sys::build::INSTRUCTION_SETS
}

/// The processor's architecture and the features by which XNNPACK chooses microkernels, such as
/// `x86_64 avx f16c fma avx2`, without those that `XNN_MAX_ISA` ([`isa_limit`]) takes away. SME is
/// followed by the bits of its vectors, such as `sme512`: they determine tiles.
#[must_use]
pub fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        let mut words = vec![std::env::consts::ARCH.to_owned()];
        // Detection by the standard library would take another tenth of a millisecond in virtual
        // machines.
        let features = sys::processor_features().map_or_else(features, Iterator::collect);
        words.extend(features.into_iter().map(str::to_owned));
        words.extend(sys::sme_vector_bytes().map(|bytes| format!("sme{}", 8 * bytes)));
        words.extend(core());
        words.join(" ")
    })
}

/// Whether products of unsigned 8-bit integers are as fast as those of signed ones on this
/// processor. XNNPACK has no such microkernels for x86 and ARM; `xnnpack-sys` adds some from SSE4.1
/// on and for 64-bit ARM, which round like TFLite's reference kernels.
#[must_use]
pub fn has_fast_uint8() -> bool {
    has_kernels(&["sse41"], &["sse4.1"]) || has_kernels(&["neon"], &[])
}

/// Whether [`Fp16Weights`](crate::Fp16Weights) can stay in fp16 when they are packed
/// ([`Flags::FP16_WEIGHTS`](crate::Flags::FP16_WEIGHTS)), by microkernels that `xnnpack-sys` adds
/// for AVX512.
#[must_use]
pub fn packs_fp16_weights() -> bool {
    has_kernels(&["avx512f"], &["avx512f"])
}

/// Input channels up to which [`skips_zero_weights`] can hold.
pub const SPARSE_INPUTS: usize = sys::SPARSE_INPUTS;

/// Whether fully connected layers of this many rows, input channels and output channels multiply
/// faster if half of their weights are 0 ([`Flags::SPARSE_WEIGHTS`](crate::Flags::SPARSE_WEIGHTS)),
/// by microkernels that `xnnpack-sys` adds for SSE4.1, AVX, AVX2 and NEON. With AVX512 and SME it
/// takes as long to multiply all.
#[must_use]
pub fn skips_zero_weights([rows, inputs, outputs]: [usize; 3]) -> bool {
    /// Rows and weights from which skipping weights saves more than transposing the input costs.
    /// Instructions that multiply and add make dense products twice as fast.
    const ENOUGH: [usize; 2] = [16, 1];
    const ENOUGH_WITH_FMA: [usize; 2] = [64, 512];

    let is_arm = has_kernels(&["neon"], &[]) && sys::sme_vector_bytes().is_none();
    let is_x86 = has_kernels(&["sse41"], &["sse4.1"]) && !has_kernels(&["avx512f"], &["avx512f"]);
    let has_fma = is_arm || has_kernels(&["avx2"], &["avx2", "fma"]);
    let [enough_rows, enough_weights] = if has_fma { ENOUGH_WITH_FMA } else { ENOUGH };
    (is_arm || is_x86)
        && rows >= enough_rows
        && inputs <= SPARSE_INPUTS
        && inputs.saturating_mul(outputs) >= enough_weights
}

/// Whether 8-bit and 4-bit weights of fully connected layers are packed differently for many rows of input
/// ([`Flags::MANY_ROWS`](crate::Flags::MANY_ROWS)), for microkernels that `xnnpack-sys` adds for AMX.
#[must_use]
pub fn packs_for_many_rows() -> bool {
    let vnni = ["avx512vnni", "avx512vbmi"];
    has_kernels(&vnni, &vnni) && has_kernels(&["amx"], &["amx-int8"])
}

/// Whether convolutions of images quantized at run time give the same bits as TFLite's reference
/// kernels on this processor, by microkernels that `xnnpack-sys` adds for SSE4.1, AVX2, AVX512 and
/// 64-bit ARM.
#[must_use]
pub fn has_exact_dynamic_convolutions() -> bool {
    // With VNNI and VBMI they are written for GFNI, too.
    let vnni = ["avx512vnni", "avx512vbmi"];
    has_fast_uint8() && (!has_kernels(&vnni, &vnni) || has_kernels(&["avx512vnnigfni"], &["gfni"]))
}

/// Whether this processor's microkernels add two products of int8 in 16 bits, which overflows for
/// two products of -128 and -128. XNNPACK's `mla8` and `mlal` for ARM do; on processors with dot
/// products only in `depthwise` layers (one input channel per group). `xnnpack-sys` chooses others
/// for layers with weights of -128. With an installed library, layers with two of them for one
/// output channel are refused.
#[must_use]
pub fn adds_in_16_bits(depthwise: bool) -> bool {
    ADDS_IN_16_BITS && !sys::build::has("neon") && (depthwise || !has_dot_products())
}

/// [`adds_in_16_bits`] of layers with fp16 outputs, for which there are no other microkernels.
pub(crate) fn adds_in_16_bits_for_fp16() -> bool {
    ADDS_IN_16_BITS && !has_dot_products()
}

const ADDS_IN_16_BITS: bool = cfg!(any(target_arch = "aarch64", target_arch = "arm"));

fn has_dot_products() -> bool {
    has_kernels(&["neondot"], &["dotprod"])
}

/// Whether XNNPACK supports fp16 tensors on this processor. ARM processors require half-precision
/// arithmetic, x86 processors AVX2 (`xnn_is_f16_compatible_config`); others have no microkernels.
#[must_use]
pub fn has_half_precision() -> bool {
    if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
        has_feature("fp16")
    } else {
        has_feature("avx2")
    }
}

/// Whether microkernels for all these instruction sets are built in, and the processor has these
/// features.
fn has_kernels(sets: &[&str], features: &[&str]) -> bool {
    sets.iter().all(|set| sys::build::has(set))
        && features.iter().all(|feature| has_feature(feature))
}

fn has_feature(feature: &str) -> bool {
    processor().split(' ').any(|word| word == feature)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detected {
    ($detect:ident: $($feature:tt)*) => {
        [$(($feature, std::arch::$detect!($feature))),*]
            .into_iter()
            .filter_map(|(feature, found)| found.then_some(feature))
            .collect()
    };
}

/// Features that `hardware-config.c` detects.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    detected!(is_x86_feature_detected:
        "ssse3" "sse4.1" "avx" "f16c" "fma" "avx2" "avxvnni" "avxvnniint8" "avx512f" "avx512cd"
        "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "avx512vnni" "avx512fp16" "gfni")
}

/// Features that `hardware-config.c` detects.
#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    let mut features: Vec<_> =
        detected!(is_aarch64_feature_detected: "fp16" "bf16" "dotprod" "i8mm" "sve" "sve2");
    if let sys::IsaLimit::Level(level) = sys::isa_limit() {
        features.retain(|feature| match *feature {
            "fp16" | "dotprod" => level != "neon",
            _ => !matches!(level, "neon" | "dotprod"),
        });
    }
    features
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

/// Identifier of the core, by which XNNPACK also chooses microkernels on ARM.
#[cfg(not(target_arch = "arm"))]
fn core() -> Option<String> {
    const MIDR: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    let midr = cfg!(target_arch = "aarch64").then(|| std::fs::read_to_string(MIDR).ok())??;
    Some(midr.trim().to_owned())
}

/// Features and identifier of the core. The standard library does not detect them on 32-bit ARM.
#[cfg(target_arch = "arm")]
fn core() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let words = ["Features", "CPU implementer", "CPU variant", "CPU part"].map(value);
    Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_and_processor_are_known() {
        assert!(build_identifier().len() >= 16);
        assert!(processor().starts_with(std::env::consts::ARCH));
    }

    #[test]
    fn zeros_are_skipped_in_layers_that_are_large_enough() {
        for size in [[0, 100, 100], [15, 100, 100], [1000, SPARSE_INPUTS + 1, 100]] {
            assert!(!skips_zero_weights(size), "{size:?}");
        }
        let skips = skips_zero_weights([64, 32, 32]);
        for size in [[64, 16, 32], [64, SPARSE_INPUTS, 2], [usize::MAX, 32, usize::MAX]] {
            assert_eq!(skips_zero_weights(size), skips, "{size:?}");
        }
        let skips_small = skips_zero_weights([16, 1, 1]);
        assert!(skips || !skips_small);
        for size in [[63, 32, 32], [64, 16, 31], [64, 0, 100]] {
            let has_weights = !size.contains(&0);
            assert_eq!(skips_zero_weights(size), skips_small && has_weights, "{size:?}");
        }
    }

    /// Compares two detections, except for features that only XNNPACK detects.
    #[test]
    fn the_features_are_those_of_the_standard_library() {
        let Some(known) = sys::processor_features() else { return };
        if sys::isa_limit() != sys::IsaLimit::None {
            return;
        }
        let known = known.filter(|name| *name != "amx-int8");
        assert_eq!(known.collect::<Vec<_>>(), features());
    }
}
