// Sines and cosines of floats: included by a file for each instruction set, which defines `ISA`.
//
// XNNPACK calls a function of the C library for each element. Here errors are below 0.95 units in the last place, and 1.03
// without FMA, near multiples of pi, too; elements beyond LIMIT have the results of the C library. No result depends on an
// element's neighbours. Vectors are in the notation of the compilers, so that one source serves all processors; only fused
// products and choices need instructions by name.

#include "ukernels/sine_f32.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

#include "ukernels/with_isa.h"
#include "xnnpack/common.h"

#if defined(__AVX512F__) || defined(__FMA__) || (defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA))
#define HAS_FMA
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t words __attribute__((vector_size(VECTOR_BYTES)));

enum {
  LANES = VECTOR_BYTES / sizeof(float),
  // Vectors that are computed together, because operations of one wait for each other.
#if defined(__AVX__) && defined(HAS_FMA)
  VECTORS = 2,
#else
  VECTORS = 4,
#endif
  STEP = VECTORS * LANES,
  // Elements that are checked together, if there are so many.
  BLOCK = 32 * LANES,
};

#define EACH(i) _Pragma("GCC unroll 4") for (size_t i = 0; i < VECTORS; i++)

static XNN_INLINE floats all(float value) { return value - (floats) {0}; }

static XNN_INLINE floats load(const float* from) {
  floats values;
  memcpy(&values, from, sizeof(values));
  return values;
}

static XNN_INLINE void store(float* to, floats values) { memcpy(to, &values, sizeof(values)); }

// Rounds once with FMA, twice without. Compilers may not fuse products by themselves.
static XNN_INLINE floats add_product(floats sum, floats a, floats b) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, sum);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, sum);
#elif defined(HAS_FMA)
  return vfmaq_f32(sum, a, b);
#else
  return sum + a * b;
#endif
}

static XNN_INLINE floats sub_product(floats from, floats a, floats b) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(a, b, from);
#elif defined(__FMA__)
  return _mm256_fnmadd_ps(a, b, from);
#elif defined(HAS_FMA)
  return vfmsq_f32(from, a, b);
#else
  return from - a * b;
#endif
}

// Elements beyond this, and NaN, are left to the C library. Up to 5,215 quarters of a circle lie within it, whose products
// with the parts below are exact.
#define LIMIT 8192.0f

// A quarter of a circle in parts. Without FMA the first is in two parts again. Products with the last alone are rounded. All
// are positive, so that the remainder of -0 is -0.
#define QUARTER 0x1.921FB4p+0f
#define QUARTER_HIGH 0x1.92p+0f
#define QUARTER_LOW 0x1.FB4p-12f
#define QUARTER_SECOND 0x1.444p-24f
#define QUARTER_THIRD 0x1.68C234p-39f

// A sum with this has the nearest integer in its lowest bits.
#define ROUNDING_TERM 0x1.8p23f

static XNN_INLINE bool is_zero(words values) {
  uint64_t parts[VECTOR_BYTES / sizeof(uint64_t)];
  memcpy(parts, &values, sizeof(parts));
  uint64_t any = 0;
  for (size_t i = 0; i < VECTOR_BYTES / sizeof(uint64_t); i++) {
    any |= parts[i];
  }
  return any == 0;
}

// Whether none of `count` elements is beyond the limit or NaN. Bit 30 is set from 2 on: one operation for each vector tells
// that all are smaller.
static XNN_INLINE bool are_within_limit(size_t count, const float* x) {
  words bits = {0};
  _Pragma("GCC unroll 8") for (size_t i = 0; i < count; i += LANES) {
    bits |= (words) load(x + i);
  }
  if (is_zero(bits & INT32_C(0x40000000))) {
    return true;
  }
  words within = ~(words) {0};
  _Pragma("GCC unroll 8") for (size_t i = 0; i < count; i += LANES) {
    within &= (floats) ((words) load(x + i) & INT32_MAX) <= all(LIMIT);
  }
  return is_zero(~within);
}

// `odd` where the lowest bit of `sum` is set, and `even` elsewhere, with the sign changed where the second lowest bit is
// set.
static XNN_INLINE floats with_quadrant(floats sum, floats even, floats odd) {
  const words bits = (words) sum;
#if defined(__AVX512F__)
  const __mmask16 is_odd = _mm512_test_epi32_mask((__m512i) bits, _mm512_set1_epi32(1));
  const __m512i result = (__m512i) _mm512_mask_blend_ps(is_odd, even, odd);
  // The exclusive or of `result` and the sign bit.
  return (floats) _mm512_ternarylogic_epi32(result, (__m512i) (bits << 30), _mm512_set1_epi32(INT32_MIN), 0x78);
#elif defined(__AVX2__)
  return (floats) ((words) _mm256_blendv_ps(even, odd, (floats) (bits << 31)) ^ ((bits << 30) & INT32_MIN));
#elif defined(__AVX__)
  // There are no shifts of 256 bits: the bit is compared as the last of a float from 2^23 on.
  const words is_odd = (floats) (bits & (int32_t) 0xFF800001) != all(0x1p23f);
  const words is_negative = (floats) (bits & (int32_t) 0xFF800002) != all(0x1p23f);
  return (floats) ((words) _mm256_blendv_ps(even, odd, (floats) is_odd) ^ (is_negative & INT32_MIN));
#else
  const words is_odd = (bits << 31) >> 31;
  const words result = (words) even ^ (((words) even ^ (words) odd) & is_odd);
  return (floats) (result ^ ((bits << 30) & INT32_MIN));
#endif
}

// Sines if `quarters` is 0, cosines if it is 1. `to` may be `from`.
static XNN_INLINE void compute_step(float quarters, const float* from, float* to) {
  const floats rounding = all(ROUNDING_TERM + quarters);
  floats x[VECTORS];
  floats sum[VECTORS];
  floats n[VECTORS];
  // The remainder is r - low.
  floats r[VECTORS];
  floats low[VECTORS];
  floats square[VECTORS];
  floats sine[VECTORS];
  floats cosine[VECTORS];
  EACH(i) { x[i] = load(from + i * LANES); }
  EACH(i) { sum[i] = add_product(rounding, x[i], all(0x1.45F306p-1f)); }
  EACH(i) { n[i] = sum[i] - rounding; }
#ifdef HAS_FMA
  EACH(i) { x[i] = sub_product(x[i], n[i], all(QUARTER)); }
#else
  EACH(i) { x[i] = sub_product(x[i], n[i], all(QUARTER_HIGH)); }
  EACH(i) { x[i] = sub_product(x[i], n[i], all(QUARTER_LOW)); }
#endif
  // All of these are exact, but for the rounding of `r`, which `low` makes up for.
  EACH(i) { r[i] = sub_product(x[i], n[i], all(QUARTER_SECOND)); }
  EACH(i) { low[i] = add_product(r[i] - x[i], n[i], all(QUARTER_SECOND)); }
  EACH(i) { low[i] = add_product(low[i], n[i], all(QUARTER_THIRD)); }
  EACH(i) { square[i] = r[i] * r[i]; }
  // Relative errors of the polynomials are below 9e-9 and 2e-10.
  EACH(i) { sine[i] = add_product(all(-0x1.110736p-7f), all(0x1.994222p-13f), square[i]); }
  EACH(i) { cosine[i] = add_product(all(-0x1.6C0C2Ep-10f), all(0x1.99EA04p-16f), square[i]); }
  EACH(i) { sine[i] = add_product(all(0x1.555546p-3f), sine[i], square[i]); }
  EACH(i) { cosine[i] = add_product(all(0x1.55554Ap-5f), cosine[i], square[i]); }
  // The difference of -0 and 0 is -0, unlike their sum.
  EACH(i) { sine[i] = r[i] - add_product(low[i], sine[i], r[i] * square[i]); }
#ifdef HAS_FMA
  EACH(i) { cosine[i] = add_product(all(-0.5f), cosine[i], square[i]); }
  // Only this product needs a more accurate square. The others need not wait for it.
  EACH(i) { square[i] = add_product(-((r[i] + r[i]) * low[i]), r[i], r[i]); }
  EACH(i) { cosine[i] = add_product(all(1.0f), cosine[i], square[i]); }
#else
  // The error of the first difference is a part of the rest.
  EACH(i) {
    const floats half = square[i] * 0.5f;
    const floats high = 1.0f - half;
    const floats rest = ((1.0f - high) - half) + (square[i] * square[i] * cosine[i] + r[i] * low[i]);
    cosine[i] = high + rest;
  }
#endif
  EACH(i) { store(to + i * LANES, with_quadrant(sum[i], sine[i], cosine[i])); }
}

// Computes any elements. Those within the limit have the results that they have elsewhere.
static XNN_INLINE void compute_any(
    float quarters, float (*function)(float), size_t count, const float* from, float* to)
{
  while (count != 0) {
    const size_t some = count < STEP ? count : STEP;
    float x[STEP] = {0};
    float results[STEP];
    memcpy(x, from, some * sizeof(float));
    compute_step(quarters, x, results);
    for (size_t i = 0; i < some; i++) {
      if XNN_UNLIKELY(!(fabsf(x[i]) <= LIMIT)) {
        results[i] = function(x[i]);
      }
    }
    memcpy(to, results, some * sizeof(float));
    count -= some;
    from += some;
    to += some;
  }
}

// Computes as many blocks as there are.
static XNN_INLINE size_t compute_blocks(
    size_t block, float quarters, void (*any)(size_t, const float*, float*), size_t count, const float* from, float* to)
{
  size_t done = 0;
  for (; count - done >= block; done += block) {
    if XNN_UNLIKELY(!are_within_limit(block, from + done)) {
      any(block, from + done, to + done);
      continue;
    }
    for (size_t i = done; i < done + block; i += STEP) {
      compute_step(quarters, from + i, to + i);
    }
  }
  return done;
}

static XNN_INLINE void compute(
    float quarters, void (*any)(size_t, const float*, float*), size_t batch, const float* from, float* to)
{
  assert(batch != 0 && batch % sizeof(float) == 0);
  const size_t count = batch / sizeof(float);
  size_t done = compute_blocks(BLOCK, quarters, any, count, from, to);
  done += compute_blocks(STEP, quarters, any, count - done, from + done, to + done);
  if (done != count) {
    any(count - done, from + done, to + done);
  }
}

// The function for any element is not inlined, because its constants would take registers from the other.
#define SINE(name, function, quarters) \
  static __attribute__((noinline)) void any_##name(size_t count, const float* from, float* to) { \
    compute_any(quarters, function, count, from, to); \
  } \
  F32_UNARY(WITH_ISA(xnnpack_sys_f32_v##name##_ukernel__)) { compute(quarters, any_##name, batch, input, output); }

SINE(sin, sinf, 0.0f)
SINE(cos, cosf, 1.0f)
