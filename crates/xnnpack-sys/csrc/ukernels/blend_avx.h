// Included in front of XNNPACK's microkernels for AVX without AVX2, with GCC. GCC 12 turns a blend by sign into a comparison of integers,
// which AVX does not have for 256 bits, and compares and moves element by element: PRELU takes ten times as long.

#ifndef XNNPACK_SYS_BLEND_AVX_H
#define XNNPACK_SYS_BLEND_AVX_H

#include <immintrin.h>

static inline __m256 xnnpack_sys_blendv_ps(__m256 a, __m256 b, __m256 mask) {
  __m256 blended;
  __asm__("vblendvps %3, %2, %1, %0" : "=x"(blended) : "x"(a), "xm"(b), "x"(mask));
  return blended;
}

#define _mm256_blendv_ps(a, b, mask) xnnpack_sys_blendv_ps(a, b, mask)

#endif
