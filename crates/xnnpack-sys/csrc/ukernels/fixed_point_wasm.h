// `fixed_point.h` for vectors of WebAssembly.

#ifndef XNNPACK_SYS_FIXED_POINT_WASM_H
#define XNNPACK_SYS_FIXED_POINT_WASM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wasm_simd128.h>

#include "ukernels/fixed_point.h"
#include "xnnpack/common.h"

struct scaling {
  v128_t multiplier;
  // Added to products: half of the unit of the fraction's last bit.
  v128_t rounding;
  // Shift of products to the 32 bits of the sums.
  uint32_t down;
  // The power of two, and the bits by which ties of negative numbers are rounded down; no ties without such bits.
  uint32_t shift;
  v128_t one;
};

// Exponents are from -31 to 30. Powers of two above one shift the product, which is the same as to shift sums.
static XNN_INLINE struct scaling scaling(struct fixed_point by) {
  const int32_t left = by.exponent > 0 ? by.exponent : 0;
  const int32_t right = by.exponent < 0 ? -by.exponent : 0;
  const int64_t half = right == 0 ? 0 : INT64_C(1) << (right - 1);
  return (struct scaling) {
      .multiplier = wasm_i32x4_splat(by.multiplier),
      .rounding = wasm_i64x2_splat((INT64_C(1) << (30 - left)) + (half << 31)),
      .down = (uint32_t) (31 - left),
      .shift = (uint32_t) right,
      .one = wasm_i32x4_splat(right == 0 ? 0 : 1),
  };
}

// Rounds once, ties away from zero.
static XNN_INLINE struct scaling scaling_once(struct fixed_point by) {
  struct scaling once = scaling((struct fixed_point) {by.multiplier | 1, by.exponent});
  if (by.exponent < 0) {
    once.rounding = wasm_i64x2_splat(INT64_C(1) << (30 - by.exponent));
    once.one = wasm_i32x4_splat(0);
  }
  return once;
}

static XNN_INLINE v128_t scale_sums(const struct scaling* by, v128_t sums) {
  const v128_t low = wasm_i64x2_add(wasm_i64x2_extmul_low_i32x4(sums, by->multiplier), by->rounding);
  const v128_t high = wasm_i64x2_add(wasm_i64x2_extmul_high_i32x4(sums, by->multiplier), by->rounding);
  const v128_t scaled =
      wasm_i32x4_shuffle(wasm_i64x2_shr(low, by->down), wasm_i64x2_shr(high, by->down), 0, 2, 4, 6);
  const v128_t ties = wasm_v128_and(wasm_i32x4_shr(sums, 31), by->one);
  return wasm_i32x4_shr(wasm_i32x4_sub(scaled, ties), by->shift);
}

// Stores the first `count` of eight bytes.
static XNN_INLINE void store_some(uint8_t* to, v128_t bytes, size_t count) {
  if XNN_LIKELY(count >= 8) {
    wasm_v128_store64_lane(to, bytes, 0);
  } else {
    const uint64_t some = (uint64_t) wasm_i64x2_extract_lane(bytes, 0);
    memcpy(to, &some, count);
  }
}

#endif
