// Maxima and minima of vectors of floats and of bytes, as wide as the instruction set of the file.

#ifndef XNNPACK_SYS_LARGER_X86_H
#define XNNPACK_SYS_LARGER_X86_H

#include "ukernels/vector_x86.h"

enum kind { FLOATS, SIGNED, UNSIGNED };

// Bytes of a vector.
enum { VECTOR = sizeof(vint) };

// `kind` is a constant wherever these functions are inlined. Of floats the second is the result if either is NaN.
static XNN_INLINE vint larger(enum kind kind, vint a, vint b) {
  switch (kind) {
#ifndef WITHOUT_INTEGERS
    case SIGNED: return VINT(max_epi8, a, b);
    case UNSIGNED: return VINT(max_epu8, a, b);
#endif
    default: return vint_of_bits(VINT(max_ps, vfloat_of_bits(a), vfloat_of_bits(b)));
  }
}

static XNN_INLINE vint smaller(enum kind kind, vint a, vint b) {
  switch (kind) {
#ifndef WITHOUT_INTEGERS
    case SIGNED: return VINT(min_epi8, a, b);
    case UNSIGNED: return VINT(min_epu8, a, b);
#endif
    default: return vint_of_bits(VINT(min_ps, vfloat_of_bits(a), vfloat_of_bits(b)));
  }
}

struct bounds {
  vint low;
  vint high;
};

// Use the parameters of a microkernel.
#define BOUNDS_OF_FLOATS(params) \
  ((struct bounds) { \
      .low = vint_of_bits(VINT(set1_ps, (params)->scalar.min)), .high = vint_of_bits(VINT(set1_ps, (params)->scalar.max))})
#define BOUNDS_OF_BYTES(params) \
  ((struct bounds) { \
      .low = VINT(set1_epi8, (int8_t) (params)->scalar.min), .high = VINT(set1_epi8, (int8_t) (params)->scalar.max)})

#endif
