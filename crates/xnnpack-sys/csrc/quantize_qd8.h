// Quantization at run time, see `quantize_qd8.c`. Put before XNNPACK's `src/subgraph/unary.c`, where it knows what is
// quantized.

#ifndef XNNPACK_SYS_QUANTIZE_QD8_H
#define XNNPACK_SYS_QUANTIZE_QD8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"

// Multiplies with `scale`, adds a half and cuts off what is behind the point, away from 0 both, and adds the zero point,
// and an offset to all numbers; what is no number becomes the lowest. A half is also added to the largest number below one, which gives 1.
typedef void (*xnnpack_sys_f32_to_qd8_fn)(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

// AVX512F.
void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point, int32_t offset);

// That for this processor.
xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void);

// Among the flags of a node that quantizes images, and of those that read them: images have no sign. 128 is added to what
// they are quantized to, and to their zero points.
#define XNNPACK_SYS_UNSIGNED_IMAGES (UINT32_C(1) << 31)

// Whether there are microkernels for them, those of `conv_qd8.c`, and convolutions get them on this processor.
bool xnnpack_sys_has_unsigned_image_microkernels(void);

// Gives nodes that flag where all that reads an image are convolutions.
void xnnpack_sys_mark_unsigned_images(xnn_subgraph_t subgraph);

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
