// What microkernels of 8-bit integers share: which of them there are, and how sums of products become 8-bit
// integers again, as in XNNPACK's microkernels for AVX512.

#ifndef XNNPACK_SYS_Q8_H
#define XNNPACK_SYS_Q8_H

#include <stdint.h>

#include <immintrin.h>

#include "microkernel.h"

enum kind {
  // int8, weights without zero point, a scale for each channel behind a block's weights.
  SIGNED,
  // uint8, one zero point and one scale for all weights.
  UNSIGNED,
};

// Between signed and unsigned bytes: products are of unsigned inputs and signed weights.
#define OFFSET 128

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
