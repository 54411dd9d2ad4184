// Transpositions of bytes, see `transpose_x8_x86.h`. The signature is that of XNNPACK's configurations: `height` rows of `width` bytes
// are read, and `width` rows of `height` bytes written.

#ifndef XNNPACK_SYS_TRANSPOSE_X8_H
#define XNNPACK_SYS_TRANSPOSE_X8_H

#include <stddef.h>
#include <stdint.h>

#define X8_TRANSPOSE(name) \
  void name( \
      const uint8_t* input, uint8_t* output, size_t input_stride, size_t output_stride, size_t width, size_t height)

X8_TRANSPOSE(xnnpack_sys_x8_transposec_ukernel__avx2);
X8_TRANSPOSE(xnnpack_sys_x8_transposec_ukernel__avx512skx);

#endif
