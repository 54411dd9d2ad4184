// Microkernels for rows quantized at run time and 4-bit weights in blocks, without AVX512-VNNI, see `gemm_qb4w_bytes.h`. Weights are
// packed as by `xnn_pack_qs8_qb4w_gemm_goi_w`: two planes of four inputs.

#ifndef XNNPACK_SYS_GEMM_QB4W_BYTES_API_H
#define XNNPACK_SYS_GEMM_QB4W_BYTES_API_H

#include "ukernels/gemm_qd8.h"

#define QB4W_BYTES_LOG2_DEPTH 2
#define QB4W_BYTES_PLANES 2

// Tiles with SSE4.1, with AVX2 and AVX-VNNI, and with AVX512.
#define QB4W_BYTES_ROWS 4
#define QB4W_AVX512_ROWS 8
#define QB4W_SSE41_CHANNELS 8
#define QB4W_AVX2_CHANNELS 16
#define QB4W_AVX512_CHANNELS 32

QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x8c4__sse41);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_4x8c4__sse41);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x16c4__avx2);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_4x16c4__avx2);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x16c4__avxvnni);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_4x16c4__avxvnni);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_1x32c4__avx512skx);
QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_8x32c4__avx512skx);

#endif
