// A row of outputs of depthwise convolutions of fp32, see `depthwise.h`.

#ifndef XNNPACK_SYS_DEPTHWISE_F32_H
#define XNNPACK_SYS_DEPTHWISE_F32_H

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "ukernels/addresses.h"
#include "ukernels/microkernel.h"
#include "xnnpack/microparams.h"

struct row {
  const float** input;
  intptr_t input_stride;
  float* output;
  size_t output_stride;
  // Added to addresses of inputs other than `zero`.
  size_t input_offset;
  const float* zero;
  __m512 min;
  __m512 max;
};

static XNN_INLINE struct row row_of(
    const float** input, intptr_t input_stride, float* output, size_t channels, size_t output_increment,
    size_t input_offset, const float* zero, const union xnn_f32_minmax_params* params)
{
  return (struct row) {
      .input = input,
      .input_stride = input_stride,
      .output = output,
      .output_stride = channels * sizeof(float) + output_increment,
      .input_offset = input_offset,
      .zero = zero,
      .min = _mm512_set1_ps(params->scalar.min),
      .max = _mm512_set1_ps(params->scalar.max),
  };
}

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
