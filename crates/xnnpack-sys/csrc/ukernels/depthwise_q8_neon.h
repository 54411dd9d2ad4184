// Outputs of depthwise convolutions of 8-bit integers with NEON.

#ifndef XNNPACK_SYS_DEPTHWISE_Q8_NEON_H
#define XNNPACK_SYS_DEPTHWISE_Q8_NEON_H

#include <stddef.h>
#include <stdint.h>

#include <arm_neon.h>

#include "ukernels/fixed_point_neon.h"
#include "ukernels/q8_neon.h"
#include "ukernels/requantize_qs8_neon.h"

#define LANES Q8_NEON_LANES
#define VECTORS Q8_NEON_VECTORS
#define MAX_TAPS 25

// Rows of inputs that are prepared together: those of a column of a kernel with nine weights, and the most otherwise.
#define COLUMN 3
#define GROUP 4

_Static_assert(LANES == DEPTHWISE_LANES, "a block of weights is that of other instruction sets");

enum kind {
  // uint8 with one zero point and one scale for all weights.
  UNSIGNED,
  // int8 with a scale for each channel.
  SIGNED,
  // int8 quantized at run time, with a scale for each channel; sums become floats.
  DYNAMIC,
};

struct output {
  // The zero point of the weights for UNSIGNED, and of the image for DYNAMIC.
  uint8x16_t zero_point;
  // UNSIGNED.
  struct requantization requantization;
  // SIGNED.
  struct int8_output int8;
  // DYNAMIC: the image's scale, and bounds.
  float32x4_t scale;
  float32x4_t min;
  float32x4_t max;
};

static XNN_INLINE struct output dynamic_output(const struct xnnpack_sys_qd8_depthwise_params* params) {
  return (struct output) {
      .zero_point = vdupq_n_u8((uint8_t) params->zero_point),
      .scale = vdupq_n_f32(params->scale),
      .min = vdupq_n_f32(params->min),
      .max = vdupq_n_f32(params->max),
  };
}

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend. The image's scale is already in `scales`.
static XNN_INLINE void store_scaled(
    const struct output* output, float* to, const int32x4_t sums[VECTORS], const float* biases, const float* scales,
    size_t channels)
{
  float32x4_t values[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const float32x4_t product = vmulq_f32(vcvtq_f32_s32(sums[v]), vld1q_f32(scales + v * 4));
    const float32x4_t sum = vaddq_f32(product, vld1q_f32(biases + v * 4));
    values[v] = vminq_f32(vmaxq_f32(sum, output->min), output->max);
  }
  store_floats(to, values, channels);
}

#endif
