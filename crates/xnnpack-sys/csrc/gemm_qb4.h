// Microkernels for matrix products with 4-bit weights, see `gemm_qb4.c`.

#ifndef XNNPACK_SYS_GEMM_QB4_H
#define XNNPACK_SYS_GEMM_QB4_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

// The tile: rows of the input and channels of the output that are computed at once, and inputs
// that one instruction multiplies.
#define QB4_GEMM_ROWS 6
#define QB4_GEMM_CHANNELS 32
#define QB4_GEMM_LOG2_DEPTH 2

#define QB4_GEMM(name) \
  void name( \
      size_t mr, size_t nc, size_t kc, const int8_t* a, size_t a_stride, const void* w, float* c, size_t cm_stride, \
      size_t cn_stride, const struct xnn_f32_qb4w_minmax_params* params, \
      const struct xnn_qd8_quantization_params* quantization_params)

// AVX512 with VNNI. Weights are packed as `xnn_pack_qs8_qb4w_gemm_goi_w` does for tiles of this size.
QB4_GEMM(xnnpack_sys_qb4_gemm_1x32c4);
QB4_GEMM(xnnpack_sys_qb4_gemm_6x32c4);

#endif
