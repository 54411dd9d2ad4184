// Operators on uint8, see `elementwise_qu8.c`. Signatures are those of XNNPACK's configurations.

#ifndef XNNPACK_SYS_ELEMENTWISE_QU8_H
#define XNNPACK_SYS_ELEMENTWISE_QU8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/microparams.h"

// Bits that operands of sums get before they are rescaled.
#define QU8_ADD_MORE_BITS 20

// Parameters of the microkernels: a factor as a `fixed_point`, and the zero point.
struct number {
  int32_t multiplier;
  int8_t exponent;
  uint8_t zero_point;
  bool taken_off;
};

// Sums as a linear form of the bytes, with `shift` bits of fraction, in 32 bits. Its floor is the result or, where the fraction is less
// than `error`, may be greater by one. No bits of fraction are no linear form.
struct linear {
  // Factors of the two operands as words: upper parts, and QU8_LINEAR_LOWER_BITS lower ones.
  uint32_t upper;
  uint32_t lower;
  int32_t start;
  int16_t shift;
  int16_t error;
};

#define QU8_LINEAR_LOWER_BITS 9

struct numbers {
  struct number a;
  struct number b;
  struct number output;
  struct linear linear;
};

struct conversion {
  struct number to;
  uint8_t from;
};

// Initialize the parameters of the microkernels below. An operand with a negative scale is subtracted.
size_t xnnpack_sys_init_qu8_add_params(
    union xnn_binary_uparams* params, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output);

size_t xnnpack_sys_init_qu8_convert_params(
    union xnn_unary_uparams* params, const union xnn_unary_params* none, const struct xnn_quantization_params* from,
    const struct xnn_quantization_params* to);

#define QU8_ELEMENTWISE(isa) \
  /* Sums of two vectors, and of a vector and one element. */ \
  void xnnpack_sys_qu8_vadd_ukernel__##isa( \
      size_t batch, const void* a, const void* b, void* output, const void* params); \
  void xnnpack_sys_qu8_vaddc_ukernel__##isa( \
      size_t batch, const void* a, const void* b, void* output, const void* params); \
  /* Converts to another scale and zero point. */ \
  void xnnpack_sys_qu8_vcvt_ukernel__##isa( \
      size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)

QU8_ELEMENTWISE(sse41);
QU8_ELEMENTWISE(avx);
QU8_ELEMENTWISE(avx2);
QU8_ELEMENTWISE(avx512skx);

#endif
