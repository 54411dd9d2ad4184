// Transposition of 16 x 16 words, and of 8 x 8 pairs of words, in registers.

#ifndef XNNPACK_SYS_TRANSPOSE_H
#define XNNPACK_SYS_TRANSPOSE_H

#include <stddef.h>

#include <immintrin.h>

#include "xnnpack/common.h"

// Transposes quarters: quarter `i` of row `j` becomes quarter `j` of row `i * step`.
static XNN_INLINE void transpose_quarters(
    __m512i row0, __m512i row1, __m512i row2, __m512i row3, __m512i* columns, size_t step)
{
  const __m512i front01 = _mm512_shuffle_i32x4(row0, row1, 0x44);
  const __m512i back01 = _mm512_shuffle_i32x4(row0, row1, 0xEE);
  const __m512i front23 = _mm512_shuffle_i32x4(row2, row3, 0x44);
  const __m512i back23 = _mm512_shuffle_i32x4(row2, row3, 0xEE);
  columns[0] = _mm512_shuffle_i32x4(front01, front23, 0x88);
  columns[step] = _mm512_shuffle_i32x4(front01, front23, 0xDD);
  columns[2 * step] = _mm512_shuffle_i32x4(back01, back23, 0x88);
  columns[3 * step] = _mm512_shuffle_i32x4(back01, back23, 0xDD);
}

// Transposes words: word `i` of row `j` becomes word `j` of row `i`.
static XNN_INLINE void transpose_words(__m512i rows[16]) {
  // Words within the quarters of vectors first, four rows at a time; then the quarters.
  __m512i quads[16];
  _Pragma("GCC unroll 4") for (size_t i = 0; i < 16; i += 4) {
    const __m512i low01 = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    const __m512i high01 = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m512i low23 = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
    const __m512i high23 = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    quads[i] = _mm512_unpacklo_epi64(low01, low23);
    quads[i + 1] = _mm512_unpackhi_epi64(low01, low23);
    quads[i + 2] = _mm512_unpacklo_epi64(high01, high23);
    quads[i + 3] = _mm512_unpackhi_epi64(high01, high23);
  }
  _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
    transpose_quarters(quads[i], quads[i + 4], quads[i + 8], quads[i + 12], &rows[i], 4);
  }
}

// Transposes pairs of words.
static XNN_INLINE void transpose_pairs(__m512i rows[8]) {
  __m512i low[4];
  __m512i high[4];
  _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) {
    low[i] = _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
    high[i] = _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
  }
  transpose_quarters(low[0], low[1], low[2], low[3], &rows[0], 2);
  transpose_quarters(high[0], high[1], high[2], high[3], &rows[1], 2);
}

#endif
