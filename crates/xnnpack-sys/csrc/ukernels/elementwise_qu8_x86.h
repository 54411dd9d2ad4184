// Operators on uint8, see `elementwise_qu8_loops.h`: included by a file for each instruction set of x86-64, which defines `ISA`.

#include <stdbool.h>
#include <string.h>

#include "ukernels/elementwise_qu8.h"
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
  uint64_t bytes = 0;
  if XNN_LIKELY(count >= LANES) {
    memcpy(&bytes, from, LANES);
  } else {
    memcpy(&bytes, from, count);
  }
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
  const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
  if XNN_LIKELY(count >= LANES) {
    memcpy(to, &bytes, LANES);
  } else {
    memcpy(to, &bytes, count);
  }
#endif
}

#include "ukernels/elementwise_qu8_loops.h"
