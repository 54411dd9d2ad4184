// Weights with 128 added when they were packed, for an instruction that multiplies unsigned by signed bytes: 128 times the sum of a
// row's inputs is the same for all channels, and is computed once.

#ifndef XNNPACK_SYS_UNSIGNED_WEIGHTS_H
#define XNNPACK_SYS_UNSIGNED_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "xnnpack/common.h"

// Adds products, of which one side is unsigned.
static XNN_INLINE __m512i add_dot_products(bool has_unsigned_weights, __m512i sums, __m512i inputs, __m512i weights) {
  return has_unsigned_weights ? _mm512_dpbusd_epi32(sums, weights, inputs) : _mm512_dpbusd_epi32(sums, inputs, weights);
}

// Adds products of all inputs of a few rows and one weight, in four sums that repeat.
static XNN_INLINE void add_products_with_one(
    bool is_unsigned, size_t rows, const uint8_t* const from[], size_t depth, __m512i weight, __m512i sums[])
{
  enum { INPUTS_AT_ONCE = 16 };
  const __mmask16 rest = (__mmask16) ((UINT32_C(1) << depth % INPUTS_AT_ONCE) - 1);
  const size_t whole = depth - depth % INPUTS_AT_ONCE;
  size_t i = 0;
  if (rows == 1) {
    // Sums of one row depend on each other: four times as many at once.
    __m512i wide = _mm512_setzero_si512();
    for (; i + 4 * INPUTS_AT_ONCE <= whole; i += 4 * INPUTS_AT_ONCE) {
      wide = add_dot_products(is_unsigned, wide, _mm512_loadu_si512(from[0] + i), weight);
    }
    wide = _mm512_add_epi32(wide, _mm512_shuffle_i32x4(wide, wide, _MM_SHUFFLE(1, 0, 3, 2)));
    wide = _mm512_add_epi32(wide, _mm512_shuffle_i32x4(wide, wide, _MM_SHUFFLE(2, 3, 0, 1)));
    sums[0] = _mm512_add_epi32(sums[0], wide);
  }
  for (; i < whole; i += INPUTS_AT_ONCE) {
    _Pragma("GCC unroll 7") for (size_t row = 0; row < rows; row++) {
      const __m128i inputs = _mm_loadu_si128((const __m128i*) (from[row] + i));
      sums[row] = add_dot_products(is_unsigned, sums[row], _mm512_broadcast_i32x4(inputs), weight);
    }
  }
  if (rest != 0) {
    _Pragma("GCC unroll 7") for (size_t row = 0; row < rows; row++) {
      const __m128i inputs = _mm_maskz_loadu_epi8(rest, from[row] + whole);
      sums[row] = add_dot_products(is_unsigned, sums[row], _mm512_broadcast_i32x4(inputs), weight);
    }
  }
}

// Returns the sum of four sums that repeat, in all lanes.
static XNN_INLINE __m512i sum_of_four(__m512i sums) {
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
  return _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
}

#endif
