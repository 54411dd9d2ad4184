//! Choice of microkernels: operators request configurations from `csrc/config`, and functions that pack weights for them from
//! `csrc/packing`.

use super::{Edit, Files};

pub const EDITS: &[Edit] = &[
    ISA_LIMIT,
    CONVOLUTIONS,
    CONVOLUTION_PACKING,
    ORDER_OF_CONVOLUTIONS,
    ORDER_OF_ROWS,
    FEW_ROWS,
    DEPTHWISE_CONVOLUTIONS,
    TRANSPOSED_CONVOLUTIONS,
    ROWS_OF_TRANSPOSED_CONVOLUTIONS,
    FULLY_CONNECTED,
    QU8_RESCALING,
    MATRIX_PRODUCTS,
    POOLING,
    RESIZING,
    BINARY,
    UNARY,
    EXPONENTIAL_FUNCTIONS,
    CONVERSIONS_TO_FLOATS,
    TABLES,
    TRANSPOSITIONS,
    LINEAR_TABLES,
    MEANS,
];

macro_rules! limited {
    ($feature:literal, $level:literal) => {
        (
            concat!("= cpuinfo_has_arm_", $feature, "();"),
            concat!(
                "= cpuinfo_has_arm_",
                $feature,
                "() && xnnpack_sys_isa_limit() >= ",
                $level,
                ";"
            ),
            1,
        )
    };
}

const ISA_LIMIT: Edit = Edit {
    name: "limit of instruction sets",
    why: "XNN_MAX_ISA takes instruction sets away on ARM, too; for x86 see csrc/cpuinfo/processor_x86.c",
    files: Files::These(&["src/configs/hardware-config.c"]),
    changes: &[
        (
            "#include \"xnnpack/hardware-config.h\"\n",
            "#include \"xnnpack/hardware-config.h\"\n#include \"cpuinfo/isa_limit.h\"\n",
            1,
        ),
        limited!("fp16_arith", "ISA_DOTPROD"),
        limited!("neon_fp16_arith", "ISA_DOTPROD"),
        limited!("neon_dot", "ISA_DOTPROD"),
        limited!("neon_bf16", "ISA_I8MM"),
        limited!("i8mm", "ISA_I8MM"),
        limited!("sve", "ISA_I8MM"),
        limited!("sve2", "ISA_I8MM"),
        limited!("sme", "ISA_SME"),
        limited!("sme2", "ISA_SME"),
    ],
};

const CONVOLUTION: Files = Files::These(&["src/operators/convolution-nhwc.c"]);

const CONVOLUTIONS: Edit = Edit {
    name: "microkernels of convolutions",
    why: "XNNPACK chooses by type alone; csrc/config chooses by the shape of the layer, too",
    files: CONVOLUTION,
    changes: &[
        include_header!("config/operators.h"),
        (
            "xnn_init_f32_gemm_config()",
            "xnnpack_sys_conv_f32_gemm_config_for(group_input_channels, group_output_channels)",
            1,
        ),
        ("xnn_init_f32_gemm_nr2_config()", "xnnpack_sys_narrow_conv_f32_gemm_config()", 1),
        (
            "if (gemm_nr2_config->minmax.igemm[gemm_config->mr].function[XNN_UARCH_DEFAULT] != NULL) {",
            "if (xnnpack_sys_takes_narrow_tile(gemm_nr2_config, gemm_config, group_output_channels)) {",
            1,
        ),
        (
            "xnn_init_qs8_qc8w_gemm_config()",
            "xnnpack_sys_exact_qs8_gemm_config_for(\n      xnnpack_sys_qs8_gemm_config_for(\n      \
             group_output_channels, (size_t) kernel_height * kernel_width, group_input_channels),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels)",
            2,
        ),
        (
            "xnn_init_qu8_gemm_config()",
            "xnnpack_sys_exact_qu8_gemm_config_for(\n      xnnpack_sys_qu8_gemm_config_for(group_input_channels),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels,\n      \
             group_input_channels)",
            1,
        ),
        (
            "xnn_init_qd8_f32_qc8w_gemm_config()",
            "xnnpack_sys_exact_qd8_gemm_config_for(\n      xnnpack_sys_image_gemm_config_for(group_input_channels, group_output_channels, &flags),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels)",
            1,
        ),
    ],
};

const CONVOLUTION_PACKING: Edit = Edit {
    name: "packing of convolutions",
    why: "XNNPACK packs these types with one function, whatever their configuration says",
    files: CONVOLUTION,
    changes: &[
        include_header!("packing/convolution.h"),
        ("xnn_pack_f32_conv_goki_w", "xnnpack_sys_pack_f32_conv_goki_w", 1),
        ("xnn_pack_qs8_conv_goki_w", "xnnpack_sys_pack_qd8_conv_goki_w", 2),
        ("xnn_pack_qu8_conv_goki_w", "xnnpack_sys_pack_qu8_conv_goki_w", 1),
        ("xnn_pack_qu8_conv_kgo_w", "xnnpack_sys_pack_qu8_conv_kgo_w", 1),
    ],
};

const ORDER_OF_CONVOLUTIONS: Edit = Edit {
    name: "order of steps behind weights of convolutions",
    why: "microkernels for AVX2 and AVX512 store an order of steps behind a tile's weights; see csrc/ukernels/gemm_q8_bytes.h",
    files: CONVOLUTION,
    changes: &[
        (
            "  const size_t k_stride = round_up_po2(group_input_channels, kr * sr);\n",
            "  const size_t k_stride = round_up_po2(group_input_channels, kr * sr);\n  \
             extra_weights_bytes += xnnpack_sys_order_of_channel(nr, kr, kernel_size * k_stride);\n",
            1,
        ),
        (
            "(round_up_po2(group_input_channels, convolution_op->ukernel.gemm.kr * \
             convolution_op->ukernel.gemm.sr) << log2_filter_element_size);",
            "(round_up_po2(group_input_channels, convolution_op->ukernel.gemm.kr * \
             convolution_op->ukernel.gemm.sr) << log2_filter_element_size) +\n    \
             xnnpack_sys_order_of_channel(convolution_op->ukernel.gemm.nr, convolution_op->ukernel.gemm.kr,\n      \
             round_up_po2(group_input_channels, convolution_op->ukernel.gemm.kr));",
            1,
        ),
        (
            "(round_up_po2(group_input_channels, convolution_op->ukernel.igemm.kr * \
             convolution_op->ukernel.igemm.sr) * kernel_size << log2_filter_element_size);",
            "(round_up_po2(group_input_channels, convolution_op->ukernel.igemm.kr * \
             convolution_op->ukernel.igemm.sr) * kernel_size << log2_filter_element_size) +\n    \
             xnnpack_sys_order_of_channel(convolution_op->ukernel.igemm.nr, convolution_op->ukernel.igemm.kr,\n      \
             kernel_size * round_up_po2(group_input_channels, convolution_op->ukernel.igemm.kr));",
            1,
        ),
    ],
};

const ORDER_OF_ROWS: Edit = Edit {
    name: "order of steps behind weights of fully connected layers",
    why: ORDER_OF_CONVOLUTIONS.why,
    files: Files::These(&["src/operators/fully-connected-nc.c"]),
    changes: &[(
        "  size_t k_stride = round_up_po2(input_channels, kr * sr);\n",
        "  size_t k_stride = round_up_po2(input_channels, kr * sr);\n  \
         extra_weights_bytes += filter_is_nibble ? 0 : xnnpack_sys_order_of_channel(nr, kr, k_stride);\n  \
         extra_weights_bytes += filter_is_nibble ? 0 : xnnpack_sys_places_of_channel(nr, kr, k_stride);\n",
        1,
    )],
};

const FEW_ROWS: Edit = Edit {
    name: "tiles of few rows of fully connected layers",
    why: "XNNPACK takes the tile with the most rows for all but single ones, and computes all of its rows",
    files: Files::These(&["src/operators/fully-connected-nc.c"]),
    changes: &[
        include_header!("hooks/few_rows.h"),
        (
            "    mr = 1;\n  }\n",
            "    mr = 1;\n  } else if (batch_size < mr) {\n    \
             mr = xnnpack_sys_fewest_rows(batch_size, mr, gemm_cases);\n  }\n",
            1,
        ),
    ],
};

const DEPTHWISE_CONVOLUTIONS: Edit = Edit {
    name: "microkernels of depthwise convolutions",
    why: "XNNPACK has none for large kernels, and none for inputs quantized at run time",
    files: CONVOLUTION,
    changes: &[
        (
            "xnn_init_f32_dwconv_config()",
            "xnnpack_sys_f32_depthwise_config(subsampling_width, dilation_width)",
            1,
        ),
        ("XNN_MAX_F32_DWCONV_UKERNELS", "XNNPACK_SYS_F32_DEPTHWISE_CONFIGS", 1),
        (
            "xnn_init_qs8_qc8w_dwconv_config()",
            "xnnpack_sys_exact_depthwise_config_for(\n      xnnpack_sys_int8_depthwise_config_for(kernel_height * kernel_width, &flags),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels)",
            2,
        ),
        (
            "xnn_init_qu8_dwconv_config()",
            "xnnpack_sys_qu8_depthwise_config_for(kernel_height * kernel_width)",
            1,
        ),
    ],
};

const TRANSPOSED_CONVOLUTIONS: Edit = Edit {
    name: "microkernels of transposed convolutions",
    why: "with few output channels XNNPACK takes a tile of 4 x 2 for SSE, see csrc/config/narrow_gemm_config.c",
    files: Files::These(&["src/operators/deconvolution-nhwc.c"]),
    changes: &[
        include_header!("config/operators.h"),
        include_header!("packing/convolution.h"),
        ("xnn_init_f32_gemm_config()", "xnnpack_sys_f32_gemm_config()", 1),
        (
            "xnn_init_f32_gemm_nr2_config()",
            "xnnpack_sys_transposed_f32_gemm_config_for(\n      \
             stride_height > 1 || stride_width > 1, group_input_channels, group_output_channels)",
            1,
        ),
        (
            "xnn_init_qu8_gemm_config()",
            "xnnpack_sys_transposed_qu8_gemm_config_for(group_input_channels)",
            1,
        ),
        (
            "xnn_init_qs8_qc8w_gemm_config()",
            "xnnpack_sys_exact_qs8_gemm_config_for(\n      xnn_init_qs8_qc8w_gemm_config(),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels)",
            1,
        ),
        (
            "xnn_init_qd8_f32_qc8w_gemm_config()",
            "xnnpack_sys_exact_qd8_gemm_config_for(\n      xnn_init_qd8_f32_qc8w_gemm_config(),\n      \
             kernel, (size_t) groups * group_output_channels * kernel_height * kernel_width * group_input_channels)",
            1,
        ),
        ("xnn_pack_f32_conv_goki_w", "xnnpack_sys_pack_f32_conv_goki_w", 1),
    ],
};

const ROWS_OF_TRANSPOSED_CONVOLUTIONS: Edit = Edit {
    name: "rows of transposed convolutions with strides",
    why: "XNNPACK chooses the number of rows for as many rows as there are images: for one image it computes one output at a time",
    files: TRANSPOSED_CONVOLUTIONS.files,
    changes: &[(
        "          batch_size, mr, nr, deconvolution_op->ukernel.igemm.",
        "          output_width_positions, mr, nr, deconvolution_op->ukernel.igemm.",
        2,
    )],
};

const FULLY_CONNECTED: Edit = Edit {
    name: "microkernels of fully connected layers",
    why: "XNNPACK chooses by type alone; csrc/config chooses by the shape of the layer, too",
    files: Files::These(&["src/operators/fully-connected-nc.c"]),
    changes: &[
        include_header!("config/operators.h"),
        (
            "xnn_init_f32_gemm_config()",
            "xnnpack_sys_fully_connected_f32_gemm_config(input_channels, &flags)",
            1,
        ),
        (
            "  assert(mr != 0 && mr <= XNN_MAX_MR);\n  struct xnn_hmp_gemm_ukernel gemm_ukernel = gemm_cases[mr - 1];\n  if (filter_is_nibble)",
            "  mr = filter_is_nibble ? mr : xnnpack_sys_rows_of_tile(mr, nr, batch_size);\n  \
             assert(mr != 0 && mr <= XNN_MAX_MR);\n  struct xnn_hmp_gemm_ukernel gemm_ukernel = gemm_cases[mr - 1];\n  if (filter_is_nibble)",
            1,
        ),
        (
            "xnn_init_f32_gemm_nr2_config()",
            "xnnpack_sys_narrow_f32_gemm_config_for(input_channels, output_channels)",
            1,
        ),
        (
            "xnn_init_qs8_qc8w_gemm_config()",
            "xnnpack_sys_exact_qs8_gemm_config_for(\n      \
             xnnpack_sys_qs8_rows_gemm_config(input_channels, output_channels, &flags), kernel, input_channels * output_channels)",
            2,
        ),
        (
            "xnn_init_qu8_gemm_config()",
            "xnnpack_sys_qu8_rows_gemm_config(input_channels, output_channels, &flags)",
            1,
        ),
        (
            "xnn_init_qd8_f32_qc8w_gemm_config()",
            "xnnpack_sys_exact_qd8_gemm_config_for(\n      \
             xnnpack_sys_qd8_rows_gemm_config(input_channels, output_channels, &flags), kernel, input_channels * output_channels)",
            1,
        ),
        (
            "xnn_init_qd8_f32_qc4w_gemm_config()",
            "xnnpack_sys_qd8_qc4w_rows_gemm_config(input_channels, output_channels, &flags)",
            1,
        ),
        ("xnn_init_qd8_f32_qb4w_gemm_config()", "xnnpack_sys_qd8_qb4w_gemm_config()", 1),
    ],
};

const QU8_RESCALING: Edit = Edit {
    name: "rescaling of uint8",
    why: "XNNPACK computes the quotient of scales in single precision, TFLite's reference kernels in double precision; see \
          csrc/ukernels/fixed_point.h",
    files: Files::These(&[
        "src/operators/convolution-nhwc.c",
        "src/operators/deconvolution-nhwc.c",
        "src/operators/fully-connected-nc.c",
    ]),
    changes: &[
        // Convolutions.
        (
            "gemm_config->init.qu8(&gemm_params,",
            "xnnpack_sys_init_qu8_params(\n      gemm_config->init.qu8, \
             xnnpack_sys_convolution_rescaling(input_scale, kernel_scale, output_scale), &gemm_params,",
            1,
        ),
        (
            "dwconv_ukernel->init.qu8(&dwconv_params,",
            "xnnpack_sys_init_qu8_params(\n      dwconv_ukernel->init.qu8, \
             xnnpack_sys_convolution_rescaling(input_scale, kernel_scale, output_scale), &dwconv_params,",
            1,
        ),
        // Transposed convolutions.
        (
            "deconvolution_nhwc_qu8),\n      input_scale, kernel_scale, output_scale, requantization_scale);\n    \
             return xnn_status_unsupported_parameter;\n  }\n",
            "deconvolution_nhwc_qu8),\n      input_scale, kernel_scale, output_scale, requantization_scale);\n    \
             return xnn_status_unsupported_parameter;\n  }\n  const struct xnnpack_sys_rescaling rescaling =\n      \
             xnnpack_sys_convolution_rescaling(input_scale, kernel_scale, output_scale);\n",
            1,
        ),
        // Fully connected layers.
        (
            "fully_connected_nc_qu8),\n      input_scale, kernel_scale, output_scale, requantization_scale);\n    \
             return xnn_status_unsupported_parameter;\n  }\n",
            "fully_connected_nc_qu8),\n      input_scale, kernel_scale, output_scale, requantization_scale);\n    \
             return xnn_status_unsupported_parameter;\n  }\n  const struct xnnpack_sys_rescaling rescaling =\n      \
             xnnpack_sys_rows_rescaling(input_scale, kernel_scale, output_scale);\n",
            1,
        ),
        (
            "gemm_config->init.qu8(&params,",
            "xnnpack_sys_init_qu8_params(\n      gemm_config->init.qu8, rescaling, &params,",
            2,
        ),
    ],
};

const MATRIX_PRODUCTS: Edit = Edit {
    name: "microkernels of matrix products",
    why: "the number of rows is often a power of two, of which a tile of 8 rows leaves less over than XNNPACK's of 7; \
          without AVX two inputs are taken at a time",
    files: Files::These(&["src/operators/batch-matrix-multiply-nc.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_f32_gemm_config()", "xnnpack_sys_matrix_f32_gemm_config()", 2),
        (
            "(xnn_packw_gemm_gio_ukernel_fn)xnn_pack_f32_gemm_gio_w",
            "xnnpack_sys_matrix_f32_pack_gio()",
            1,
        ),
    ],
};

const POOLING: Edit = Edit {
    name: "microkernels of pooling",
    why: "csrc/config has faster ones",
    files: Files::These(&[
        "src/operators/max-pooling-nhwc.c",
        "src/operators/average-pooling-nhwc.c",
        "src/operators/argmax-pooling-nhwc.c",
    ]),
    changes: &[
        (
            "#include \"pthreadpool.h\"\n",
            "#include \"pthreadpool.h\"\n#include \"config/operators.h\"\n",
            3,
        ),
        ("xnn_init_f32_maxpool_config()", "xnnpack_sys_f32_maxpool_config()", 1),
        ("xnn_init_s8_maxpool_config()", "xnnpack_sys_s8_maxpool_config()", 1),
        ("xnn_init_u8_maxpool_config()", "xnnpack_sys_u8_maxpool_config()", 1),
        ("xnn_init_f32_avgpool_config()", "xnnpack_sys_f32_avgpool_config()", 1),
        ("xnn_init_f32_pavgpool_config()", "xnnpack_sys_f32_pavgpool_config()", 1),
        ("xnn_init_f32_argmaxpool_config()", "xnnpack_sys_f32_argmaxpool_config()", 1),
    ],
};

const RESIZING: Edit = Edit {
    name: "microkernels of bilinear interpolation",
    why: "csrc/config has faster ones",
    files: Files::These(&["src/operators/resize-bilinear-nhwc.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_f32_ibilinear_config()", "xnnpack_sys_f32_ibilinear_config()", 1),
        ("xnn_init_s8_ibilinear_config()", "xnnpack_sys_s8_ibilinear_config()", 1),
        ("xnn_init_u8_ibilinear_config()", "xnnpack_sys_u8_ibilinear_config()", 1),
    ],
};

const BINARY: Edit = Edit {
    name: "microkernels of two operands",
    why: "XNNPACK exchanges the operands of maxima and minima, which matters for NaN, does not round sums of uint8 as \
          TFLite's reference kernels do, nor products of 8-bit integers alike on all processors, has no maxima and \
          minima of 8-bit integers, and csrc/config has faster sums of int8",
    files: Files::These(&["src/operators/binary-elementwise-nd.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_f32_vmax_config()", "xnnpack_sys_f32_vmax_config()", 1),
        ("xnn_init_f32_vmin_config()", "xnnpack_sys_f32_vmin_config()", 1),
        ("xnn_init_qu8_vadd_config()", "xnnpack_sys_qu8_add_config()", 2),
        ("xnn_init_qs8_vadd_config()", "xnnpack_sys_qs8_add_config()", 2),
        ("xnn_init_qs8_vmul_config()", "xnnpack_sys_qs8_multiply_config()", 1),
        ("xnn_init_qu8_vmul_config()", "xnnpack_sys_qu8_multiply_config()", 1),
        (
            "xnn_init_binary_reference_config(type, datatype)",
            "xnnpack_sys_binary_reference_config(\n        type, datatype, a_quantization, b_quantization, output_quantization)",
            1,
        ),
    ],
};

const UNARY: Edit = Edit {
    name: "microkernels of one operand",
    why: "XNNPACK's are wrong for NaN, infinities or very large values, or call the C library for each element; see \
          csrc/ukernels/special_f32.c and unary_f32.c",
    files: Files::These(&["src/operators/unary-elementwise-nc.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_f32_exp_config()", "xnnpack_sys_f32_exp_config()", 1),
        ("xnn_init_f32_log_config()", "xnnpack_sys_f32_log_config()", 1),
        ("xnn_init_f32_rminmax_config()", "xnnpack_sys_f32_range_config()", 2),
        ("xnn_init_f32_rsqrt_config()", "xnnpack_sys_f32_rsqrt_config()", 1),
        ("xnn_init_f32_sigmoid_config()", "xnnpack_sys_f32_sigmoid_config()", 1),
        ("xnn_init_f32_sqrt_config()", "xnnpack_sys_f32_sqrt_config()", 1),
        ("xnn_init_qu8_cvt_config()", "xnnpack_sys_qu8_direct_convert_config()", 1),
        ("xnn_init_unary_reference_config(", "xnnpack_sys_unary_reference_config(", 1),
    ],
};

const CONVERSIONS_TO_FLOATS: Edit = Edit {
    name: "microkernels of conversions to floats",
    why: "with 16 elements a step, AVX2's takes 1.75 times as long where its last branch crosses a cache line",
    files: Files::These(&["src/configs/unary-elementwise-config.c"]),
    changes: &[
        ("xnn_qs8_f32_vcvt_ukernel__avx2_u16", "xnn_qs8_f32_vcvt_ukernel__avx2_u32", 1),
        ("xnn_qu8_f32_vcvt_ukernel__avx2_u16", "xnn_qu8_f32_vcvt_ukernel__avx2_u32", 1),
    ],
};

const TABLES: Edit = Edit {
    name: "microkernel of tables",
    why: "XNNPACK asks for a macro that nothing defines, and so does not use its microkernel for AVX512-VBMI",
    files: Files::These(&["src/configs/x8-lut-config.c"]),
    changes: &[("XNN_ENABLE_AVX256VBMI", "XNN_ENABLE_AVX512VBMI", 1)],
};

const EXPONENTIAL_FUNCTIONS: Edit = Edit {
    name: "microkernels of exponential functions",
    why: "XNNPACK has faster ones than it chooses: with AVX, divisions take less time than two steps towards a quotient (0.8 of the \
          time); with AVX2, 16 elements at a time (ELU, 0.83) and 24 (0.92) need no more registers than there are",
    files: Files::These(&["src/configs/unary-elementwise-config.c"]),
    changes: &[
        ("f32_vsigmoid_ukernel__avx_rr2_p5_nr2_u40", "f32_vsigmoid_ukernel__avx_rr2_p5_div_u24", 1),
        (
            "f32_vsigmoid_ukernel__avx2_rr1_p5_div_u40",
            "f32_vsigmoid_ukernel__avx2_rr1_p5_div_u24",
            1,
        ),
        (
            "f32_velu_ukernel__avx2_rr1_lut4_p4_perm_u56",
            "f32_velu_ukernel__avx2_rr1_lut4_p4_perm_u16",
            1,
        ),
    ],
};

const TRANSPOSITIONS: Edit = Edit {
    name: "microkernels of transpositions",
    why: "csrc/config has faster ones",
    files: Files::These(&["src/operators/transpose-nd.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_transpose_config()", "xnnpack_sys_transpose_config()", 5),
    ],
};

const LINEAR_TABLES: Edit = Edit {
    name: "tables of linear functions",
    why: "two products of 16 bits take less time than to look bytes up in a table; see csrc/ukernels/linear_x8.c",
    files: Files::These(&["src/operators/unary-elementwise-nc.c"]),
    changes: &[
        (
            "xnn_allocate_simd_memory(lookup_table_elements * sizeof(uint8_t))",
            "xnn_allocate_simd_memory(XNNPACK_SYS_TABLE_BYTES)",
            1,
        ),
        // Products change their tables first (csrc/hooks/product_q8.c).
        ("  op->lut_config = xnn_init_x8_lut_config();\n", "", 1),
        (
            "    const struct xnn_x8_lut_config* lut_config = op->lut_config;\n",
            "    if (op->lut_config == NULL) {\n      op->lut_config = xnnpack_sys_table_config(op->lookup_table);\n    }\n    \
             const struct xnn_x8_lut_config* lut_config = op->lut_config;\n",
            1,
        ),
    ],
};

const MEANS: Edit = Edit {
    name: "microkernels of means",
    why: "XNNPACK does not round as TFLite's reference kernels do, and converts the sums of two rows at a time",
    files: Files::These(&["src/operators/reduce-nd.c"]),
    changes: &[
        include_header!("config/operators.h"),
        ("xnn_init_f32_rdsum_config()", "xnnpack_sys_f32_mean_config()", 1),
        // Two bytes at a time overflow sums of 16 bits (csrc/ukernels/sum_qs8.c).
        ("xnn_init_qs8_rsum_config()", "xnnpack_sys_qs8_sum_config()", 1),
        ("xnn_init_qs8_rdsum_config()", "xnnpack_sys_qs8_sum_columns_config()", 1),
        ("xnn_init_qu8_rdsum_config()", "xnnpack_sys_qu8_sum_columns_config()", 1),
        (
            "reduce_op->compute[0].tile[1] = 2;",
            "reduce_op->compute[0].tile[1] = 1 + 4095 / axis_dim;",
            1,
        ),
    ],
};
