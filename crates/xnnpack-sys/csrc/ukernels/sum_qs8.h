// Sums of int8, see `sum_qs8_x86.h`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_SUM_QS8_H
#define XNNPACK_SYS_SUM_QS8_H

#include <stddef.h>

// Add the sum of `batch` elements to `output`, in 32 bits.
void xnnpack_sys_qs8_rsum_ukernel__sse41(size_t batch, const void* input, void* output, const void* params);
void xnnpack_sys_qs8_rsum_ukernel__avx2(size_t batch, const void* input, void* output, const void* params);

#endif
