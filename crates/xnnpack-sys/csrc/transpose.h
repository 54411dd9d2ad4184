// Transposing of 16 x 16 words in registers.

#ifndef XNNPACK_SYS_TRANSPOSE_H
#define XNNPACK_SYS_TRANSPOSE_H

#include <stddef.h>

#include <immintrin.h>

#include "xnnpack/common.h"

// Makes columns of rows: word `i` of row `j` becomes word `j` of row `i`.
static XNN_INLINE void transpose_words(__m512i rows[16]) {
  // Within the quarters of vectors, four rows at a time; then the quarters.
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
    const __m512i front01 = _mm512_shuffle_i32x4(quads[i], quads[i + 4], 0x44);
    const __m512i back01 = _mm512_shuffle_i32x4(quads[i], quads[i + 4], 0xEE);
    const __m512i front23 = _mm512_shuffle_i32x4(quads[i + 8], quads[i + 12], 0x44);
    const __m512i back23 = _mm512_shuffle_i32x4(quads[i + 8], quads[i + 12], 0xEE);
    rows[i] = _mm512_shuffle_i32x4(front01, front23, 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(front01, front23, 0xDD);
    rows[i + 8] = _mm512_shuffle_i32x4(back01, back23, 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(back01, back23, 0xDD);
  }
}

#endif
