// Quantization at run time, see `quantize_qd8.c`.

#ifndef XNNPACK_SYS_QUANTIZE_QD8_H
#define XNNPACK_SYS_QUANTIZE_QD8_H

#include <stddef.h>
#include <stdint.h>

// What is added to be rounded to the nearest integer, halves away from 0: no sum rounds up to the next one.
#define JUST_BELOW_HALF 0x1.FFFFFEp-2f

// Multiplies with `scale`, rounds halves away from 0, and adds the zero point; what is no number becomes the lowest.
typedef void (*xnnpack_sys_f32_to_qd8_fn)(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

void xnnpack_sys_portable_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

// AVX512F.
void xnnpack_sys_avx512_f32_to_qd8(
    size_t count, const float* input, int8_t* output, float scale, int32_t zero_point);

// That for this processor.
xnnpack_sys_f32_to_qd8_fn xnnpack_sys_f32_to_qd8_function(void);

#endif
