// Sums of int8, and products of 8-bit integers: included by a file for each instruction set of x86-64, which defines `ISA`.
//
// XNNPACK widens bytes to 32 bits, and multiplies these for sums, which takes two instructions on many processors. Its products have
// vectors of 128 bits. Here bytes are unpacked to words and in the same order packed again, for a whole vector of them at a time. int8
// becomes uint8 first: 128 is added. With SSE4.1, products are left to XNNPACK.
//
// `is_signed` and `b_is_one` are constants wherever these functions are inlined.

#include "ukernels/arithmetic_q8.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "ukernels/blocks_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/microparams.h"

// Multipliers of sums have 22 bits with their sign: an upper part and this many lower bits, each as a word. A single operand is shifted
// by the bits of its lower part, and must remain a word.
enum { LOWER_BITS = 9, LOWER_BITS_ALONE = 7 };

#define UNROLL _Pragma("GCC unroll 4")

// Adds the zero point, and packs in the order in which bytes are unpacked.
static XNN_INLINE vint pack(bool is_signed, const vint integers[QUARTERS], vint zero_point) {
  const vint low = VINT(adds_epi16, VINT(packs_epi32, integers[0], integers[1]), zero_point);
  const vint high = VINT(adds_epi16, VINT(packs_epi32, integers[2], integers[3]), zero_point);
  return is_signed ? VINT(packs_epi16, low, high) : VINT(packus_epi16, low, high);
}

// Two words, as `set1_epi32` has them.
static XNN_INLINE int32_t two_words(int32_t low, int32_t high) {
  return (int32_t) ((uint32_t) (low & 0xFFFF) | (uint32_t) high << 16);
}

// Multipliers of the words of each lane. Shifted products are of the upper parts.
struct multipliers {
  vint upper;
  vint lower;
};

// Parts of the multipliers of two operands.
static XNN_INLINE struct multipliers multipliers(int32_t by_a, int32_t by_b) {
  const int32_t mask = (1 << LOWER_BITS) - 1;
  return (struct multipliers) {
      .upper = VINT(set1_epi32, two_words(by_a >> LOWER_BITS, by_b >> LOWER_BITS)),
      .lower = VINT(set1_epi32, two_words(by_a & mask, by_b & mask)),
  };
}

// A word of each operand in each lane, multiplied.
static XNN_INLINE void multiply_pairs(vint a, vint b, const struct multipliers* by, vint sums[QUARTERS]) {
  interleave_words(a, b, sums);
  UNROLL for (size_t q = 0; q < QUARTERS; q++) {
    const vint high = VINT(slli_epi32, VINT(madd_epi16, sums[q], by->upper), LOWER_BITS);
    sums[q] = VINT(add_epi32, high, VINT(madd_epi16, sums[q], by->lower));
  }
}

// One operand. Each lane has a word of it, which is multiplied by the lower part of the multiplier, and the word with the shift of the
// upper part, which is multiplied by that.
static XNN_INLINE void multiply_alone(vint a, vint parts, vint sums[QUARTERS]) {
  const vint front = VINT(unpacklo_epi8, a, vint_zero());
  const vint back = VINT(unpackhi_epi8, a, vint_zero());
  const vint shifted_front = VINT(slli_epi16, front, LOWER_BITS_ALONE);
  const vint shifted_back = VINT(slli_epi16, back, LOWER_BITS_ALONE);
  sums[0] = VINT(madd_epi16, VINT(unpacklo_epi16, front, shifted_front), parts);
  sums[1] = VINT(madd_epi16, VINT(unpackhi_epi16, front, shifted_front), parts);
  sums[2] = VINT(madd_epi16, VINT(unpacklo_epi16, back, shifted_back), parts);
  sums[3] = VINT(madd_epi16, VINT(unpackhi_epi16, back, shifted_back), parts);
}

static XNN_INLINE void add(
    size_t batch, const int8_t* a, const int8_t* b, bool b_is_one, int8_t* output,
    const struct xnn_qs8_add_minmax_params* params)
{
  assert(params->scalar.output_min == INT8_MIN && params->scalar.output_max == INT8_MAX);
  const int32_t by_a = params->scalar.a_multiplier;
  const int32_t by_b = params->scalar.b_multiplier;
  const struct multipliers by = multipliers(by_a, by_b);
  const vint parts_of_a =
      VINT(set1_epi32, two_words(by_a & ((1 << LOWER_BITS_ALONE) - 1), by_a >> LOWER_BITS_ALONE));
  const int32_t second = b_is_one ? *b * by_b : -BLOCK_SIGN * by_b;
  const vint start = VINT(set1_epi32, params->scalar.bias - BLOCK_SIGN * by_a + second);
  const __m128i shift = _mm_cvtsi32_si128(params->scalar.shift);
  const vint zero_point = VINT(set1_epi16, params->scalar.output_zero_point);
  for (size_t i = 0; i < batch; i += sizeof(vint)) {
    const size_t count = batch - i;
    const vint first = flip_sign(true, load_block(a + i, count));
    vint sums[QUARTERS];
    if (b_is_one) {
      multiply_alone(first, parts_of_a, sums);
    } else {
      multiply_pairs(first, flip_sign(true, load_block(b + i, count)), &by, sums);
    }
    UNROLL for (size_t q = 0; q < QUARTERS; q++) {
      sums[q] = VINT(sra_epi32, VINT(add_epi32, sums[q], start), shift);
    }
    store_block(output + i, pack(true, sums, zero_point), count);
  }
}

#define SUM(name, b_is_one) \
  void WITH_ISA(xnnpack_sys_qs8_##name##_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    add(batch, a, b, b_is_one, output, params); \
  }

SUM(vadd, false)
SUM(vaddc, true)

#ifdef __AVX2__

struct factors {
  int16_t zero_points[2];
  float scale;
  int16_t output_zero_point;
};

// Bytes less the zero point.
struct words {
  vint low;
  vint high;
};

static XNN_INLINE struct words differences(bool is_signed, vint bytes, vint zero_point) {
  bytes = flip_sign(is_signed, bytes);
  return (struct words) {
      .low = VINT(sub_epi16, VINT(unpacklo_epi8, bytes, vint_zero()), zero_point),
      .high = VINT(sub_epi16, VINT(unpackhi_epi8, bytes, vint_zero()), zero_point),
  };
}

static XNN_INLINE void multiply_words(vint a, vint b, vfloat scale, vint products[2]) {
  const vint low = VINT(mullo_epi16, a, b);
  const vint high = VINT(mulhi_epi16, a, b);
  const vfloat front = VINT(cvtepi32_ps, VINT(unpacklo_epi16, low, high));
  const vfloat back = VINT(cvtepi32_ps, VINT(unpackhi_epi16, low, high));
  products[0] = VINT(cvtps_epi32, VINT(mul_ps, front, scale));
  products[1] = VINT(cvtps_epi32, VINT(mul_ps, back, scale));
}

static XNN_INLINE void multiply(
    bool is_signed, size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output,
    struct factors factors)
{
  const int16_t offset = is_signed ? BLOCK_SIGN : 0;
  const vint zero_point_of_a = VINT(set1_epi16, (int16_t) (factors.zero_points[0] + offset));
  const vint zero_point_of_b = VINT(set1_epi16, (int16_t) (factors.zero_points[1] + offset));
  const vfloat scale = VINT(set1_ps, factors.scale);
  const vint zero_point = VINT(set1_epi16, factors.output_zero_point);
  const struct words one = differences(is_signed, VINT(set1_epi8, (char) *b), zero_point_of_b);
  for (size_t i = 0; i < batch; i += sizeof(vint)) {
    const size_t count = batch - i;
    const struct words first = differences(is_signed, load_block(a + i, count), zero_point_of_a);
    const struct words second = b_is_one ? one : differences(is_signed, load_block(b + i, count), zero_point_of_b);
    vint products[QUARTERS];
    multiply_words(first.low, second.low, scale, products);
    multiply_words(first.high, second.high, scale, products + 2);
    store_block(output + i, pack(is_signed, products, zero_point), count);
  }
}

#define PRODUCT(type, is_signed, name, b_is_one) \
  void WITH_ISA(xnnpack_sys_##type##_##name##_ukernel__)( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    const union xnn_##type##_mul_minmax_params* by = params; \
    const struct factors factors = { \
        .zero_points = {by->scalar.a_zero_point, by->scalar.b_zero_point}, .scale = by->scalar.scale, \
        .output_zero_point = by->scalar.output_zero_point}; \
    assert(by->scalar.output_max - by->scalar.output_min == UINT8_MAX); \
    multiply(is_signed, batch, a, b, b_is_one, output, factors); \
  }

PRODUCT(qs8, true, vmul, false)
PRODUCT(qs8, true, vmulc, true)
PRODUCT(qu8, false, vmul, false)
PRODUCT(qu8, false, vmulc, true)

#endif
