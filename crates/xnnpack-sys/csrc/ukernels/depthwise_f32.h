// A row of outputs of depthwise convolutions of fp32, see `depthwise.h`.

#ifndef XNNPACK_SYS_DEPTHWISE_F32_H
#define XNNPACK_SYS_DEPTHWISE_F32_H

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/addresses.h"
#include "ukernels/microkernel.h"
#include "ukernels/vector_x86.h"

#include "ukernels/depthwise_f32_row.h"

static XNN_INLINE __m512 load(const float* from, __mmask16 lanes) {
  return lanes == ALL_LANES ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(lanes, from);
}

static XNN_INLINE void store(const struct row* row, float* to, __mmask16 lanes, __m512 sum) {
  const __m512 clamped = clamp(sum, row->min, row->max);
  if (lanes == ALL_LANES) {
    _mm512_storeu_ps(to, clamped);
  } else {
    _mm512_mask_storeu_ps(to, lanes, clamped);
  }
}

#endif
