// Means over rows of floats, see `mean_f32.c`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_MEAN_F32_H
#define XNNPACK_SYS_MEAN_F32_H

#include <stddef.h>

// Adds the means of `rows` to `output`, or their sums, depending on the factor in the parameters.
void xnnpack_sys_f32_rdsum_ukernel__scalar(
    size_t rows, size_t channels, const void* input, size_t input_stride, const void* zero, void* output,
    const void* params);

#endif
