// Microkernels for bilinear interpolation of 8-bit integers, see `resize_q8_x86.h`. Signatures are those of XNNPACK's configurations,
// and results those of its microkernels.

#ifndef XNNPACK_SYS_RESIZE_Q8_H
#define XNNPACK_SYS_RESIZE_Q8_H

#include <stddef.h>
#include <stdint.h>

#define Q8_IBILINEAR(name) \
  void name( \
      size_t pixels, size_t channels, const void** input, size_t input_offset, const int16_t* weights, void* output, \
      size_t output_increment)

Q8_IBILINEAR(xnnpack_sys_s8_ibilinear_ukernel__avx2);
Q8_IBILINEAR(xnnpack_sys_u8_ibilinear_ukernel__avx2);
Q8_IBILINEAR(xnnpack_sys_s8_ibilinear_ukernel__avx512skx);
Q8_IBILINEAR(xnnpack_sys_u8_ibilinear_ukernel__avx512skx);

#endif
