// From sums of products of 8-bit integers to 8-bit integers, as XNNPACK's microkernels for AVX512 do it.

#ifndef XNNPACK_SYS_REQUANTIZE_H
#define XNNPACK_SYS_REQUANTIZE_H

#include <stdint.h>

#include <immintrin.h>

#include "xnnpack/common.h"

#define ALL_LANES 0xFFFF

struct requantization {
  __m512 min_less_zero_point;
  __m512 max_less_zero_point;
  __m512i zero_point;
};

static XNN_INLINE struct requantization requantization(int32_t zero_point, int32_t min, int32_t max) {
  return (struct requantization) {
      .min_less_zero_point = _mm512_set1_ps((float) (min - zero_point)),
      .max_less_zero_point = _mm512_set1_ps((float) (max - zero_point)),
      .zero_point = _mm512_set1_epi32(zero_point),
  };
}

// Stores 16 sums, or those of `lanes`.
static XNN_INLINE void requantize(
    const struct requantization* to, __m512i sums, __m512 scale, void* output, __mmask16 lanes)
{
  __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale);
  scaled = _mm512_min_ps(_mm512_max_ps(scaled, to->min_less_zero_point), to->max_less_zero_point);
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(scaled), to->zero_point));
  if (lanes == ALL_LANES) {
    _mm_storeu_si128((__m128i*) output, bytes);
  } else {
    _mm_mask_storeu_epi8(output, lanes, bytes);
  }
}

#endif
