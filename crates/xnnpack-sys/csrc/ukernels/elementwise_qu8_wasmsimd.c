// Microkernels of `elementwise_qu8.c` for WebAssembly.

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "ukernels/fixed_point_wasm.h"
#include "ukernels/qu8_wasmsimd.h"

#define LANES 8

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

struct lanes {
  v128_t low;
  v128_t high;
};

// Loads eight bytes, of which the first `count` exist, less a zero point.
static XNN_INLINE struct lanes differences(const uint8_t* from, size_t count, v128_t zero_point) {
  uint64_t bytes = 0;
  memcpy(&bytes, from, count < LANES ? count : LANES);
  const v128_t words = wasm_u16x8_extend_low_u8x16(wasm_u64x2_splat(bytes));
  return (struct lanes) {
      .low = wasm_i32x4_sub(wasm_u32x4_extend_low_u16x8(words), zero_point),
      .high = wasm_i32x4_sub(wasm_u32x4_extend_high_u16x8(words), zero_point),
  };
}

static XNN_INLINE v128_t scaled_half(const struct operand* operand, v128_t half) {
  const v128_t scaled = scale_sums(&operand->scaling, wasm_i32x4_shl(half, QU8_ADD_MORE_BITS));
  return wasm_i32x4_sub(wasm_v128_xor(scaled, operand->sign), operand->sign);
}

static XNN_INLINE struct lanes scaled(const struct operand* operand, const uint8_t* from, size_t count) {
  const struct lanes lanes = differences(from, count, operand->zero_point);
  return (struct lanes) {.low = scaled_half(operand, lanes.low), .high = scaled_half(operand, lanes.high)};
}

// Stores the first `count` sums as bytes.
static XNN_INLINE void store_bytes(const struct operand* output, struct lanes sums, uint8_t* to, size_t count) {
  const v128_t low = wasm_i32x4_add(scale_sums(&output->scaling, sums.low), output->zero_point);
  const v128_t high = wasm_i32x4_add(scale_sums(&output->scaling, sums.high), output->zero_point);
  const v128_t words = wasm_i16x8_narrow_i32x4(low, high);
  store_some(to, wasm_u8x16_narrow_i16x8(words, words), count);
}

static XNN_INLINE void add(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const struct numbers* numbers)
{
  const struct operand left = operand(&numbers->a);
  const struct operand right = operand(&numbers->b);
  const struct operand to = operand(&numbers->output);
  uint8_t copies[LANES];
  memset(copies, *b, sizeof(copies));
  const struct lanes one = scaled(&right, copies, LANES);
  for (size_t i = 0; i < batch; i += LANES) {
    const size_t count = batch - i;
    const struct lanes first = scaled(&left, a + i, count);
    const struct lanes second = b_is_one ? one : scaled(&right, b + i, count);
    const struct lanes sums = {
        .low = wasm_i32x4_add(first.low, second.low), .high = wasm_i32x4_add(first.high, second.high)};
    store_bytes(&to, sums, output + i, count);
  }
}

void xnnpack_sys_qu8_vadd_ukernel__wasmsimd(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/false, output, &numbers);
}

void xnnpack_sys_qu8_vaddc_ukernel__wasmsimd(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/true, output, &numbers);
}

void xnnpack_sys_qu8_vcvt_ukernel__wasmsimd(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)
{
  struct conversion conversion;
  memcpy(&conversion, params, sizeof(conversion));
  const v128_t from = wasm_i32x4_splat(conversion.from);
  struct operand to = operand(&conversion.to);
  to.scaling = scaling_once((struct fixed_point) {conversion.to.multiplier, conversion.to.exponent});
  const uint8_t* bytes = input;
  uint8_t* converted = output;
  for (size_t i = 0; i < batch; i += LANES) {
    store_bytes(&to, differences(bytes + i, batch - i, from), converted + i, batch - i);
  }
}
