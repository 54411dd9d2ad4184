// Microkernels for rows quantized at run time and 4-bit weights, see `gemm_q4_bytes.h`. Weights are packed as by
// `xnn_pack_qs8_qc4w_gemm_goi_w` and `xnn_pack_qs8_qb4w_gemm_goi_w`.

#ifndef XNNPACK_SYS_GEMM_Q4_BYTES_API_H
#define XNNPACK_SYS_GEMM_Q4_BYTES_API_H

#include "ukernels/gemm_qd8.h"

// Inputs of a plane: a byte has a weight of each of two planes.
#define Q4_BYTES_LOG2_DEPTH 2
#define Q4_BYTES_PLANES 2

// Tiles with SSE4.1, with AVX2 and AVX-VNNI, and with AVX512.
#define Q4_BYTES_ROWS 4
#define Q4_AVX512_ROWS 8
#define Q4_SSE41_CHANNELS 8
#define Q4_AVX2_CHANNELS 16
#define Q4_AVX512_CHANNELS 32

#define Q4_BYTES_MICROKERNELS(tile) \
  QC4W_GEMM(xnnpack_sys_qd8_f32_qc4w_gemm_minmax_ukernel_##tile); \
  QB4W_GEMM(xnnpack_sys_qd8_f32_qb4w_gemm_minmax_ukernel_##tile)

Q4_BYTES_MICROKERNELS(1x8c4__sse41);
Q4_BYTES_MICROKERNELS(4x8c4__sse41);
Q4_BYTES_MICROKERNELS(1x16c4__avx2);
Q4_BYTES_MICROKERNELS(4x16c4__avx2);
Q4_BYTES_MICROKERNELS(1x16c4__avxvnni);
Q4_BYTES_MICROKERNELS(4x16c4__avxvnni);
Q4_BYTES_MICROKERNELS(1x32c4__avx512skx);
Q4_BYTES_MICROKERNELS(8x32c4__avx512skx);
Q4_BYTES_MICROKERNELS(1x32c4__avx512vnni);
Q4_BYTES_MICROKERNELS(8x32c4__avx512vnni);

#endif
