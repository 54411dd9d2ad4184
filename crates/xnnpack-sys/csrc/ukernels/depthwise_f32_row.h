// A row of outputs of depthwise convolutions of fp32, see `depthwise.h`: included behind a header that defines vectors.

#ifndef XNNPACK_SYS_DEPTHWISE_F32_ROW_H
#define XNNPACK_SYS_DEPTHWISE_F32_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/common.h"
#include "xnnpack/microparams.h"

struct row {
  const float** input;
  intptr_t input_stride;
  float* output;
  size_t output_stride;
  // Added to addresses of inputs other than `zero`.
  size_t input_offset;
  const float* zero;
  vfloat min;
  vfloat max;
};

static XNN_INLINE struct row row_of(
    const float** input, intptr_t input_stride, float* output, size_t channels, size_t output_increment,
    size_t input_offset, const float* zero, const union xnn_f32_minmax_params* params)
{
  return (struct row) {
      .input = input,
      .input_stride = input_stride,
      .output = output,
      .output_stride = channels * sizeof(float) + output_increment,
      .input_offset = input_offset,
      .zero = zero,
      .min = VINT(set1_ps, params->scalar.min),
      .max = VINT(set1_ps, params->scalar.max),
  };
}

#endif
