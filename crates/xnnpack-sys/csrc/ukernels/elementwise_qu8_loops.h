// Microkernels of `elementwise_qu8.c` for an instruction set: included behind the definitions of
// - ISA, and LANES, the elements that are computed at a time,
// - `lanes`: that many sums of 32 bits,
// - `struct operand`: a `struct number` for vectors, with its `scaling`, and `operand`, which makes one,
// - `differences(operand, from, count)`: LANES bytes less the zero point, of which the first `count` exist,
// - `scaled(operand, lanes)`: differences with QU8_ADD_MORE_BITS more, rescaled,
// - `sum(lanes, lanes)`,
// - `store(operand, lanes, to, count)`: rescales sums, and stores the first `count` as bytes.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ukernels/elementwise_qu8.h"
#include "ukernels/with_isa.h"

static void add_exactly(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  const struct operand left = operand(&numbers.a);
  const struct operand right = operand(&numbers.b);
  const struct operand to = operand(&numbers.output);
  uint8_t copies[LANES];
  memset(copies, *b, sizeof(copies));
  const lanes one = scaled(&right, differences(&right, copies, LANES));
  for (size_t i = 0; i < batch; i += LANES) {
    const size_t count = batch - i;
    const lanes first = scaled(&left, differences(&left, a + i, count));
    const lanes second = b_is_one ? one : scaled(&right, differences(&right, b + i, count));
    store(&to, sum(first, second), output + i, count);
  }
}

// Defines the microkernels for sums, which call a function with the signature of `add_exactly`.
#define QU8_SUMS(add) \
  void WITH_ISA(xnnpack_sys_qu8_vadd_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    add(batch, a, b, /*b_is_one=*/false, output, params); \
  } \
  void WITH_ISA(xnnpack_sys_qu8_vaddc_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    add(batch, a, b, /*b_is_one=*/true, output, params); \
  }

void WITH_ISA(xnnpack_sys_qu8_vcvt_ukernel__)(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)
{
  struct conversion conversion;
  memcpy(&conversion, params, sizeof(conversion));
  const struct number unscaled = {.zero_point = conversion.from};
  const struct operand from = operand(&unscaled);
  struct operand to = operand(&conversion.to);
  to.scaling = scaling_once((struct fixed_point) {conversion.to.multiplier, conversion.to.exponent});
  const uint8_t* bytes = input;
  uint8_t* converted = output;
  for (size_t i = 0; i < batch; i += LANES) {
    const size_t count = batch - i;
    store(&to, differences(&from, bytes + i, count), converted + i, count);
  }
}
