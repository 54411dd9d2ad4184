// Microkernels for 8-bit integers with NEON that compute as TFLite's reference kernels do: uint8, and convolutions of images quantized
// at run time. Signatures are those of XNNPACK's microkernels.

#ifndef XNNPACK_SYS_Q8_NEON_H
#define XNNPACK_SYS_Q8_NEON_H

#include "ukernels/depthwise.h"
#include "ukernels/elementwise_qu8.h"
#include "ukernels/gemm_q8.h"
#include "ukernels/gemm_qd8.h"

// Tile of matrix products: rows, channels, and the logarithms of the number of inputs whose weights are packed together, without and
// with dot products.
#define Q8_NEON_ROWS 4
#define Q8_NEON_CHANNELS 16
#define Q8_NEON_LOG2_DEPTH 1
#define Q8_NEONDOT_LOG2_DEPTH 2

#define Q8_NEON_MICROKERNELS(tile) \
  QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_##tile); \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##tile)

// Weights are packed as by XNNPACK. Without dot products, biases of uint8 have more added (`gemm_q8_neon.c`).
Q8_NEON_MICROKERNELS(1x16c2__neon);
Q8_NEON_MICROKERNELS(4x16c2__neon);
Q8_NEON_MICROKERNELS(1x16c4__neondot);
Q8_NEON_MICROKERNELS(4x16c4__neondot);

// For weights and biases as XNNPACK packs them, one by one: transposed convolutions.
#define Q8_NEON_PLAIN_MICROKERNELS(tile) \
  QU8_GEMM(xnnpack_sys_plain_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_plain_qu8_igemm_minmax_ukernel_##tile)

Q8_NEON_PLAIN_MICROKERNELS(1x16__neon);
Q8_NEON_PLAIN_MICROKERNELS(4x16__neon);

QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_9p16c__neon);
QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_25p16c__neon);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__neon);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__neon);

QU8_ELEMENTWISE(neon);

#endif
