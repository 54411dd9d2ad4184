// XNNPACK's microkernels for x86-64 that no operator runs: the functions of this folder replace them in every configuration that has
// them. XNNPACK's tables name them nevertheless, so that they would be part of every program (0.08 MB).
//
// `build/edits/size.rs` includes this file in the tables, after the declarations of microkernels.

#ifndef XNNPACK_SYS_REPLACED_H
#define XNNPACK_SYS_REPLACED_H

#include "xnnpack/common.h"

#if XNN_ARCH_X86_64

// Depthwise convolutions of uint8: `qu8_base_depthwise` in `q8_config.c`.
#define xnn_qu8_dwconv_minmax_fp32_ukernel_25p16c__avx2_mul32 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_25p16c__avx_mul16 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_25p32c__avx512skx_mul32 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_25p8c__sse41_mul16 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_9p16c__avx2_mul32 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_9p16c__avx_mul16 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_9p32c__avx512skx_mul32 NULL
#define xnn_qu8_dwconv_minmax_fp32_ukernel_9p8c__sse41_mul16 NULL

// Depthwise convolutions of int8: `qs8_base_depthwise` in `q8_config.c`.
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_25p16c__avx2_mul32 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_25p16c__avx_mul16_add16 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_25p32c__avx512skx_mul32 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_25p8c__sse41_mul16 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_9p16c__avx2_mul32 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_9p16c__avx_mul16_add16 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_9p32c__avx512skx_mul32 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_9p8c__sse41_mul16 NULL

// Kernels of three weights, for processors without AVX2: `replace_three` in `q8_config.c`.
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_3p16c__avx_mul16_add16 NULL
#define xnn_qs8_qc8w_dwconv_minmax_fp32_ukernel_3p8c__sse41_mul16 NULL

// Depthwise convolutions of fp32: `init_f32_depthwise_config` in `f32_config.c`. XNNPACK's for FMA remain for processors without AVX2.
#define xnn_f32_dwconv_minmax_ukernel_25p16c__avx512f NULL
#define xnn_f32_dwconv_minmax_ukernel_25p8c__avx NULL
#define xnn_f32_dwconv_minmax_ukernel_9p16c__avx NULL
#define xnn_f32_dwconv_minmax_ukernel_9p16c__avx512f NULL

// Products and convolutions of uint8: `qu8_bytes` and `qu8_plain` in `q8_bytes_config.c`, `qu8_gemm` in `q8_config.c`.
#define xnn_qu8_gemm_minmax_fp32_ukernel_1x16c8__avx512skx_prfm NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_1x4c8__avx_ld128 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_1x4c8__sse41_ld64 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_1x8c8__avx2 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_2x4c8__avx_ld128 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_3x4c8__sse41_ld64 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_3x8c8__avx2 NULL
#define xnn_qu8_gemm_minmax_fp32_ukernel_7x16c8__avx512skx_prfm NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_1x16c8__avx512skx_prfm NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_1x4c8__avx_ld128 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_1x4c8__sse41_ld64 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_1x8c8__avx2 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_2x4c8__avx_ld128 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_3x4c8__sse41_ld64 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_3x8c8__avx2 NULL
#define xnn_qu8_igemm_minmax_fp32_ukernel_7x16c8__avx512skx_prfm NULL

#endif

#endif
