// Pooling of windows of 8-bit integers, see `pool_q8_x86.h`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_POOL_Q8_H
#define XNNPACK_SYS_POOL_Q8_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack/microparams.h"

#define Q8_MAXPOOL(name, byte, params_type) \
  void name( \
      size_t output_pixels, size_t kernel_elements, size_t channels, const byte** input, size_t input_offset, \
      byte* output, size_t input_increment, size_t output_increment, const struct params_type* params)

#define S8_MAXPOOL(name) Q8_MAXPOOL(name, int8_t, xnn_s8_minmax_params)
#define U8_MAXPOOL(name) Q8_MAXPOOL(name, uint8_t, xnn_u8_minmax_params)

S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__sse41);
S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__avx2);
S8_MAXPOOL(xnnpack_sys_s8_maxpool_minmax_ukernel__avx512bw);
U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__sse41);
U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__avx2);
U8_MAXPOOL(xnnpack_sys_u8_maxpool_minmax_ukernel__avx512bw);

// Addresses that XNNPACK's functions take for a window: nine, and then eight each time, of which it may have fewer.
static inline size_t pool_addresses(size_t elements) { return elements <= 9 ? 9 : 9 + (elements - 9 + 7) / 8 * 8; }

#endif
