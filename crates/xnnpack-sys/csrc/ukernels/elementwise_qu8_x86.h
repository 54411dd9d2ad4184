// Microkernels of `elementwise_qu8.c`: included by a file for each instruction set, which defines `ISA`.

#include <stdbool.h>
#include <string.h>

#include "ukernels/elementwise_qu8.h"
#include "ukernels/fixed_point.h"
#include "ukernels/microkernel.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WITH_ISA(name) JOIN(name, ISA)

struct operand {
  vint zero_point;
  struct scaling scaling;
  // All bits set if the operand is subtracted.
  vint sign;
};

static XNN_INLINE struct operand operand(const struct number* number) {
  return (struct operand) {
      .zero_point = VINT(set1_epi32, number->zero_point),
      .scaling = scaling((struct fixed_point) {number->multiplier, number->exponent}),
      .sign = VINT(set1_epi32, number->taken_off ? -1 : 0),
  };
}

static XNN_INLINE vint difference(__m128i bytes, vint zero_point) {
  return VINT(sub_epi32, VINT(cvtepu8_epi32, bytes), zero_point);
}

static XNN_INLINE vint scaled(const struct operand* operand, __m128i bytes) {
  const vint more = VINT(slli_epi32, difference(bytes, operand->zero_point), QU8_ADD_MORE_BITS);
  const vint scaled = scale_sums(&operand->scaling, more);
  return VINT(sub_epi32, VINT_BITS(xor, scaled, operand->sign), operand->sign);
}

// Loads a byte for each lane, of which the first `count` exist.
static XNN_INLINE __m128i load_bytes(const uint8_t* from, size_t count) {
#ifdef __AVX512BW__
  return _mm_maskz_loadu_epi8(count < VECTOR_LANES ? (1 << count) - 1 : ALL_LANES, from);
#else
  uint64_t bytes = 0;
  if XNN_LIKELY(count >= VECTOR_LANES) {
    memcpy(&bytes, from, VECTOR_LANES);
  } else {
    memcpy(&bytes, from, count);
  }
  return _mm_cvtsi64_si128((int64_t) bytes);
#endif
}

// Stores the first `count` sums as bytes.
static XNN_INLINE void store_bytes(const struct operand* output, vint sums, uint8_t* to, size_t count) {
  const vint scaled = VINT(add_epi32, scale_sums(&output->scaling, sums), output->zero_point);
#ifdef __AVX512BW__
  const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(scaled, vint_zero()));
  _mm_mask_storeu_epi8(to, count < VECTOR_LANES ? (1 << count) - 1 : ALL_LANES, bytes);
#else
#ifdef __AVX2__
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(scaled), _mm256_extracti128_si256(scaled, 1));
#else
  const __m128i words = _mm_packs_epi32(scaled, scaled);
#endif
  const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
  if XNN_LIKELY(count >= VECTOR_LANES) {
    memcpy(to, &bytes, VECTOR_LANES);
  } else {
    memcpy(to, &bytes, count);
  }
#endif
}

static XNN_INLINE void add(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const struct numbers* numbers)
{
  const struct operand left = operand(&numbers->a);
  const struct operand right = operand(&numbers->b);
  const struct operand to = operand(&numbers->output);
  const vint one = b_is_one ? scaled(&right, _mm_set1_epi8((int8_t) *b)) : vint_zero();
  for (size_t i = 0; i < batch; i += VECTOR_LANES) {
    const size_t count = batch - i;
    const vint other = b_is_one ? one : scaled(&right, load_bytes(b + i, count));
    store_bytes(&to, VINT(add_epi32, scaled(&left, load_bytes(a + i, count)), other), output + i, count);
  }
}

void WITH_ISA(xnnpack_sys_qu8_vadd_ukernel__)(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/false, output, &numbers);
}

void WITH_ISA(xnnpack_sys_qu8_vaddc_ukernel__)(
    size_t batch, const void* a, const void* b, void* output, const void* params)
{
  struct numbers numbers;
  memcpy(&numbers, params, sizeof(numbers));
  add(batch, a, b, /*b_is_one=*/true, output, &numbers);
}

void WITH_ISA(xnnpack_sys_qu8_vcvt_ukernel__)(
    size_t batch, const void* input, void* output, const union xnn_unary_uparams* params)
{
  struct conversion conversion;
  memcpy(&conversion, params, sizeof(conversion));
  const vint from = VINT(set1_epi32, conversion.from);
  struct operand to = operand(&conversion.to);
  to.scaling = scaling_once((struct fixed_point) {conversion.to.multiplier, conversion.to.exponent});
  const uint8_t* bytes = input;
  uint8_t* converted = output;
  for (size_t i = 0; i < batch; i += VECTOR_LANES) {
    const size_t count = batch - i;
    store_bytes(&to, difference(load_bytes(bytes + i, count), from), converted + i, count);
  }
}
