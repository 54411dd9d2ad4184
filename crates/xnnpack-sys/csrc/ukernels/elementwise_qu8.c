// Operators on uint8 in TFLite's arithmetic. Operands of sums and differences get 20 more bits, are rescaled to twice the larger of
// their scales, added, and rescaled to the output's scale. Conversions round once, as CONCATENATION does. QUANTIZE rounds twice to
// less than half the scale; its results differ by one in places. This file initializes parameters; the microkernels are in
// `elementwise_qu8_x86.h`.

#include "ukernels/elementwise_qu8.h"

#include <math.h>
#include <string.h>

#include "ukernels/fixed_point.h"

// The bits of fraction that tell results close to a tie from others.
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

static struct linear linear_form(int32_t by_a, int32_t by_b, int64_t start, int shift, int error) {
  const int32_t lower = (1 << QU8_LINEAR_LOWER_BITS) - 1;
  return (struct linear) {
      .upper = words(by_a >> QU8_LINEAR_LOWER_BITS, by_b >> QU8_LINEAR_LOWER_BITS),
      .lower = words(by_a & lower, by_b & lower),
      .start = (int32_t) start,
      .shift = (int16_t) shift,
      .error = (int16_t) error,
  };
}

// Whether a linear form leaves so many results in doubt that exact rounding is faster. Simple ratios of scales make many ties.
// Results of 256 pairs of bytes are representative.
static bool is_often_in_doubt(const struct linear* linear, int32_t by_a, int32_t by_b) {
  int in_doubt = 0;
  for (int32_t i = 0; i <= UINT8_MAX; i++) {
    const int32_t sum = linear->start + i * by_a + (uint8_t) (37 * i >> 2) * by_b;
    in_doubt += (sum & ((1 << linear->shift) - 1)) < linear->error;
  }
  return in_doubt > 2;
}

// Rescales as microkernels do, by less than one.
static int64_t rescaled(int64_t sum, const struct number* number) {
  const int64_t product = (sum * number->multiplier + (1 << 30)) >> 31;
  const int right = -number->exponent;
  return (product + (INT64_C(1) << (right - 1)) - (sum < 0)) >> right;
}

// Finds a linear form without error for operands of one scale, which have few different sums. Each of them bounds where the form may
// start. Ties of both signs need a factor that is rounded up.
static bool find_exact(const struct numbers* numbers, int32_t factor, int shift, struct linear* exact) {
  const int32_t sign = numbers->a.taken_off != numbers->b.taken_off ? -1 : 1;
  const int32_t zero = numbers->a.zero_point + sign * numbers->b.zero_point;
  const int32_t least = sign < 0 ? -UINT8_MAX : 0;
  const int32_t sign_of_a = numbers->a.taken_off ? -1 : 1;
  for (int32_t by = factor; by <= factor + 1; by++) {
    int64_t low = INT32_MIN;
    int64_t high = INT32_MAX;
    for (int32_t sum = least; sum <= least + 2 * UINT8_MAX; sum++) {
      const int64_t more = (int64_t) sign_of_a * (sum - zero) * (1 << (QU8_ADD_MORE_BITS - 1));
      const int64_t begin =
          (rescaled(more, &numbers->output) + numbers->output.zero_point) * (1 << shift) - (int64_t) sign_of_a * sum * by;
      low = begin > low ? begin : low;
      high = begin + (1 << shift) - 1 < high ? begin + (1 << shift) - 1 : high;
    }
    if (low <= high) {
      *exact = linear_form(sign_of_a * by, sign_of_a * sign * by, low + (high - low) / 2, shift, 0);
      return true;
    }
  }
  return false;
}

// Results are rounded three times on the way. A linear form of 32 bits differs from the exact one by
// - 255 times the parts by which its two factors are rounded,
// - one unit of the rescaled operands' last place for each of them, and one for the output's rounding.
static struct linear linear(const struct numbers* numbers) {
  const double unit = value(&numbers->output);
  const double more = ldexp(unit, QU8_ADD_MORE_BITS);
  const double a = value(&numbers->a) * more;
  const double b = value(&numbers->b) * more;
  int bits;
  // Every sum of products with bytes, the zero point and the error has less than 31 bits.
  frexp(255 * (fabs(a) + fabs(b)) + 258, &bits);
  const int shift = 31 - bits;
  if (shift < QU8_LINEAR_LEAST_SHIFT || numbers->output.exponent >= 0) {
    return (struct linear) {0};
  }
  const double exact_a = ldexp(a, shift);
  const double exact_b = ldexp(b, shift);
  struct linear linear;
  if (fabs(a) == fabs(b) && find_exact(numbers, (int32_t) floor(fabs(exact_a)), shift, &linear)) {
    return linear;
  }
  const int32_t by_a = (int32_t) lround(exact_a);
  const int32_t by_b = (int32_t) lround(exact_b);
  const int error = (int) ceil(255 * (fabs(exact_a - by_a) + fabs(exact_b - by_b)) + 3 * ldexp(unit, shift)) + 1;
  const int32_t start = (numbers->output.zero_point << shift) + (1 << (shift - 1)) + error -
      numbers->a.zero_point * by_a - numbers->b.zero_point * by_b;
  linear = linear_form(by_a, by_b, start, shift, 2 * error);
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
