// Maximum of a row of floats with its index, see `pool_rows_f32.c`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_POOL_ROWS_F32_H
#define XNNPACK_SYS_POOL_ROWS_F32_H

#include <stddef.h>
#include <stdint.h>

// AVX512F. Windows of more than 9 elements.
void xnnpack_sys_f32_argmaxpool_ukernel__avx512f(
    size_t output_pixels, size_t pooling_elements, size_t channels, const float** input, size_t input_offset,
    float* accumulation_buffer, uint32_t* index_buffer, float* output, uint32_t* index, size_t input_increment,
    size_t output_increment);

#endif
