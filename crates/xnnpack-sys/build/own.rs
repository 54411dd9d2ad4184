//! What this crate adds to XNNPACK, and where XNNPACK is made to call it.
//!
//! XNNPACK's sources stay as they are: a file that is to call another function is compiled with that
//! name defined as the other's.

/// A file of XNNPACK and what it is compiled with.
pub struct Hook {
    pub file: &'static str,
    /// The functions that it calls, each with the one that it calls instead.
    pub calls: &'static [(&'static str, &'static str)],
    /// Headers of this crate that are put before the file, for calls with other arguments.
    pub headers: &'static [&'static str],
}

/// For files that create operators with 8-bit weights.
const CREATION: &str = "csrc/creation.h";

/// Tells the header which operators a file creates.
const CREATES: &str = "XNNPACK_SYS_CREATES";

/// Tells `csrc/depthwise_weights.h` what a file does.
const DEPTHWISE: &str = "XNNPACK_SYS_DEPTHWISE";

const F32_PACKING: (&str, &str) = ("xnn_pack_f32_conv_goki_w", "xnnpack_sys_pack_f32_conv_goki_w");

pub const HOOKS: [Hook; 15] = [
    // Choosing microkernels for convolutions.
    Hook {
        file: "src/operators/convolution-nhwc.c",
        calls: &[
            (CREATES, "XNNPACK_SYS_CONVOLUTIONS"),
            F32_PACKING,
            ("xnn_init_f32_dwconv_config", "xnnpack_sys_f32_depthwise_config"),
            ("xnn_init_qs8_qc8w_dwconv_config", "xnnpack_sys_int8_depthwise_config"),
            ("xnn_pack_qs8_conv_goki_w", "xnnpack_sys_pack_qd8_conv_goki_w"),
            ("xnn_init_qu8_dwconv_config", "xnnpack_sys_qu8_depthwise_config"),
            ("xnn_pack_qu8_conv_goki_w", "xnnpack_sys_pack_qu8_conv_goki_w"),
            // Pointing to inputs.
            ("XNNPACK_SYS_POINTS", "1"),
            (DEPTHWISE, "XNNPACK_SYS_OPERATORS"),
        ],
        headers: &[
            CREATION,
            "csrc/narrow_gemm.h",
            "csrc/depthwise_configs.h",
            "csrc/indirection.h",
            "csrc/depthwise_weights.h",
            "csrc/pack_slices.h",
        ],
    },
    Hook {
        file: "src/operators/deconvolution-nhwc.c",
        calls: &[(CREATES, "XNNPACK_SYS_DECONVOLUTIONS"), F32_PACKING],
        headers: &[CREATION, "csrc/narrow_gemm.h"],
    },
    Hook {
        file: "src/operators/fully-connected-nc.c",
        calls: &[
            (CREATES, "XNNPACK_SYS_FULLY_CONNECTED"),
            ("xnn_init_qd8_f32_qb4w_gemm_config", "xnnpack_sys_qd8_qb4w_gemm_config"),
        ],
        headers: &[CREATION, "csrc/narrow_gemm.h", "csrc/pack_slices.h"],
    },
    Hook {
        file: "src/operators/binary-elementwise-nd.c",
        calls: &[
            ("xnn_init_f32_vmax_config", "xnnpack_sys_f32_vmax_config"),
            ("xnn_init_f32_vmin_config", "xnnpack_sys_f32_vmin_config"),
            ("xnn_init_qu8_vadd_config", "xnnpack_sys_qu8_add_config"),
        ],
        headers: &[],
    },
    Hook {
        file: "src/operators/unary-elementwise-nc.c",
        calls: &[
            ("xnn_init_qu8_cvt_config", "xnnpack_sys_qu8_convert_config"),
            ("xnn_init_f32_exp_config", "xnnpack_sys_f32_exp_config"),
            ("xnn_init_f32_log_config", "xnnpack_sys_f32_log_config"),
            ("xnn_init_f32_rminmax_config", "xnnpack_sys_f32_range_config"),
            ("xnn_init_f32_rsqrt_config", "xnnpack_sys_f32_rsqrt_config"),
            ("xnn_init_f32_sigmoid_config", "xnnpack_sys_f32_sigmoid_config"),
            ("xnn_init_f32_sqrt_config", "xnnpack_sys_f32_sqrt_config"),
            ("xnn_init_unary_reference_config", "xnnpack_sys_unary_reference_config"),
        ],
        headers: &[],
    },
    Hook {
        file: "src/operators/reduce-nd.c",
        calls: &[("xnn_init_f32_rdsum_config", "xnnpack_sys_f32_mean_config")],
        headers: &[],
    },
    Hook {
        file: "src/operators/batch-matrix-multiply-nc.c",
        calls: &[("xnn_init_f32_gemm_config", "xnnpack_sys_f32_rows_gemm_config")],
        headers: &[],
    },
    Hook {
        file: "src/operators/max-pooling-nhwc.c",
        calls: &[
            ("xnn_init_f32_maxpool_config", "xnnpack_sys_f32_maxpool_config"),
            ("xnn_init_s8_maxpool_config", "xnnpack_sys_s8_maxpool_config"),
            ("xnn_init_u8_maxpool_config", "xnnpack_sys_u8_maxpool_config"),
        ],
        headers: &[],
    },
    Hook {
        file: "src/operators/average-pooling-nhwc.c",
        calls: &[("xnn_init_f32_avgpool_config", "xnnpack_sys_f32_avgpool_config")],
        headers: &[],
    },
    Hook {
        file: "src/operators/argmax-pooling-nhwc.c",
        calls: &[("xnn_init_f32_argmaxpool_config", "xnnpack_sys_f32_argmaxpool_config")],
        headers: &[],
    },
    Hook {
        file: "src/operators/resize-bilinear-nhwc.c",
        calls: &[
            ("xnn_init_f32_ibilinear_config", "xnnpack_sys_f32_ibilinear_config"),
            // Pointing to inputs.
            ("XNNPACK_SYS_RESIZES", "1"),
            ("xnn_compute_resize_bilinear", "xnnpack_sys_compute_resize_bilinear"),
        ],
        headers: &["csrc/resize.h"],
    },
    // Quantizing images.
    Hook {
        file: "src/subgraph/unary.c",
        calls: &[("XNNPACK_SYS_QUANTIZES", "1")],
        headers: &["csrc/quantize_qd8.h"],
    },
    // Defining depthwise convolutions: XNNPACK's function is what ours calls. The cache of their weights.
    Hook {
        file: "src/subgraph/depthwise-convolution-2d.c",
        calls: &[
            ("xnn_define_depthwise_convolution_2d", "xnnpack_sys_define_depthwise_convolution_2d"),
            (DEPTHWISE, "XNNPACK_SYS_NODES"),
        ],
        headers: &["csrc/depthwise_weights.h"],
    },
    // Switching denormals off and on, and where values lie: XNNPACK's functions are what ours call. Optimizing graphs once more. Zeros
    // for workspaces.
    Hook {
        file: "src/runtime.c",
        calls: &[
            ("xnn_create_runtime_v4", "xnnpack_sys_create_runtime_v4"),
            ("xnn_invoke_runtime", "xnnpack_sys_invoke_runtime"),
            ("xnn_run_operator_with_index", "xnnpack_sys_run_operator"),
            ("xnn_subgraph_optimize", "xnnpack_sys_optimize_subgraph"),
            ("xnn_reshape_runtime", "xnnpack_sys_reshape_runtime"),
            ("xnn_setup_runtime_v2", "xnnpack_sys_setup_runtime_v2"),
            ("XNNPACK_SYS_PLANS", "1"),
        ],
        headers: &["csrc/workspace.h", "csrc/outputs.h"],
    },
    // Cutting matrix products into tiles. Which operators switch denormals off: `edits.rs` has the call.
    Hook {
        file: "src/operator-run.c",
        calls: &[("pthreadpool_parallelize_2d_tile_2d", "xnnpack_sys_parallelize_2d_tile_2d")],
        headers: &["csrc/denormals.h"],
    },
];

/// A file of this crate.
pub struct Source {
    pub file: &'static str,
    /// The instruction sets that it is written for. It is left out where one of them is.
    pub isas: &'static [&'static str],
}

pub const SOURCES: [Source; 40] = [
    Source { file: "csrc/run.c", isas: &[] },
    Source { file: "csrc/amx.c", isas: &[] },
    Source { file: "csrc/narrow_gemm.c", isas: &[] },
    Source { file: "csrc/pack_f32.c", isas: &[] },
    Source { file: "csrc/pack_slices.c", isas: &[] },
    Source { file: "csrc/tile_order.c", isas: &[] },
    Source { file: "csrc/choices_f32.c", isas: &[] },
    Source { file: "csrc/choices_q8.c", isas: &[] },
    Source { file: "csrc/choices_qd8.c", isas: &[] },
    Source { file: "csrc/depthwise_qd8.c", isas: &[] },
    Source { file: "csrc/depthwise_weights.c", isas: &[] },
    Source { file: "csrc/denormals.c", isas: &[] },
    Source { file: "csrc/indirection.c", isas: &[] },
    Source { file: "csrc/mean_f32.c", isas: &[] },
    Source { file: "csrc/optimize.c", isas: &[] },
    Source { file: "csrc/outputs.c", isas: &[] },
    Source { file: "csrc/plan.c", isas: &[] },
    Source { file: "csrc/product_q8.c", isas: &[] },
    Source { file: "csrc/quantize_qd8.c", isas: &[] },
    Source { file: "csrc/resize.c", isas: &[] },
    Source { file: "csrc/special_f32.c", isas: &[] },
    Source { file: "csrc/workspace.c", isas: &[] },
    Source { file: "csrc/resize_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/elementwise_qu8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/gemm_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/pack_f16w.c", isas: &["avx512f"] },
    Source { file: "csrc/pool_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/pool_rows_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/unary_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/depthwise_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/depthwise_large_f32.c", isas: &["avx512f"] },
    Source { file: "csrc/depthwise_q8.c", isas: &["avx512vnni", "avx512vbmi"] },
    Source { file: "csrc/gemm_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/gemm_q8_amx.c", isas: &["avx512vnni", "amx"] },
    Source { file: "csrc/pack_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/pool_q8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/pack_qd8.c", isas: &["avx512vnni"] },
    Source { file: "csrc/gemm_qd8.c", isas: &["avx512vnnigfni"] },
    Source { file: "csrc/gemm_qd8_amx.c", isas: &["avx512vnnigfni", "amx"] },
    Source { file: "csrc/conv_qd8.c", isas: &["avx512vnnigfni"] },
];

/// Microkernels of XNNPACK, of one instruction set, that `csrc` chooses beyond the production ones.
pub const MORE_KERNELS: (&str, [&str; 3]) = (
    "avx512f",
    [
        "src/f32-gemm/gen/f32-gemm-8x16-minmax-avx512f-broadcast.c",
        "src/f32-igemm/gen/f32-igemm-8x16-minmax-avx512f-broadcast.c",
        "src/x32-packw/gen/x32-packw-x16-gemm-goi-avx512f-u4-prfm.c",
    ],
);

/// Files of this crate that decide which microkernels run, and so how weights are packed.
pub const CHOICES: [&str; 20] = [
    "csrc/amx.c",
    "csrc/amx.h",
    "csrc/narrow_gemm.c",
    "csrc/narrow_gemm.h",
    "csrc/choices.h",
    "csrc/choices_f32.c",
    "csrc/choices_q8.c",
    "csrc/choices_qd8.c",
    "csrc/creation.h",
    "csrc/depthwise_configs.h",
    "csrc/depthwise_qd8.c",
    "csrc/depthwise_weights.h",
    "csrc/gemm_q8.h",
    "csrc/gemm_qd8.h",
    "csrc/pack_f16w.c",
    "csrc/pack_f32.c",
    "csrc/pack_q8.c",
    "csrc/pack_qd8.c",
    "build/compile.rs",
    "build/own.rs",
];
