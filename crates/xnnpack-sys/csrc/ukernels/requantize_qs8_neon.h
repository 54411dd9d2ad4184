// Requantization of sums to int8 with a scale for each channel, as in XNNPACK's microkernels (`fp32_neonv8`).

#ifndef XNNPACK_SYS_REQUANTIZE_QS8_NEON_H
#define XNNPACK_SYS_REQUANTIZE_QS8_NEON_H

#include <stddef.h>
#include <stdint.h>

#include <arm_neon.h>

#include "ukernels/fixed_point_neon.h"
#include "xnnpack/common.h"
#include "xnnpack/microparams.h"

struct int8_output {
  int16x8_t zero_point;
  int8x16_t least;
  int8x16_t most;
};

static XNN_INLINE struct int8_output int8_output(const union xnn_qs8_qc8w_conv_minmax_params* params) {
  return (struct int8_output) {
      .zero_point = vdupq_n_s16(params->fp32_neonv8.output_zero_point),
      .least = vdupq_n_s8((int8_t) params->fp32_neonv8.output_min),
      .most = vdupq_n_s8((int8_t) params->fp32_neonv8.output_max),
  };
}

static XNN_INLINE int8x16_t requantize_int8(
    const struct int8_output* to, const int32x4_t sums[Q8_NEON_VECTORS], const float32x4_t scales[Q8_NEON_VECTORS])
{
  int32x4_t scaled[Q8_NEON_VECTORS];
  UNROLL for (size_t v = 0; v < Q8_NEON_VECTORS; v++) {
    scaled[v] = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[v]), scales[v]));
  }
  const int16x8_t front = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(scaled[0]), scaled[1]), to->zero_point);
  const int16x8_t back = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(scaled[2]), scaled[3]), to->zero_point);
  const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(front), back);
  return vminq_s8(vmaxq_s8(bytes, to->least), to->most);
}

#endif
