// Weights with 128 added when they were packed, for an instruction that multiplies unsigned by signed bytes: 128 times the sum of a
// row's inputs is the same for all channels, and is computed once.

#ifndef XNNPACK_SYS_UNSIGNED_WEIGHTS_H
#define XNNPACK_SYS_UNSIGNED_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <immintrin.h>

#include "xnnpack/common.h"
#include "xnnpack/math.h"

#define UNROLL_ROWS _Pragma("GCC unroll 8")

// Adds products, of which one side is unsigned.
static XNN_INLINE __m512i add_dot_products(bool has_unsigned_weights, __m512i sums, __m512i inputs, __m512i weights) {
  return has_unsigned_weights ? _mm512_dpbusd_epi32(sums, weights, inputs) : _mm512_dpbusd_epi32(sums, inputs, weights);
}

// Inputs of a position up to which each lane adds all their products. Four inputs take two instructions then, and there is nothing to
// spread. With more inputs each lane has a part of the sum.
#define FEW_INPUTS 8

// Adds products of all inputs of a few rows and one weight. `spread_sums` completes the sums.
static XNN_INLINE void add_products_with_one(
    bool is_unsigned, size_t rows, const uint8_t* const from[], size_t depth, __m512i weight, __m512i sums[])
{
  if (depth <= FEW_INPUTS) {
    for (size_t i = 0; i < depth; i += sizeof(int32_t)) {
      const size_t missing = doz(sizeof(int32_t), depth - i);
      const __m512i some = _mm512_set1_epi32((int32_t) (UINT32_MAX >> 8 * missing));
      UNROLL_ROWS for (size_t row = 0; row < rows; row++) {
        int32_t four;
        memcpy(&four, from[row] + i, sizeof(four));
        const __m512i inputs = _mm512_and_si512(_mm512_set1_epi32(four), some);
        sums[row] = add_dot_products(is_unsigned, sums[row], inputs, weight);
      }
    }
    return;
  }
  enum { STEP = 64 };
  size_t i = 0;
  for (; depth - i >= STEP; i += STEP) {
    UNROLL_ROWS for (size_t row = 0; row < rows; row++) {
      sums[row] = add_dot_products(is_unsigned, sums[row], _mm512_loadu_si512(from[row] + i), weight);
    }
  }
  if (i != depth) {
    const __mmask64 mask = (UINT64_C(1) << (depth - i)) - 1;
    UNROLL_ROWS for (size_t row = 0; row < rows; row++) {
      sums[row] = add_dot_products(is_unsigned, sums[row], _mm512_maskz_loadu_epi8(mask, from[row] + i), weight);
    }
  }
}

// Adds the two halves of each pair of lanes of `a` and `b`: lanes of their sums alternate.
static XNN_INLINE __m512i add_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

// Adds the lanes of each of four sums, and writes the totals to all lanes.
static XNN_INLINE void spread_four(__m512i* a, __m512i* b, __m512i* c, __m512i* d) {
  const __m512i ab = add_pairs(*a, *b);
  const __m512i cd = add_pairs(*c, *d);
  __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  all = _mm512_add_epi32(all, _mm512_shuffle_i32x4(all, all, _MM_SHUFFLE(1, 0, 3, 2)));
  all = _mm512_add_epi32(all, _mm512_shuffle_i32x4(all, all, _MM_SHUFFLE(2, 3, 0, 1)));
  *a = _mm512_shuffle_epi32(all, _MM_PERM_AAAA);
  *b = _mm512_shuffle_epi32(all, _MM_PERM_BBBB);
  *c = _mm512_shuffle_epi32(all, _MM_PERM_CCCC);
  *d = _mm512_shuffle_epi32(all, _MM_PERM_DDDD);
}

// Writes the sum of each row's `depth` inputs for each position to all lanes.
static XNN_INLINE void spread_sums(size_t rows, size_t depth, __m512i sums[]) {
  if (depth <= FEW_INPUTS) {
    return;
  }
  const size_t last = rows - 1;
  _Pragma("GCC unroll 2") for (size_t row = 0; row < rows; row += 4) {
    spread_four(&sums[row], &sums[min(row + 1, last)], &sums[min(row + 2, last)], &sums[min(row + 3, last)]);
  }
}

#endif
