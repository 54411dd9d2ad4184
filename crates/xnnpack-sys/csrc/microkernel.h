// What microkernels of this crate share.

#ifndef XNNPACK_SYS_MICROKERNEL_H
#define XNNPACK_SYS_MICROKERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"

// The mask of a whole vector of 16 channels.
#define ALL_LANES 0xFFFF

// Where an input is: addresses are stored for one image and hold for others `offset` bytes on, but for that of the
// padding.
static XNN_INLINE const void* input_at(const void* address, const void* padding, size_t offset) {
  if XNN_UNPREDICTABLE(address != padding) {
    address = (const void*) ((uintptr_t) address + offset);
  }
  return address;
}

#ifdef __AVX512F__
#include <immintrin.h>

// Between `min` and `max`. Maxima and minima give the second operand where one of the two is NaN: bounds come first, so that NaN
// stays NaN, as in TFLite's reference kernels.
static XNN_INLINE __m512 clamp(__m512 x, __m512 min, __m512 max) {
  return _mm512_min_ps(max, _mm512_max_ps(min, x));
}
#endif

#endif
