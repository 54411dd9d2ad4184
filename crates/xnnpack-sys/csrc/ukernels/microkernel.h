// Functions that the microkernels of this crate share.

#ifndef XNNPACK_SYS_MICROKERNEL_H
#define XNNPACK_SYS_MICROKERNEL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"

// The mask of a whole vector of 16 channels.
#define ALL_LANES 0xFFFF

// Preconditions of microkernels for matrix products of up to `rows` rows, with XNNPACK's names of arguments; `element` is the bytes of
// an input. Checked in debug builds.
#define ASSERT_GEMM(rows, element) \
  assert(mr != 0 && mr <= (rows)); \
  assert(nc != 0); \
  assert(kc != 0 && kc % (element) == 0)

// Preconditions of the same for convolutions, with addresses of inputs.
#define ASSERT_IGEMM(rows, element) \
  ASSERT_GEMM(rows, element); \
  assert(ks != 0 && ks % ((rows) * sizeof(void*)) == 0)

// Returns the address of an input. Addresses are stored for one image; those of another one are `offset` bytes on, except that of
// the padding.
static XNN_INLINE const void* input_at(const void* address, const void* padding, size_t offset) {
  if XNN_UNPREDICTABLE(address != padding) {
    address = (const void*) ((uintptr_t) address + offset);
  }
  return address;
}

#ifdef __AVX512F__
#include <immintrin.h>

// Clamps `x`. Maxima and minima return the second operand if either is NaN: bounds are first, so that NaN stays NaN, as in TFLite's
// reference kernels.
static XNN_INLINE __m512 clamp(__m512 x, __m512 min, __m512 max) {
  return _mm512_min_ps(max, _mm512_max_ps(min, x));
}
#endif

#endif
