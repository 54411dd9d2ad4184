// Maxima and minima of vectors of floats and of bytes, as wide as the instruction set of the file.

#ifndef XNNPACK_SYS_LARGER_X86_H
#define XNNPACK_SYS_LARGER_X86_H

#include "ukernels/vector_x86.h"

enum kind { FLOATS, SIGNED, UNSIGNED };

// Bytes of a vector.
enum { VECTOR = sizeof(vint) };

#if defined(__AVX512F__)
#define AS_FLOATS(x) _mm512_castsi512_ps(x)
#define AS_INTS(x) _mm512_castps_si512(x)
#elif defined(__AVX2__)
#define AS_FLOATS(x) _mm256_castsi256_ps(x)
#define AS_INTS(x) _mm256_castps_si256(x)
#else
#define AS_FLOATS(x) _mm_castsi128_ps(x)
#define AS_INTS(x) _mm_castps_si128(x)
#endif

// `kind` is a constant wherever these functions are inlined. Of floats the second is the result if either is NaN.
static XNN_INLINE vint larger(enum kind kind, vint a, vint b) {
  switch (kind) {
    case FLOATS: return AS_INTS(VINT(max_ps, AS_FLOATS(a), AS_FLOATS(b)));
    case SIGNED: return VINT(max_epi8, a, b);
    default: return VINT(max_epu8, a, b);
  }
}

static XNN_INLINE vint smaller(enum kind kind, vint a, vint b) {
  switch (kind) {
    case FLOATS: return AS_INTS(VINT(min_ps, AS_FLOATS(a), AS_FLOATS(b)));
    case SIGNED: return VINT(min_epi8, a, b);
    default: return VINT(min_epu8, a, b);
  }
}

struct bounds {
  vint low;
  vint high;
};

// Use the parameters of a microkernel.
#define BOUNDS_OF_FLOATS(params) \
  ((struct bounds) { \
      .low = AS_INTS(VINT(set1_ps, (params)->scalar.min)), .high = AS_INTS(VINT(set1_ps, (params)->scalar.max))})
#define BOUNDS_OF_BYTES(params) \
  ((struct bounds) { \
      .low = VINT(set1_epi8, (int8_t) (params)->scalar.min), .high = VINT(set1_epi8, (int8_t) (params)->scalar.max)})

#endif
