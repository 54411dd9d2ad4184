// Operators on uint8, see `elementwise_qu8_loops.h`: included by a file for each instruction set of x86-64, which defines `ISA`.
//
// Exact rounding takes three products of 64 bits for each sum. A linear form in 32 bits tells all results but those close to a tie,
// about one in 6000. Blocks with such a result are rounded exactly. Operands of one scale have few different sums, and mostly a linear
// form that tells them all.

#include <stdbool.h>
#include <string.h>

#include "ukernels/blocks_x86.h"
#include "ukernels/elementwise_qu8.h"
#include "ukernels/few_bytes.h"
#include "ukernels/fixed_point.h"
#include "ukernels/microkernel.h"

#define LANES VECTOR_LANES

typedef vint lanes;

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

// Loads a byte for each lane, of which the first `count` exist.
static XNN_INLINE __m128i load_bytes(const uint8_t* from, size_t count) {
#ifdef __AVX512BW__
  return _mm_maskz_loadu_epi8(count < LANES ? (1 << count) - 1 : ALL_LANES, from);
#else
  const uint64_t bytes = load_up_to_8(from, count < LANES ? count : LANES);
  return _mm_cvtsi64_si128((int64_t) bytes);
#endif
}

static XNN_INLINE vint differences(const struct operand* operand, const uint8_t* from, size_t count) {
  return VINT(sub_epi32, VINT(cvtepu8_epi32, load_bytes(from, count)), operand->zero_point);
}

static XNN_INLINE vint scaled(const struct operand* operand, vint values) {
  const vint scaled = scale_sums(&operand->scaling, VINT(slli_epi32, values, QU8_ADD_MORE_BITS));
  return VINT(sub_epi32, VINT_BITS(xor, scaled, operand->sign), operand->sign);
}

static XNN_INLINE vint sum(vint a, vint b) { return VINT(add_epi32, a, b); }

static XNN_INLINE void store(const struct operand* output, vint sums, uint8_t* to, size_t count) {
  const vint scaled = VINT(add_epi32, scale_sums(&output->scaling, sums), output->zero_point);
#ifdef __AVX512BW__
  const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(scaled, vint_zero()));
  _mm_mask_storeu_epi8(to, count < LANES ? (1 << count) - 1 : ALL_LANES, bytes);
#else
#ifdef __AVX2__
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(scaled), _mm256_extracti128_si256(scaled, 1));
#else
  const __m128i words = _mm_packs_epi32(scaled, scaled);
#endif
  const uint64_t bytes = (uint64_t) _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
  store_up_to_8(to, bytes, count < LANES ? count : LANES);
#endif
}

#include "ukernels/elementwise_qu8_loops.h"

static XNN_INLINE void add(
    size_t batch, const uint8_t* a, const uint8_t* b, bool b_is_one, uint8_t* output, const void* params)
{
  struct linear by;
  memcpy(&by, (const char*) params + offsetof(struct numbers, linear), sizeof(by));
  if (by.shift == 0) {
    add_exactly(batch, a, b, b_is_one, output, params);
    return;
  }
#ifdef __AVX512BW__
  // Half a vector takes as long as a whole one.
  if (batch <= sizeof(__m256i)) {
    (b_is_one ? xnnpack_sys_qu8_vaddc_ukernel__avx2 : xnnpack_sys_qu8_vadd_ukernel__avx2)(batch, a, b, output, params);
    return;
  }
#endif
  const vint upper = VINT(set1_epi32, (int32_t) by.upper);
  const vint lower = VINT(set1_epi32, (int32_t) by.lower);
  const vint start = VINT(set1_epi32, by.start);
  const vint fraction = VINT(set1_epi32, (1 << by.shift) - 1);
  const vint error = VINT(set1_epi32, by.error);
  const __m128i shift = _mm_cvtsi32_si128(by.shift);
  const vint one = VINT(set1_epi8, (char) *b);
  for (size_t i = 0; i < batch; i += sizeof(vint)) {
    const size_t count = batch - i;
    const vint first = load_block(a + i, count);
    const vint second = b_is_one ? one : load_block(b + i, count);
    vint sums[QUARTERS];
    interleave_words(first, second, sums);
    vint least = fraction;
    _Pragma("GCC unroll 4") for (size_t q = 0; q < QUARTERS; q++) {
      const vint high = VINT(slli_epi32, VINT(madd_epi16, sums[q], upper), QU8_LINEAR_LOWER_BITS);
      const vint low = VINT(add_epi32, VINT(madd_epi16, sums[q], lower), start);
      const vint sum = VINT(add_epi32, high, low);
      least = VINT(min_epi32, least, VINT_BITS(and, sum, fraction));
      sums[q] = VINT(sra_epi32, sum, shift);
    }
    if XNN_UNLIKELY(vint_any_less(least, error)) {
      const size_t block = count < sizeof(vint) ? count : sizeof(vint);
      add_exactly(block, a + i, b_is_one ? b : b + i, b_is_one, output + i, params);
      continue;
    }
    const vint words = VINT(packs_epi32, sums[0], sums[1]);
    const vint more_words = VINT(packs_epi32, sums[2], sums[3]);
    store_block(output + i, VINT(packus_epi16, words, more_words), count);
  }
}

QU8_SUMS(add)
