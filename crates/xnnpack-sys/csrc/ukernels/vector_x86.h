// Vectors of integers and floats as wide as the instruction set of the file: 512 bits with AVX512, 256 with AVX2, 128 with SSE4.1, and
// 256 with AVX, which only loads, stores and converts integers: it defines WITHOUT_INTEGERS. A file for AVX that defines NARROW_VECTORS
// has vectors of 128 bits, whose instructions write to a third register. Microkernels that use these names are compiled for each.

#ifndef XNNPACK_SYS_VECTOR_X86_H
#define XNNPACK_SYS_VECTOR_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "xnnpack/common.h"

#ifdef __AVX512F__

typedef __m512i vint;
typedef __m512 vfloat;
#define VINT(name, ...) _mm512_##name(__VA_ARGS__)
#define VINT_BITS(name, ...) _mm512_##name##_si512(__VA_ARGS__)

static XNN_INLINE vint vint_of_lanes(vint even, vint odd) { return _mm512_mask_blend_epi32(0xAAAA, even, odd); }
#ifdef __AVX512DQ__
static XNN_INLINE vint vint_sub_where_negative(vint from, vint negative, vint one) {
  return _mm512_mask_sub_epi32(from, _mm512_movepi32_mask(negative), from, one);
}
#endif
static XNN_INLINE vint vint_zero(void) { return _mm512_setzero_si512(); }
static XNN_INLINE vint vint_load(const void* from) { return _mm512_loadu_si512(from); }
static XNN_INLINE void vint_store(void* to, vint values) { _mm512_storeu_si512(to, values); }
static XNN_INLINE bool vint_any(vint values) { return _mm512_test_epi32_mask(values, values) != 0; }
static XNN_INLINE bool vint_any_less(vint values, vint than) { return _mm512_cmplt_epi32_mask(values, than) != 0; }
static XNN_INLINE vint vint_set1_64(int64_t value) { return _mm512_set1_epi64(value); }
static XNN_INLINE vint vint_set1_128(__m128i value) { return _mm512_broadcast_i32x4(value); }
static XNN_INLINE vint vint_of_bits(vfloat values) { return _mm512_castps_si512(values); }
static XNN_INLINE vfloat vfloat_of_bits(vint bits) { return _mm512_castsi512_ps(bits); }

#elif defined(__AVX__) && !defined(NARROW_VECTORS)

typedef __m256i vint;
typedef __m256 vfloat;
#define VINT(name, ...) _mm256_##name(__VA_ARGS__)

static XNN_INLINE vint vint_zero(void) { return _mm256_setzero_si256(); }
static XNN_INLINE vint vint_load(const void* from) { return _mm256_loadu_si256((const __m256i*) from); }
static XNN_INLINE void vint_store(void* to, vint values) { _mm256_storeu_si256((__m256i*) to, values); }
static XNN_INLINE vint vint_of_bits(vfloat values) { return _mm256_castps_si256(values); }
static XNN_INLINE vfloat vfloat_of_bits(vint bits) { return _mm256_castsi256_ps(bits); }
// All bits are set where either is NaN, and where `a` is not less than `b` or either is NaN.
static XNN_INLINE vfloat vfloat_unordered(vfloat a, vfloat b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
static XNN_INLINE vfloat vfloat_not_less(vfloat a, vfloat b) { return _mm256_cmp_ps(a, b, _CMP_NLT_UQ); }

#ifdef __AVX2__
#define VINT_BITS(name, ...) _mm256_##name##_si256(__VA_ARGS__)

static XNN_INLINE vint vint_of_lanes(vint even, vint odd) { return _mm256_blend_epi32(even, odd, 0xAA); }
static XNN_INLINE vint vint_sub_where_negative(vint from, vint negative, vint one) {
  return _mm256_sub_epi32(from, _mm256_and_si256(_mm256_srai_epi32(negative, 31), one));
}
static XNN_INLINE bool vint_any(vint values) { return !_mm256_testz_si256(values, values); }
static XNN_INLINE bool vint_any_less(vint values, vint than) { return vint_any(_mm256_cmpgt_epi32(than, values)); }
static XNN_INLINE vint vint_set1_64(int64_t value) { return _mm256_set1_epi64x(value); }
static XNN_INLINE vint vint_set1_128(__m128i value) { return _mm256_broadcastsi128_si256(value); }
#else
#define WITHOUT_INTEGERS
#endif

#else

typedef __m128i vint;
typedef __m128 vfloat;
#define VINT(name, ...) _mm_##name(__VA_ARGS__)
#define VINT_BITS(name, ...) _mm_##name##_si128(__VA_ARGS__)

static XNN_INLINE vint vint_of_lanes(vint even, vint odd) { return _mm_blend_epi16(even, odd, 0xCC); }
static XNN_INLINE vint vint_sub_where_negative(vint from, vint negative, vint one) {
  return _mm_sub_epi32(from, _mm_and_si128(_mm_srai_epi32(negative, 31), one));
}
static XNN_INLINE vint vint_zero(void) { return _mm_setzero_si128(); }
static XNN_INLINE vint vint_load(const void* from) { return _mm_loadu_si128((const __m128i*) from); }
static XNN_INLINE void vint_store(void* to, vint values) { _mm_storeu_si128((__m128i*) to, values); }
static XNN_INLINE bool vint_any(vint values) { return !_mm_testz_si128(values, values); }
static XNN_INLINE bool vint_any_less(vint values, vint than) { return vint_any(_mm_cmpgt_epi32(than, values)); }
static XNN_INLINE vint vint_set1_64(int64_t value) { return _mm_set1_epi64x(value); }
static XNN_INLINE vint vint_set1_128(__m128i value) { return value; }
static XNN_INLINE vfloat vfloat_unordered(vfloat a, vfloat b) { return _mm_cmpunord_ps(a, b); }
static XNN_INLINE vfloat vfloat_not_less(vfloat a, vfloat b) { return _mm_cmpnlt_ps(a, b); }
static XNN_INLINE vint vint_of_bits(vfloat values) { return _mm_castps_si128(values); }
static XNN_INLINE vfloat vfloat_of_bits(vint bits) { return _mm_castsi128_ps(bits); }

#endif

// Lanes of 32 bits.
enum { VECTOR_LANES = sizeof(vfloat) / sizeof(float) };

// Loads and stores floats, of which the first `count` exist. All exist where `count` is a constant of VECTOR_LANES.
static XNN_INLINE vfloat vfloat_load(const float* from, size_t count) {
  if (count >= VECTOR_LANES) {
    return VINT(loadu_ps, from);
  }
#ifdef __AVX512F__
  return _mm512_maskz_loadu_ps((__mmask16) ((1 << count) - 1), from);
#elif defined(__AVX__) && !defined(NARROW_VECTORS)
  static const int32_t some[2 * VECTOR_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_maskload_ps(from, _mm256_loadu_si256((const __m256i*) (some + VECTOR_LANES - count)));
#else
  const __m128 last = count % 2 != 0 ? _mm_load_ss(from + count - 1) : _mm_setzero_ps();
  return count >= 2 ? _mm_movelh_ps(_mm_castpd_ps(_mm_load_sd((const double*) from)), last) : last;
#endif
}

static XNN_INLINE void vfloat_store(float* to, vfloat values, size_t count) {
  if (count >= VECTOR_LANES) {
    VINT(storeu_ps, to, values);
    return;
  }
#ifdef __AVX512F__
  _mm512_mask_storeu_ps(to, (__mmask16) ((1 << count) - 1), values);
#else
  float some[VECTOR_LANES];
  VINT(storeu_ps, some, values);
  for (size_t i = 0; i < count; i++) {
    to[i] = some[i];
  }
#endif
}

// Rounds once with FMA, twice without.
static XNN_INLINE vfloat vfloat_add_product(vfloat sum, vfloat a, vfloat b) {
#if defined(__FMA__) || defined(__AVX512F__)
  return VINT(fmadd_ps, a, b, sum);
#else
  return VINT(add_ps, sum, VINT(mul_ps, a, b));
#endif
}

static XNN_INLINE vfloat vfloat_sub_product(vfloat from, vfloat a, vfloat b) {
#if defined(__FMA__) || defined(__AVX512F__)
  return VINT(fnmadd_ps, a, b, from);
#else
  return VINT(sub_ps, from, VINT(mul_ps, a, b));
#endif
}

// Clamps `x`. Maxima and minima return the second operand if either is NaN: bounds are first, so that NaN stays NaN, as in TFLite's
// reference kernels.
static XNN_INLINE vfloat vfloat_clamp(vfloat x, vfloat min, vfloat max) {
  return VINT(min_ps, max, VINT(max_ps, min, x));
}

#endif
