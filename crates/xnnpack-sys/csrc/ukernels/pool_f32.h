// Pooling of windows of few floats, see `pool_f32.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_POOL_F32_H
#define XNNPACK_SYS_POOL_F32_H

#include <stdbool.h>
#include <stddef.h>

#include "xnnpack/microparams.h"

// AVX512F. Does nothing and returns false for windows of other sizes than 2, 3, 4 and 9.
bool xnnpack_sys_f32_maxpool_of_few(
    size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset,
    float* output, size_t input_increment, size_t output_increment, const union xnn_f32_minmax_params* params);

// AVX512F. Windows of up to 9 elements.
void xnnpack_sys_f32_avgpool_minmax_ukernel_9x__avx512f(
    size_t output_pixels, size_t kernel_elements, size_t channels, const float** input, size_t input_offset,
    const float* zero, float* output, size_t input_increment, size_t output_increment,
    const struct xnn_f32_scaleminmax_params* params);

#endif
