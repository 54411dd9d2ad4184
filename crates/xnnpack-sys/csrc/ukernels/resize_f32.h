// Microkernels for bilinear interpolation, see `resize_f32_x86.h`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_RESIZE_F32_H
#define XNNPACK_SYS_RESIZE_F32_H

#include <stddef.h>

#define F32_IBILINEAR(name) \
  void name( \
      size_t pixels, size_t channels, const float** input, size_t input_offset, const float* weights, float* output, \
      size_t output_increment)

F32_IBILINEAR(xnnpack_sys_f32_ibilinear_ukernel__sse41);
F32_IBILINEAR(xnnpack_sys_f32_ibilinear_ukernel__avx);
F32_IBILINEAR(xnnpack_sys_f32_ibilinear_ukernel__avx512f);

#endif
