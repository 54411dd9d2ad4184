// Sums of int8. XNNPACK's microkernels for SSSE3 and AVX2 add two elements in each of 256 steps to a sum of 16 bits, which has room for
// those of 128 steps: 4,096 elements with SSSE3, 8,192 with AVX2. Here they get no more at once.

#include "ukernels/sum_qs8.h"

#include <stdint.h>

#include "xnnpack/config.h"
#include "xnnpack/math.h"

#define ELEMENTS 4096

void xnnpack_sys_qs8_rsum_ukernel__scalar(size_t batch, const void* input, void* output, const void* params) {
  const xnn_reduce_ukernel_fn sum = xnn_init_qs8_rsum_config()->ukernel;
  const int8_t* from = input;
  while (batch != 0) {
    const size_t some = min(batch, ELEMENTS);
    sum(some, from, output, params);
    from += some;
    batch -= some;
  }
}
