// Microkernels of floats, see `special_f32.c`. Signatures are those of XNNPACK's configurations; `batch` is the bytes of `input`.

#ifndef XNNPACK_SYS_SPECIAL_F32_H
#define XNNPACK_SYS_SPECIAL_F32_H

#include <stddef.h>

void xnnpack_sys_f32_vlog_ukernel__scalar(size_t batch, const void* input, void* output, const void* params);

// Maximum and minimum. With `c`, `b` is a single element; with `r`, that element is the first operand.
#define XNNPACK_SYS_SELECTION(name) \
  void xnnpack_sys_f32_##name##_ukernel__vector( \
      size_t batch, const void* a, const void* b, void* output, const void* params)

XNNPACK_SYS_SELECTION(vrmaxc);
XNNPACK_SYS_SELECTION(vrminc);
// Not on x86-64.
XNNPACK_SYS_SELECTION(vmax);
XNNPACK_SYS_SELECTION(vmaxc);
XNNPACK_SYS_SELECTION(vmin);
XNNPACK_SYS_SELECTION(vminc);

// x86-64.
void xnnpack_sys_f32_vsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_f32_vrsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params);

// The smallest and the largest element of a row; both are NaN if an element is. x86-64.
void xnnpack_sys_f32_rminmax_ukernel__sse(size_t batch, const void* input, void* output, const void* params);

#endif
