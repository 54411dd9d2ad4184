// Quantization at run time, see `quantize_qd8.c`. Put before XNNPACK's `src/subgraph/unary.c`, where it knows what is
// quantized.

#ifndef XNNPACK_SYS_QUANTIZE_QD8_H
#define XNNPACK_SYS_QUANTIZE_QD8_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"

// Multiplies with `scale`, adds a half and cuts off what is behind the point, away from 0 both, and adds the zero point;
// what is no number becomes the lowest. A half is also added to the largest number below one, which gives 1.
typedef void (*xnnpack_sys_f32_to_qd8_fn)(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

// AVX512F.
void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

// That for this processor.
xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void);

// `xnn_reshape_convert_nc_f32_qd8` for images: rows are quantized as XNNPACK does.
enum xnn_status xnnpack_sys_reshape_quantized_images(
    xnn_operator_t op, size_t batch_size, size_t channels, size_t input_stride, size_t output_stride,
    pthreadpool_t threadpool);

#ifdef XNNPACK_SYS_QUANTIZES
#define xnn_reshape_convert_nc_f32_qd8(...) \
  (num_nonbatch_dims == 3 ? xnnpack_sys_reshape_quantized_images(__VA_ARGS__) \
                          : xnn_reshape_convert_nc_f32_qd8(__VA_ARGS__))
#endif

#endif
