// Microkernels for 8-bit integers with NEON that compute as TFLite's reference kernels do: uint8, and convolutions of images quantized
// at run time. Signatures are those of XNNPACK's microkernels.

#ifndef XNNPACK_SYS_Q8_NEON_H
#define XNNPACK_SYS_Q8_NEON_H

#include <stdbool.h>

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

// Tile with matrix products (i8mm), with as many channels.
#define Q8_NEONI8MM_ROWS 6
#define Q8_NEONI8MM_LOG2_DEPTH 3

// Tile without dot products for many inputs, with as many channels. Two products are added in 16 bits: no two weights of -128, or 0 for
// uint8, are Q8_NEON_PAIRS_APART inputs apart in a step.
#define Q8_NEON_PAIRS_ROWS 3
#define Q8_NEON_PAIRS_LOG2_DEPTH 4
#define Q8_NEON_PAIRS_APART 8

#define Q8_NEON_MICROKERNELS(tile) \
  QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_##tile); \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##tile)

// Weights are packed as by XNNPACK. Without dot products, biases of uint8 have more added (`gemm_q8_neon.c`).
Q8_NEON_MICROKERNELS(1x16c2__neon);
Q8_NEON_MICROKERNELS(4x16c2__neon);
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_1x16c2__neon);
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_4x16c2__neon);
Q8_NEON_MICROKERNELS(1x16c4__neondot);
Q8_NEON_MICROKERNELS(4x16c4__neondot);

// With matrix products, for up to six rows. Weights are packed as by XNNPACK.
#define Q8_NEON_SIGNED_MICROKERNELS(tile) \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##tile); \
  QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_##tile); \
  QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_##tile); \
  QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_##tile)

Q8_NEON_SIGNED_MICROKERNELS(1x16c8__neoni8mm);
Q8_NEON_SIGNED_MICROKERNELS(6x16c8__neoni8mm);
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_1x16c8__neoni8mm);
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_6x16c8__neoni8mm);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_1x16c8__neoni8mm);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_6x16c8__neoni8mm);

// With dot products, for single rows, beside SME. Tiles of SME have rows for its length of vectors (`sme.h`); those that compute their rows
// one by one are for callers that use SME themselves.
QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_1x16c4__neondot);
QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_1x16c4__neondot);
QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_1x16c4__neondot);
Q8_NEON_SIGNED_MICROKERNELS(x16c4__sme);
Q8_NEON_SIGNED_MICROKERNELS(rows_x16c4__sme);
// Whether outer products of bytes are right. QEMU 7.2 computes a quarter of the sums.
bool xnnpack_sys_sme_multiplies_bytes(void);

// Without dot products, for many inputs. 128 is subtracted from packed weights of uint8.
Q8_NEON_SIGNED_MICROKERNELS(1x16c16__neon);
Q8_NEON_SIGNED_MICROKERNELS(3x16c16__neon);
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_1x16c16__neon);
QU8_GEMM(xnnpack_sys_qu8_gemm_minmax_ukernel_3x16c16__neon);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_1x16c16__neon);
QU8_IGEMM(xnnpack_sys_qu8_igemm_minmax_ukernel_3x16c16__neon);

// For weights and biases as XNNPACK packs them, one by one: transposed convolutions.
#define Q8_NEON_PLAIN_MICROKERNELS(tile) \
  QU8_GEMM(xnnpack_sys_plain_qu8_gemm_minmax_ukernel_##tile); \
  QU8_IGEMM(xnnpack_sys_plain_qu8_igemm_minmax_ukernel_##tile)

Q8_NEON_PLAIN_MICROKERNELS(1x16__neon);
Q8_NEON_PLAIN_MICROKERNELS(4x16__neon);

QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_9p16c__neon);
QU8_DEPTHWISE(xnnpack_sys_qu8_dwconv_minmax_ukernel_25p16c__neon);
// For weights of -128, too.
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__exact_neon);
QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__exact_neon);

// Without dot products, for weights from -127 on.
#define Q8_NEON_DEPTHWISE(isa) \
  QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_9p16c__##isa); \
  QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_25p16c__##isa); \
  QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_9p16c__##isa); \
  QD8_DEPTHWISE(xnnpack_sys_qd8_f32_dwconv_minmax_ukernel_25p16c__##isa)

Q8_NEON_DEPTHWISE(neon);
Q8_NEON_DEPTHWISE(neondot);
QS8_DEPTHWISE(xnnpack_sys_qs8_dwconv_minmax_ukernel_3p16c__neondot);

QU8_ELEMENTWISE(neon);

#endif
