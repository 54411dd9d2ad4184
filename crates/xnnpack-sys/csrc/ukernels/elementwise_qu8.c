// Operators on uint8 in TFLite's arithmetic. Operands of sums and differences get 20 more bits, are rescaled to twice the larger of
// their scales, added, and rescaled to the output's scale. Conversions round once, as CONCATENATION does. QUANTIZE rounds twice to
// less than half the scale; its results differ by one in places. This file initializes parameters; the microkernels are in
// `elementwise_qu8_x86.h`.

#include "ukernels/elementwise_qu8.h"

#include <math.h>
#include <string.h>

#include "ukernels/fixed_point.h"

_Static_assert(sizeof(struct numbers) <= sizeof(union xnn_binary_uparams), "parameters have room");
_Static_assert(sizeof(struct conversion) <= sizeof(union xnn_unary_uparams), "parameters have room");

static struct number number(const struct xnn_quantization_params* quantization, double scale) {
  const struct fixed_point by = fixed_point(fabs(scale));
  return (struct number) {
      .multiplier = by.multiplier,
      .exponent = (int8_t) by.exponent,
      .zero_point = (uint8_t) quantization->zero_point,
      .taken_off = scale < 0,
  };
}

size_t xnnpack_sys_init_qu8_add_params(
    union xnn_binary_uparams* params, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output)
{
  const double common = 2 * fmax(fabs((double) a->scale), fabs((double) b->scale));
  const struct numbers numbers = {
      .a = number(a, a->scale / common),
      .b = number(b, b->scale / common),
      .output = number(output, common / ((double) output->scale * (1 << QU8_ADD_MORE_BITS))),
  };
  memcpy(params, &numbers, sizeof(numbers));
  return sizeof(numbers);
}

size_t xnnpack_sys_init_qu8_convert_params(
    union xnn_unary_uparams* params, const union xnn_unary_params* none, const struct xnn_quantization_params* from,
    const struct xnn_quantization_params* to)
{
  const struct conversion conversion = {
      .to = number(to, (double) from->scale / (double) to->scale),
      .from = (uint8_t) from->zero_point,
  };
  memcpy(params, &conversion, sizeof(conversion));
  return sizeof(conversion);
}
