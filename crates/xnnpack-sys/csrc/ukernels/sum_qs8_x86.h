// Sums of int8: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels for SSSE3 and AVX2 add two elements in each of 256 steps to a sum of 16 bits, which has room for those of 128
// steps. Here an instruction adds eight bytes to a sum of 64 bits, once 128 is added to each, which is subtracted at the end.

#include "ukernels/sum_qs8.h"

#include <stdint.h>

#include "ukernels/blocks_x86.h"
#include "ukernels/with_isa.h"

// Adds the bytes of a vector to sums.
static XNN_INLINE vint add_bytes(vint sums, vint bytes) {
  return VINT(add_epi64, sums, VINT(sad_epu8, flip_sign(true, bytes), vint_zero()));
}

void WITH_ISA(xnnpack_sys_qs8_rsum_ukernel__)(size_t batch, const void* input, void* output, const void* params) {
  enum { VECTORS = 4 };
  const int8_t* from = input;
  vint sums = vint_zero();
  size_t at = 0;
  for (; batch - at >= VECTORS * sizeof(vint); at += VECTORS * sizeof(vint)) {
    _Pragma("GCC unroll 4") for (size_t i = 0; i < VECTORS; i++) {
      sums = add_bytes(sums, vint_load(from + at + i * sizeof(vint)));
    }
  }
  for (; at < batch; at += sizeof(vint)) {
    sums = add_bytes(sums, load_block(from + at, batch - at));
  }
  int64_t parts[sizeof(vint) / sizeof(int64_t)];
  vint_store(parts, sums);
  // Bytes behind the last of a vector are zeros.
  int64_t sum = -(int64_t) (BLOCK_SIGN * at);
  for (size_t i = 0; i < sizeof(vint) / sizeof(int64_t); i++) {
    sum += parts[i];
  }
  *(int32_t*) output += (int32_t) sum;
}
