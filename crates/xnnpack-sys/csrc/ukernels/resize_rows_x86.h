// Bilinear interpolation along one axis after the other: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK's microkernels take all four neighbours of a pixel. Rows of an image that grows are between the same two rows of the input
// several times, so that they share sums, and down to a row there are vectors of any number of channels. Results are the same.
//
// `is_signed` is a constant wherever these functions are inlined.

#include "ukernels/resize_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"
#include "xnnpack/common.h"

enum {
  // Lanes of the vectors for pixels of fewer channels than VECTOR_LANES.
  FEW_LANES = 4,
  // Fractional bits of the weights of 8-bit integers.
  WEIGHT_BITS = 11,
  // Vectors of sums that become one of bytes.
  VECTORS_OF_BYTES = 4,
};

static XNN_INLINE float between_floats(float from, float to, float weight) { return from + (to - from) * weight; }

static XNN_INLINE __m128 between_few(__m128 from, __m128 to, __m128 weight) {
  return _mm_add_ps(from, _mm_mul_ps(_mm_sub_ps(to, from), weight));
}

// Rounds products before it adds them, as XNNPACK's microkernels do.
static XNN_INLINE vfloat between_vectors(vfloat from, vfloat to, vfloat weight) {
  return VINT(add_ps, from, VINT(mul_ps, VINT(sub_ps, to, from), weight));
}

// Calls `compute` for vectors of `lanes` of all channels, of which the last one overlaps the one before it.
#define EACH_VECTOR(lanes, count, compute) \
  do { \
    for (size_t at = 0; at + (lanes) < (count); at += (lanes)) { \
      compute(at); \
    } \
    compute((count) - (lanes)); \
  } while (0)

static XNN_INLINE __m128 load_three(const float* from) {
  const __m128 two = _mm_castpd_ps(_mm_load_sd((const double*) from));
  return _mm_movelh_ps(two, _mm_load_ss(from + 2));
}

static XNN_INLINE void store_three(float* to, __m128 values) {
  _mm_storel_pi((__m64*) to, values);
  _mm_store_ss(to + 2, _mm_movehl_ps(values, values));
}

static XNN_INLINE void pixel_of_floats(const float* left, const float* right, float weight, float* sums, size_t channels) {
#define FEW(at) \
  _mm_storeu_ps(sums + (at), between_few(_mm_loadu_ps(left + (at)), _mm_loadu_ps(right + (at)), _mm_set1_ps(weight)))
#define MANY(at) \
  VINT(storeu_ps, sums + (at), \
       between_vectors(VINT(loadu_ps, left + (at)), VINT(loadu_ps, right + (at)), VINT(set1_ps, weight)))
  if (channels == 3) {
    store_three(sums, between_few(load_three(left), load_three(right), _mm_set1_ps(weight)));
  } else if (channels < FEW_LANES) {
    for (size_t i = 0; i < channels; i++) {
      sums[i] = between_floats(left[i], right[i], weight);
    }
  } else if (channels < VECTOR_LANES) {
    EACH_VECTOR(FEW_LANES, channels, FEW);
  } else {
    EACH_VECTOR(VECTOR_LANES, channels, MANY);
  }
#undef FEW
#undef MANY
}

// Widens pairs of 8-bit integers to pairs of words.
static XNN_INLINE __m128i widen_few(bool is_signed, __m128i pairs) {
  return is_signed ? _mm_cvtepi8_epi16(pairs) : _mm_cvtepu8_epi16(pairs);
}

#if defined(__AVX512BW__)
static XNN_INLINE __m512i widened_pairs(bool is_signed, const uint8_t* left, const uint8_t* right) {
  const __m128i a = _mm_loadu_si128((const __m128i*) left);
  const __m128i b = _mm_loadu_si128((const __m128i*) right);
  const __m256i pairs = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(a, b)), _mm_unpackhi_epi8(a, b), 1);
  return is_signed ? _mm512_cvtepi8_epi16(pairs) : _mm512_cvtepu8_epi16(pairs);
}
#elif defined(__AVX2__)
static XNN_INLINE __m256i widened_pairs(bool is_signed, const uint8_t* left, const uint8_t* right) {
  const __m128i pairs = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i*) left), _mm_loadl_epi64((const __m128i*) right));
  return is_signed ? _mm256_cvtepi8_epi16(pairs) : _mm256_cvtepu8_epi16(pairs);
}
#endif

// Loads up to FEW_LANES bytes.
static XNN_INLINE __m128i load_few_bytes(const uint8_t* from, size_t count) {
  uint32_t bytes = 0;
  uint16_t two;
  if (count == FEW_LANES) {
    memcpy(&bytes, from, sizeof(bytes));
  } else {
    memcpy(&two, from, sizeof(two));
    bytes = count == 3 ? two | (uint32_t) from[2] << 16 : two;
  }
  return _mm_cvtsi32_si128((int32_t) bytes);
}

// Sums of up to FEW_LANES channels.
static XNN_INLINE __m128i few_sums(bool is_signed, const uint8_t* left, const uint8_t* right, int32_t weights, size_t count) {
  const __m128i pairs = _mm_unpacklo_epi8(load_few_bytes(left, count), load_few_bytes(right, count));
  return _mm_madd_epi16(widen_few(is_signed, pairs), _mm_set1_epi32(weights));
}

static XNN_INLINE void pixel_of_bytes(
    bool is_signed, const uint8_t* left, const uint8_t* right, int32_t weight, int32_t* sums, size_t channels)
{
  const int32_t weights = ((1 << WEIGHT_BITS) - weight) | weight << 16;
#define FEW(at) \
  _mm_storeu_si128((__m128i*) (sums + (at)), few_sums(is_signed, left + (at), right + (at), weights, FEW_LANES))
#define MANY(at) \
  vint_store(sums + (at), \
             VINT(madd_epi16, widened_pairs(is_signed, left + (at), right + (at)), VINT(set1_epi32, weights)))
  if (channels == 1) {
    const int32_t from = is_signed ? (int8_t) *left : *left;
    const int32_t to = is_signed ? (int8_t) *right : *right;
    *sums = from * (1 << WEIGHT_BITS) + (to - from) * weight;
    return;
  }
  if (channels < FEW_LANES) {
    const __m128i results = few_sums(is_signed, left, right, weights, channels);
    _mm_storel_epi64((__m128i*) sums, results);
    if (channels == 3) {
      sums[2] = _mm_extract_epi32(results, 2);
    }
    return;
  }
#ifdef __AVX2__
  if (channels >= VECTOR_LANES) {
    EACH_VECTOR(VECTOR_LANES, channels, MANY);
    return;
  }
#endif
  EACH_VECTOR(FEW_LANES, channels, FEW);
#undef FEW
#undef MANY
}

// Defines `name`, which calls `pixel` for each pixel, with a number of channels that is known where they are few.
#define ACROSS(name, element, weight, sum, pixel) \
  static XNN_INLINE void name##_of( \
      size_t pixels, size_t channels, const void* const* corners, size_t input_offset, const weight* weights, sum* sums) \
  { \
    for (size_t i = 0; i < pixels; i++) { \
      const element* left = (const element*) ((uintptr_t) corners[4 * i] + input_offset); \
      const element* right = (const element*) ((uintptr_t) corners[4 * i + 1] + input_offset); \
      pixel(left, right, weights[i], sums + i * channels, channels); \
    } \
  } \
  RESIZE_ACROSS(WITH_ISA(name)) { \
    const size_t count = channels / sizeof(element); \
    switch (count) { \
      case 1: name##_of(pixels, 1, corners, input_offset, weights, sums); return; \
      case 2: name##_of(pixels, 2, corners, input_offset, weights, sums); return; \
      case 3: name##_of(pixels, 3, corners, input_offset, weights, sums); return; \
      default: name##_of(pixels, count, corners, input_offset, weights, sums); \
    } \
  }

#define PIXEL_S8(...) pixel_of_bytes(true, __VA_ARGS__)
#define PIXEL_U8(...) pixel_of_bytes(false, __VA_ARGS__)

ACROSS(xnnpack_sys_f32_resize_across_ukernel__, float, float, float, pixel_of_floats)
ACROSS(xnnpack_sys_s8_resize_across_ukernel__, uint8_t, int16_t, int32_t, PIXEL_S8)
ACROSS(xnnpack_sys_u8_resize_across_ukernel__, uint8_t, int16_t, int32_t, PIXEL_U8)

RESIZE_DOWN(WITH_ISA(xnnpack_sys_f32_resize_down_ukernel__)) {
  const float* from = above;
  const float* to = below;
  const float factor = *(const float*) weight;
  float* results = output;
  const vfloat factors = VINT(set1_ps, factor);
  size_t at = 0;
  for (; at + VECTOR_LANES <= count; at += VECTOR_LANES) {
    VINT(storeu_ps, results + at, between_vectors(VINT(loadu_ps, from + at), VINT(loadu_ps, to + at), factors));
  }
  for (; at < count; at++) {
    results[at] = between_floats(from[at], to[at], factor);
  }
}

// A sum whose highest bits are the result, of 8 bits.
static XNN_INLINE vint rounded(vint above, vint below, vint weight) {
  const vint half = VINT(set1_epi32, 1 << (2 * WEIGHT_BITS - 1));
  const vint difference = VINT(mullo_epi32, VINT(sub_epi32, below, above), weight);
  return VINT(add_epi32, VINT(add_epi32, VINT(slli_epi32, above, WEIGHT_BITS), half), difference);
}

// Narrows results to bytes, in their order.
static XNN_INLINE vint narrowed(const vint results[VECTORS_OF_BYTES]) {
  const vint words[] = {VINT(packs_epi32, results[0], results[1]), VINT(packs_epi32, results[2], results[3])};
  const vint byte = VINT(set1_epi16, 0xFF);
  const vint bytes = VINT(packus_epi16, VINT_BITS(and, words[0], byte), VINT_BITS(and, words[1], byte));
#if defined(__AVX512BW__)
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, bytes);
#elif defined(__AVX2__)
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#else
  return bytes;
#endif
}

RESIZE_DOWN(WITH_ISA(xnnpack_sys_x8_resize_down_ukernel__)) {
  const int32_t* from = above;
  const int32_t* to = below;
  const int32_t factor = *(const int16_t*) weight;
  uint8_t* results = output;
  const vint factors = VINT(set1_epi32, factor);
  size_t at = 0;
  for (; at + sizeof(vint) <= count; at += sizeof(vint)) {
    vint sums[VECTORS_OF_BYTES];
    _Pragma("GCC unroll 4") for (size_t i = 0; i < VECTORS_OF_BYTES; i++) {
      const size_t first = at + i * VECTOR_LANES;
      sums[i] = VINT(srai_epi32, rounded(vint_load(from + first), vint_load(to + first), factors), 2 * WEIGHT_BITS);
    }
    vint_store(results + at, narrowed(sums));
  }
  for (; at < count; at++) {
    const int32_t sum = from[at] * (1 << WEIGHT_BITS) + (to[at] - from[at]) * factor;
    results[at] = (uint8_t) ((sum + (1 << (2 * WEIGHT_BITS - 1))) >> (2 * WEIGHT_BITS));
  }
}
