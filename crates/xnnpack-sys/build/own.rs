//! Files of this crate that are compiled into the library.

/// A file of this crate.
pub struct Source {
    pub file: &'static str,
    /// The instruction sets that it is written for. It is left out where one of them is.
    pub isas: &'static [&'static str],
}

pub const SOURCES: [Source; 42] = [
    Source { file: "csrc/layout.c", isas: &[] },
    Source { file: "csrc/hooks/run.c", isas: &[] },
    Source { file: "csrc/ukernels/amx.c", isas: &[] },
    Source { file: "csrc/config/narrow_gemm_config.c", isas: &[] },
    Source { file: "csrc/packing/pack_f32.c", isas: &[] },
    Source { file: "csrc/packing/pack_slices.c", isas: &[] },
    Source { file: "csrc/packing/within_rows.c", isas: &[] },
    Source { file: "csrc/hooks/tile_order.c", isas: &[] },
    Source { file: "csrc/config/f32_config.c", isas: &[] },
    Source { file: "csrc/config/q8_config.c", isas: &[] },
    Source { file: "csrc/config/qd8_config.c", isas: &[] },
    Source { file: "csrc/hooks/depthwise_qd8.c", isas: &[] },
    Source { file: "csrc/hooks/depthwise_weights.c", isas: &[] },
    Source { file: "csrc/hooks/denormals.c", isas: &[] },
    Source { file: "csrc/hooks/indirection.c", isas: &[] },
    Source { file: "csrc/ukernels/mean_f32.c", isas: &[] },
    Source { file: "csrc/hooks/optimize.c", isas: &[] },
    Source { file: "csrc/memory/outputs.c", isas: &[] },
    Source { file: "csrc/memory/plan.c", isas: &[] },
    Source { file: "csrc/hooks/product_q8.c", isas: &[] },
    Source { file: "csrc/hooks/quantize_qd8.c", isas: &[] },
    Source { file: "csrc/hooks/resize.c", isas: &[] },
    Source { file: "csrc/ukernels/special_f32.c", isas: &[] },
    Source { file: "csrc/memory/workspace.c", isas: &[] },
    Source { file: "csrc/ukernels/resize_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/elementwise_qu8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/ukernels/gemm_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/packing/pack_f16w.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/pool_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/pool_rows_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/unary_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/depthwise_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/depthwise_large_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/ukernels/depthwise_q8.c", isas: &["avx512vnni", "avx512vbmi"] },
    Source { file: "csrc/ukernels/gemm_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/ukernels/gemm_q8_amx.c", isas: &["avx512vnni", "amx"] },
    Source { file: "csrc/packing/pack_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/ukernels/pool_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/packing/pack_qd8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/ukernels/gemm_qd8.c", isas: &["avx512vnnigfni"] },
    Source { file: "csrc/ukernels/gemm_qd8_amx.c", isas: &["avx512vnnigfni", "amx"] },
    Source { file: "csrc/ukernels/conv_qd8.c", isas: &["avx512vnnigfni"] },
];

/// An instruction set, and the microkernels of XNNPACK for it that `csrc` chooses in addition to the production ones.
pub const MORE_KERNELS: (&str, [&str; 3]) = (
    "avx512f",
    [
        "src/f32-gemm/gen/f32-gemm-8x16-minmax-avx512f-broadcast.c",
        "src/f32-igemm/gen/f32-igemm-8x16-minmax-avx512f-broadcast.c",
        "src/x32-packw/gen/x32-packw-x16-gemm-goi-avx512f-u4-prfm.c",
    ],
);

/// Files of this crate that decide which microkernels run, and so how weights are packed.
pub const CHOICES: [&str; 22] = [
    "build/compile.rs",
    "build/edits/defects.rs",
    "build/edits/kernels.rs",
    "build/edits/weights.rs",
    "build/own.rs",
    "csrc/config/config.h",
    "csrc/config/f32_config.c",
    "csrc/config/narrow_gemm_config.c",
    "csrc/config/operators.h",
    "csrc/config/q8_config.c",
    "csrc/config/qd8_config.c",
    "csrc/hooks/depthwise_qd8.c",
    "csrc/hooks/depthwise_weights.c",
    "csrc/packing/pack_f16w.c",
    "csrc/packing/pack_f32.c",
    "csrc/packing/pack_q8.c",
    "csrc/packing/pack_qd8.c",
    "csrc/packing/within_rows.c",
    "csrc/ukernels/amx.c",
    "csrc/ukernels/amx.h",
    "csrc/ukernels/gemm_q8.h",
    "csrc/ukernels/gemm_qd8.h",
];
