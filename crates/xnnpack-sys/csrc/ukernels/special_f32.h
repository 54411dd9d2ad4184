// Microkernels of floats, see `special_f32.c`. Signatures are those of XNNPACK's configurations; `batch` is the bytes of `input`.

#ifndef XNNPACK_SYS_SPECIAL_F32_H
#define XNNPACK_SYS_SPECIAL_F32_H

#include <stddef.h>

void xnnpack_sys_f32_vlog_ukernel__scalar(size_t batch, const void* input, void* output, const void* params);

// `one`, a single element, is the first operand.
void xnnpack_sys_f32_vrmaxc_ukernel__scalar(
    size_t batch, const void* input, const void* one, void* output, const void* params);
void xnnpack_sys_f32_vrminc_ukernel__scalar(
    size_t batch, const void* input, const void* one, void* output, const void* params);

// x86-64.
void xnnpack_sys_f32_vsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_vrsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params);

// The smallest and the largest element of a row; both are NaN if an element is. x86-64.
void xnnpack_sys_f32_rminmax_ukernel__sse(size_t batch, const void* input, void* output, const void* params);

#endif
