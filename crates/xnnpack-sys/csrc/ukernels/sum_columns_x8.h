// Sums of the columns of 8-bit integers, see `sum_columns_x8_x86.h`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_SUM_COLUMNS_X8_H
#define XNNPACK_SYS_SUM_COLUMNS_X8_H

#include <stddef.h>

// Add the sum of each of `channels` columns of `rows` to its element of `output`, in 32 bits. `zero` has a zero for each channel.
#define X8_RDSUM(name) \
  void name( \
      size_t rows, size_t channels, const void* input, size_t input_stride, const void* zero, void* output, \
      const void* params)

X8_RDSUM(xnnpack_sys_qs8_rdsum_ukernel__sse41);
X8_RDSUM(xnnpack_sys_qs8_rdsum_ukernel__avx2);
X8_RDSUM(xnnpack_sys_qs8_rdsum_ukernel__avx512skx);
X8_RDSUM(xnnpack_sys_qu8_rdsum_ukernel__sse41);
X8_RDSUM(xnnpack_sys_qu8_rdsum_ukernel__avx2);
X8_RDSUM(xnnpack_sys_qu8_rdsum_ukernel__avx512skx);

#endif
