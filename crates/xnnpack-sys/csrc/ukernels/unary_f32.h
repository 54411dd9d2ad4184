// Functions of floats, and of rows of them, see `unary_f32.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_UNARY_F32_H
#define XNNPACK_SYS_UNARY_F32_H

#include <stddef.h>

// AVX512F. `batch` is the bytes of `input`.
void xnnpack_sys_f32_exp(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_to_s32(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_range(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_rsqrt(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_sigmoid(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_sqrt(size_t batch, const void* input, void* output, const void* params);

#endif
