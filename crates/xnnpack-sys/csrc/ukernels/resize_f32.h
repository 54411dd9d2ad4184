// Microkernels for bilinear interpolation, see `resize_f32.c`.

#ifndef XNNPACK_SYS_RESIZE_F32_H
#define XNNPACK_SYS_RESIZE_F32_H

#include <stddef.h>

// AVX512F.
void xnnpack_sys_f32_ibilinear_ukernel__avx512f(
    size_t pixels, size_t channels, const float** input, size_t input_offset, const float* weights, float* output,
    size_t output_increment);

#endif
