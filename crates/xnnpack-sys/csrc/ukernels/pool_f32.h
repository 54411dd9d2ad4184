// Pooling of windows of few floats, see `pool_max_f32.h` and `pool_mean_f32.h`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_POOL_F32_H
#define XNNPACK_SYS_POOL_F32_H

#include <stddef.h>

#include "xnnpack/microparams.h"

// Addresses that XNNPACK's functions take; a window may have fewer elements.
#define POOL_PASS 9

#define F32_MAXPOOL(name) \
  void name( \
      size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset, \
      float* output, size_t input_increment, size_t output_increment, const union xnn_f32_minmax_params* params)

F32_MAXPOOL(xnnpack_sys_f32_maxpool_minmax_ukernel__sse41);
F32_MAXPOOL(xnnpack_sys_f32_maxpool_minmax_ukernel__avx);
F32_MAXPOOL(xnnpack_sys_f32_maxpool_minmax_ukernel__avx512f);

// Means of windows of up to 9 elements.
#define F32_AVGPOOL(name) \
  void name( \
      size_t output_pixels, size_t kernel_elements, size_t channels, const float** input, size_t input_offset, \
      const float* zero, float* output, size_t input_increment, size_t output_increment, \
      const struct xnn_f32_scaleminmax_params* params)

// Means with a factor for each window, because padding does not count.
#define F32_PAVGPOOL(name) \
  void name( \
      size_t output_pixels, size_t kernel_elements, size_t channels, const float** input, size_t input_offset, \
      const float* zero, const float* multiplier, float* output, size_t input_increment, size_t output_increment, \
      const union xnn_f32_minmax_params* params)

F32_AVGPOOL(xnnpack_sys_f32_avgpool_minmax_ukernel_9x__sse41);
F32_AVGPOOL(xnnpack_sys_f32_avgpool_minmax_ukernel_9x__avx);
F32_AVGPOOL(xnnpack_sys_f32_avgpool_minmax_ukernel_9x__avx512f);
F32_PAVGPOOL(xnnpack_sys_f32_pavgpool_minmax_ukernel_9x__sse41);
F32_PAVGPOOL(xnnpack_sys_f32_pavgpool_minmax_ukernel_9x__avx);
F32_PAVGPOOL(xnnpack_sys_f32_pavgpool_minmax_ukernel_9x__avx512f);

#endif
