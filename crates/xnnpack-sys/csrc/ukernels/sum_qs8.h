// Sums of int8, see `sum_qs8.c`. The signature is that of XNNPACK's configurations.

#ifndef XNNPACK_SYS_SUM_QS8_H
#define XNNPACK_SYS_SUM_QS8_H

#include <stddef.h>

// Adds the sum of `batch` elements to `output`, in 32 bits.
void xnnpack_sys_qs8_rsum_ukernel__scalar(size_t batch, const void* input, void* output, const void* params);

#endif
