// Operators on uint8 in TFLite's arithmetic. Operands of sums and differences get 20 more bits, are rescaled to twice the larger of
// their scales, added, and rescaled to the output's scale. Conversions round once, as CONCATENATION does. QUANTIZE rounds twice to
// less than half the scale; its results differ by one in places.

#include "ukernels/elementwise_qu8.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ukernels/fixed_point.h"
#include "ukernels/microkernel.h"

#define MORE_BITS 20
#define LANES 16

struct number {
  int32_t multiplier;
  int8_t exponent;
  uint8_t zero_point;
  bool taken_off;
};

struct numbers {
  struct number a;
  struct number b;
  struct number output;
};

struct conversion {
  struct number to;
  uint8_t from;
};

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
      .output = number(output, common / ((double) output->scale * (1 << MORE_BITS))),
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

struct operand {
  __m512i zero_point;
  struct scaling scaling;
  // All bits set if the operand is subtracted.
  __m512i sign;
};

static XNN_INLINE struct operand operand(const struct number* number) {
  return (struct operand) {
      .zero_point = _mm512_set1_epi32(number->zero_point),
      .scaling = scaling((struct fixed_point) {number->multiplier, number->exponent}),
      .sign = _mm512_set1_epi32(number->taken_off ? -1 : 0),
  };
}

static XNN_INLINE __m512i difference(__m128i bytes, __m512i zero_point) {
  return _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), zero_point);
}

static XNN_INLINE __m512i scaled(const struct operand* operand, __m128i bytes) {
  const __m512i more = _mm512_slli_epi32(difference(bytes, operand->zero_point), MORE_BITS);
  const __m512i scaled = scale_sums(&operand->scaling, more);
  return _mm512_sub_epi32(_mm512_xor_si512(scaled, operand->sign), operand->sign);
}

static XNN_INLINE __m128i rounded(const struct operand* output, __m512i sums) {
  const __m512i scaled = _mm512_add_epi32(scale_sums(&output->scaling, sums), output->zero_point);
  return _mm512_cvtusepi32_epi8(_mm512_max_epi32(scaled, _mm512_setzero_si512()));
}

// Returns the lanes of a vector at `i` that lie in the batch.
static XNN_INLINE __mmask16 lanes_from(size_t i, size_t batch) {
  return batch - i < LANES ? (1 << (batch - i)) - 1 : ALL_LANES;
}

static XNN_INLINE void add(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const struct numbers* numbers)
{
  const struct operand left = operand(&numbers->a);
  const struct operand right = operand(&numbers->b);
  const struct operand to = operand(&numbers->output);
  const __m512i one = b_is_one ? scaled(&right, _mm_set1_epi8((int8_t) *b)) : _mm512_setzero_si512();
  for (size_t i = 0; i < batch; i += LANES) {
    const __mmask16 lanes = lanes_from(i, batch);
    const __m512i other = b_is_one ? one : scaled(&right, _mm_maskz_loadu_epi8(lanes, b + i));
    const __m512i sums = _mm512_add_epi32(scaled(&left, _mm_maskz_loadu_epi8(lanes, a + i)), other);
    _mm_mask_storeu_epi8(output + i, lanes, rounded(&to, sums));
  }
}

void xnnpack_sys_qu8_vadd_ukernel__avx512vnni(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/false, output, &numbers);
}

void xnnpack_sys_qu8_vaddc_ukernel__avx512vnni(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/true, output, &numbers);
}

void xnnpack_sys_qu8_vcvt_ukernel__avx512vnni(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)
{
  struct conversion conversion;
  memcpy(&conversion, params, sizeof(conversion));
  const __m512i from = _mm512_set1_epi32(conversion.from);
  struct operand to = operand(&conversion.to);
  to.scaling = scaling_once((struct fixed_point) {conversion.to.multiplier, conversion.to.exponent});
  const uint8_t* bytes = input;
  uint8_t* converted = output;
  for (size_t i = 0; i < batch; i += LANES) {
    const __mmask16 lanes = lanes_from(i, batch);
    const __m512i differences = difference(_mm_maskz_loadu_epi8(lanes, bytes + i), from);
    _mm_mask_storeu_epi8(converted + i, lanes, rounded(&to, differences));
  }
}
