// Microkernels for matrix products of uint8, see `gemm_qu8.c`.

#ifndef XNNPACK_SYS_GEMM_QU8_H
#define XNNPACK_SYS_GEMM_QU8_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

// The tile: rows of the input and channels of the output that are computed at once, and inputs
// that one instruction multiplies.
#define QU8_GEMM_ROWS 7
#define QU8_GEMM_CHANNELS 32
#define QU8_GEMM_LOG2_DEPTH 2

#define QU8_GEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, const uint8_t* a, size_t a_stride, const void* w, uint8_t* c, \
      size_t cm_stride, size_t cn_stride, const union xnn_qu8_conv_minmax_params* params)

#define QU8_IGEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, size_t ks, const uint8_t** a, const void* w, uint8_t* c, size_t cm_stride, \
      size_t cn_stride, size_t a_offset, const uint8_t* zero, const union xnn_qu8_conv_minmax_params* params)

// AVX512 with VNNI.
QU8_GEMM(xnnpack_sys_qu8_gemm_1x32c4);
QU8_GEMM(xnnpack_sys_qu8_gemm_7x32c4);
QU8_IGEMM(xnnpack_sys_qu8_igemm_1x32c4);
QU8_IGEMM(xnnpack_sys_qu8_igemm_7x32c4);

#endif
