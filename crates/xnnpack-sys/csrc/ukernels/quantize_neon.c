// Quantization of floats at run time with NEON, see `hooks/quantize_qd8.h`.

#include <string.h>

#include <arm_neon.h>

#include "hooks/quantize_qd8.h"
#include "xnnpack/common.h"

#define LANES 16

struct quantization {
  float32x4_t scale;
  float32x4_t low;
  float32x4_t high;
  int16x8_t zero_point;
};

static XNN_INLINE int16x4_t quantize_four(const struct quantization* by, const float* from) {
  float32x4_t x = vmulq_f32(vld1q_f32(from), by->scale);
  // If one operand is NaN, these return the other.
  x = vminnmq_f32(vmaxnmq_f32(x, by->low), by->high);
  const float32x4_t half = vbslq_f32(vdupq_n_u32(UINT32_C(1) << 31), x, vdupq_n_f32(0.5f));
  return vmovn_s32(vcvtq_s32_f32(vaddq_f32(x, half)));
}

static XNN_INLINE int8x8_t quantize_eight(const struct quantization* by, const float* from) {
  const int16x8_t words = vcombine_s16(quantize_four(by, from), quantize_four(by, from + 4));
  return vmovn_s16(vaddq_s16(words, by->zero_point));
}

static XNN_INLINE void quantize(const struct quantization* by, const float* from, int8_t* to) {
  vst1q_s8(to, vcombine_s8(quantize_eight(by, from), quantize_eight(by, from + 8)));
}

void xnnpack_sys_neon_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset)
{
  const struct quantization by = {
      .scale = vdupq_n_f32(scale),
      .low = vdupq_n_f32((float) (INT8_MIN - zero_point)),
      .high = vdupq_n_f32((float) (INT8_MAX - zero_point)),
      .zero_point = vdupq_n_s16((int16_t) (zero_point + offset)),
  };
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
