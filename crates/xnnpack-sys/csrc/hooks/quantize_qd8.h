// Quantization at run time, see `quantize_qd8.c`.

#ifndef XNNPACK_SYS_QUANTIZE_QD8_H
#define XNNPACK_SYS_QUANTIZE_QD8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"

// Multiplies by `scale`, rounds ties away from 0, and adds the zero point and `offset`. NaN becomes the lowest integer. Rounding adds
// a half in single precision, so that the largest float below 0.5 becomes 1.
typedef void (*xnnpack_sys_f32_to_qd8_fn)(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

void xnnpack_sys_f32_to_qd8__sse41(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);
void xnnpack_sys_f32_to_qd8__avx2(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

// AVX512F.
void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

// NEON.
void xnnpack_sys_neon_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

// Returns the function for this processor.
xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void);

// Whether convolutions get the microkernels for images without a sign (`conv_qd8.c`) on this processor.
bool xnnpack_sys_has_unsigned_image_microkernels(void);

// Sets `XNNPACK_SYS_UNSIGNED_IMAGES` for nodes that quantize and read images, if only convolutions read them.
void xnnpack_sys_mark_unsigned_images(xnn_subgraph_t subgraph);

// `xnn_reshape_convert_nc_f32_qd8` for images.
enum xnn_status xnnpack_sys_reshape_quantized_images(
    xnn_operator_t op, size_t batch_size, size_t channels, size_t input_stride, size_t output_stride,
    pthreadpool_t threadpool);

#endif
