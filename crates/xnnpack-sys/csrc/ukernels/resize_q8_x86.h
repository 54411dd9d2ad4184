// Bilinear interpolation between four pixels of 8-bit integers: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels take 16 channels, and the rest in steps; here a vector has 32 or 64, and the last one of a pixel overlaps the
// one before it. A vector whose channels do not fill it has two halves that overlap. Fewer channels than half of a vector are left to
// `smaller`. int8 becomes uint8 first: 128 is added to all four pixels, and so to what is between them.
//
// `is_signed` is a constant wherever these functions are inlined.

#include "ukernels/resize_q8.h"

#include <stdbool.h>
#include <string.h>

#include "ukernels/blocks_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/common.h"
#include "xnnpack/ibilinear.h"

enum {
  CORNERS = 4,
  HALF = sizeof(vint) / 2,
  // Fractional bits of weights.
  WEIGHT_BITS = 11,
};

#define UNROLL _Pragma("GCC unroll 4")

// Distances from the left pixels and from the upper ones. The former has a weight for the right pixel behind one for the left in each
// lane.
struct weights {
  vint across;
  vint down;
};

#ifdef __AVX512BW__
static XNN_INLINE vint load_halves(const uint8_t* low, const uint8_t* high) {
  const __m512i front = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*) low));
  return _mm512_inserti64x4(front, _mm256_loadu_si256((const __m256i*) high), 1);
}
static XNN_INLINE void store_halves(uint8_t* low, uint8_t* high, vint both) {
  _mm256_storeu_si256((__m256i*) low, _mm512_castsi512_si256(both));
  _mm256_storeu_si256((__m256i*) high, _mm512_extracti64x4_epi64(both, 1));
}
#else
static XNN_INLINE vint load_halves(const uint8_t* low, const uint8_t* high) {
  const __m256i front = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*) low));
  return _mm256_inserti128_si256(front, _mm_loadu_si128((const __m128i*) high), 1);
}
static XNN_INLINE void store_halves(uint8_t* low, uint8_t* high, vint both) {
  _mm_storeu_si128((__m128i*) low, _mm256_castsi256_si128(both));
  _mm_storeu_si128((__m128i*) high, _mm256_extracti128_si256(both, 1));
}
#endif

// Interpolates between the left and the right pixel.
static XNN_INLINE void interpolate_row(bool is_signed, vint left, vint right, vint across, vint sums[QUARTERS]) {
  interleave_words(flip_sign(is_signed, left), flip_sign(is_signed, right), sums);
  UNROLL for (size_t q = 0; q < QUARTERS; q++) {
    sums[q] = VINT(madd_epi16, sums[q], across);
  }
}

static XNN_INLINE vint interpolate(bool is_signed, const vint corners[CORNERS], const struct weights* weights) {
  vint above[QUARTERS];
  vint below[QUARTERS];
  interpolate_row(is_signed, corners[0], corners[1], weights->across, above);
  interpolate_row(is_signed, corners[2], corners[3], weights->across, below);
  const vint half = VINT(set1_epi32, 1 << (2 * WEIGHT_BITS - 1));
  vint sums[QUARTERS];
  UNROLL for (size_t q = 0; q < QUARTERS; q++) {
    const vint difference = VINT(mullo_epi32, VINT(sub_epi32, below[q], above[q]), weights->down);
    const vint start = VINT(add_epi32, VINT(slli_epi32, above[q], WEIGHT_BITS), half);
    sums[q] = VINT(srli_epi32, VINT(add_epi32, start, difference), 2 * WEIGHT_BITS);
  }
  const vint low = VINT(packs_epi32, sums[0], sums[1]);
  const vint high = VINT(packs_epi32, sums[2], sums[3]);
  return flip_sign(is_signed, VINT(packus_epi16, low, high));
}

static XNN_INLINE void interpolate_halves(
    bool is_signed, const uint8_t* const from[CORNERS], size_t high, const struct weights* weights, uint8_t* output)
{
  vint corners[CORNERS];
  UNROLL for (size_t i = 0; i < CORNERS; i++) {
    corners[i] = load_halves(from[i], from[i] + high);
  }
  store_halves(output, output + high, interpolate(is_signed, corners, weights));
}

static XNN_INLINE void interpolate_vector(
    bool is_signed, const uint8_t* const from[CORNERS], size_t at, const struct weights* weights, uint8_t* output)
{
  vint corners[CORNERS];
  UNROLL for (size_t i = 0; i < CORNERS; i++) {
    corners[i] = vint_load(from[i] + at);
  }
  vint_store(output + at, interpolate(is_signed, corners, weights));
}

static XNN_INLINE void interpolate_pixel(
    bool is_signed, const uint8_t* const from[CORNERS], size_t channels, const struct weights* weights, uint8_t* output)
{
  if (channels < sizeof(vint)) {
    interpolate_halves(is_signed, from, channels - HALF, weights, output);
    return;
  }
  size_t at = 0;
  for (; at + sizeof(vint) <= channels; at += sizeof(vint)) {
    interpolate_vector(is_signed, from, at, weights, output);
  }
  if (at != channels) {
    interpolate_vector(is_signed, from, channels - sizeof(vint), weights, output);
  }
}

static XNN_INLINE void interpolate_pixels(
    bool is_signed, size_t pixels, size_t channels, const void** input, size_t input_offset, const int16_t* weights,
    uint8_t* output, size_t output_increment)
{
  for (; pixels != 0; pixels--) {
    const uint8_t* from[CORNERS];
    UNROLL for (size_t i = 0; i < CORNERS; i++) {
      from[i] = (const uint8_t*) input[i] + input_offset;
    }
    const int32_t right = weights[0];
    const struct weights of_pixel = {
        .across = VINT(set1_epi32, ((1 << WEIGHT_BITS) - right) | right << 16),
        .down = VINT(set1_epi32, weights[1]),
    };
    interpolate_pixel(is_signed, from, channels, &of_pixel, output);
    input += CORNERS;
    weights += 2;
    output += channels + output_increment;
  }
}

#define INTERPOLATION_OR(type, is_signed, smaller) \
  Q8_IBILINEAR(WITH_ISA(xnnpack_sys_##type##_ibilinear_ukernel__)) { \
    if (channels <= HALF) { \
      smaller(pixels, channels, (void*) input, input_offset, weights, output, output_increment); \
      return; \
    } \
    interpolate_pixels(is_signed, pixels, channels, input, input_offset, weights, output, output_increment); \
  }
