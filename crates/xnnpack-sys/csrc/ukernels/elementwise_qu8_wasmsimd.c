// Operators on uint8 for WebAssembly, see `elementwise_qu8_loops.h`.

#include <stdbool.h>
#include <string.h>

#include "ukernels/fixed_point_wasm.h"
#include "ukernels/qu8_wasmsimd.h"

#define ISA wasmsimd
#define LANES 8

typedef struct {
  v128_t low;
  v128_t high;
} lanes;

struct operand {
  v128_t zero_point;
  struct scaling scaling;
  // All bits set if the operand is subtracted.
  v128_t sign;
};

static XNN_INLINE struct operand operand(const struct number* number) {
  return (struct operand) {
      .zero_point = wasm_i32x4_splat(number->zero_point),
      .scaling = scaling((struct fixed_point) {number->multiplier, number->exponent}),
      .sign = wasm_i32x4_splat(number->taken_off ? -1 : 0),
  };
}

static XNN_INLINE lanes differences(const struct operand* operand, const uint8_t* from, size_t count) {
  uint64_t bytes = 0;
  memcpy(&bytes, from, count < LANES ? count : LANES);
  const v128_t words = wasm_u16x8_extend_low_u8x16(wasm_u64x2_splat(bytes));
  return (lanes) {
      .low = wasm_i32x4_sub(wasm_u32x4_extend_low_u16x8(words), operand->zero_point),
      .high = wasm_i32x4_sub(wasm_u32x4_extend_high_u16x8(words), operand->zero_point),
  };
}

static XNN_INLINE v128_t scaled_half(const struct operand* operand, v128_t half) {
  const v128_t scaled = scale_sums(&operand->scaling, wasm_i32x4_shl(half, QU8_ADD_MORE_BITS));
  return wasm_i32x4_sub(wasm_v128_xor(scaled, operand->sign), operand->sign);
}

static XNN_INLINE lanes scaled(const struct operand* operand, lanes values) {
  return (lanes) {.low = scaled_half(operand, values.low), .high = scaled_half(operand, values.high)};
}

static XNN_INLINE lanes sum(lanes a, lanes b) {
  return (lanes) {.low = wasm_i32x4_add(a.low, b.low), .high = wasm_i32x4_add(a.high, b.high)};
}

static XNN_INLINE void store(const struct operand* output, lanes sums, uint8_t* to, size_t count) {
  const v128_t low = wasm_i32x4_add(scale_sums(&output->scaling, sums.low), output->zero_point);
  const v128_t high = wasm_i32x4_add(scale_sums(&output->scaling, sums.high), output->zero_point);
  const v128_t words = wasm_i16x8_narrow_i32x4(low, high);
  store_some(to, wasm_u8x16_narrow_i16x8(words, words), count);
}

#include "ukernels/elementwise_qu8_loops.h"

QU8_SUMS(add_exactly)
