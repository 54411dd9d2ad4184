//! What decides how weights are packed, besides the weights: XNNPACK's build and the processor.

use std::slice;
use std::sync::OnceLock;

use xnnpack_sys as sys;

/// Identifies the build of XNNPACK that is linked: other sources or instruction sets give another
/// one.
#[must_use]
pub fn build_identifier() -> &'static [u8] {
    // SAFETY: neither function has preconditions; together they describe constant data.
    unsafe {
        let data = sys::xnn_experimental_get_build_identifier_data().cast::<u8>();
        slice::from_raw_parts(data, sys::xnn_experimental_get_build_identifier_size())
    }
}

/// What of this processor makes XNNPACK choose microkernels, in words such as
/// `x86_64 avx f16c fma avx2`.
#[must_use]
pub fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        let mut words = vec![std::env::consts::ARCH.to_owned()];
        // The standard library would ask the processor all over again, which takes a tenth of a millisecond in virtual machines.
        let features = sys::processor_features().map_or_else(features, Iterator::collect);
        words.extend(features.into_iter().map(str::to_owned));
        words.extend(core());
        words.join(" ")
    })
}

/// Whether this processor multiplies unsigned 8-bit integers as fast as signed ones: XNNPACK itself has such
/// microkernels for neither x86 nor ARM, `xnnpack-sys` adds some for AVX512 with VNNI and VBMI, which round as TFLite's
/// reference kernels do.
#[must_use]
pub fn has_fast_uint8() -> bool {
    has_kernels(&["avx512vnni", "avx512vbmi"], &["avx512vnni", "avx512vbmi"])
}

/// Whether a filter of [`Halves`](crate::Halves) can stay in fp16 when it is packed ([`Flags::HALF_WEIGHTS`](crate::Flags)):
/// `xnnpack-sys` adds microkernels for such weights for AVX512.
#[must_use]
pub fn packs_halves() -> bool {
    has_kernels(&["avx512f"], &["avx512f"])
}

/// Whether convolutions of images quantized at run time give on this processor what TFLite's reference kernels do, bit
/// for bit: `xnnpack-sys` adds such microkernels for AVX512 with VNNI, VBMI and GFNI.
#[must_use]
pub fn has_exact_dynamic_convolutions() -> bool {
    has_fast_uint8() && has_kernels(&["avx512vnnigfni"], &["gfni"])
}

/// Whether this processor's microkernels add two products of int8 in 16 bits, in which two of -128 and -128 do not fit:
/// XNNPACK's `mla8` and `mlal` for ARM do, where there are dot products in layers that are `depthwise` alone (one input channel
/// in a group). TFLite's specification of 8-bit quantization allows no -128 among weights; layers with two of them for one output
/// channel are refused.
#[must_use]
pub fn adds_in_16_bits(depthwise: bool) -> bool {
    cfg!(any(target_arch = "aarch64", target_arch = "arm"))
        && (depthwise || !has_kernels(&["neondot"], &["dotprod"]))
}

/// Whether XNNPACK computes in half precision on this processor: on ARM where that has such arithmetic, else in fp32.
#[must_use]
pub fn has_half_precision() -> bool {
    !cfg!(any(target_arch = "aarch64", target_arch = "arm")) || has_feature("fp16")
}

/// Whether microkernels for all these instruction sets have been built, and the processor has these features.
fn has_kernels(sets: &[&str], features: &[&str]) -> bool {
    sets.iter().all(|set| sys::build::has(set))
        && features.iter().all(|feature| has_feature(feature))
}

fn has_feature(feature: &str) -> bool {
    processor().split(' ').any(|word| word == feature)
}

macro_rules! detected {
    ($detect:ident: $($feature:tt)*) => {
        [$(($feature, std::arch::$detect!($feature))),*]
            .into_iter()
            .filter_map(|(feature, found)| found.then_some(feature))
            .collect()
    };
}

/// Those that `hardware-config.c` asks for.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    detected!(is_x86_feature_detected:
        "ssse3" "sse4.1" "avx" "f16c" "fma" "avx2" "avxvnni" "avxvnniint8" "avx512f" "avx512cd"
        "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "avx512vnni" "avx512fp16" "gfni")
}

/// Those that `hardware-config.c` asks for.
#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    detected!(is_aarch64_feature_detected: "fp16" "bf16" "dotprod" "i8mm" "sve" "sve2")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

/// The kind of core, by which XNNPACK chooses as well on ARM.
fn core() -> Option<String> {
    const MIDR: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    let midr = cfg!(target_arch = "aarch64").then(|| std::fs::read_to_string(MIDR).ok())??;
    Some(midr.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_known() {
        assert!(build_identifier().len() >= 16);
        assert!(processor().starts_with(std::env::consts::ARCH));
    }

    /// Two ways to ask. What only XNNPACK knows is left out.
    #[test]
    fn the_library_finds_the_features_that_the_standard_library_does() {
        let Some(known) = sys::processor_features() else { return };
        let known = known.filter(|name| *name != "amx-int8");
        assert_eq!(known.collect::<Vec<_>>(), features());
    }
}
