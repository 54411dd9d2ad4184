// `fixed_point.h` for NEON, and the requantization of sums to uint8 that NEON microkernels share.

#ifndef XNNPACK_SYS_FIXED_POINT_NEON_H
#define XNNPACK_SYS_FIXED_POINT_NEON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arm_neon.h>

#include "ukernels/fixed_point.h"
#include "xnnpack/common.h"
#include "xnnpack/microparams.h"

// Channels of a block of outputs, and vectors of their sums.
#define Q8_NEON_LANES 16
#define Q8_NEON_VECTORS 4

// Unrolls a loop, so that arrays become registers. Clang follows GCC's pragma too late for that.
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 25")
#endif

struct scaling {
  int32x4_t multiplier;
  // Products of 64 bits are rounded once, which also serves powers of two above one: they are shifted before they are rounded.
  bool once;
  int64x2_t product_shift;
  // Otherwise products are rounded to 32 bits, ties up, and shifted by this negative number, ties away from zero.
  int32x4_t shift;
};

// Exponents are from -31 to 30.
static XNN_INLINE struct scaling scaling(struct fixed_point by) {
  return (struct scaling) {
      .multiplier = vdupq_n_s32(by.multiplier),
      .once = by.exponent > 0,
      .product_shift = vdupq_n_s64(by.exponent - 31),
      .shift = vdupq_n_s32(by.exponent),
  };
}

// Rounds once, ties away from zero: an odd multiplier leaves no ties.
static XNN_INLINE struct scaling scaling_once(struct fixed_point by) {
  struct scaling once = scaling((struct fixed_point) {by.multiplier | 1, by.exponent});
  once.once = true;
  return once;
}

static XNN_INLINE int32x4_t scale_sums(const struct scaling* by, int32x4_t sums) {
  if (by->once) {
    const int64x2_t low = vmull_s32(vget_low_s32(sums), vget_low_s32(by->multiplier));
    const int64x2_t high = vmull_high_s32(sums, by->multiplier);
    return vuzp1q_s32(
        vreinterpretq_s32_s64(vrshlq_s64(low, by->product_shift)),
        vreinterpretq_s32_s64(vrshlq_s64(high, by->product_shift)));
  }
  const int32x4_t product = vqrdmulhq_s32(sums, by->multiplier);
  // Takes one off negative products that are shifted, whose ties would be rounded up.
  return vrshlq_s32(vsraq_n_s32(product, vandq_s32(product, by->shift), 31), by->shift);
}

struct requantization {
  struct scaling scaling;
  int16x8_t zero_point;
  uint8x16_t least;
  uint8x16_t most;
};

// The parameters are of `xnnpack_sys_init_fixed_point_qu8_params`.
static XNN_INLINE struct requantization requantization(const union xnn_qu8_conv_minmax_params* params) {
  const struct fixed_point scale = {params->rndnu_scalar.multiplier, (int32_t) params->rndnu_scalar.shift};
  return (struct requantization) {
      .scaling = params->rndnu_scalar.rounding == 1 ? scaling_once(scale) : scaling(scale),
      .zero_point = vdupq_n_s16((int16_t) params->rndnu_scalar.output_zero_point),
      .least = vdupq_n_u8((uint8_t) params->rndnu_scalar.output_min),
      .most = vdupq_n_u8((uint8_t) params->rndnu_scalar.output_max),
  };
}

// Adds the zero point to scaled sums, and saturates them.
static XNN_INLINE uint8x16_t narrow_sums(const int32x4_t sums[Q8_NEON_VECTORS], int16x8_t zero_point) {
  const int16x8_t front = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(sums[0]), sums[1]), zero_point);
  const int16x8_t back = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(sums[2]), sums[3]), zero_point);
  return vqmovun_high_s16(vqmovun_s16(front), back);
}

static XNN_INLINE uint8x16_t requantize(const struct requantization* to, const int32x4_t sums[Q8_NEON_VECTORS]) {
  int32x4_t scaled[Q8_NEON_VECTORS];
  // One branch for all vectors.
  if (to->scaling.once) {
    const struct scaling once = {.multiplier = to->scaling.multiplier, .once = true, .product_shift = to->scaling.product_shift};
    UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
      scaled[v] = scale_sums(&once, sums[v]);
    }
  } else {
    const struct scaling twice = {.multiplier = to->scaling.multiplier, .once = false, .shift = to->scaling.shift};
    UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
      scaled[v] = scale_sums(&twice, sums[v]);
    }
  }
  return vminq_u8(vmaxq_u8(narrow_sums(scaled, to->zero_point), to->least), to->most);
}

// Stores the first `count` of 16 bytes.
static XNN_INLINE void store_bytes(uint8_t* to, uint8x16_t bytes, size_t count) {
  if XNN_LIKELY(count >= Q8_NEON_LANES) {
    vst1q_u8(to, bytes);
    return;
  }
  if (count & 8) {
    vst1_u8(to, vget_low_u8(bytes));
    bytes = vextq_u8(bytes, bytes, 8);
    to += 8;
  }
  uint64_t some = vgetq_lane_u64(vreinterpretq_u64_u8(bytes), 0);
  UNROLL for (size_t size = 4; size != 0; size /= 2) {
    if (count & size) {
      memcpy(to, &some, size);
      some >>= 8 * size;
      to += size;
    }
  }
}

// Stores the first `count` of 16 floats. Without a call, around which vectors would be stored.
static XNN_INLINE void store_floats(float* to, const float32x4_t values[Q8_NEON_VECTORS], size_t count) {
  if XNN_LIKELY(count >= Q8_NEON_LANES) {
    UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
      vst1q_f32(to + v * 4, values[v]);
    }
    return;
  }
  float32x4_t first = values[0];
  float32x4_t second = values[1];
  if (count & 8) {
    vst1q_f32(to, first);
    vst1q_f32(to + 4, second);
    first = values[2];
    second = values[3];
    to += 8;
  }
  if (count & 4) {
    vst1q_f32(to, first);
    first = second;
    to += 4;
  }
  float32x2_t pair = vget_low_f32(first);
  if (count & 2) {
    vst1_f32(to, pair);
    pair = vget_high_f32(first);
    to += 2;
  }
  if (count & 1) {
    vst1_lane_f32(to, pair, 0);
  }
}

// Loads the biases or sums of a block of channels.
static XNN_INLINE void load_block(const void* from, int32x4_t to[Q8_NEON_VECTORS]) {
  UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
    to[v] = vld1q_s32((const int32_t*) from + v * 4);
  }
}

// Loads floats of a block of channels.
static XNN_INLINE void load_floats(const float* from, float32x4_t to[Q8_NEON_VECTORS]) {
  UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
    to[v] = vld1q_f32(from + v * 4);
  }
}

#endif
