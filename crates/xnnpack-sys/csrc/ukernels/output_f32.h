// Stores of the microkernels of `gemm_qd8.c` and `conv_qd8.c`.

#ifndef XNNPACK_SYS_OUTPUT_F32_H
#define XNNPACK_SYS_OUTPUT_F32_H

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/microkernel.h"
#include "xnnpack/common.h"

struct output {
  float* at;
  size_t row_stride;
  __m512 min;
  __m512 max;
};

// Uses the parameters of a microkernel.
#define OUTPUT \
  ((struct output) { \
      .at = c, .row_stride = cm_stride, .min = _mm512_set1_ps(params->scalar.min), \
      .max = _mm512_set1_ps(params->scalar.max)})

// Stores 16 channels from `channel` on, clamped; `lanes` are the channels of the tile that exist.
static XNN_INLINE void store(
    const struct output* output, size_t row, size_t channel, __m512 values, __mmask32 lanes)
{
  float* at = (float*) ((uintptr_t) output->at + row * output->row_stride) + channel;
  const __m512 clamped = clamp(values, output->min, output->max);
  _mm512_mask_storeu_ps(at, (__mmask16) (lanes >> channel), clamped);
}

#endif
