// Sums of int8, and products of 8-bit integers, see `arithmetic_q8_x86.h`. Signatures are those of XNNPACK's configurations; `vaddc`
// and `vmulc` have one element as the second operand. Results are the same as those of XNNPACK's microkernels.

#ifndef XNNPACK_SYS_ARITHMETIC_Q8_H
#define XNNPACK_SYS_ARITHMETIC_Q8_H

#include <stddef.h>

#define Q8_BINARY(name, isa) \
  void xnnpack_sys_##name##_ukernel__##isa( \
      size_t batch, const void* a, const void* b, void* output, const void* params)

#define QS8_SUMS(isa) \
  Q8_BINARY(qs8_vadd, isa); \
  Q8_BINARY(qs8_vaddc, isa)

#define Q8_PRODUCTS(isa) \
  Q8_BINARY(qs8_vmul, isa); \
  Q8_BINARY(qs8_vmulc, isa); \
  Q8_BINARY(qu8_vmul, isa); \
  Q8_BINARY(qu8_vmulc, isa)

QS8_SUMS(sse41);
QS8_SUMS(avx);
QS8_SUMS(avx2);
QS8_SUMS(avx512skx);
Q8_PRODUCTS(avx2);
Q8_PRODUCTS(avx512skx);

#endif
