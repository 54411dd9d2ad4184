// Microkernels of `elementwise_qu8.c` for NEON.

#include <stdbool.h>
#include <string.h>

#include "ukernels/fixed_point_neon.h"
#include "ukernels/q8_neon.h"

#define LANES Q8_NEON_LANES
#define VECTORS Q8_NEON_VECTORS

struct operand {
  uint8x16_t zero_point;
  struct scaling scaling;
  // All bits set if the operand is subtracted.
  int32x4_t sign;
};

static XNN_INLINE struct operand operand(const struct number* number) {
  return (struct operand) {
      .zero_point = vdupq_n_u8(number->zero_point),
      .scaling = scaling((struct fixed_point) {number->multiplier, number->exponent}),
      .sign = vdupq_n_s32(number->taken_off ? -1 : 0),
  };
}

// Loads 16 bytes, of which the first `count` exist.
static XNN_INLINE uint8x16_t load_bytes(const uint8_t* from, size_t count) {
  if XNN_LIKELY(count >= LANES) {
    return vld1q_u8(from);
  }
  uint8_t some[LANES] = {0};
  memcpy(some, from, count);
  return vld1q_u8(some);
}

// Bytes less a zero point, shifted by `bits`.
static XNN_INLINE void differences(uint8x16_t bytes, uint8x16_t zero_point, int32_t bits, int32x4_t to[VECTORS]) {
  const int16x8_t front = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(bytes), vget_low_u8(zero_point)));
  const int16x8_t back = vreinterpretq_s16_u16(vsubl_high_u8(bytes, zero_point));
  const int32x4_t more = vdupq_n_s32(bits);
  to[0] = vshlq_s32(vmovl_s16(vget_low_s16(front)), more);
  to[1] = vshlq_s32(vmovl_high_s16(front), more);
  to[2] = vshlq_s32(vmovl_s16(vget_low_s16(back)), more);
  to[3] = vshlq_s32(vmovl_high_s16(back), more);
}

static XNN_INLINE void scaled(const struct operand* operand, uint8x16_t bytes, int32x4_t to[VECTORS]) {
  differences(bytes, operand->zero_point, QU8_ADD_MORE_BITS, to);
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const int32x4_t sums = scale_sums(&operand->scaling, to[v]);
    to[v] = vsubq_s32(veorq_s32(sums, operand->sign), operand->sign);
  }
}

static XNN_INLINE uint8x16_t narrowed(const struct operand* output, const int32x4_t sums[VECTORS]) {
  int32x4_t scaled[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    scaled[v] = scale_sums(&output->scaling, sums[v]);
  }
  return narrow_sums(scaled, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(output->zero_point))));
}

static XNN_INLINE void add(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const struct numbers* numbers)
{
  const struct operand left = operand(&numbers->a);
  const struct operand right = operand(&numbers->b);
  const struct operand to = operand(&numbers->output);
  int32x4_t second[VECTORS];
  if (b_is_one) {
    scaled(&right, vdupq_n_u8(*b), second);
  }
  for (size_t i = 0; i < batch; i += LANES) {
    const size_t count = batch - i;
    int32x4_t sums[VECTORS];
    scaled(&left, load_bytes(a + i, count), sums);
    if (!b_is_one) {
      scaled(&right, load_bytes(b + i, count), second);
    }
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[v] = vaddq_s32(sums[v], second[v]);
    }
    store_bytes(output + i, narrowed(&to, sums), count);
  }
}

void xnnpack_sys_qu8_vadd_ukernel__neon(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/false, output, &numbers);
}

void xnnpack_sys_qu8_vaddc_ukernel__neon(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/true, output, &numbers);
}

void xnnpack_sys_qu8_vcvt_ukernel__neon(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)
{
  struct conversion conversion;
  memcpy(&conversion, params, sizeof(conversion));
  const uint8x16_t from = vdupq_n_u8(conversion.from);
  struct operand to = operand(&conversion.to);
  to.scaling = scaling_once((struct fixed_point) {conversion.to.multiplier, conversion.to.exponent});
  const uint8_t* bytes = input;
  uint8_t* converted = output;
  for (size_t i = 0; i < batch; i += LANES) {
    const size_t count = batch - i;
    int32x4_t sums[VECTORS];
    differences(load_bytes(bytes + i, count), from, 0, sums);
    store_bytes(converted + i, narrowed(&to, sums), count);
  }
}
