// Quantization of floats at run time with NEON, see `hooks/quantize_qd8.h`. They are finite: otherwise nothing is quantized.

#include <assert.h>
#include <string.h>

#include <arm_neon.h>

#include "hooks/quantize_qd8.h"
#include "ukernels/fixed_point_neon.h"
#include "xnnpack/common.h"

#define LANES Q8_NEON_LANES

struct quantization {
  float32x4_t scale;
  int16x8_t zero_point;
};

// Half of a unit in bits, shifted to leave room for a sign.
#define HALF (UINT32_C(0x3F000000) << 1)

// Rounds four scaled floats to integers, ties away from zero.
static XNN_INLINE int32x4_t round_four(const struct quantization* by, const float* from) {
  float32x4_t half = vld1q_f32(from);
  const float32x4_t product = vmulq_f32(half, by->scale);
  // The half takes the sign of the float, and its register: the product, which is no operand, comes first.
  __asm__("sri %0.4s, %1.4s, #1" : "+w"(half) : "w"(vdupq_n_u32(HALF)), "w"(product));
  return vcvtq_s32_f32(vaddq_f32(product, half));
}

// Words saturate where bytes do, too.
static XNN_INLINE int16x8_t quantize_eight(const struct quantization* by, const float* from) {
  const int16x8_t words = vqmovn_high_s32(vqmovn_s32(round_four(by, from)), round_four(by, from + 4));
  return vqaddq_s16(words, by->zero_point);
}

static XNN_INLINE void quantize(const struct quantization* by, const float* from, int8_t* to) {
  vst1q_s8(to, vqmovn_high_s16(vqmovn_s16(quantize_eight(by, from)), quantize_eight(by, from + 8)));
}

void xnnpack_sys_neon_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  // No microkernel for ARM takes images without a sign.
  assert(offset == 0);
  const struct quantization by = {.scale = vdupq_n_f32(scale), .zero_point = vdupq_n_s16((int16_t) zero_point)};
  for (; count >= 4 * LANES; count -= 4 * LANES) {
    UNROLL for (size_t i = 0; i < 4; i++) {
      quantize(&by, input + i * LANES, output + i * LANES);
    }
    input += 4 * LANES;
    output += 4 * LANES;
  }
  for (; count >= LANES; count -= LANES) {
    quantize(&by, input, output);
    input += LANES;
    output += LANES;
  }
  if (count != 0) {
    float some[LANES] = {0};
    int8_t bytes[LANES];
    memcpy(some, input, count * sizeof(float));
    quantize(&by, some, bytes);
    memcpy(output, bytes, count);
  }
}
