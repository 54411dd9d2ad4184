// Softmax of short rows of floats, see `softmax_f32_x86.h`.

#ifndef XNNPACK_SYS_SOFTMAX_F32_H
#define XNNPACK_SYS_SOFTMAX_F32_H

#include <stddef.h>

// The longest row for vectors of some bytes: half of the registers of AVX and AVX512.
#define SOFTMAX_F32_FLOATS(vector_bytes) ((vector_bytes) == 64 ? 256 : 64)

// Computes rows of `count` floats, which are strides of bytes apart.
#define F32_SOFTMAX_ROWS(name) \
  void name(size_t rows, size_t count, const float* input, size_t input_stride, float* output, size_t output_stride)

F32_SOFTMAX_ROWS(xnnpack_sys_f32_softmax_rows__avx);
F32_SOFTMAX_ROWS(xnnpack_sys_f32_softmax_rows__avx2);
F32_SOFTMAX_ROWS(xnnpack_sys_f32_softmax_rows__avx512f);

typedef F32_SOFTMAX_ROWS((*xnnpack_sys_f32_softmax_rows_fn));

// Returns the function for rows of `count` floats on this processor, or NULL.
xnnpack_sys_f32_softmax_rows_fn xnnpack_sys_f32_softmax_rows_function(size_t count);

#endif
