// The larger of two numbers, and the number if one is NaN, as in TFLite's maximum.

#ifndef XNNPACK_SYS_LARGEST_NEON_H
#define XNNPACK_SYS_LARGEST_NEON_H

#include <arm_neon.h>

static inline float32x4_t xnnpack_sys_largest(float32x4_t a, float32x4_t b) {
#ifdef __aarch64__
  return vmaxnmq_f32(a, b);
#else
  // 32-bit processors may not have the instruction.
  const float32x4_t of_numbers = vbslq_f32(vceqq_f32(b, b), vmaxq_f32(a, b), a);
  return vbslq_f32(vceqq_f32(a, a), of_numbers, b);
#endif
}

#endif
