// Functions of floats, and of rows of them, see `unary_f32.c`, `unary_f32_x86.h`, `exp_f32_x86.h` and `quantize_x86.h`.
// Signatures are those of XNNPACK's configurations; `batch` is the bytes of `input`.

#ifndef XNNPACK_SYS_UNARY_F32_H
#define XNNPACK_SYS_UNARY_F32_H

#include <stddef.h>

#define F32_UNARY(name) void name(size_t batch, const void* input, void* output, const void* params)

F32_UNARY(xnnpack_sys_f32_vexp_ukernel__sse41);
F32_UNARY(xnnpack_sys_f32_vrsqrt_ukernel__sse41);

F32_UNARY(xnnpack_sys_f32_vexp_ukernel__avx);
F32_UNARY(xnnpack_sys_f32_vlog_ukernel__avx);
F32_UNARY(xnnpack_sys_f32_vrsqrt_ukernel__avx);
F32_UNARY(xnnpack_sys_f32_vsqrt_ukernel__avx);

F32_UNARY(xnnpack_sys_f32_vexp_ukernel__avx2);
F32_UNARY(xnnpack_sys_f32_vlog_ukernel__avx2);
F32_UNARY(xnnpack_sys_f32_vrsqrt_ukernel__avx2);

F32_UNARY(xnnpack_sys_f32_vexp_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_vlog_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_vrsqrt_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_s32_vcvt_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_rminmax_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_rminmax_ukernel__avx2);
F32_UNARY(xnnpack_sys_f32_rminmax_ukernel__sse41);
F32_UNARY(xnnpack_sys_f32_vsigmoid_ukernel__avx512f);
F32_UNARY(xnnpack_sys_f32_vsqrt_ukernel__avx512f);

#endif
