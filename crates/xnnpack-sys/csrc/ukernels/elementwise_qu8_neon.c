// Operators on uint8 with NEON, see `elementwise_qu8_loops.h`.

#include <stdbool.h>
#include <string.h>

#include "ukernels/fixed_point_neon.h"
#include "ukernels/q8_neon.h"

#define ISA neon
#define LANES Q8_NEON_LANES
#define VECTORS Q8_NEON_VECTORS

typedef struct {
  int32x4_t vectors[VECTORS];
} lanes;

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

static XNN_INLINE uint8x16_t load_bytes(const uint8_t* from, size_t count) {
  if XNN_LIKELY(count >= LANES) {
    return vld1q_u8(from);
  }
  uint8_t some[LANES] = {0};
  memcpy(some, from, count);
  return vld1q_u8(some);
}

static XNN_INLINE lanes differences(const struct operand* operand, const uint8_t* from, size_t count) {
  const uint8x16_t bytes = load_bytes(from, count);
  const int16x8_t front =
      vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(bytes), vget_low_u8(operand->zero_point)));
  const int16x8_t back = vreinterpretq_s16_u16(vsubl_high_u8(bytes, operand->zero_point));
  return (lanes) {{
      vmovl_s16(vget_low_s16(front)),
      vmovl_high_s16(front),
      vmovl_s16(vget_low_s16(back)),
      vmovl_high_s16(back),
  }};
}

static XNN_INLINE lanes scaled(const struct operand* operand, lanes values) {
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const int32x4_t more = vshlq_n_s32(values.vectors[v], QU8_ADD_MORE_BITS);
    const int32x4_t sums = scale_sums(&operand->scaling, more);
    values.vectors[v] = vsubq_s32(veorq_s32(sums, operand->sign), operand->sign);
  }
  return values;
}

static XNN_INLINE lanes sum(lanes a, lanes b) {
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    a.vectors[v] = vaddq_s32(a.vectors[v], b.vectors[v]);
  }
  return a;
}

static XNN_INLINE void store(const struct operand* output, lanes sums, uint8_t* to, size_t count) {
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    sums.vectors[v] = scale_sums(&output->scaling, sums.vectors[v]);
  }
  const int16x8_t zero_point = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(output->zero_point)));
  store_bytes(to, narrow_sums(sums.vectors, zero_point), count);
}

#include "ukernels/elementwise_qu8_loops.h"

QU8_SUMS(add_exactly)
