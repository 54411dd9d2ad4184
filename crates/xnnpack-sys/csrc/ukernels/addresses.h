// Addresses of the inputs of depthwise convolutions.

#ifndef XNNPACK_SYS_ADDRESSES_H
#define XNNPACK_SYS_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "ukernels/microkernel.h"
#include "xnnpack/common.h"

// Addresses are written in whole vectors with AVX512: the end of an array of `count` addresses.
#define ADDRESSES(count) (((count) + 7) / 8 * 8)

// Writes what `input_at` returns for `count` addresses, several at a time.
static XNN_INLINE void settle_addresses(
    const float* const* from, size_t count, const float* padding, size_t offset, const float** to)
{
#ifdef __AVX512F__
  const __m512i paddings = _mm512_set1_epi64((int64_t) (uintptr_t) padding);
  const __m512i offsets = _mm512_set1_epi64((int64_t) offset);
  _Pragma("GCC unroll 25") for (size_t i = 0; i < count; i += 8) {
    const __mmask8 some = count - i >= 8 ? 0xFF : (1 << (count - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi64(some, from + i);
    _mm512_storeu_si512(to + i, _mm512_mask_add_epi64(at, _mm512_cmpneq_epi64_mask(at, paddings), at, offsets));
  }
#else
  size_t i = 0;
#ifdef __AVX2__
  const __m256i paddings = _mm256_set1_epi64x((int64_t) (uintptr_t) padding);
  const __m256i offsets = _mm256_set1_epi64x((int64_t) offset);
  for (; i + 4 <= count; i += 4) {
    const __m256i at = _mm256_loadu_si256((const __m256i*) (from + i));
    const __m256i moved = _mm256_andnot_si256(_mm256_cmpeq_epi64(at, paddings), offsets);
    _mm256_storeu_si256((__m256i*) (to + i), _mm256_add_epi64(at, moved));
  }
#endif
  for (; i < count; i++) {
    to[i] = input_at(from[i], padding, offset);
  }
#endif
}

#endif
