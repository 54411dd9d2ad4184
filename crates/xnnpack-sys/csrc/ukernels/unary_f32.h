// Functions of floats, and of rows of them, see `unary_f32.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_UNARY_F32_H
#define XNNPACK_SYS_UNARY_F32_H

#include <stddef.h>

// AVX512F. `batch` is the bytes of `input`.
void xnnpack_sys_f32_vexp_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_s32_vcvt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_rminmax_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_vrsqrt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_vsigmoid_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_vsqrt_ukernel__avx512f(size_t batch, const void* input, void* output, const void* params);

#endif
