// Operators on uint8 in TFLite's arithmetic. Operands of sums and differences get 20 more bits, are rescaled to twice the larger of
// their scales, added, and rescaled to the output's scale. Conversions round once, as CONCATENATION does. QUANTIZE rounds twice to
// less than half the scale; its results differ by one in places. This file initializes parameters; the microkernels are in
// `elementwise_qu8_x86.h`.

#include "ukernels/elementwise_qu8.h"

#include <math.h>
#include <string.h>

#include "ukernels/fixed_point.h"

// The bits of fraction that tell results within QU8_LINEAR_ERROR of a tie from others.
enum { QU8_LINEAR_LEAST_SHIFT = 11 };

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

static double value(const struct number* number) {
  return ldexp(number->taken_off ? -number->multiplier : number->multiplier, number->exponent - 31);
}

// The words of two factors without the bits that are shifted out.
static uint32_t words(int32_t a, int32_t b) { return (uint16_t) a | (uint32_t) (uint16_t) b << 16; }

// Whether a linear form leaves so many results in doubt that exact rounding is faster. Simple ratios of scales make many ties.
// Results of 256 pairs of bytes are representative.
static bool is_often_in_doubt(const struct linear* linear, int32_t by_a, int32_t by_b) {
  int in_doubt = 0;
  for (int32_t i = 0; i <= UINT8_MAX; i++) {
    const int32_t sum = linear->start + i * by_a + (uint8_t) (37 * i >> 2) * by_b;
    in_doubt += (sum & ((1 << linear->shift) - 1)) < QU8_LINEAR_ERROR;
  }
  return in_doubt > 2;
}

// Results are rounded three times on the way. A linear form of 32 bits differs from the exact one by
// - 255 times the half unit by which each of its two factors is rounded,
// - one unit of the rescaled operands' last place for each of them, and another two for the output's rounding. Such a unit is
//   2^-19 of the larger factor, which has less than 23 bits: 64 units in all.
// That is less than half of QU8_LINEAR_ERROR.
static struct linear linear(const struct numbers* numbers) {
  const double more = ldexp(value(&numbers->output), QU8_ADD_MORE_BITS);
  const double a = value(&numbers->a) * more;
  const double b = value(&numbers->b) * more;
  int bits;
  // Every sum of products with bytes, the zero point and the error has less than 31 bits.
  frexp(255 * (fabs(a) + fabs(b)) + 258, &bits);
  const int shift = 31 - bits;
  if (shift < QU8_LINEAR_LEAST_SHIFT) {
    return (struct linear) {0};
  }
  const int32_t by_a = (int32_t) lround(ldexp(a, shift));
  const int32_t by_b = (int32_t) lround(ldexp(b, shift));
  const int32_t lower = (1 << QU8_LINEAR_LOWER_BITS) - 1;
  const struct linear linear = {
      .upper = words(by_a >> QU8_LINEAR_LOWER_BITS, by_b >> QU8_LINEAR_LOWER_BITS),
      .lower = words(by_a & lower, by_b & lower),
      .start = (numbers->output.zero_point << shift) + (1 << (shift - 1)) + QU8_LINEAR_ERROR / 2 -
               numbers->a.zero_point * by_a - numbers->b.zero_point * by_b,
      .shift = shift,
  };
  return is_often_in_doubt(&linear, by_a, by_b) ? (struct linear) {0} : linear;
}

size_t xnnpack_sys_init_qu8_add_params(
    union xnn_binary_uparams* params, const struct xnn_quantization_params* a,
    const struct xnn_quantization_params* b, const struct xnn_quantization_params* output)
{
  const double common = 2 * fmax(fabs((double) a->scale), fabs((double) b->scale));
  struct numbers numbers = {
      .a = number(a, a->scale / common),
      .b = number(b, b->scale / common),
      .output = number(output, common / ((double) output->scale * (1 << QU8_ADD_MORE_BITS))),
  };
  numbers.linear = linear(&numbers);
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
