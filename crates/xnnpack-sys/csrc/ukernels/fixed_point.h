// Multiplication of 32-bit integers by real numbers as in TFLite's kernels: by a fraction of 31 bits, which rounds ties up, and
// then by a power of two, which rounds ties away from zero.

#ifndef XNNPACK_SYS_FIXED_POINT_H
#define XNNPACK_SYS_FIXED_POINT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "xnnpack/common.h"

// The number `multiplier * 2^(exponent - 31)`. The multiplier is from 2^30 to 2^31, or 0.
struct fixed_point {
  int32_t multiplier;
  int32_t exponent;
};

// Returns the nearest fixed-point number to one that is not negative; numbers too small to shift by become 0.
static inline struct fixed_point fixed_point(double number) {
  int exponent;
  int64_t multiplier = (int64_t) round(frexp(number, &exponent) * 0x1p31);
  if (multiplier == INT64_C(1) << 31) {
    multiplier /= 2;
    exponent += 1;
  }
  const bool zero = exponent < -31;
  return (struct fixed_point) {.multiplier = zero ? 0 : (int32_t) multiplier, .exponent = zero ? 0 : exponent};
}

#ifdef __SSE4_1__

#include "ukernels/vector_x86.h"

struct scaling {
  vint multiplier;
  // Added to even and odd products: half of the unit of the fraction's last bit.
  vint rounding;
  // Shifts of even and odd products to the 32 bits of the sums.
  __m128i down;
  __m128i up;
  // The power of two, and the bits by which ties of negative numbers are rounded down; no ties without such bits.
  __m128i shift;
  vint one;
};

// Exponents are from -31 to 30. Powers of two above one shift the product, which is the same as to shift sums.
static XNN_INLINE struct scaling scaling(struct fixed_point by) {
  const int32_t left = by.exponent > 0 ? by.exponent : 0;
  const int32_t right = by.exponent < 0 ? -by.exponent : 0;
  const int64_t half = right == 0 ? 0 : INT64_C(1) << (right - 1);
  return (struct scaling) {
      .multiplier = VINT(set1_epi32, by.multiplier),
      .rounding = vint_set1_64((INT64_C(1) << (30 - left)) + (half << 31)),
      .down = _mm_cvtsi32_si128(31 - left),
      .up = _mm_cvtsi32_si128(1 + left),
      .shift = _mm_cvtsi32_si128(right),
      .one = VINT(set1_epi32, right == 0 ? 0 : 1),
  };
}

// Rounds once, ties away from zero.
static XNN_INLINE struct scaling scaling_once(struct fixed_point by) {
  struct scaling once = scaling((struct fixed_point) {by.multiplier | 1, by.exponent});
  if (by.exponent < 0) {
    once.rounding = vint_set1_64(INT64_C(1) << (30 - by.exponent));
    once.one = vint_zero();
  }
  return once;
}

static XNN_INLINE vint scale_sums(const struct scaling* by, vint sums) {
  const vint even = VINT(add_epi64, VINT(mul_epi32, sums, by->multiplier), by->rounding);
  const vint odd = VINT(add_epi64, VINT(mul_epi32, VINT(srli_epi64, sums, 32), by->multiplier), by->rounding);
  const vint scaled = vint_of_lanes(VINT(srl_epi64, even, by->down), VINT(sll_epi64, odd, by->up));
  return VINT(sra_epi32, vint_sub_where_negative(scaled, sums, by->one), by->shift);
}

#endif

#endif
