// Means over rows of floats, see `mean_f32.c`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_MEAN_F32_H
#define XNNPACK_SYS_MEAN_F32_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/microparams.h"

// Sums are divided by a number of elements, or multiplied by a factor.
struct xnnpack_sys_scaling {
  bool divides;
  float factor;
};

// Returns the scaling of parameters of XNNPACK, which have the reciprocal of the number.
static inline struct xnnpack_sys_scaling xnnpack_sys_scaling(const void* params) {
  const float scale = ((const struct xnn_f32_scale_params*) params)->scalar.scale;
  const float number = roundf(1.0f / scale);
  const bool divides = number > 1.0f && 1.0f / number == scale;
  return (struct xnnpack_sys_scaling) {.divides = divides, .factor = divides ? number : scale};
}

// Add the means of `rows` to `output`, or their sums, depending on the factor in the parameters.
#define F32_RDSUM(name) \
  void name( \
      size_t rows, size_t channels, const void* input, size_t input_stride, const void* zero, void* output, \
      const void* params)

F32_RDSUM(xnnpack_sys_f32_rdsum_ukernel__scalar);
F32_RDSUM(xnnpack_sys_f32_rdsum_ukernel__avx);
F32_RDSUM(xnnpack_sys_f32_rdsum_ukernel__avx512f);

#endif
